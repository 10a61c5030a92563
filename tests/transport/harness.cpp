// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

#include "base/waiter.h"

#include <algorithm>
#include <cstring>
#include <fstream>

namespace hccl::test {
namespace {

constexpr std::chrono::seconds kPatience{30};

std::uint64_t word_at(std::uint64_t stream, std::uint64_t index) {
  std::uint64_t x = (stream + 1) * 0x9e3779b97f4a7c15U + index;  // splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

transport::MakeResult make(const Way& way, const transport::Settings& settings) {
  for (const transport::TransportFactory& factory : transport::transport_factories()) {
    if (std::string(factory.name) == way.transport) return factory.make(settings);
  }
  throw Failure(join("no transport named ", way.transport));
}

}  // namespace

bool has_ipv6() {
  std::ifstream file("/proc/net/if_inet6");
  return file.peek() != std::ifstream::traits_type::eof();
}

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const transport::TransportFactory& factory : transport::transport_factories()) {
    ways.push_back({factory.name, factory.name});
  }
  ways.push_back({"tcp6", "tcp", true});
  ways.push_back({"tcp_integrity", "tcp", false, Protection::integrity});
  ways.push_back({"tcp_full", "tcp", false, Protection::full});
  return ways;
}

Interface loopback(bool v6) {
  Interface lo;
  lo.name = "lo";
  lo.loopback = true;
  lo.address.v6 = v6;
  lo.address.bytes =
      v6 ? std::array<std::uint8_t, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}
         : std::array<std::uint8_t, 16>{127, 0, 0, 1};
  lo.prefix_length = v6 ? 128 : 8;
  return lo;
}

transport::Settings settings_for(int rank, int size, const Way& way) {
  transport::Settings settings;
  settings.membership.secret = std::make_shared<const SecretBytes>(16, std::byte{0x42});
  settings.membership.communicator = 7;
  settings.membership.rank = rank;
  settings.membership.size = size;
  settings.node = node_identity();
  // A GID derives from the address of an interface other than loopback.
  const bool rdma = std::string(way.transport) == "verbs";
  settings.interfaces = rdma ? local_interfaces() : std::vector{loopback(way.v6)};
  auto config = std::make_shared<Config>();
  config->encryption = way.protection;
  settings.config = std::move(config);
  return settings;
}

std::unique_ptr<transport::Transport> make_transport(const Way& way,
                                                     const transport::Settings& settings) {
  transport::MakeResult made = make(way, settings);
  require(made.transport != nullptr, made.why_not);
  return std::move(made.transport);
}

std::string why_missing(const Way& way) { return make(way, settings_for(0, 1, way)).why_not; }

Member::Member(World& world, const Way& way, const transport::ConnectionLimits& limits) {
  transport::Settings settings = settings_for(world.rank, world.size, way);
  settings.limits = limits;
  transport_ = make_transport(way, settings);
  const Bytes& own = transport_->address();
  require(own.size() <= transport::kMaxAddressBytes, "the address is small");
  hcclUniqueId carrier{};
  std::memcpy(carrier.internal, own.data(), own.size());
  carrier.length = own.size();
  world.board->publish_id(world.rank, carrier);
  for (int rank = 0; rank < world.size; ++rank) {
    const hcclUniqueId other = world.board->await_id(rank);
    const auto bytes = std::as_bytes(std::span(other.internal)).first(other.length);
    addresses_.emplace_back(bytes.begin(), bytes.end());
  }
}

void fill(std::span<std::byte> bytes, std::uint64_t stream, std::uint64_t position) {
  for (std::size_t i = 0; i < bytes.size();) {
    const std::uint64_t at = position + i;
    const std::uint64_t word = word_at(stream, at / 8);
    const std::size_t skip = at % 8;
    const std::size_t count = std::min<std::size_t>(8 - skip, bytes.size() - i);
    std::array<std::byte, 8> raw{};
    std::memcpy(raw.data(), &word, raw.size());
    std::memcpy(&bytes[i], &raw[skip], count);
    i += count;
  }
}

std::vector<std::byte> pattern(std::size_t size, std::uint64_t stream, std::uint64_t position) {
  std::vector<std::byte> bytes(size);
  fill(bytes, stream, position);
  return bytes;
}

void check_pattern(std::span<const std::byte> bytes, std::uint64_t stream, std::uint64_t position) {
  const std::vector<std::byte> expected = pattern(bytes.size(), stream, position);
  if (bytes.empty() || std::memcmp(bytes.data(), expected.data(), bytes.size()) == 0) return;
  const auto wrong = std::ranges::mismatch(bytes, expected).in1 - bytes.begin();
  throw Failure(
      join("stream ", stream, " is wrong at byte ", position + static_cast<std::uint64_t>(wrong)));
}

std::size_t Mover::piece(std::uint64_t left, std::size_t chop) {
  constexpr std::uint64_t kMostAtOnce = std::uint64_t{1} << 20;
  const std::uint64_t most = chop == 0 ? kMostAtOnce : 1 + random_() % chop;
  return static_cast<std::size_t>(std::min(left, most));
}

