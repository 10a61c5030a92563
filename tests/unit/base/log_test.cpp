// SPDX-License-Identifier: Apache-2.0
// Log lines: whole lines in one write, at the level asked for, where HCCL_DEBUG_FILE says.
#include "base/log.h"

#include "base/error.h"
#include "base/process.h"

#include <array>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl {
namespace {

// Replaces stderr by a datagram socket: each write(2) arrives as one datagram.
class CapturedStderr {
 public:
  CapturedStderr() : saved_(dup(STDERR_FILENO)) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends_.data()), 0);
    dup2(ends_[1], STDERR_FILENO);
  }
  ~CapturedStderr() {
    dup2(saved_, STDERR_FILENO);
    for (const int fd : {saved_, ends_[0], ends_[1]}) close(fd);
  }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  // What the next single write held; empty if there was none.
  std::string next_write() {
    std::array<char, 8192> buffer{};
    const ssize_t length = recv(ends_[0], buffer.data(), buffer.size(), MSG_DONTWAIT);
    return length > 0 ? std::string(buffer.data(), static_cast<std::size_t>(length)) : "";
  }

 private:
  std::array<int, 2> ends_{};
  int saved_;
};

Config at_level(LogLevel level) {
  Config config;
  config.log_level = level;
  return config;
}

TEST(Log, WarningsAreOnAndInformationIsOffByDefault) {
  configure_log(Config{});
  EXPECT_TRUE(log_enabled(LogLevel::warning));
  EXPECT_TRUE(log_enabled(LogLevel::critical));
  EXPECT_FALSE(log_enabled(LogLevel::info));
}

TEST(Log, OffSilencesEverything) {
  configure_log(at_level(LogLevel::off));
  EXPECT_FALSE(log_enabled(LogLevel::critical));
  EXPECT_FALSE(log_enabled(LogLevel::off));
  configure_log(Config{});
}

TEST(Log, ALineIsOneWrite) {
  configure_log(at_level(LogLevel::info));
  CapturedStderr captured;
  log(LogLevel::info, "comm", "rank ", 3, " of ", 8);
  log(LogLevel::debug, "comm", "not shown");
  const std::string expected =
      text("hccl INFO ", host_name(), ":", getpid(), " comm: rank 3 of 8\n");
  EXPECT_EQ(captured.next_write(), expected);
  EXPECT_EQ(captured.next_write(), "");
  configure_log(Config{});
}

TEST(Log, ALongLineIsStillOneWrite) {
  configure_log(Config{});
  CapturedStderr captured;
  const std::string message(5000, 'x');
  log(LogLevel::error, "node", message);
  const std::string line = captured.next_write();
  EXPECT_TRUE(line.ends_with(message + "\n"));
  EXPECT_TRUE(line.starts_with("hccl ERROR "));
}

TEST(Log, ErrnoSurvives) {
  configure_log(Config{});
  CapturedStderr captured;
  errno = EDOM;
  log_line(LogLevel::error, "node", "text");
  EXPECT_EQ(errno, EDOM);
}

TEST(Log, TheFileNameNamesHostAndProcess) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / text("hccl-log-test-", getpid());
  fs::create_directory(folder);
  Config config;
  config.log_file = (folder / "log.%h.%p.100%%").string();
  configure_log(config);
  log(LogLevel::warning, "comm", "first");
  log(LogLevel::warning, "comm", "second");
  configure_log(Config{});

  const fs::path expected = folder / text("log.", host_name(), ".", getpid(), ".100%");
  std::ifstream file(expected);
  std::string line;
  ASSERT_TRUE(std::getline(file, line)) << expected;
  EXPECT_TRUE(line.ends_with(" comm: first"));
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_TRUE(line.ends_with(" comm: second"));
  fs::remove_all(folder);
}

TEST(Log, AFileThatCannotBeOpenedIsRefusedByName) {
  Config config;
  config.log_file = "/no/such/folder/log";
  try {
    configure_log(config);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), hcclInvalidArgument);
    EXPECT_EQ(std::string(error.what()).find("HCCL_DEBUG_FILE"), 0U) << error.what();
  }
}

}  // namespace
}  // namespace hccl
