// SPDX-License-Identifier: Apache-2.0
// Compares collectives over verbs with exact expected results, and all-reduces over verbs with
// all-reduces over TCP. In both comparisons, all bits must be equal.

#include "elements.h"
#include "matrix.h"
#include "rdma_test.h"

#include <algorithm>
#include <cstring>
#include <ostream>
#include <span>

#include <hccl_emulation.h>
#include <sys/mman.h>

namespace hccl::test {
namespace {

// Odd element counts, for calls of 12 B, 80 KB and 1.2 MB.
constexpr std::array<std::size_t, 3> kCounts{3, 20'001, 300'007};

std::size_t bytes_of_all() {
  std::size_t bytes = 0;
  for (const std::size_t count : kCounts) bytes += count * sizeof(float);
  return bytes;
}

struct Case {
  const char* layout;
  const char* algorithm;
};

void PrintTo(const Case& value, std::ostream* out) {
  *out << value.algorithm << " on " << value.layout;
}

// Memory shared by all ranks, which holds the ranks' results in rank order.
class Results {
 public:
  explicit Results(int ranks)
      : size_(static_cast<std::size_t>(ranks) * bytes_of_all()),
        bytes_(static_cast<std::byte*>(
            mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Results() { munmap(bytes_, size_); }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  [[nodiscard]] std::span<std::byte> of_rank(std::size_t rank) const {
    return {bytes_ + rank * bytes_of_all(), bytes_of_all()};
  }

 private:
  std::size_t size_;
  std::byte* bytes_;
};

// Reduces numbers with random mantissas, whose sum depends on the order of additions.
void reduce_all(const Session& session, const Group& group, synStreamHandle stream,
                std::span<std::byte> results) {
  for (const std::size_t count : kCounts) {
    std::vector<std::byte> bytes(count * sizeof(float));
    for (std::size_t i = 0; i < count; ++i) {
      store_word(hcclFloat32, &bytes[i * sizeof(float)],
                 element_word(hcclFloat32, Data::numbers, test_seed(), group.rank, i));
    }
    const DeviceMemory memory(session.device(), bytes.size());
    void* const data = memory.pointer();
    upload(stream, bytes, memory.address());
    succeed(hcclAllReduce(data, data, count, hcclFloat32, hcclSum, group.handle, stream));
    download(stream, memory.address(), bytes);
    succeed(synStreamSynchronize(stream));
    std::memcpy(results.data(), bytes.data(), bytes.size());
    results = results.subspan(bytes.size());
  }
}

std::vector<RankOutcome> run(const Case& of, bool verbs, const Results& results) {
  const Layout layout{of.layout};
  RankOptions options = on_hosts_of(layout);
  options.environment.emplace_back("HCCL_ALGO", of.algorithm);
  if (!verbs) options.environment.emplace_back("HCCL_IB_DISABLE", "1");
  const auto reduce = [&](World& world) {
    move_to(layout.host_of(world.rank));
    const VerbsProof proof(world, layout);
    Session session(world);
    const Group group = session.join_all();
    reduce_all(session, group, session.make_stream(),
               results.of_rank(static_cast<std::size_t>(world.rank)));
    hcclEmulationTraffic_t traffic{};
    succeed(hcclEmulationTraffic(group.handle, -1, &traffic));
    require_equal(std::string(traffic.algorithm), std::string(of.algorithm), "algorithm");
    require_equal(contains(traffic.transport, "tcp"), !verbs, traffic.transport);
    if (verbs) proof.report(group);
    session.finish();
  };
  return run_ranks(layout.ranks(), reduce, options);
}

class SameBits : public OnRdmaHosts, public testing::WithParamInterface<Case> {};

TEST_P(SameBits, OverVerbsAndTcp) {
  SCOPED_TRACE(random_seed_text());
  const RdmaHosts hosts;
  const int ranks = Layout{GetParam().layout}.ranks();
  const Results over_verbs(ranks);
  const Results over_tcp(ranks);
  const auto verbs = run(GetParam(), true, over_verbs);
  ASSERT_EQ(failures(verbs), "");
  EXPECT_GT(VerbsProof::bytes_moved(verbs), 0U);
  ASSERT_EQ(failures(run(GetParam(), false, over_tcp)), "");
  for (std::size_t rank = 0; rank < verbs.size(); ++rank) {
    EXPECT_TRUE(std::ranges::equal(over_verbs.of_rank(rank), over_tcp.of_rank(rank))) << rank;
    EXPECT_TRUE(std::ranges::equal(over_verbs.of_rank(rank), over_verbs.of_rank(0))) << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, SameBits,
                         testing::Values(Case{"aabb", "ring"}, Case{"aabb", "tree"},
                                         Case{"aabb", "hierarchical"}, Case{"abcd", "ring"},
                                         Case{"abcd", "tree"}));

// Tests the operations of matrix_of() over verbs against exact expected results. With a forced
// algorithm, tests only collectives that reduce. Most tests run only a sample, because computing
// the results of many ranks is slow on an emulated processor.
struct MatrixCase {
  std::string layout;
  std::string algorithm;
  int stride;  // the sample has every `stride`-th operation, more with a larger test_scale()
};

void PrintTo(const MatrixCase& value, std::ostream* out) {
  *out << value.layout << ' ' << value.algorithm;
}

std::vector<Operation> sample_of(const MatrixCase& of, const Nodes& nodes) {
  const auto stride = static_cast<std::size_t>(std::max(1.0, of.stride / test_scale()));
  std::size_t next = test_seed() % stride;
  std::vector<Operation> sample;
  for (const Collective collective :
       {Collective::all_reduce, Collective::broadcast, Collective::all_gather,
        Collective::reduce_scatter, Collective::reduce, Collective::all_to_all}) {
    if (!of.algorithm.empty() && !traits(collective).reduces) continue;
    const auto all = matrix_of(collective, static_cast<int>(of.layout.size()), nodes);
    for (; next < all.size(); next += stride) sample.push_back(all[next]);
    next -= all.size();
  }
  return sample;
}

class OverVerbs : public OnRdmaHosts, public testing::WithParamInterface<MatrixCase> {};

TEST_P(OverVerbs, MatchThePlanBitwise) {
  SCOPED_TRACE(random_seed_text());
  const MatrixCase& of = GetParam();
  const Layout layout{of.layout};
  const RdmaHosts hosts;
  Nodes nodes;
  for (const char letter : of.layout) nodes.of_rank.emplace_back(1, letter);
  nodes.algorithm = of.algorithm;
  const std::vector<Operation> operations = sample_of(of, nodes);
  RankOptions options = on_hosts_of(layout);
  if (!of.algorithm.empty()) options.environment.emplace_back("HCCL_ALGO", of.algorithm);
  const auto matrix = [&](World& world) {
    move_to(layout.host_of(world.rank));
    const VerbsProof proof(world, layout);
    run_operations(world, operations, [&](const Group& group) { proof.report(group); });
  };
  const auto outcomes = run_ranks(layout.ranks(), matrix, options);
  EXPECT_EQ(failures(outcomes), "");
  EXPECT_GT(VerbsProof::bytes_moved(outcomes), 0U);
  std::printf("%zu operations\n", operations.size());
}

// By default, the strides share no factor with the number of operations per type and reduction
// (14), so that each sample varies in type, placement and count.
INSTANTIATE_TEST_SUITE_P(Layouts, OverVerbs,
                         testing::Values(MatrixCase{"ab", "", 1}, MatrixCase{"aabb", "", 3},
                                         MatrixCase{"aaaabbbb", "", 11}, MatrixCase{"abcd", "", 11},
                                         MatrixCase{"aaaabbbbccccdddd", "", 43},
                                         MatrixCase{"aab", "", 3}, MatrixCase{"dbacdbdd", "", 13}));
INSTANTIATE_TEST_SUITE_P(
    Forced, OverVerbs,
    testing::Values(MatrixCase{"aabb", "ring", 11}, MatrixCase{"aabb", "tree", 11},
                    MatrixCase{"aabb", "hierarchical", 11}, MatrixCase{"abcd", "ring", 11},
                    MatrixCase{"abcd", "tree", 11}, MatrixCase{"abbccc", "hierarchical", 11}));

}  // namespace
}  // namespace hccl::test