bool Mover::send_some(Sending& sending) {
  const std::size_t size = piece(sending.total - sending.done, sending.chop);
  if (size == 0) return false;
  scratch_.resize(size);
  fill(scratch_, sending.stream, sending.done);
  const std::size_t half = random_() % (size + 1);
  const std::array<std::span<const std::byte>, 2> parts{std::span(scratch_).first(half),
                                                        std::span(scratch_).subspan(half)};
  const std::size_t sent = random_() % 2 == 0 ? sending.endpoint->try_send(scratch_)
                                              : sending.endpoint->try_send_parts(parts);
  require(sent <= size, "no more is accepted than offered");
  // If the endpoint is flushed, the sent bytes may be overwritten.
  if (sending.endpoint->flushed()) std::ranges::fill(scratch_, std::byte{0xee});
  sending.done += sent;
  return sent > 0;
}

bool Mover::receive_some(Receiving& receiving) {
  const std::size_t size = piece(receiving.total - receiving.done, receiving.chop);
  if (size == 0) return false;
  const bool lent =
      receiving.taking == Taking::lent || (receiving.taking == Taking::mixed && random_() % 2 == 0);
  std::size_t got = 0;
  if (lent) {
    const auto view = receiving.endpoint->try_receive(size);
    require(view.size() <= size, "no more is lent than requested");
    // Release a random part of the view. The rest, if there is any, must be lent again.
    got = view.empty() ? 0 : 1 + random_() % view.size();
    check_pattern(view, receiving.stream, receiving.done);
    receiving.endpoint->release(got);
  } else {
    scratch_.assign(size, std::byte{0xdd});
    got = receiving.endpoint->try_receive_into(scratch_);
    require(got <= size, "no more arrives than requested");
    check_pattern(std::span(scratch_).first(got), receiving.stream, receiving.done);
  }
  receiving.done += got;
  return got > 0;
}

void Mover::wait_for(const std::vector<Sending>& sends, const std::vector<Receiving>& receives) {
  std::vector<WaitSet::Entry> entries;
  for (const Sending& sending : sends) {
    if (sending.done < sending.total) {
      entries.push_back({sending.endpoint, {.writable = true}});
    } else if (!sending.endpoint->flushed()) {
      entries.push_back({sending.endpoint, {.flushed = true}});
    }
  }
  for (const Receiving& receiving : receives) {
    if (receiving.done == receiving.total) continue;
    const auto known = std::ranges::find(entries, receiving.endpoint, &WaitSet::Entry::endpoint);
    if (known != entries.end()) {
      known->interest.readable = true;
    } else {
      entries.push_back({receiving.endpoint, {true, false}});
    }
  }
  const auto outcome = wait_set_.wait(entries, Deadline::after(kPatience));
  require(outcome == WaitSet::WakeReason::ready, "bytes move before the deadline");
}

void Mover::run(std::vector<Sending> sends, std::vector<Receiving> receives) {
  const auto unsent = [](const Sending& sending) {
    return sending.done < sending.total || !sending.endpoint->flushed();
  };
  const auto unreceived = [](const Receiving& receiving) {
    return receiving.done < receiving.total;
  };
  Waiter waiter(WaitLadder{0, static_cast<std::uint32_t>(polls_)});
  while (std::ranges::any_of(sends, unsent) || std::ranges::any_of(receives, unreceived)) {
    bool moved = false;
    for (Sending& sending : sends) moved = send_some(sending) || moved;
    for (Receiving& receiving : receives) moved = receive_some(receiving) || moved;
    if (moved) {
      waiter = Waiter(WaitLadder{0, static_cast<std::uint32_t>(polls_)});
    } else if (!waiter.poll_again()) {
      wait_for(sends, receives);
    }
  }
}

void connect(Endpoint& endpoint) {
  WaitSet wait_set;
  const Deadline deadline = Deadline::after(kPatience);
  while (true) {
    static_cast<void>(endpoint.try_send({}));
    if (endpoint.connected()) return;
    const WaitSet::Entry entry{&endpoint, {false, true}};
    require(wait_set.wait({&entry, 1}, deadline) == WaitSet::WakeReason::ready,
            "the endpoint connects");
  }
}

std::string loss_of(Endpoint& endpoint) {
  WaitSet wait_set;
  const Deadline deadline = Deadline::after(kPatience);
  std::vector<std::byte> sink(std::size_t{1} << 16);
  try {
    while (!deadline.expired()) {
      if (endpoint.try_receive_into(sink) > 0) continue;
      const WaitSet::Entry entry{&endpoint, {true, false}};
      static_cast<void>(wait_set.wait({&entry, 1}, deadline));
    }
  } catch (const PeerLost& lost) {
    require_equal(lost.peer(), endpoint.peer(), "the lost peer");
    return lost.what();
  }
  throw Failure("the peer was not lost in half a minute");
}

}  // namespace hccl::test
