// SPDX-License-Identifier: Apache-2.0
#include "verbs/verbs_endpoint.h"

#include "base/address.h"
#include "base/error.h"
#include "base/interfaces.h"
#include "base/text.h"
#include "transport/socket_care.h"

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

// Room for less is not worth waking up for.
constexpr std::size_t kWorthwhileRoom = kCreditBytes;
constexpr std::uint32_t kIdleCalls = 256;  // between looks after the peer
constexpr std::uint32_t kInlineBytes = 128;
constexpr std::uint32_t kUnseenSends = 8;  // without a look at what the device says
constexpr QueuePair::Depths kDepths{.writes = 2 * kMostMessages + kPlacesForOthers,
                                    .arrivals = kMostMessages + kMostCredits + kMostInvitations,
                                    .inline_bytes = kInlineBytes};
constexpr std::chrono::seconds kLongestSleep{1};
constexpr std::chrono::seconds kLongestDrain{2};
constexpr std::byte kReady{0x52};

}  // namespace

VerbsEndpoint::VerbsEndpoint(int own, int peer, std::unique_ptr<transport::Connecting> connecting,
                             std::shared_ptr<Device> device,
                             std::shared_ptr<RegistrationCache> cache,
                             const transport::Limits& limits)
    : Endpoint(peer, "verbs"),
      own_(own),
      limits_(limits),
      connecting_(std::move(connecting)),
      device_(std::move(device)),
      cache_(std::move(cache)) {}

VerbsEndpoint::~VerbsEndpoint() { finish(Deadline::after(kLongestDrain)); }

// A peer that says its farewell, too, has all it wanted.
void VerbsEndpoint::finish(Deadline deadline) noexcept {
  if (stage_ != Stage::streaming || !lost_.empty() || std::exchange(finished_, true)) return;
  Farewell::say(socket_.get(), receive_->taken());
  if (!farewell_.taken()) pair_->drain(deadline, socket_.get());
}

bool VerbsEndpoint::establish() {
  if (stage_ == Stage::streaming) return true;
  throw_if_lost();
  if (stage_ == Stage::connecting) {
    auto socket = connecting_->poll();
    if (!socket) return false;
    socket_ = std::move(*socket);
    transport::keep_alive(socket_.get(), limits_);
    introduce();
  }
  using Outcome = Introduction::Outcome;
  while (stage_ != Stage::streaming) {
    const std::size_t awaited = stage_ == Stage::introducing ? kFactsBytes : 1;
    const Outcome outcome = introduction_.poll(socket_.get(), awaited);
    if (outcome == Outcome::waiting) return false;
    if (outcome == Outcome::closed) {
      lose("the process has closed its connection or ended; see what that rank says");
      throw_if_lost();
    }
    if (stage_ == Stage::introducing) {
      const auto facts = parse_facts(introduction_.heard());
      if (!facts) {
        throw Error(hcclSystemError, text("rank ", peer(), " has introduced its queue pair in ",
                                          "another format; use one version on all ranks"));
      }
      meet(*facts);
    } else {
      stage_ = Stage::streaming;
    }
    introduction_.forget_heard();
  }
  return true;
}

void VerbsEndpoint::introduce() {
  memory_ = std::make_unique<StreamMemory>(*cache_);
  pair_ = std::make_unique<QueuePair>(device_, kDepths);
  introduction_.send(serialize({.queue_pair = pair_->number(),
                                .first_packet = pair_->first_packet(),
                                .gid = device_->port().gid.bytes,
                                .mtu = device_->port().mtu,
                                .ring_address = memory_->ring_address(),
                                .ring_key = memory_->ring_key(),
                                .notes_address = memory_->notes_address(),
                                .notes_key = memory_->notes_key()}));
  stage_ = Stage::introducing;
}

// A packet that comes before this end is ready is lost, and sent again only after a long time: so
// nothing is sent before the peer has said that it is.
void VerbsEndpoint::meet(const Facts& peer_facts) {
  const UsablePort& port = device_->port();
  way_ = text(port.device, " port ", port.number, ", ",
              connection_text(local_address(socket_.get()), remote_address(socket_.get())));
  pair_->connect(peer_facts, {.own_rank = own_,
                              .peer_rank = peer(),
                              .peer_host = remote_address(socket_.get()).host_text(),
                              .device = port.device,
                              .port = port.number,
                              .own_gid = to_text(port.gid.bytes),
                              .peer_gid = to_text(peer_facts.gid),
                              .mtu = std::min(port.mtu, peer_facts.mtu)});
  const QueuePair::Target ring{peer_facts.ring_address, peer_facts.ring_key};
  const QueuePair::Target notes{peer_facts.notes_address, peer_facts.notes_key};
  send_.emplace(*pair_, *memory_, *cache_, ring);
  receive_.emplace(*pair_, *memory_, *cache_, ring, notes);
  introduction_.send({&kReady, 1});
  stage_ = Stage::readying;
}

void VerbsEndpoint::lose(const std::string& what) noexcept {
  if (lost_.empty()) lost_ = what;
}

void VerbsEndpoint::throw_if_lost() const {
  if (lost_.empty()) return;
  throw PeerLost(peer(), text("rank ", own_, " has lost rank ", peer(), " (", way_, "): ", lost_));
}

