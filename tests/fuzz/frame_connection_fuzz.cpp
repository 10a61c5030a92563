// SPDX-License-Identifier: Apache-2.0
// Fuzzes a frame connection. The input determines how many bytes each read returns. A step with an
// even action sends its bytes with `detail` descriptors. A step with an odd action sends a whole
// frame in two parts; `detail` selects where the frame is split.
#include "bootstrap/frame_connection.h"
#include "fuzz.h"

namespace {

using namespace hccl;
using namespace hccl::bootstrap;

constexpr std::size_t kMostSteps = 40;
constexpr std::size_t kMostPayload = 4096;

struct Sent {
  std::size_t whole_frames = 0;
  bool only_frames = true;
};

void send_step(int socket, const fuzz::Step& step, Sent& sent) {
  if (step.action % 2 == 0) {
    sent.only_frames = false;
    if (!step.bytes.empty()) fuzz::send_bytes(socket, step.bytes, step.detail);
    return;
  }
  const Bytes frame = encode_frame(FrameType::entry, step.bytes);
  const std::size_t cut = 1 + step.detail % (frame.size() - 1);
  const bool all = fuzz::send_bytes(socket, std::span(frame).first(cut)) &&
                   fuzz::send_bytes(socket, std::span(frame).subspan(cut));
  if (!all || step.bytes.size() > kMostPayload) sent.only_frames = false;
  ++sent.whole_frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int before = fuzz::open_descriptors();
  {
    fuzz::Connection connection = fuzz::make_connection();
    Sent sent;
    for (const fuzz::Step& step : fuzz::read_play(fuzz::bytes_of(data, size), kMostSteps)) {
      send_step(connection.far.get(), step, sent);
    }
    connection.far.reset();
    EventLoop loop;
    const auto frames = std::make_shared<FrameConnection>(
        loop, FrameConnection::Detached{std::move(connection.near)},
        FrameConnection::Limits{.payload = kMostPayload, .descriptors = 8});
    std::size_t received = 0;
    while (const std::optional<Frame> frame = fuzz::await_frame(loop, *frames)) {
      ++received;
      fuzz::check(frame->payload.size() <= kMostPayload, "no frame is too large");
    }
    fuzz::check(frames->ended(), "the end of the connection is detected");
    fuzz::accepted = received > 0 && !frames->broke_rules();
    if (sent.only_frames) {
      fuzz::check(received == sent.whole_frames && !frames->broke_rules(),
                  "every frame arrives, wherever it was split");
    }
  }
  fuzz::check(fuzz::open_descriptors() == before, "no descriptor leaks");
  return 0;
}
