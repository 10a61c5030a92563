// SPDX-License-Identifier: Apache-2.0
#include "verbs/verbs_endpoint.h"

#include "base/address.h"
#include "base/error.h"
#include "base/interfaces.h"
#include "base/text.h"
#include "transport/tcp_keep_alive.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

namespace hccl::verbs {
namespace {

using transport::Interest;
using transport::PeerLost;
using transport::SleepPlan;

// A sender that waits for room sleeps while it has fewer bytes of room than this.
constexpr std::size_t kWorthwhileRoom = kCreditBytes;
constexpr std::uint32_t kIdleCalls = 256;  // calls without progress between checks of the peer
constexpr std::uint32_t kInlineBytes = 128;
constexpr std::uint32_t kUnseenSends = 8;  // one short send in 8 polls for completions first
constexpr QueuePair::Depths kDepths{.requests = 2 * kMaxMessages + kReservedRequests,
                                    .arrivals = kMaxMessages + kMaxCredits + kMaxAdverts,
                                    .inline_bytes = kInlineBytes};
constexpr std::chrono::seconds kLongestSleep{1};
constexpr std::chrono::seconds kLongestDrain{2};
constexpr std::byte kReady{0x52};

}  // namespace

VerbsEndpoint::VerbsEndpoint(int own, int peer,
                             std::unique_ptr<transport::ConnectionAttempt> connecting,
                             std::shared_ptr<RdmaDevice> device,
                             std::shared_ptr<RegistrationCache> cache,
                             const transport::ConnectionLimits& limits)
    : Endpoint(peer, "verbs"),
      own_(own),
      limits_(limits),
      attempt_(std::move(connecting)),
      device_(std::move(device)),
      cache_(std::move(cache)) {}

VerbsEndpoint::~VerbsEndpoint() { finish(Deadline::after(kLongestDrain)); }

// If the peer's final acknowledgement has arrived, no drain is needed.
void VerbsEndpoint::finish(Deadline deadline) noexcept {
  if (state_ != State::streaming || !lost_.empty() || std::exchange(finished_, true)) return;
  FinalAck::send(socket_.get(), receive_->taken());
  if (!final_ack_.consumed()) pair_->drain(deadline, socket_.get());
}

bool VerbsEndpoint::establish() {
  if (state_ == State::streaming) return true;
  throw_if_lost();
  if (state_ == State::connecting) {
    auto connected = attempt_->poll();
    if (!connected) return false;
    socket_ = std::move(connected->socket);
    transport::set_keep_alive(socket_.get(), limits_);
    start_exchange();
  }
  using Status = QpExchange::Status;
  while (state_ != State::streaming) {
    if (state_ == State::opening) {
      if (!has_opened_memory()) return false;
      exchange_.send({&kReady, 1});
      state_ = State::readying;
    }
    const std::size_t awaited = state_ == State::exchanging ? kQpInfoBytes : 1;
    const Status status = exchange_.poll(socket_.get(), awaited);
    if (status == Status::waiting) return false;
    if (status == Status::closed) {
      mark_lost("its process has closed the connection or exited; see that rank's output");
      throw_if_lost();
    }
    if (state_ == State::exchanging) {
      const auto info = parse_qp_info(exchange_.received());
      if (!info) {
        throw Error(hcclSystemError, text("rank ", peer(), " has described its queue pair in ",
                                          "an unknown format; install the same version of hccl on "
                                          "all ranks"));
      }
      connect_to(*info);
    } else {
      state_ = State::streaming;
    }
    exchange_.clear_received();
  }
  return true;
}

void VerbsEndpoint::start_exchange() {
  memory_ = std::make_unique<StreamMemory>(*cache_);
  pair_ = std::make_unique<QueuePair>(device_, kDepths);
  windows_.emplace(*device_, *memory_);
  exchange_.send(serialize({.queue_pair = pair_->number(),
                            .first_packet = pair_->first_packet(),
                            .gid = device_->port().gid.bytes,
                            .mtu = device_->port().mtu,
                            .ring_address = memory_->ring_address(),
                            .ring_key = windows_->ring_key(),
                            .adverts_address = memory_->adverts_address(),
                            .adverts_key = windows_->adverts_key()}));
  state_ = State::exchanging;
}

// A packet that arrives before the receiving end is ready is dropped, and is retransmitted only
// after a long time-out. Therefore neither end sends before the other has reported that it is
// ready.
void VerbsEndpoint::connect_to(const QpInfo& peer_info) {
  const UsablePort& port = device_->port();
  const std::string connection =
      connection_text(local_address(socket_.get()), remote_address(socket_.get()));
  path_ = text(port.device, " port ", port.number, ", ", connection);
  pair_->connect(peer_info, {.own_rank = own_,
                             .peer_rank = peer(),
                             .peer_host = remote_address(socket_.get()).host_text(),
                             .device = port.device,
                             .port = port.number,
                             .own_gid = to_text(port.gid.bytes),
                             .peer_gid = to_text(peer_info.gid),
                             .mtu = std::min(port.mtu, peer_info.mtu)});
  const QueuePair::Target ring{peer_info.ring_address, peer_info.ring_key};
  const QueuePair::Target adverts{peer_info.adverts_address, peer_info.adverts_key};
  send_.emplace(*pair_, *memory_, *cache_, ring);
  receive_.emplace(*pair_, *memory_, *cache_, ring, adverts, windows_->destination());
  opening_ = windows_->open_to(*pair_);
  state_ = State::opening;
}

// Returns whether the peer can write to the stream's memory. Throws PeerLost, or Error if the NIC
// or this library is at fault.
bool VerbsEndpoint::has_opened_memory() {
  static_cast<void>(pair_->poll());
  take_failure();
  throw_if_lost();
  return pair_->completed() >= opening_;
}

void VerbsEndpoint::mark_lost(const std::string& what) noexcept {
  if (lost_.empty()) lost_ = what;
}

void VerbsEndpoint::throw_if_lost() const {
  if (lost_.empty()) return;
  throw PeerLost(peer(), text("rank ", own_, " has lost rank ", peer(), " (", path_, "): ", lost_));
}

void VerbsEndpoint::check_peer() noexcept {
  const FinalAck::ConnectionState connection = final_ack_.receive(socket_.get());
  const int error = errno;
  // If the peer has consumed all bytes, no acknowledgement by the NIC is needed.
  if (send_ && final_ack_.consumed() && *final_ack_.consumed() >= send_->written())
    send_->abandon();
  const std::string_view see = "; see that rank's output";
  if (connection == FinalAck::ConnectionState::closed) {
    mark_lost(text("its process has closed the connection or exited", see));
  } else if (connection == FinalAck::ConnectionState::failed) {
    mark_lost(text("its host does not answer: ", system_error_text(error), see));
  } else if (transport::is_silent(socket_.get(), limits_.silence)) {
    mark_lost("its host does not answer; check the link and that host");
  }
}

void VerbsEndpoint::check_idle_peer() {
  if (++idle_ % kIdleCalls == 0 && lost_.empty()) check_peer();
}

// Handles a batch of completions, and a failure of the queue pair like take_failure().
void VerbsEndpoint::progress() {
  unseen_sends_ = 0;
  const auto immediates = pair_->poll();
  for (const std::uint32_t immediate : immediates) handle(immediate);
  send_->release_completed();
  receive_->release_completed();
  if (pair_->failure().text.empty()) return receive_->return_credit(immediates.empty());
  take_failure();
}

// If the queue pair has failed, marks the peer as lost, or throws Error if the NIC or this library
// is at fault.
void VerbsEndpoint::take_failure() {
  const PairFailure& failure = pair_->failure();
  if (failure.text.empty()) return;
  // A queue pair also fails if its port is down, so check the NIC first.
  const transport::Trouble trouble = device_->check();
  if (trouble.code != hcclSuccess) throw Error(trouble.code, trouble.text);
  if (!failure.peer_lost) throw Error(hcclSystemError, failure.text);
  check_peer();  // if the peer's process has exited, reports that as the cause
  mark_lost(failure.text);
}

void VerbsEndpoint::handle(std::uint32_t immediate) {
  const Immediate message = decode(immediate);
  bool fits = true;
  switch (message.kind) {
    case Immediate::Kind::data:
    case Immediate::Kind::direct:
      fits = receive_->arrive(message);
      break;
    case Immediate::Kind::credit:
      fits = send_->credit(message);
      break;
    case Immediate::Kind::advert:
      send_->advertised();
  }
  if (fits) return;
  throw Error(hcclInternalError, text("rank ", peer(), " has written more than rank ", own_,
                                      " has room for; install the same version of hccl on all "
                                      "ranks"));
}

std::size_t VerbsEndpoint::try_send_parts(std::span<const std::span<const std::byte>> parts) {
  throw_if_lost();
  if (!establish()) return 0;
  std::size_t left = 0;
  for (const auto& part : parts) left += part.size();
  // Send short messages without polling first, but poll now and then to detect a failed queue pair.
  const bool at_once = left <= kInlineBytes && ++unseen_sends_ < kUnseenSends;
  std::size_t taken = at_once ? send_->send(parts) : 0;
  if (taken == 0 && left > 0) {
    progress();
    throw_if_lost();
    taken = send_->send(parts);
    if (taken == 0) check_idle_peer();
    throw_if_lost();
  }
  return count_sent(taken);
}

bool VerbsEndpoint::flushed() {
  if (is_flushed()) return true;
  progress();
  if (!is_flushed()) check_idle_peer();
  if (is_flushed()) return true;  // even if the peer has since left
  if (!lost_.empty() && send_->flushed()) {
    // All data has arrived, but the queue pair may never close the windows. Cutting it has the same
    // effect: the peer can write nothing more.
    pair_->cut();
    receive_->abandon();
    return true;
  }
  throw_if_lost();
  return false;
}

// Handles completions. If nothing has arrived, calls check_idle_peer().
void VerbsEndpoint::poll_for_data() {
  progress();  // a lost peer's earlier data can still be received
  if (receive_->has_more() || !lost_.empty()) return;
  check_idle_peer();
  if (!lost_.empty()) progress();  // data may have arrived just before the peer ended
}

std::span<const std::byte> VerbsEndpoint::try_receive(std::size_t most) {
  if (!establish()) return {};
  if (receive_->held() < most) poll_for_data();
  const std::size_t known = receive_->lent();
  const auto view = receive_->lend(most);
  if (view.size() <= known && view.size() < most) throw_if_lost();
  return view;
}

void VerbsEndpoint::release(std::size_t count) {
  if (!receive_) return;
  count_received(receive_->release(count));
  if (lost_.empty()) receive_->return_credit(false);
}

std::size_t VerbsEndpoint::try_receive_into(std::span<std::byte> destination) {
  if (!establish()) return 0;
  if (!receive_->has_more() && !destination.empty()) poll_for_data();
  const std::size_t count = receive_->take(destination);
  if (count == 0 && !destination.empty()) throw_if_lost();
  return count_received(count);
}

bool VerbsEndpoint::begin_sleep(Interest interest, SleepPlan& plan) {
  if (!lost_.empty()) return false;
  if (state_ == State::connecting) {
    attempt_->plan_sleep(plan);
    return true;
  }
  const int unsent = exchange_.has_unsent() ? POLLOUT : 0;
  const int expected = state_ == State::opening ? 0 : POLLIN;
  plan.descriptors.push_back({socket_.get(), static_cast<short>(expected | unsent), 0});
  plan.at_most = std::min<Deadline::Duration>(plan.at_most, kLongestSleep);
  if (state_ != State::streaming && state_ != State::opening) return true;
  if (!pair_->arm()) {
    throw Error(hcclSystemError, text("cannot wait for completions of ", device_->port().device,
                                      "; see the kernel's log"));
  }
  if (state_ == State::opening) {
    plan.descriptors.push_back({pair_->descriptor(), POLLIN, 0});
    return !has_opened_memory();
  }
  progress();
  if (!lost_.empty() || pair_->has_more() || (interest.readable && receive_->has_more()) ||
      (interest.writable && send_->room() >= kWorthwhileRoom) || (interest.flushed && is_flushed()))
    return false;
  plan.descriptors.push_back({pair_->descriptor(), POLLIN, 0});
  return true;
}

void VerbsEndpoint::end_sleep() noexcept {
  if (state_ != State::streaming && state_ != State::opening) return;
  pair_->drain_notifications();
  if (state_ == State::opening) return;
  check_peer();
}

void VerbsEndpoint::cut() noexcept {
  mark_lost("this rank cut the stream because a call failed; look at the first failure");
  if (!pair_) return;
  pair_->cut();
  shutdown(socket_.get(),
           SHUT_RDWR);  // lets the peer detect the end immediately, not only after its retries
  if (!send_) return;
  send_->abandon();
  receive_->abandon();
}

}  // namespace hccl::verbs
