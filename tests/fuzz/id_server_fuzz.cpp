// SPDX-License-Identifier: Apache-2.0
// An id server and up to four TCP connections to it. Actions (low nibble; the high one picks the
// connection): 0 bytes as they are, 1 a frame of type `detail`, 2 an early hello whose proof is
// made good, cut in two at `detail`, 3 close. Afterwards the server must still answer a rank.
#include "bootstrap/acceptor.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/frame_channel.h"
#include "bootstrap/id_server.h"
#include "bootstrap/messages.h"
#include "bootstrap/poll.h"
#include "fuzz.h"

#include <algorithm>
#include <array>
#include <future>

#include <sys/socket.h>

namespace {

using namespace hccl;
using namespace hccl::bootstrap;

constexpr std::size_t kMostSteps = 40;
constexpr std::chrono::seconds kPatience{20};

FileDescriptor connect_to(const Address& address) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const linger at_once{1, 0};  // many thousand connections must leave no port in TIME_WAIT
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  const SocketAddress where = to_socket_address(address);
  fuzz::check(connect(socket.get(), where.get(), where.length) == 0, "the server can be reached");
  return socket;
}

// Returns when the control thread has done what was to be done by now.
void await_control_thread() {
  for (int turn = 0; turn < 2; ++turn) {
    std::promise<void> done;
    const std::future<void> turned = done.get_future();
    ControlThread::instance().post([&done] { done.set_value(); });
    fuzz::check(turned.wait_for(kPatience) == std::future_status::ready,
                "the control thread is alive");
  }
}

class Play {
 public:
  explicit Play(const Address& server) : server_(server) {}

  void act(const fuzz::Step& step) {
    FileDescriptor& socket = sockets_.at((step.action >> 4) % sockets_.size());
    if (step.action % 4 == 3) return socket.reset();
    if (!socket.valid()) socket = connect_to(server_);
    if (step.action % 4 == 0) return say(socket, step.bytes);
    if (step.action % 4 == 1) {
      return say(socket, encode_frame(static_cast<FrameType>(step.detail), step.bytes));
    }
    const Bytes frame =
        encode_frame(FrameType::early_hello, fuzz::proved("hccl rank", kNoNonce, step.bytes));
    const std::size_t cut = std::min<std::size_t>(step.detail, frame.size());
    say(socket, std::span(frame).first(cut));
    await_control_thread();
    say(socket, std::span(frame).subspan(cut));
  }

 private:
  static void say(const FileDescriptor& socket, std::span<const std::byte> bytes) {
    if (!bytes.empty()) fuzz::send_bytes(socket.get(), bytes);
  }

  Address server_;
  std::array<FileDescriptor, 4> sockets_;
};

// What a rank hears that comes now: welcome, or why not.
Frame answer_to_a_rank(const Address& server) {
  FrameChannel channel(connect_to(server), kLargePayload);
  const Hello hello{{}, 2, 3, {1, 1, "host", "box"}, {}};
  channel.send(FrameType::early_hello, serialize(hello, fuzz::fixed_key(), kNoNonce));
  const Deadline deadline = Deadline::after(kPatience);
  while (true) {
    std::optional<Frame> frame = channel.receive();
    if (frame && frame->type != FrameType::greeting) return *std::move(frame);
    if (frame) continue;
    fuzz::check(!channel.closed() && !deadline.expired(), "a rank gets an answer");
    std::vector<pollfd> wanted{{channel.fd(), POLLIN, 0}};
    poll_until(wanted, deadline);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ControlThread::instance().start();
  UniqueId id;
  Address loopback;
  loopback.bytes = {127, 0, 0, 1};
  FileDescriptor listener = listen_on(loopback);
  id.addresses = {local_address(listener.get())};
  const auto server = std::make_shared<IdServer>(id, std::move(listener), fuzz::fixed_key());
  server->start();
  {
    Play play(id.addresses[0]);
    for (const fuzz::Step& step : fuzz::read_play(fuzz::bytes_of(data, size), kMostSteps)) {
      play.act(step);
      if (step.action & 8) await_control_thread();
    }
    const Frame answer = answer_to_a_rank(id.addresses[0]);
    const auto refusal = parse_failure(answer.payload);
    fuzz::check(answer.type == FrameType::welcome || (answer.type == FrameType::refusal && refusal),
                "a rank is welcomed or refused");
    fuzz::accepted = refusal && refusal->text.find("already complete") != std::string::npos;
  }
  server->stop();
  await_control_thread();
  return 0;
}
