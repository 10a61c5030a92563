// SPDX-License-Identifier: Apache-2.0
// Tests how failed calls are logged: each failure once, with a count of its repetitions, and with a
// limit on the number of lines.
#include "api/failure_log.h"

#include "base/log.h"
#include "captured_stderr.h"

#include <array>
#include <atomic>
#include <barrier>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace hccl::api {
namespace {

using test::CapturedStderr;

constexpr const char* kFunction = "hcclAllReduce";
constexpr const char* kOther = "hcclBroadcast";
const FailureLog::TimePoint kStart = FailureLog::TimePoint() + std::chrono::hours(1);

FailedCall failure(const char* function = kFunction, std::string_view text = "count is odd") {
  return {function, "hcclInvalidArgument", 7, text};
}

// Returns a log line without its prefix.
std::string message(const std::string& line) {
  const std::size_t at = line.find(" api: ");
  return at == std::string::npos ? line : line.substr(at + 6);
}

struct FailureLogTest : testing::Test {
  FailureLogTest() { configure_log(Config{}); }
  CapturedStderr captured;
  FailureLog log;
};

TEST_F(FailureLogTest, LineNamesFunctionCodeAndText) {
  log.note(failure(), kStart);
  const std::string line = captured.next_write();
  EXPECT_EQ(line.find("hccl WARN "), 0U) << line;
  EXPECT_EQ(message(line), "hcclAllReduce failed: hcclInvalidArgument (7): count is odd\n");
}

TEST_F(FailureLogTest, LogsFailureOnceAndCountsRepetitions) {
  for (int call = 0; call < 42; ++call) log.note(failure(), kStart);
  EXPECT_NE(captured.next_write(), "");
  EXPECT_EQ(captured.next_write(), "");
  log.flush();
  EXPECT_EQ(message(captured.next_write()),
            "hcclAllReduce failed: hcclInvalidArgument, repeated 41 times\n");
  log.flush();
  EXPECT_EQ(captured.next_write(), "") << "repetitions must not be counted twice";
}

TEST_F(FailureLogTest, LogsAgainAfterPeriodWithRepetitions) {
  for (int call = 0; call < 2; ++call) log.note(failure(), kStart);
  static_cast<void>(captured.next_write());
  log.note(failure(), kStart + FailureLog::kPeriod);
  EXPECT_EQ(message(captured.next_write()),
            "hcclAllReduce failed: hcclInvalidArgument, repeated 1 time: count is odd\n");
}

TEST_F(FailureLogTest, LogsEachDifferentFailure) {
  FailedCall other_code = failure();
  other_code.code = 8;
  for (const FailedCall& call :
       {failure(), failure(kOther), failure(kFunction, "count is even"), other_code}) {
    log.note(call, kStart);
    EXPECT_NE(captured.next_write(), "") << call.function << call.code << call.text;
  }
}

TEST_F(FailureLogTest, CutsOffAndCountsFlood) {
  int lines = 0;
  for (int call = 0; call < FailureLog::kMostLines + 5; ++call) {
    log.note(failure(kFunction, std::to_string(call)), kStart);
    lines += captured.next_write().empty() ? 0 : 1;
  }
  EXPECT_EQ(lines, FailureLog::kMostLines);
  log.note(failure(kFunction, "last"), kStart + FailureLog::kPeriod);
  EXPECT_EQ(message(captured.next_write()),
            "5 more failed calls are not shown; look at the first ones\n");
  EXPECT_NE(captured.next_write().find("last"), std::string::npos);
}

TEST_F(FailureLogTest, LogsRepetitionsOfEvictedFailure) {
  for (int call = 0; call < 2; ++call) log.note(failure(), kStart);
  static_cast<void>(captured.next_write());
  bool logged = false;
  for (int call = 0; call < 1000; ++call) {
    log.note(failure(kOther, std::to_string(call)), kStart + call * FailureLog::kPeriod);
    for (std::string line = captured.next_write(); !line.empty(); line = captured.next_write())
      logged = logged || line.find("hcclAllReduce failed: hcclInvalidArgument, repeated 1 time") !=
                             std::string::npos;
  }
  EXPECT_TRUE(logged);
}

TEST_F(FailureLogTest, NeverRepeatsFailureMarkedOnce) {
  FailedCall call = failure();
  call.once = true;
  log.note(call, kStart);
  EXPECT_NE(captured.next_write(), "");
  log.note(call, kStart + 10 * FailureLog::kPeriod);
  log.flush();
  EXPECT_EQ(captured.next_write(), "");
}

FailedCall held(std::string_view text) {
  FailedCall call = failure(kOther, text);
  call.tries = true;
  return call;
}

TEST_F(FailureLogTest, OmitsFailedTriesBeforeSuccess) {
  log.note(held("module 0 is held"), kStart);
  log.note(held("module 1 is held"), kStart);
  log.forgive();
  log.flush();
  EXPECT_EQ(captured.next_write(), "");
}

TEST_F(FailureLogTest, LogsLastTryIfNoneSucceeds) {
  for (const char* text : {"module 0 is held", "module 1 is held"}) log.note(held(text), kStart);
  EXPECT_EQ(captured.next_write(), "");
  log.flush();
  EXPECT_NE(captured.next_write().find("module 1 is held"), std::string::npos);
  EXPECT_EQ(captured.next_write(), "");
}

TEST_F(FailureLogTest, LogsTryBeforeNextFailure) {
  log.note(held("module 0 is held"), kStart);
  log.note(failure(), kStart);
  EXPECT_NE(captured.next_write().find("module 0 is held"), std::string::npos);
  EXPECT_NE(captured.next_write().find("hcclAllReduce failed"), std::string::npos);
}

TEST_F(FailureLogTest, LogsRepeatedTry) {
  for (int call = 0; call < 2; ++call) log.note(held("module 0 is held"), kStart);
  EXPECT_NE(captured.next_write().find("module 0 is held"), std::string::npos);
}

TEST_F(FailureLogTest, SuccessOfAnotherThreadForgivesNothing) {
  log.note(held("module 0 is held"), kStart);
  std::thread([&] { log.forgive(); }).join();
  log.flush();
  EXPECT_NE(captured.next_write().find("module 0 is held"), std::string::npos);
}

TEST_F(FailureLogTest, OmitsTriesOfThreadsThatTryAtTheSameTime) {
  log.note(held("module 0 is held"), kStart);
  std::thread([&] {
    log.note(held("module 1 is held"), kStart);
    log.forgive();
  }).join();
  log.forgive();
  log.flush();
  EXPECT_EQ(captured.next_write(), "");
}

TEST_F(FailureLogTest, LogsKeptTriesBeforeTheyRunOutOfRoom) {
  constexpr std::size_t kThreads = FailureLog::kMostTries + 1;
  std::barrier all_failed(static_cast<std::ptrdiff_t>(kThreads));  // so that all threads exist
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      log.note(held("module " + std::to_string(thread) + " is held"), kStart);
      all_failed.arrive_and_wait();
    });
  }
  threads.clear();
  log.flush();
  std::set<std::string> lines;
  for (std::size_t thread = 0; thread < kThreads; ++thread) lines.insert(captured.next_write());
  EXPECT_EQ(lines.size(), kThreads);
  EXPECT_FALSE(lines.contains(""));
  EXPECT_EQ(captured.next_write(), "");
}

