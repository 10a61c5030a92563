// SPDX-License-Identifier: Apache-2.0
// Makes non-blocking socket calls, and interprets their errors.
#include "tcp/tcp_endpoint.h"

#include "base/address.h"
#include "base/interfaces.h"
#include "base/retry.h"
#include "base/text.h"
#include "transport/tcp_keep_alive.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace hccl::tcp {
namespace {

using transport::Interest;
using transport::PeerLost;
using transport::SleepPlan;

constexpr std::size_t kMaxParts = 16;
constexpr std::size_t kShortMessage = 256;
// Maximum number of bytes per recv(). Larger reads would delay sends.
constexpr std::size_t kMaxReceive = std::size_t{256} << 10;
constexpr std::size_t kReadAhead = std::size_t{4} << 10;
constexpr std::chrono::seconds kLongestSleep{1};

// Turns off pacing for a connection within a host. If BBR is the system's default, it paces such
// connections too, and large messages then take 1.5 times as long.
void stop_pacing(int socket) {
  constexpr std::string_view kUnpaced = "reno";  // available in every kernel, to every user
  setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kUnpaced.data(), kUnpaced.size());
}

// Concatenates the parts in `copy` and returns their total size, or nothing if they do not fit. The
// kernel sends one short piece faster than a list of pieces.
std::optional<std::size_t> join(std::span<const std::span<const std::byte>> parts,
                                std::span<std::byte> copy) {
  std::size_t bytes = 0;
  for (const auto& part : parts) {
    if (part.size() > copy.size() - bytes) return std::nullopt;
    std::ranges::copy(part, copy.subspan(bytes).begin());
    bytes += part.size();
  }
  return bytes;
}

ssize_t send_vectors(int socket, std::span<const std::span<const std::byte>> parts, int flags) {
  std::array<iovec, kMaxParts> vectors{};
  msghdr message{};
  message.msg_iov = vectors.data();
  for (const auto& part : parts.first(std::min(parts.size(), kMaxParts))) {
    if (part.empty()) continue;
    // sendmsg() does not write to the data.
    vectors[message.msg_iovlen++] = {const_cast<std::byte*>(part.data()), part.size()};
  }
  return sendmsg(socket, &message, flags);
}

std::string meaning_of(int error) {
  switch (error) {
    case EPIPE:
    case ECONNRESET:
      return "was reset by the other side";
    case ETIMEDOUT:
      return "has received no answer for too long: the link is cut or the host is down";
    default:
      return text("failed: ", system_error_text(error));
  }
}

// Reports that the kernel could not access the caller's memory. The connection is intact.
[[noreturn]] void throw_bad_memory(int own, const char* what) {
  throw Error(
      hcclInvalidArgument,
      text("rank ", own, ": the memory of a ", what,
           " buffer is no longer mapped, or is protected; leave its mapping unchanged until the "
           "call has completed on its stream"));
}

}  // namespace

TcpEndpoint::TcpEndpoint(int own, int peer,
                         std::unique_ptr<transport::ConnectionAttempt> connecting,
                         const transport::ConnectionLimits& limits)
    : Endpoint(peer, "tcp"), own_(own), limits_(limits), attempt_(std::move(connecting)) {}

bool TcpEndpoint::establish() {
  if (socket_.valid()) return true;
  if (!authenticated_) authenticated_ = attempt_->poll();
  if (!authenticated_) return false;
  // If this throws, the stream does not continue without protection: the next call tries again.
  if (const auto& stream = authenticated_->stream; stream.protection != Protection::off)
    records_ = std::make_unique<RecordLayer>(stream.protection, stream.keys);
  socket_ = std::move(authenticated_->socket);
  authenticated_.reset();
  transport::set_keep_alive(socket_.get(), limits_);
  local_ = local_address(socket_.get());
  remote_ = remote_address(socket_.get());
  if (remote_.is_loopback() || remote_.same_host(local_)) stop_pacing(socket_.get());
  return true;
}

void TcpEndpoint::mark_lost(const std::string& what) noexcept {
  if (lost_.empty()) lost_ = what;
}

void TcpEndpoint::throw_if_lost() const {
  if (lost_.empty()) return;
  throw PeerLost(peer(),
                 text("rank ", own_, " has lost rank ", peer(), ": the TCP connection ",
                      connection_text(local_, remote_), ' ', lost_, "; see that rank's output"));
}

std::size_t TcpEndpoint::try_send_parts(std::span<const std::span<const std::byte>> parts) {
  throw_if_lost();
  if (!establish()) return 0;
  const std::size_t sent = records_ ? send_protected(parts) : send_parts(parts);
  if (sent == 0) throw_if_lost();
  return count_sent(sent);
}

// Passes a prefix of the parts to the kernel, and returns its size. If the size is 0, lost_ may
// have been set.
std::size_t TcpEndpoint::send_parts(std::span<const std::span<const std::byte>> parts) {
  std::array<std::byte, kShortMessage> copy;
  const std::optional<std::size_t> joined = join(parts, copy);
  if (joined == 0) return 0;
  while (true) {
    constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
    const ssize_t count = joined ? ::send(socket_.get(), copy.data(), *joined, kFlags)
                                 : send_vectors(socket_.get(), parts, kFlags);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EAGAIN) return 0;
    if (errno == EINTR) continue;
    if (errno == EFAULT) throw_bad_memory(own_, "send");
    if (is_memory_shortage(errno)) {
      send_again_later_ = true;
      return 0;
    }
    mark_lost(meaning_of(errno));
    return 0;
  }
}

