// SPDX-License-Identifier: Apache-2.0
// A rank, and what a server says to it. Actions: 0 bytes as they are, 1 a frame of type `detail`,
// 2 a welcome whose proof is made good, 3 a frame that is cut in two at `detail` of its bytes and
// whose type is their first. The connection then ends, so no wait is long.
#include "base/error.h"
#include "bootstrap/rendezvous_client.h"
#include "fuzz.h"

#include <algorithm>

#include <sys/socket.h>

namespace {

using namespace hccl;
using namespace hccl::bootstrap;

constexpr std::size_t kMostSteps = 40;

void say(int socket, const fuzz::Step& step) {
  const auto send = [socket](std::span<const std::byte> bytes) {
    if (!bytes.empty()) fuzz::send_bytes(socket, bytes);
  };
  const std::span<const std::byte> bytes(step.bytes);
  switch (step.action % 4) {
    case 0:
      return send(bytes);
    case 1:
      return send(encode_frame(static_cast<FrameType>(step.detail), bytes));
    case 2:
      return send(encode_frame(FrameType::welcome, fuzz::proved("hccl server", kNoNonce, bytes)));
    default: {
      if (bytes.empty()) return;
      const Bytes frame = encode_frame(static_cast<FrameType>(bytes[0]), bytes.subspan(1));
      const std::size_t cut = std::min<std::size_t>(step.detail, frame.size());
      send(std::span(frame).first(cut));
      send(std::span(frame).subspan(cut));
    }
  }
}

void join(FileDescriptor socket) {
  UniqueId id;
  id.addresses = {Address{.port = 1}};
  const Hello hello{{}, 1, 2, {1, 1, "host", "box"}, {}};
  RendezvousClient client(id, fuzz::fixed_key(), hello, Deadline::after(std::chrono::seconds(20)));
  try {
    if (!client.join_over(std::move(socket))) return;
    const Table table = client.wait_for_table();
    fuzz::check(table.ranks.size() == 2, "a table of all ranks");
    static_cast<void>(client.finish({}));
    fuzz::accepted = true;
  } catch (const Error& error) {
    fuzz::check(error.code() != hcclSuccess, "an error is none");
    client.leave({error.code(), error.what()});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int before = fuzz::open_descriptors();
  fuzz::Connection connection = fuzz::make_connection();
  for (const fuzz::Step& step : fuzz::read_play(fuzz::bytes_of(data, size), kMostSteps)) {
    say(connection.far.get(), step);
  }
  // What the rank says is left unread, as a server that is stopped leaves it.
  shutdown(connection.far.get(), SHUT_WR);
  join(std::move(connection.near));
  connection.far.reset();
  fuzz::check(fuzz::open_descriptors() == before, "no descriptor stays");
  return 0;
}