TEST_F(FailureLogTest, SuccessForgivesOnlyTries) {
  for (int call = 0; call < 2; ++call) log.note(failure(), kStart);
  log.forgive();
  log.flush();
  EXPECT_NE(captured.next_write(), "");
  EXPECT_NE(captured.next_write().find("repeated 1 time"), std::string::npos);
}

// Once a period has reached its limit of lines, a further failure is neither logged nor stored, but
// still evicts the oldest entry. All newer entries must remain.
TEST_F(FailureLogTest, EvictionKeepsNewerFailures) {
  constexpr int kFailures = 256;
  const auto at = [](int failure) { return kStart + (failure / 10) * FailureLog::kPeriod; };
  for (int call = 0; call < kFailures; ++call) {
    log.note(failure(kFunction, std::to_string(call)), at(call));
    EXPECT_NE(captured.next_write(), "") << call;
  }
  const FailureLog::TimePoint end = at(kFailures - 1);
  for (int call = 0; call < FailureLog::kMostLines; ++call) {
    log.note(failure(kOther, std::to_string(call)), end);
    static_cast<void>(captured.next_write());
  }
  log.note(failure(kFunction, std::to_string(kFailures - 1)), end);
  log.flush();
  EXPECT_EQ(message(captured.next_write()),
            "hcclAllReduce failed: hcclInvalidArgument, repeated 1 time\n");
}

// Replaces stderr with a full pipe while an object of this class exists.
class FullPipe {
 public:
  FullPipe() {
    EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(fcntl(ends_[1], F_SETFL, O_NONBLOCK), 0);
    for (const std::size_t size : {4096U, 1U}) {
      const std::string filling(size, 'x');
      while (write(ends_[1], filling.data(), size) > 0) {
      }
    }
    EXPECT_EQ(fcntl(ends_[1], F_SETFL, 0), 0);
    dup2(ends_[1], STDERR_FILENO);
  }
  ~FullPipe() {
    dup2(saved_, STDERR_FILENO);
    for (const int fd : {saved_, ends_[0], ends_[1]}) close(fd);
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;

  void read_some() const {
    std::string some(1 << 15, '\0');
    EXPECT_GT(read(ends_[0], some.data(), some.size()), 0);
  }

 private:
  const int saved_ = dup(STDERR_FILENO);
  std::array<int, 2> ends_{};
};

bool is_sleeping(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  return line.find(") S ") != std::string::npos;
}

TEST_F(FailureLogTest, BlockedWriterDelaysNoOtherThread) {
  for (int call = 0; call < 2; ++call) log.note(failure(), kStart);
  const FullPipe pipe;
  std::atomic<pid_t> writing = 0;
  std::thread writer([&] {
    writing = gettid();
    log.note(failure(kOther), kStart);
  });
  while (writing == 0 || !is_sleeping(writing)) std::this_thread::yield();
  log.note(failure(), kStart);
  log.flush();
  pipe.read_some();
  writer.join();
}

TEST_F(FailureLogTest, IsSilentAtHigherLevelsAndOff) {
  Config config;
  config.log_level = LogLevel::off;
  configure_log(config);
  log.note(failure(), kStart);
  config.log_level = LogLevel::error;
  configure_log(config);
  log.note(failure(), kStart);
  configure_log(Config{});
  FailedCall expected = failure();
  expected.level = LogLevel::info;  // the level of a failed probe
  log.note(expected, kStart);
  EXPECT_EQ(captured.next_write(), "");
}

}  // namespace
}  // namespace hccl::api
