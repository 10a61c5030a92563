// SPDX-License-Identifier: Apache-2.0
// Fuzzes a root server over up to four TCP connections. The high nibble of a step's action selects
// the connection. The low two bits select the operation: 0 sends the bytes unencrypted, 1 sends a
// frame of type `detail`, 2 sends a hello in two parts, split after `detail` bytes, 3 closes the
// connection. Bit 3 makes the target wait for the control thread after the step. Operation 2 first
// performs the TLS handshake if nothing was sent on the connection. After the handshake, frames are
// encrypted. At the end, the server must still answer a rank.
#include "bootstrap/control_thread.h"
#include "bootstrap/frame_connection.h"
#include "bootstrap/messages.h"
#include "bootstrap/pending_connections.h"
#include "bootstrap/root_server.h"
#include "fuzz.h"
#include "tls_end.h"

#include <algorithm>
#include <array>
#include <future>
#include <optional>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace {

using namespace hccl;
using namespace hccl::bootstrap;
using hccl::test::TlsEnd;

constexpr std::size_t kMostSteps = 40;
constexpr std::chrono::seconds kPatience{20};

FileDescriptor connect_to(const Address& address) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const linger at_once{1, 0};  // so that thousands of connections leave no port in TIME_WAIT
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  // The second part of a frame must not wait for the first part's acknowledgement.
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const SocketAddress where = to_socket_address(address);
  fuzz::check(connect(socket.get(), where.get(), where.length) == 0, "the server can be reached");
  return socket;
}

// Waits until the control thread has run all tasks posted before this call.
void await_control_thread() {
  for (int turn = 0; turn < 2; ++turn) {
    std::promise<void> done;
    const std::future<void> turned = done.get_future();
    ControlThread::instance().post([&done] { done.set_value(); });
    fuzz::check(turned.wait_for(kPatience) == std::future_status::ready,
                "the control thread responds");
  }
}

class Play {
 public:
  explicit Play(const Address& server) : server_(server) {}

  void act(const fuzz::Step& step) {
    Peer& peer = peers_.at((step.action >> 4) % peers_.size());
    if (step.action % 4 == 3) {
      peer.socket.reset();
      peer.has_sent = false;
      peer.tls.reset();
      return;
    }
    if (!peer.socket.valid()) peer.socket = connect_to(server_);
    if (step.action % 4 == 0) {
      peer.has_sent = true;
      return send_all(peer.socket, step.bytes);
    }
    const bool hello = step.action % 4 == 2;
    // Perform the handshake only if nothing was sent on it. After other bytes, the server would not
    // answer, but close the connection or wait for more bytes.
    if (hello && !std::exchange(peer.has_sent, true)) {
      peer.tls.emplace(peer.socket.get(), crypto::TlsRole::client, fuzz::fixed_key().session_key());
      if (!peer.tls->shake_hands()) peer.tls.reset();
    }
    peer.has_sent = true;
    const FrameType type = hello ? FrameType::hello : static_cast<FrameType>(step.detail);
    const Bytes frame =
        peer.tls ? peer.tls->encrypted(type, step.bytes) : encode_frame(type, step.bytes);
    const std::size_t cut = hello ? std::min<std::size_t>(step.detail, frame.size()) : frame.size();
    send_all(peer.socket, std::span(frame).first(cut));
    if (hello) await_control_thread();
    send_all(peer.socket, std::span(frame).subspan(cut));
  }

 private:
  struct Peer {
    FileDescriptor socket;
    bool has_sent = false;
    std::optional<TlsEnd> tls;
  };

  static void send_all(const FileDescriptor& socket, std::span<const std::byte> bytes) {
    if (!bytes.empty()) fuzz::send_bytes(socket.get(), bytes);
  }

  Address server_;
  std::array<Peer, 4> peers_;
};

// Joins as a rank and returns the server's answer: a welcome, or a refusal with its reason.
Frame answer_to_a_rank(const Address& server) {
  EventLoop loop;
  auto tls = std::make_shared<crypto::TlsSession>(crypto::TlsRole::client,
                                                  fuzz::fixed_key().session_key());
  const auto connection = std::make_shared<FrameConnection>(
      loop, FrameConnection::Detached{connect_to(server), {}, std::move(tls)},
      FrameConnection::Limits{.payload = kLargePayload});
  connection->send(FrameType::hello,
                   serialize(Hello{.rank = 2, .size = 3, .process = {1, 1, "host", "node"}}));
  std::optional<Frame> frame = fuzz::await_frame(loop, *connection);
  fuzz::check(frame.has_value(), "a rank gets an answer");
  return *std::move(frame);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ControlThread::instance().start();
  UniqueId id;
  Address loopback;
  loopback.bytes = {127, 0, 0, 1};
  FileDescriptor listener = listen_on(loopback);
  id.addresses = {local_address(listener.get())};
  const auto server = std::make_shared<RootServer>(id, std::move(listener), fuzz::fixed_key());
  server->start();
  {
    Play play(id.addresses[0]);
    for (const fuzz::Step& step : fuzz::read_play(fuzz::bytes_of(data, size), kMostSteps)) {
      play.act(step);
      if (step.action & 8) await_control_thread();
    }
    const Frame answer = answer_to_a_rank(id.addresses[0]);
    const auto refusal = parse<Failure>(answer.payload);
    fuzz::check(answer.type == FrameType::welcome || (answer.type == FrameType::failure && refusal),
                "a rank is welcomed or refused");
    fuzz::accepted = refusal && refusal->text.find("already complete") != std::string::npos;
  }
  server->stop();
  await_control_thread();
  return 0;
}