void VerbsEndpoint::look_after_peer() noexcept {
  const Farewell::Connection connection = farewell_.listen(socket_.get());
  const int error = errno;
  // Bytes that it has taken need no acknowledgement any more.
  if (send_ && farewell_.taken() && *farewell_.taken() >= send_->written()) send_->abandon();
  const std::string_view see = "; see what that rank says";
  if (connection == Farewell::Connection::closed) {
    lose(text("the process has closed its connection or ended", see));
  } else if (connection == Farewell::Connection::failed) {
    lose(text("its host does not answer: ", system_error_text(error), see));
  } else if (transport::is_silent(socket_.get(), limits_.silence)) {
    lose(text("its host does not answer: the link is cut or the host is down", see));
  }
}

void VerbsEndpoint::look_after_idle_peer() {
  if (++idle_ % kIdleCalls == 0 && lost_.empty()) look_after_peer();
}

// Takes what has come; throws where the pair has failed.
void VerbsEndpoint::progress() {
  unseen_sends_ = 0;
  const auto immediates = pair_->poll();
  for (const std::uint32_t immediate : immediates) take(immediate);
  send_->settle();
  const PairFailure& failure = pair_->failure();
  if (failure.text.empty()) return receive_->tell_credit(immediates.empty());
  // A port that is down shows as any failure.
  const transport::Trouble trouble = device_->look_after();
  if (trouble.code != hcclSuccess) throw Error(trouble.code, trouble.text);
  if (!failure.peer_lost) throw Error(hcclSystemError, failure.text);
  look_after_peer();  // that its process has ended says more
  lose(failure.text);
}

void VerbsEndpoint::take(std::uint32_t immediate) {
  const Message message = decode(immediate);
  bool fits = true;
  switch (message.kind) {
    case Message::Kind::data:
    case Message::Kind::direct:
      fits = receive_->arrive(message);
      break;
    case Message::Kind::credit:
      fits = send_->credit(message);
      break;
    case Message::Kind::invitation:
      send_->invited();
  }
  if (fits) return;
  throw Error(hcclInternalError, text("rank ", peer(), " has written what rank ", own_,
                                      " has no room for; use one version on all ranks"));
}

std::size_t VerbsEndpoint::try_send_parts(std::span<const std::span<const std::byte>> parts) {
  throw_if_lost();
  if (!establish()) return 0;
  std::size_t left = 0;
  for (const auto& part : parts) left += part.size();
  // A first message goes out at once; what has come can wait, but a pair that has failed not long.
  const bool at_once = left <= kInlineBytes && ++unseen_sends_ < kUnseenSends;
  std::size_t taken = at_once ? send_->send(parts) : 0;
  if (taken == 0 && left > 0) {
    progress();
    throw_if_lost();
    taken = send_->send(parts);
    if (taken == 0) look_after_idle_peer();
    throw_if_lost();
  }
  return count_sent(taken);
}

bool VerbsEndpoint::flushed() {
  if (!send_ || send_->flushed()) return true;
  progress();
  if (!send_->flushed()) look_after_idle_peer();
  if (send_->flushed()) return true;  // also by one that has left since
  throw_if_lost();
  return false;
}

// Progress, and a look after a peer that has nothing to say.
void VerbsEndpoint::listen() {
  progress();  // also of a peer that is lost: there is what it sent before
  if (receive_->has_more() || !lost_.empty()) return;
  look_after_idle_peer();
  if (!lost_.empty()) progress();  // it may have come just before the end
}

std::span<const std::byte> VerbsEndpoint::try_receive(std::size_t most) {
  if (!establish()) return {};
  if (receive_->held() < most) listen();
  const std::size_t known = receive_->lent();
  const auto view = receive_->lend(most);
  if (view.size() <= known && view.size() < most) throw_if_lost();
  return view;
}

void VerbsEndpoint::release(std::size_t count) {
  if (!receive_) return;
  count_received(receive_->release(count));
  if (lost_.empty()) receive_->tell_credit(false);
}

std::size_t VerbsEndpoint::try_receive_into(std::span<std::byte> destination) {
  if (!establish()) return 0;
  if (!receive_->has_more() && !destination.empty()) listen();
  const std::size_t count = receive_->take(destination);
  if (count == 0 && !destination.empty()) throw_if_lost();
  return count_received(count);
}

bool VerbsEndpoint::begin_sleep(Interest interest, SleepPlan& plan) {
  if (!lost_.empty()) return false;
  if (stage_ == Stage::connecting) {
    connecting_->plan_sleep(plan);
    return true;
  }
  const int unsent = introduction_.has_unsent() ? POLLOUT : 0;
  plan.descriptors.push_back({socket_.get(), static_cast<short>(POLLIN | unsent), 0});
  plan.at_most = std::min<Deadline::Duration>(plan.at_most, kLongestSleep);
  if (stage_ != Stage::streaming) return true;
  if (!pair_->arm()) {
    throw Error(hcclSystemError, text("cannot wait for completions of ", device_->port().device,
                                      "; see the kernel's log"));
  }
  progress();
  if (!lost_.empty() || pair_->has_more() || (interest.readable && receive_->has_more()) ||
      (interest.writable && send_->room() >= kWorthwhileRoom) ||
      (interest.flushed && send_->flushed()))
    return false;
  plan.descriptors.push_back({pair_->descriptor(), POLLIN, 0});
  return true;
}

void VerbsEndpoint::end_sleep() noexcept {
  if (stage_ != Stage::streaming) return;
  pair_->take_rings();
  look_after_peer();
}

void VerbsEndpoint::cut() noexcept {
  lose("the stream was cut when a call had failed; see what failed first");
  if (!pair_) return;
  pair_->cut();
  shutdown(socket_.get(), SHUT_RDWR);  // the peer need not find out by retries
  if (send_) send_->abandon();
}

}  // namespace hccl::verbs
