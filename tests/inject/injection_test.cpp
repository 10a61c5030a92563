// SPDX-License-Identifier: Apache-2.0
// Makes one system call of the library fail once. Both ranks must succeed with correct data, or a
// call must return an error with a text within its deadline. No rank may crash, hang or get wrong
// data. Runs a random sample of the injections and prints the seed. With HCCL_TEST_SCALE=1000, runs
// all.
#include "check.h"
#include "experiment.h"
#include "ranks.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

constexpr int kSample = 40;

// The outcomes of the injections into one function.
struct Tally {
  int runs = 0;
  int both_succeed = 0;
  int victim_errs = 0;  // only the victim
  int both_err = 0;
  int peer_errs = 0;  // only the peer
  int defects = 0;
};

class Report {
 public:
  void add(const Pairing& pairing, const Injection& injection, const Result& result) {
    const std::lock_guard lock(mutex_);
    Tally& tally = tallies_[injection.function];
    ++tally.runs;
    const bool victim = result.succeeded(pairing.victim);
    const bool peer = result.succeeded(1 - pairing.victim);
    const std::string defect = result.defect();
    const std::string what =
        join(injection.to_text(), " (", std::strerror(injection.error), ", rank ", pairing.victim,
             " of ", name_of(pairing.layout), "): ", defect, '\n', result.output, '\n');
    if (defect.empty() && (!victim || !peer)) errors_ += what;
    if (!defect.empty()) {
      ++tally.defects;
      defects_ += what;
    } else if (victim) {
      ++(peer ? tally.both_succeed : tally.peer_errs);
    } else {
      ++(peer ? tally.victim_errs : tally.both_err);
    }
  }

  [[nodiscard]] const std::string& defects() const { return defects_; }
  // Returns the error texts of the runs in which a call failed without a defect.
  [[nodiscard]] const std::string& errors() const { return errors_; }

  void print() const {
    std::cout << "function: runs = both succeed + victim errs + both err + peer errs + defects\n";
    for (const auto& [function, tally] : tallies_) {
      std::cout << function << ": " << tally.runs << " = " << tally.both_succeed << " + "
                << tally.victim_errs << " + " << tally.both_err << " + " << tally.peer_errs << " + "
                << tally.defects << '\n';
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Tally> tallies_;
  std::string defects_;
  std::string errors_;
};

// Runs the injections in several threads, because a rank that waits for its deadline uses no CPU
// time.
void run_all(const Pairing& pairing, const std::vector<Injection>& injections, Report& report) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < 2 * std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < injections.size(); at = next++)
        report.add(pairing, injections[at], run(pairing, injections[at]));
    });
  }
}

void take_sample(std::vector<Injection>& injections) {
  const std::size_t all = injections.size();
  std::shuffle(injections.begin(), injections.end(), std::mt19937_64(test_seed()));
  injections.resize(std::min(all, static_cast<std::size_t>(scaled(kSample))));
  std::cout << injections.size() << " of " << all << " injections, HCCL_TEST_SEED=" << test_seed()
            << '\n';
}

class InjectionTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "needs another build: ThreadSanitizer's runtime crashes if a preloaded library "
                    "replaces functions of the C library";
#endif
  }
};
class Departure : public InjectionTest {};
class Advice : public InjectionTest {};
class Injections : public InjectionTest, public testing::WithParamInterface<Pairing> {};

TEST_P(Injections, EndInSuccessOrAnError) {
  const Pairing pairing = GetParam();
  std::vector<Injection> injections = injections_into(count_calls(pairing));
  take_sample(injections);
  Report report;
  run_all(pairing, injections, report);
  report.print();
  EXPECT_EQ(report.defects(), "");
}

// Returns whether the error is transient: an interruption, or a shortage of kernel memory for a
// message.
bool is_passing(const Injection& injection) {
  const bool sends = injection.function == "send" || injection.function == "sendmsg";
  return injection.error == EINTR ||
         (sends && (injection.error == ENOBUFS || injection.error == ENOMEM));
}

// A single transient error must not fail a call, nor stall it: a stalled call would fail at the
// ranks' time limits.
TEST_P(Injections, OfTransientErrorsAreHarmless) {
  const Pairing pairing = GetParam();
  std::vector<Injection> injections = injections_into(count_calls(pairing));
  std::erase_if(injections, [](const Injection& one) { return !is_passing(one); });
  ASSERT_FALSE(injections.empty());
  take_sample(injections);
  Report report;
  run_all(pairing, injections, report);
  EXPECT_EQ(report.errors(), "");
  EXPECT_EQ(report.defects(), "");
}

// A process may exit right after it has sent the frame that announces its departure. If the first
// attempt to send the frame fails for lack of kernel memory, the other node must still receive the
// frame and must not report a lost rank.
TEST_F(Departure, IsAnnouncedDespiteAMemoryShortage) {
  for (const int victim : {0, 1}) {
    const Pairing pairing{Layout::two_nodes, victim};
    std::vector<Injection> injections;
    // A rank sends no frame if the server's process ends first, so several runs may be needed.
    for (int tries = 0; injections.empty() && tries < 20; ++tries) {
      for (const CallCount& count : count_calls(pairing)) {
        if (count.phase != "end" || count.function != "sendmsg") continue;
        for (long number = 1; number <= count.calls; ++number)
          injections.push_back({count.phase, count.function, number, ENOBUFS});
      }
    }
    ASSERT_FALSE(injections.empty());
    Report report;
    run_all(pairing, injections, report);
    EXPECT_EQ(report.errors(), "");
    EXPECT_EQ(report.defects(), "");
  }
}

// The advice in an error must match the error number.
TEST_F(Advice, MatchesTheErrorNumber) {
  const Pairing pairing{Layout::one_node, 0};
  const auto output_of = [&](int error) {
    return run(pairing, {"start", "memfd_create", 1, error}).output;
  };
  EXPECT_TRUE(contains(output_of(EMFILE), "; raise ulimit -n\n"));
  EXPECT_TRUE(contains(output_of(ENFILE), "; raise fs.file-max"));
  EXPECT_TRUE(contains(output_of(ENOMEM), "; free memory on this host"));
  EXPECT_TRUE(contains(output_of(ENOSYS), "; this kernel or sandbox lacks the system call"));
  EXPECT_TRUE(contains(output_of(EPERM), "; allow the system call in the sandbox"));
}

INSTANTIATE_TEST_SUITE_P(Pairings, Injections,
                         testing::Values(Pairing{Layout::one_node, 0}, Pairing{Layout::one_node, 1},
                                         Pairing{Layout::two_nodes, 0},
                                         Pairing{Layout::two_nodes, 1}, Pairing{Layout::rings, 0},
                                         Pairing{Layout::rings, 1}),
                         [](const testing::TestParamInfo<Pairing>& one) {
                           return join(name_of(one.param.layout), "Rank", one.param.victim);
                         });

}  // namespace
}  // namespace hccl::test