// Seals and sends one record after the other, until the kernel accepts no more.
std::size_t TcpEndpoint::send_protected(std::span<const std::span<const std::byte>> parts) {
  std::array<std::span<const std::byte>, kMaxParts> rest;
  const std::size_t used = std::min(parts.size(), kMaxParts);
  std::copy_n(parts.begin(), used, rest.begin());
  std::size_t first = 0;
  std::size_t done = 0;
  while (send_outgoing()) {
    std::size_t sealed = records_->seal(std::span(rest).subspan(first, used - first));
    if (sealed == 0) break;
    done += sealed;
    for (; first < used && sealed >= rest[first].size(); ++first) sealed -= rest[first].size();
    if (first < used) rest[first] = rest[first].subspan(sealed);
  }
  return done;
}

// Returns true if all sealed bytes have been sent.
bool TcpEndpoint::send_outgoing() {
  while (!records_->outgoing().empty()) {
    const std::span<const std::byte> outgoing = records_->outgoing();
    const std::size_t sent = send_parts({&outgoing, 1});
    if (sent == 0) return false;
    records_->note_sent(sent);
  }
  return true;
}

bool TcpEndpoint::flushed() {
  if (!records_ || send_outgoing()) return true;
  throw_if_lost();
  return false;
}

void TcpEndpoint::finish(Deadline deadline) noexcept {
  constexpr int kPause = 10;  // milliseconds
  while (records_ && !send_outgoing() && lost_.empty() && !deadline.expired()) {
    const bool short_of_memory = std::exchange(send_again_later_, false);
    pollfd wanted{socket_.get(), static_cast<short>(short_of_memory ? 0 : POLLOUT), 0};
    ::poll(&wanted, 1, kPause);
  }
}

// Reads arrived bytes and returns their number. If the number is 0, lost_ may have been set.
std::size_t TcpEndpoint::read_into(std::span<std::byte> destination) {
  if (destination.empty()) return 0;
  return records_ ? read_protected(destination) : read_socket(destination);
}

std::size_t TcpEndpoint::read_protected(std::span<std::byte> destination) {
  while (true) {
    std::size_t moved = 0;
    switch (records_->take(destination, moved)) {
      case RecordLayer::Taken::moved:
        return moved;
      case RecordLayer::Taken::forged:
        mark_lost("carried a record that does not authenticate: its bytes were changed in transit");
        return moved;
      case RecordLayer::Taken::nothing:
        break;
    }
    const std::size_t arrived = read_socket(records_->room());
    if (arrived == 0) return 0;
    records_->note_arrived(arrived);
  }
}

std::size_t TcpEndpoint::read_socket(std::span<std::byte> destination) {
  if (destination.empty()) return 0;
  destination = destination.first(std::min(destination.size(), kMaxReceive));
  while (true) {
    const ssize_t count = recv(socket_.get(), destination.data(), destination.size(), MSG_DONTWAIT);
    if (count > 0) return static_cast<std::size_t>(count);
    if (count == 0) {
      mark_lost("was closed by the other side");
    } else if (errno == EINTR) {
      continue;
    } else if (errno == EFAULT) {
      throw_bad_memory(own_, "receive");
    } else if (errno != EAGAIN) {
      mark_lost(meaning_of(errno));
    }
    return 0;
  }
}

std::span<const std::byte> TcpEndpoint::try_receive(std::size_t most) {
  if (!establish()) return {};
  const std::size_t had = buffer_.filled().size();
  if (had < most) {
    // Try to read at least kReadAhead bytes, because a header usually arrives with the data that
    // follows it.
    const std::size_t wanted = std::max(most - had, kReadAhead);
    buffer_.add(read_into(buffer_.room(wanted)));
    if (buffer_.filled().size() == had) throw_if_lost();
  }
  return buffer_.filled().first(std::min(most, buffer_.filled().size()));
}

std::size_t TcpEndpoint::try_receive_into(std::span<std::byte> destination) {
  if (!establish()) return 0;
  const auto lent = buffer_.filled();
  const std::size_t buffered = std::min(lent.size(), destination.size());
  std::copy_n(lent.begin(), buffered, destination.begin());
  buffer_.release(buffered);
  const std::size_t read = read_into(destination.subspan(buffered));
  count_received(buffered + read);
  if (buffered + read == 0 && !destination.empty()) throw_if_lost();
  return buffered + read;
}

bool TcpEndpoint::begin_sleep(Interest interest, SleepPlan& plan) {
  if (!lost_.empty()) return false;
  if (authenticated_) return false;  // the attempt has ended: set up the stream
  if (!connected()) {
    attempt_->plan_sleep(plan);
    return true;
  }
  const bool short_of_memory = std::exchange(send_again_later_, false);
  if (short_of_memory) {
    interest.writable = false;
    plan.at_most = std::min<Deadline::Duration>(plan.at_most, kShortagePause);
  }
  const bool is_flushed = !records_ || records_->outgoing().empty();
  if (interest.flushed && is_flushed) return false;
  const bool sends = !short_of_memory && (interest.writable || !is_flushed);
  const int events = (interest.readable ? POLLIN : 0) | (sends ? POLLOUT : 0);
  plan.descriptors.push_back({socket_.get(), static_cast<short>(events), 0});
  plan.at_most = std::min<Deadline::Duration>(plan.at_most, kLongestSleep);
  return true;
}

void TcpEndpoint::end_sleep() noexcept {
  // The owner may wait for bytes only, so sealed bytes are sent here.
  if (records_ && lost_.empty()) static_cast<void>(send_outgoing());
  if (connected() && transport::is_silent(socket_.get(), limits_.silence))
    mark_lost(meaning_of(ETIMEDOUT));
}

}  // namespace hccl::tcp
