// SPDX-License-Identifier: Apache-2.0
// Fuzzes a rank with messages from a server. Actions: 0 sends the bytes unencrypted, 1 sends an
// encrypted frame of type `detail`, 2 sends the same frame unencrypted, 3 sends an encrypted frame
// in two parts, split after `detail` bytes. For action 3, the first byte of the step is the frame's
// type. The server performs the TLS handshake before the first encrypted frame. After the last
// step, the connection ends, so that the rank does not wait until its deadline.
#include "base/error.h"
#include "bootstrap/rendezvous_client.h"
#include "fuzz.h"
#include "tls_end.h"

#include <algorithm>
#include <optional>
#include <thread>

#include <sys/socket.h>

namespace {

using namespace hccl;
using namespace hccl::bootstrap;
using hccl::test::TlsEnd;

constexpr std::size_t kMostSteps = 40;

class Server {
 public:
  explicit Server(int socket) : socket_(socket) {}

  void perform(const fuzz::Step& step) {
    const std::span<const std::byte> bytes(step.bytes);
    if (has_ended_) return;
    switch (step.action % 4) {
      case 0:
        return send(bytes);
      case 1:
        return send(frame(static_cast<FrameType>(step.detail), bytes));
      case 2:
        return send(encode_frame(static_cast<FrameType>(step.detail), bytes));
      default: {
        if (bytes.empty()) return;
        const Bytes whole = frame(static_cast<FrameType>(bytes[0]), bytes.subspan(1));
        const std::size_t cut = std::min<std::size_t>(step.detail, whole.size());
        send(std::span(whole).first(cut));
        send(std::span(whole).subspan(cut));
      }
    }
  }

 private:
  // Returns an encrypted frame, or nothing if the rank has ended the handshake.
  Bytes frame(FrameType type, std::span<const std::byte> payload) {
    if (!tls_) {
      tls_.emplace(socket_, crypto::TlsRole::server, fuzz::fixed_key().session_key());
      has_ended_ = !tls_->shake_hands();
    }
    return has_ended_ ? Bytes{} : tls_->encrypted(type, payload);
  }
  void send(std::span<const std::byte> bytes) const {
    if (!bytes.empty()) fuzz::send_bytes(socket_, bytes);
  }

  int socket_;
  std::optional<TlsEnd> tls_;
  bool has_ended_ = false;
};

void join(FileDescriptor socket) {
  UniqueId id;
  id.addresses = {Address{.port = 1}};
  const Hello hello{.rank = 1, .size = 2, .process = {1, 1, "host", "node"}};
  RendezvousClient client(id, fuzz::fixed_key(), hello, Deadline::after(std::chrono::seconds(20)));
  try {
    if (!client.join_over(std::move(socket))) return;
    const Table table = client.wait_for_table();
    fuzz::check(table.ranks.size() == 2, "the table has all ranks");
    static_cast<void>(client.finish({}));
    fuzz::accepted = true;
  } catch (const Error& error) {
    fuzz::check(error.code() != hcclSuccess, "an error has a failure code");
    client.leave({error.code(), error.what()});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int before = fuzz::open_descriptors();
  fuzz::Connection connection = fuzz::make_connection();
  // The rank runs in another thread, because the TLS handshake needs its answers.
  std::thread rank([&] { join(std::move(connection.near)); });
  Server server(connection.far.get());
  for (const fuzz::Step& step : fuzz::read_play(fuzz::bytes_of(data, size), kMostSteps)) {
    server.perform(step);
  }
  // The rank sees the end of the connection, and the messages that it sends stay unread.
  shutdown(connection.far.get(), SHUT_WR);
  rank.join();
  connection.far.reset();
  fuzz::check(fuzz::open_descriptors() == before, "no descriptor leaks");
  return 0;
}
