// SPDX-License-Identifier: Apache-2.0
// An attacker on the path tampers with one record of a job on two hosts. Each rank must get the
// right data, or an error that names a rank or the server.
#include "children.h"
#include "host_test.h"
#include "on_path_relay.h"
#include "session.h"

#include <array>
#include <map>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/mman.h>

namespace hccl::test {
namespace {

constexpr int kRanks = 4;
constexpr std::size_t kFew = 100;
constexpr std::size_t kMany = 40'000;

std::int32_t element(int rank, std::size_t index, int call) {
  const std::size_t mixed = (index + 1) * 2654435761 + static_cast<std::size_t>(rank) * 40503 +
                            static_cast<std::size_t>(call) * 9176;
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(mixed)) >> 4;
}

std::vector<std::int32_t> elements(int rank, std::size_t count, int call) {
  std::vector<std::int32_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element(rank, i, call);
  return values;
}

// The calls of one rank. Stops at the first error.
class Job {
 public:
  explicit Job(World& world) : world_(world), session_(world), stream_(session_.make_stream()) {}

  void run(bool with_id) {
    const hcclUniqueId id = with_id ? share_id(world_) : hcclUniqueId{};
    const hcclResult_t joined = hcclCommInitRank(&communicator_, kRanks, id, world_.rank);
    if (joined != hcclSuccess) return report_error(joined, last_hccl_message());
    for (int call = 0; call < 4 && !failed_; ++call) {
      all_reduce(call % 2 == 0 ? kFew : kMany, call);
      exchange(call % 2 == 0 ? kMany : kFew, call);
    }
    if (failed_) return static_cast<void>(hcclCommAbort(communicator_));
    succeed(hcclCommDestroy(communicator_));
    session_.finish();
    world_.report("right");
  }

 private:
  void all_reduce(std::size_t count, int call) {
    const std::vector<std::int32_t> mine = elements(world_.rank, count, call);
    std::vector<std::int32_t> sums(count, -1);
    if (!completes(hcclAllReduce(mine.data(), sums.data(), count, hcclInt32, hcclSum, communicator_,
                                 stream_)))
      return;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t sum = 0;
      for (int rank = 0; rank < kRanks; ++rank)
        sum += static_cast<std::uint32_t>(element(rank, i, call));
      require_equal(sums[i], static_cast<std::int32_t>(sum), join("sum ", i, " of call ", call));
    }
  }

  // Sends to the next rank on the other host, and receives from it.
  void exchange(std::size_t count, int call) {
    if (failed_) return;
    const int peer = (world_.rank + 2) % kRanks;
    const std::vector<std::int32_t> mine = elements(world_.rank, count, 100 + call);
    std::vector<std::int32_t> theirs(count, -1);
    succeed(hcclGroupStart());
    for (const bool sends : {true, false}) {
      const hcclResult_t result =
          sends ? hcclSend(mine.data(), count, hcclInt32, peer, communicator_, stream_)
                : hcclRecv(theirs.data(), count, hcclInt32, peer, communicator_, stream_);
      if (result != hcclSuccess && !failed_) report_error(result, last_hccl_message());
    }
    const hcclResult_t ended = hcclGroupEnd();
    if (failed_ || !completes(ended)) return;
    require(theirs == elements(peer, count, 100 + call), join("message of call ", call));
  }

  bool completes(hcclResult_t result) {
    if (result != hcclSuccess) {
      report_error(result, last_hccl_message());
    } else if (synStreamSynchronize(stream_) != synSuccess) {
      hcclResult_t code = hcclSuccess;
      succeed(hcclCommGetAsyncError(communicator_, &code));
      report_error(code, async_message(communicator_));
    }
    return !failed_;
  }

  void report_error(hcclResult_t code, const std::string& text) {
    failed_ = true;
    require(code != hcclSuccess, "an error has a code");
    const bool says_who =
        text.find("rank") != std::string::npos || text.find("server") != std::string::npos;
    require(says_who, join("the error does not name anybody: ", text));
    world_.report(join("error ", text));
  }

  World& world_;
  Session session_;
  synStreamHandle stream_;
  hcclComm_t communicator_ = nullptr;
  bool failed_ = false;
};

