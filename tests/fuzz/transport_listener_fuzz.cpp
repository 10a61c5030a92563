// SPDX-License-Identifier: Apache-2.0
// Fuzzes a listener with bytes that arrive on its connections. `detail` selects the connection.
// Actions: 0 connects, 1 sends the bytes, 2 sends a connector's first message in which the bytes
// overwrite those after the header, 3 answers the acceptor correctly, 4 closes the connection.
#include "fuzz.h"
#include "shm/unix_socket.h"
#include "transport/listener.h"

#include <algorithm>
#include <array>
#include <memory>

#include <sys/socket.h>

namespace {

using namespace hccl;
using namespace hccl::transport;

constexpr std::size_t kMostSteps = 30;
constexpr std::size_t kConnections = 4;
constexpr std::size_t kHeader = 5;  // bytes of a TLS record's header

Membership own() {
  Membership membership;
  membership.secret = std::make_shared<const SecretBytes>(16, std::byte{0x5A});
  membership.communicator = 7;
  membership.rank = 1;
  membership.size = 2;
  return membership;
}

class Play {
 public:
  Play() : name_(random_secret()) {
    std::vector<FileDescriptor> sockets;
    sockets.push_back(shm::listen_on(name_));
    ConnectionLimits limits;
    limits.pending = 2;
    listener_ = std::make_shared<Listener>(
        std::move(sockets), own(), limits,
        SocketFamily{.name = "fuzz", .describe = [](int, const SocketAddress&) {
                       return std::string("an unknown peer");
                     }});
    claim_.emplace(listener_, StreamKey{0, 1, {}});
  }

  void take(const fuzz::Step& step) {
    Sender& sender = senders_[step.detail % kConnections];
    switch (step.action % 5) {
      case 0:
        reconnect(sender);
        break;
      case 1:
        sender.knows = false;
        send_to(sender, step.bytes);
        break;
      case 2:
        send_hello(sender, step.bytes);
        break;
      case 3:
        answer(sender);
        break;
      default:
        sender = {};
    }
    if (const auto socket = claim_->poll()) {
      fuzz::check(!received_, "a stream is accepted once");
      fuzz::check(answered_, "a peer connects only after its proof");
      received_ = true;
    }
  }
  [[nodiscard]] bool received() const { return received_; }

 private:
  struct Sender {
    FileDescriptor socket;
    std::unique_ptr<ConnectorHandshake> handshake;
    bool knows = false;  // it is connected and has sent no arbitrary bytes
  };

  void reconnect(Sender& sender) {
    sender = {};
    sender.socket = FileDescriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const SocketAddress where = shm::abstract_address(name_);
    fuzz::check(connect(sender.socket.get(), where.get(), where.length) == 0, "it connects");
    sender.knows = true;
  }

  static void send_to(const Sender& sender, std::span<const std::byte> bytes) {
    if (!sender.socket.valid() || bytes.empty()) return;
    static_cast<void>(!send(sender.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }

  static void send_hello(Sender& sender, const Bytes& bytes) {
    sender.handshake = std::make_unique<ConnectorHandshake>(own(), StreamKey{0, 1, {}});
    Bytes hello = sender.handshake->hello();
    for (std::size_t i = 0; i < bytes.size() && kHeader + i < hello.size(); ++i)
      hello[kHeader + i] = bytes[i];
    send_to(sender, hello);
  }

  void answer(Sender& sender) {
    if (!sender.knows || !sender.handshake) return;
    std::array<std::byte, 4096> bytes{};
    while (const std::size_t wanted = std::min(bytes.size(), sender.handshake->wanted())) {
      const ssize_t count = recv(sender.socket.get(), bytes.data(), wanted, MSG_DONTWAIT);
      if (count <= 0) return;
      answered_ = true;
      send_to(sender,
              sender.handshake->take(std::span(bytes).first(static_cast<std::size_t>(count))));
    }
  }

  shm::SocketName name_;
  std::shared_ptr<Listener> listener_;
  std::optional<InboundConnection> claim_;
  std::array<Sender, kConnections> senders_;
  bool answered_ = false;
  bool received_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int before = fuzz::open_descriptors();
  {
    Play play;
    for (const fuzz::Step& step : fuzz::read_play(fuzz::bytes_of(data, size), kMostSteps)) {
      play.take(step);
    }
    fuzz::accepted = play.received();
  }
  fuzz::check(fuzz::open_descriptors() == before, "no descriptor leaks");
  return 0;
}
