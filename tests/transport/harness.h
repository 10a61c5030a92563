// SPDX-License-Identifier: Apache-2.0
// The harness of the transport tests: ranks with one transport each, and loops that move bytes as
// the execution of a schedule does and never block in an endpoint.
#pragma once

#include "base/process.h"
#include "check.h"
#include "ranks.h"
#include "transport/registry.h"
#include "transport/wait_set.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::test {

using transport::ConnectionId;
using transport::Endpoint;
using transport::Interest;
using transport::PeerLost;
using transport::WaitSet;

// A transport and its address family.
struct Way {
  const char* name;       // name of the test case
  const char* transport;  // name in the registry of transports
  bool v6 = false;
  std::optional<Protection> protection{};

  friend std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }
};
[[nodiscard]] std::vector<Way> all_ways();
[[nodiscard]] bool has_ipv6();
// Returns the reason why this machine cannot run the transport, or "".
[[nodiscard]] std::string why_missing(const Way& way);

// A rank's transport, and the addresses of all ranks.
class Member {
 public:
  // Creates the transport and exchanges addresses. Collective: blocks until all ranks of the world
  // have called the constructor.
  Member(World& world, const Way& way, const transport::ConnectionLimits& limits = {});

  [[nodiscard]] std::unique_ptr<Endpoint> open(int peer, ConnectionId connection = {}) {
    return transport_->open(peer, connection, addresses_.at(static_cast<std::size_t>(peer)));
  }
  [[nodiscard]] transport::Transport& transport() { return *transport_; }
  [[nodiscard]] const Bytes& address_of(int rank) const {
    return addresses_.at(static_cast<std::size_t>(rank));
  }

 private:
  std::unique_ptr<transport::Transport> transport_;
  std::vector<Bytes> addresses_;
};

// Returns the loopback interface with an IPv6 or an IPv4 address.
[[nodiscard]] Interface loopback(bool v6);
[[nodiscard]] transport::Settings settings_for(int rank, int size, const Way& way);
[[nodiscard]] std::unique_ptr<transport::Transport> make_transport(
    const Way& way, const transport::Settings& settings);

// Fills `bytes` with a pattern that depends on the stream and on the position within the stream.
void fill(std::span<std::byte> bytes, std::uint64_t stream, std::uint64_t position);
[[nodiscard]] std::vector<std::byte> pattern(std::size_t size, std::uint64_t stream,
                                             std::uint64_t position = 0);
// Throws Failure at the first byte that differs from the pattern of fill().
void check_pattern(std::span<const std::byte> bytes, std::uint64_t stream, std::uint64_t position);

// The state of a transfer. Each step offers or requests a random number of bytes from 1 to `chop`,
// or 1 MiB if `chop` is 0, but at most the rest of the transfer. Taking::into receives into a
// buffer, Taking::lent takes views that the endpoint lends, and Taking::mixed chooses at random.
struct Sending {
  Endpoint* endpoint = nullptr;
  std::uint64_t stream = 0;
  std::uint64_t total = 0;
  std::size_t chop = 0;
  std::uint64_t done = 0;
};
enum class Taking : std::uint8_t { into, lent, mixed };
struct Receiving {
  Endpoint* endpoint = nullptr;
  std::uint64_t stream = 0;
  std::uint64_t total = 0;
  std::size_t chop = 0;
  Taking taking = Taking::mixed;
  std::uint64_t done = 0;
};

// Completes transfers in any order, and sleeps in a wait set while no byte can be moved.
class Mover {
 public:
  explicit Mover(unsigned long long seed = rank_seed()) : random_(seed) {}

  // Makes the mover sleep immediately instead of polling first.
  Mover& eager_to_sleep() {
    polls_ = 0;
    return *this;
  }
  void run(std::vector<Sending> sends, std::vector<Receiving> receives);
  [[nodiscard]] bool send_some(Sending& sending);
  [[nodiscard]] bool receive_some(Receiving& receiving);
  [[nodiscard]] WaitSet& wait_set() { return wait_set_; }

 private:
  [[nodiscard]] std::size_t piece(std::uint64_t left, std::size_t chop);
  void wait_for(const std::vector<Sending>& sends, const std::vector<Receiving>& receives);

  std::mt19937_64 random_;
  WaitSet wait_set_;
  std::vector<std::byte> scratch_;
  int polls_ = 200;
};

// Blocks until the connection is established. Throws Failure after 30 seconds.
void connect(Endpoint& endpoint);
// Receives and discards bytes until the endpoint throws PeerLost. Returns the error text. Throws
// Failure after 30 seconds.
[[nodiscard]] std::string loss_of(Endpoint& endpoint);

// Calls the function until it throws PeerLost. Returns the error text. Throws Failure after 30
// seconds.
template <class Function>
[[nodiscard]] std::string loss_in(Function function) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(30));
  try {
    while (!deadline.expired()) function();
  } catch (const PeerLost& lost) {
    return lost.what();
  }
  throw Failure("the peer was not lost in half a minute");
}

// A suite that runs over every transport, and over TCP with both address families.
class EveryWay : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (GetParam().v6 && !has_ipv6())
      GTEST_SKIP() << "needs ipv6: this machine has no IPv6 address";
    const std::string why_not = why_missing(GetParam());
    if (!why_not.empty()) GTEST_SKIP() << "needs rdma: " << why_not;
  }
  // Runs ranks as processes, which must all succeed.
  static void run(int ranks, const RankFunction& function) {
    const RankOptions options{.seconds = 120};
    EXPECT_EQ(failures(run_ranks(ranks, function, options)), "") << "seed " << test_seed();
  }
  // Runs two ranks, each with an endpoint to the other.
  static void run_pair(const std::function<void(World&, Endpoint&)>& function) {
    run(2, [&](World& world) {
      Member member(world, GetParam());
      const auto endpoint = member.open(1 - world.rank);
      function(world, *endpoint);
    });
  }
};

inline std::string name_of(const testing::TestParamInfo<Way>& info) { return info.param.name; }

}  // namespace hccl::test