class OnPath : public Hosts {
 protected:
  void SetUp() override {
    Hosts::SetUp();
    if (IsSkipped()) return;
    const std::string why_not = HostNetwork::why_not_intercept();
    if (!why_not.empty()) GTEST_SKIP() << "needs nftables: " << why_not;
    void* const pages =
        mmap(nullptr, sizeof(Recording), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    recording_ = new (pages) Recording;
    network_.emplace(2);
    for (const int host : {0, 1}) network_->intercept(host, OnPathRelay::kPort, OnPathRelay::kUser);
  }
  void TearDown() override {
    if (recording_ != nullptr) munmap(recording_, sizeof(Recording));
    Hosts::TearDown();
  }

  // Runs a job while the attacker attacks. Returns the ranks' reports.
  std::vector<std::string> run(const Attack& attack) {
    const std::array<OnPathRelay, 2> relays{OnPathRelay(*network_, 0, attack, *recording_),
                                            OnPathRelay(*network_, 1, attack, *recording_)};
    const bool with_id = attack.seed % 2 == 0;
    RankOptions options = on_hosts(0);
    options.environment.emplace_back("HCCL_SECRET", "known to all ranks, and to nobody else");
    options.environment.emplace_back("HCCL_ENCRYPT", attack.seed % 3 == 0 ? "integrity" : "full");
    options.environment.emplace_back("HCCL_INIT_TIMEOUT", "3");
    options.environment.emplace_back("HCCL_TIMEOUT", "3");
    options.environment.emplace_back("HCCL_DEBUG", "NONE");
    if (with_id)
      std::erase_if(options.environment, [](const auto& one) {
        return one.first == "HCCL_COMM_ID" || one.first == "HCCL_SECRET";
      });
    recording_->has_tampered = false;
    const auto outcomes = run_ranks(
        kRanks,
        [&](World& world) {
          move_to(*network_, world.rank / 2);
          Job(world).run(with_id);
        },
        options);
    EXPECT_EQ(failures(outcomes), "") << attack.text();
    std::vector<std::string> reports;
    for (const RankOutcome& outcome : outcomes) {
      EXPECT_EQ(outcome.reports.size(), 1U) << attack.text();
      for (const std::string& report : outcome.reports) reports.push_back(report);
    }
    return reports;
  }
  [[nodiscard]] bool has_tampered() const { return recording_->has_tampered; }

 private:
  Recording* recording_ = nullptr;
  std::optional<HostNetwork> network_;
};

// The relay itself must not disturb a job, and must see its connections.
TEST_F(OnPath, JobRunsThroughRelay) {
  Attack late;
  late.kind = Tampering::delay;
  for (const int host : {0, 1}) {
    late.host = host;
    late.seed = static_cast<std::uint64_t>(host);
    EXPECT_EQ(run(late), std::vector<std::string>(kRanks, "right"));
    EXPECT_TRUE(has_tampered()) << host;
  }
}

// HCCL_TEST_SCALE multiplies the number of attacks, and HCCL_TEST_SEED chooses them.
TEST_F(OnPath, DataIsRightOrErrorNamesARank) {
  int effective = 0;
  std::set<Tampering> kinds;
  std::set<int> hosts;
  std::map<std::string, int> endings;
  const int attacks = scaled(30);
  for (int i = 0; i < attacks; ++i) {
    const unsigned long long seed = test_seed() + static_cast<unsigned>(i);
    Attack attack = Attack::random(seed);
    attack.kind = static_cast<Tampering>(1 + i % (kTamperings - 1));
    attack.host = (i + i / (kTamperings - 1)) % 2;
    const std::vector<std::string> reports = run(attack);
    ASSERT_FALSE(HasFailure()) << "HCCL_TEST_SEED=" << seed;
    if (!has_tampered()) continue;
    ++effective;
    kinds.insert(attack.kind);
    hosts.insert(attack.host);
    for (const std::string& report : reports) ++endings[report == "right" ? "right" : "error"];
    if (attack.kind == Tampering::delay) {
      EXPECT_EQ(reports, std::vector<std::string>(kRanks, "right")) << attack.text();
    }
  }
  std::printf("%d attacks tampered with a record: %d ranks got the right data, %d an error\n",
              effective, endings["right"], endings["error"]);
  if (attacks < 30) return;  // too few to expect that each kind meets a record
  EXPECT_GE(kinds.size(), 5U);
  EXPECT_EQ(hosts.size(), 2U) << "data connections and connections to the server";
}

}  // namespace
}  // namespace hccl::test
