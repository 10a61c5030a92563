// SPDX-License-Identifier: Apache-2.0
// Tests device memory that is freed and allocated again between calls over verbs. Once an address
// has new pages, the RDMA device must not read or write the old pages. hcclCommDestroy must release
// the process's resources on that device.
#include "rdma_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

#include <unistd.h>

namespace hccl::test {
namespace {

constexpr double kLeast = 4 << 10;
constexpr double kMost = 8 << 20;

// Returns `rank`'s input in `round`. Every rank can compute the input of every other rank, and
// faster than with elements.h.
std::vector<std::byte> words_of(int rank, int round, std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  std::uint64_t state =
      (test_seed() + static_cast<unsigned>(rank)) * 1'000'003U + static_cast<unsigned>(round);
  for (std::size_t at = 0; at < bytes; at += sizeof(state)) {
    state = state * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    std::memcpy(&result[at], &state, sizeof(state));
  }
  return result;
}

std::vector<std::byte> sum_of(std::vector<std::byte> a, const std::vector<std::byte>& b) {
  for (std::size_t at = 0; at < a.size(); at += sizeof(std::uint32_t)) {
    std::uint32_t left = 0;
    std::uint32_t right = 0;
    std::memcpy(&left, &a[at], sizeof(left));
    std::memcpy(&right, &b[at], sizeof(right));
    left += right;
    std::memcpy(&a[at], &left, sizeof(left));
  }
  return a;
}

// Returns the KiB that this process has locked or that devices have pinned for it.
std::uint64_t locked_kib() {
  std::ifstream status("/proc/self/status");
  std::uint64_t sum = 0;
  for (std::string name; status >> name;) {
    std::uint64_t kib = 0;
    if ((name == "VmLck:" || name == "VmPin:") && status >> kib) sum += kib;
  }
  return sum;
}

// Runs an all-reduce or an all-gather on new buffers and checks the result. Returns how many KiB
// are locked before the buffers are freed.
std::uint64_t one_round(const Session& session, const Group& group, synStreamHandle stream,
                        int round, std::size_t bytes) {
  const bool reduce = round % 2 == 0;
  const std::vector<std::byte> own = words_of(group.rank, round, bytes);
  const std::vector<std::byte> zero = words_of(0, round, bytes);
  const std::vector<std::byte> one = words_of(1, round, bytes);
  std::vector<std::byte> expected = reduce ? sum_of(zero, one) : zero;
  if (!reduce) expected.insert(expected.end(), one.begin(), one.end());
  const DeviceMemory input(session.device(), bytes);
  const DeviceMemory output(session.device(), expected.size());
  upload(stream, own, input.address());
  void* const from = input.pointer();
  void* const to = output.pointer();
  const std::size_t count = bytes / sizeof(std::uint32_t);
  succeed(reduce ? hcclAllReduce(from, to, count, hcclUint32, hcclSum, group.handle, stream)
                 : hcclAllGather(from, to, count, hcclUint32, group.handle, stream));
  std::vector<std::byte> got(expected.size());
  download(stream, output.address(), got);
  succeed(synStreamSynchronize(stream));
  require(got == expected, join("round ", round, " with ", bytes, " bytes has wrong contents"));
  return locked_kib();
}

std::string all_resources(int host) {
  std::string all;
  for (const char* kind : {"qp", "cq", "mr", "pd", "ctx"})
    all += RdmaHosts::resources(host, kind, getpid());
  return all;
}

void come_and_go(World& world, const Layout& layout, int rounds) {
  const int host = layout.host_of(world.rank);
  move_to(host);
  const VerbsProof proof(world, layout);
  Session session(world);
  const Group group = session.join_all();
  synStreamHandle stream = session.make_stream();
  std::mt19937_64 random(test_seed());
  std::uniform_real_distribution<double> exponent(std::log(kLeast), std::log(kMost));
  std::uint64_t early = 0;
  std::uint64_t late = 0;
  for (int round = 0; round < rounds; ++round) {
    // Most sizes are small.
    const double size = std::exp(std::min({exponent(random), exponent(random), exponent(random)}));
    const std::size_t bytes = static_cast<std::size_t>(size) / 64 * 64;
    std::uint64_t& most = round < rounds / 2 ? early : late;
    most = std::max(most, one_round(session, group, stream, round, bytes));
  }
  constexpr std::uint64_t kTwoBuffersKib = 2 * static_cast<std::uint64_t>(kMost) >> 10;
  require(early > 0, "registered memory counts as locked");
  require(late <= early + kTwoBuffersKib, join("locked memory grew: ", early, ", ", late, " KiB"));
  for (const char* kind : {"qp", "cq", "mr"})
    require(!RdmaHosts::resources(host, kind, getpid()).empty(), join("there is a ", kind));
  proof.report(group);
  world.board->barrier(0, world.size);
  session.forget_communicators();
  succeed(hcclCommDestroy(group.handle));
  require_equal(all_resources(host), std::string(), "resources left on the device");
  require_equal(locked_kib(), std::uint64_t{0}, "memory that is still locked");
  world.report(join(early, ", ", late, " KiB locked at most"));
  session.finish();
}

class RdmaMemory : public OnRdmaHosts {
 protected:
  static void run(int rounds, const std::function<void()>& prepare) {
    SCOPED_TRACE(random_seed_text());
    const RdmaHosts hosts;
    const Layout layout{"ab"};
    RankOptions options = on_hosts_of(layout);
    options.seconds = 280;
    const auto outcomes = run_ranks(
        layout.ranks(),
        [&](World& world) {
          prepare();
          come_and_go(world, layout, rounds);
        },
        options);
    ASSERT_EQ(failures(outcomes), "");
    for (const RankOutcome& outcome : outcomes) {
      EXPECT_GT(std::stoull(outcome.reports.front()), 0U);
      std::printf("%s\n", outcome.reports.back().c_str());
    }
  }
};

TEST_F(RdmaMemory, ReusedWithNewContentsIsSentCorrectly) {
  run(scaled(1000), [] {});
}

// The limit is too low for the largest buffers to be registered as a whole.
TEST_F(RdmaMemory, ReusedUnderALowLockLimitIsSentCorrectly) {
  run(scaled(200), [] { limit_locked_memory(rlim_t{6} << 20); });
}

}  // namespace
}  // namespace hccl::test
