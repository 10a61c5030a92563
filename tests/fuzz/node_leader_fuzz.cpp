// SPDX-License-Identifier: Apache-2.0
// Fuzzes a leader's node socket over up to four connections. The high nibble of a step's action
// selects the connection. The low two bits select the operation: 0 sends the bytes with `detail`
// descriptors, 1 sends a contribution that announces and passes `detail` descriptors, 2 sends the
// same contribution in two parts, 3 closes the connection.
#include "base/secret.h"
#include "bootstrap/messages.h"
#include "bootstrap/node_exchange.h"
#include "bootstrap/node_socket.h"
#include "bootstrap/pending_connections.h"
#include "fuzz.h"

#include <array>

namespace {

using namespace hccl;
using namespace hccl::bootstrap;

constexpr std::size_t kMostSteps = 40;

class Leader final : PendingConnections::Owner {
 public:
  Leader() { pending_.start(); }

  void act(const fuzz::Step& step) {
    FileDescriptor& socket = sockets_.at((step.action >> 4) % sockets_.size());
    if (step.action % 4 == 3) return socket.reset();
    if (!socket.valid()) socket = connect_to_node(name_);
    if (step.action % 4 == 0) return send_to(socket, step.bytes, step.detail);
    const Bytes frame = encode_frame(FrameType::contribution, step.bytes, step.detail);
    const std::size_t cut = step.action % 4 == 2 ? frame.size() / 2 : frame.size();
    send_to(socket, std::span(frame).first(cut), step.detail);
    serve();
    send_to(socket, std::span(frame).subspan(cut), 0);
  }

  void serve() {
    const auto now = std::chrono::nanoseconds(1);
    while (loop_.run_one(Deadline::after(now))) continue;
  }

  void close_all() {
    for (FileDescriptor& socket : sockets_) socket.reset();
    serve();
    while (!pending_.empty()) loop_.run_one(Deadline::never());
  }

 private:
  void on_accepted(FileDescriptor socket, const SocketAddress&) override {
    pending_.add({std::move(socket)});
  }
  void on_pending_frame(PendingConnections::Pending& pending, Frame& frame) override {
    if (take(frame)) return pending_.take(pending)->close();
    pending_.reject(pending, "is a fuzzer");
  }
  bool on_no_room(int) override {
    fuzz::check(false, "the ring has free space");
    return false;
  }

  static void send_to(const FileDescriptor& socket, std::span<const std::byte> bytes,
                      std::size_t descriptors) {
    if (!bytes.empty()) fuzz::send_bytes(socket.get(), bytes, descriptors);
  }

  static bool take(const Frame& frame) {
    fuzz::check(frame.descriptors.size() <= 2, "a rank passes two descriptors");
    const auto message = frame.type == FrameType::contribution
                             ? parse<ContributionMessage>(frame.payload)
                             : std::nullopt;
    if (!message) return false;
    fuzz::check(message->blob.size() <= frame.payload.size(), "the blob is part of the payload");
    fuzz::accepted = frame.descriptors.size() == (message->has_memory ? 2U : 1U);
    return fuzz::accepted;
  }

  SocketName name_ = random_secret();
  EventLoop loop_;
  PendingConnections pending_{loop_,
                              listen_on_node(name_),
                              {.connections = 66,
                               .time = std::chrono::hours(1),
                               .frames = {.payload = kMostBlob + 64, .descriptors = 2}},
                              *this};
  std::array<FileDescriptor, 4> sockets_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int before = fuzz::open_descriptors();
  {
    Leader leader;
    for (const fuzz::Step& step : fuzz::read_play(fuzz::bytes_of(data, size), kMostSteps)) {
      leader.act(step);
      leader.serve();
    }
    leader.close_all();
  }
  fuzz::check(fuzz::open_descriptors() == before, "no descriptor leaks");
  return 0;
}
