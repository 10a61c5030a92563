// SPDX-License-Identifier: Apache-2.0
// Fuzzes a member of a node with frames from the node's leader. Actions: 0 sends the bytes, 1 sends
// an entry frame, 2 sends a control_block frame. Each action passes `detail` descriptors, and the
// frames announce that number.
#include "base/error.h"
#include "bootstrap/node_exchange.h"
#include "fuzz.h"

namespace {

using namespace hccl;
using namespace hccl::bootstrap;

constexpr std::size_t kMostSteps = 40;

void send_step(int socket, const fuzz::Step& step) {
  const int action = step.action % 3;
  const FrameType type = action == 1 ? FrameType::entry : FrameType::control_block;
  const Bytes sent = action == 0 ? step.bytes : encode_frame(type, step.bytes, step.detail);
  if (!sent.empty()) fuzz::send_bytes(socket, sent, step.detail);
}

ProcessIdentity process(int pid) { return {pid, 1, "host", "node"}; }

void follow(FileDescriptor socket) {
  UniqueId id;
  id.addresses = {Address{.port = 1}};
  RendezvousClient client(id, JoinKey(SecretBytes(), false), {}, Deadline::never());
  const Table table{{}, {{process(1), {}}, {process(2), {}}}};
  NodeExchange exchange(client, table, 1, FileDescriptor());
  try {
    EventLoop& loop = client.loop();
    const auto leader = std::make_shared<FrameConnection>(
        loop, FrameConnection::Detached{std::move(socket)},
        FrameConnection::Limits{.payload = kLargePayload, .descriptors = 1024});
    while (std::optional<Frame> frame = fuzz::await_frame(loop, *leader)) {
      if (!exchange.take_from_leader(*frame)) continue;
      fuzz::accepted = true;
      return;
    }
  } catch (const Error& error) {
    fuzz::check(error.code() != hcclSuccess, "an error has a failure code");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int before = fuzz::open_descriptors();
  {
    fuzz::Connection connection = fuzz::make_connection();
    for (const fuzz::Step& step : fuzz::read_play(fuzz::bytes_of(data, size), kMostSteps)) {
      send_step(connection.far.get(), step);
    }
    connection.far.reset();
    follow(std::move(connection.near));
  }
  fuzz::check(fuzz::open_descriptors() == before, "no descriptor leaks");
  return 0;
}
