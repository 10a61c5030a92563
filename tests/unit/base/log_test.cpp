// SPDX-License-Identifier: Apache-2.0
// A log line must be written only if its level is enabled, and with a single write(2): to
// HCCL_DEBUG_FILE if that variable is set, otherwise to stderr.
#include "base/log.h"

#include "base/error.h"
#include "base/process.h"
#include "captured_stderr.h"
#include "children.h"
#include "thrown.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl {
namespace {

using test::CapturedStderr;

Config at_level(LogLevel level) {
  Config config;
  config.log_level = level;
  return config;
}

TEST(Log, EnablesWarningsButNotInfoByDefault) {
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

TEST(Log, WritesEachLineWithOneCall) {
  CapturedStderr captured;
  configure_log(at_level(LogLevel::info));
  log(LogLevel::info, "comm", "rank ", 3, " of ", 8);
  log(LogLevel::debug, "comm", "not shown");
  const std::string expected =
      text("hccl INFO ", host_name(), ":", getpid(), " comm: rank 3 of 8\n");
  EXPECT_EQ(captured.next_write(), expected);
  EXPECT_EQ(captured.next_write(), "");
  configure_log(Config{});
}

TEST(Log, WritesLongLineWithOneCall) {
  CapturedStderr captured;
  configure_log(Config{});
  const std::string message(5000, 'x');
  log(LogLevel::error, "node", message);
  const std::string line = captured.next_write();
  EXPECT_TRUE(line.ends_with(message + "\n"));
  EXPECT_TRUE(line.starts_with("hccl ERROR "));
}

TEST(Log, OffSilencesUncheckedLines) {
  configure_log(at_level(LogLevel::off));
  CapturedStderr captured;
  log_line(LogLevel::error, "node", "text");
  EXPECT_EQ(captured.next_write(), "");
  configure_log(Config{});
}

TEST(Log, PreservesErrno) {
  CapturedStderr captured;
  configure_log(Config{});
  errno = EDOM;
  log_line(LogLevel::error, "node", "text");
  EXPECT_EQ(errno, EDOM);
}

TEST(Log, ExpandsHostAndProcessInFileName) {
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

TEST(Log, ErrorForUnopenableFileNamesVariable) {
  Config config;
  config.log_file = "/no/such/folder/log";
  const std::string error = test::error_of(hcclInvalidArgument, [&] { configure_log(config); });
  EXPECT_EQ(error.find("HCCL_DEBUG_FILE"), 0U) << error;
}

// Returns the error text, or an empty string if the path is accepted.
std::string refusal_of(const std::filesystem::path& path) {
  Config config;
  config.log_file = path.string();
  const std::string error = test::error_of(hcclInvalidArgument, [&] { configure_log(config); });
  if (error.empty()) configure_log(Config{});
  return error;
}

TEST(Log, RefusesAllButRegularFiles) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / text("hccl-log-kinds-", getpid());
  fs::create_directory(folder);
  std::ofstream(folder / "other") << "kept";
  fs::create_symlink(folder / "other", folder / "link");
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_NE(refusal_of(folder / "link").find("is a symbolic link; set it to"), std::string::npos);
  EXPECT_NE(refusal_of(folder / "fifo").find("is not a regular file"), std::string::npos);
  const int reader = open((folder / "fifo").c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_NE(refusal_of(folder / "fifo").find("is not a regular file"), std::string::npos);
  close(reader);
  EXPECT_NE(refusal_of(folder).find("is not a regular file"), std::string::npos);
  EXPECT_NE(refusal_of("/dev/null").find("is not a regular file"), std::string::npos);
  EXPECT_EQ(refusal_of(folder / "made"), "");
  EXPECT_EQ(fs::status(folder / "made").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  fs::remove_all(folder);
}

TEST(Log, SurvivesClosedPipe) {
  const int status = test::status_in_child([] {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return 1;
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    configure_log(Config{});
    log(LogLevel::error, "node", "nobody reads this");
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 0 ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
}

TEST(Log, SurvivesFileSizeLimit) {
  const int status = test::status_in_child([] {
    std::FILE* const file = std::tmpfile();
    if (file == nullptr) return 1;
    dup2(fileno(file), STDERR_FILENO);
    configure_log(Config{});
    const rlimit nothing{0, 0};
    if (setrlimit(RLIMIT_FSIZE, &nothing) != 0) return 2;
    log(LogLevel::error, "node", "there is no room for this");
    return 0;
  });
  EXPECT_EQ(status, 0);
}

// Returns 0 if no log line reaches a socket that has replaced stderr. If `closed_before`, the
// program closes stderr before it configures the log, otherwise afterwards.
int check_that_no_line_reaches_socket(bool closed_before) {
  std::array<int, 2> ends{};
  if (closed_before) close(STDERR_FILENO);
  configure_log(Config{});
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) != 0) return 1;
  if (ends[0] != STDERR_FILENO) dup2(ends[0], STDERR_FILENO);
  log(LogLevel::error, "node", "not for this socket");
  char byte = 0;
  return recv(ends[1], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN ? 0 : 2;
}

TEST(Log, NeverWritesToProgramsSocket) {
  EXPECT_EQ(test::status_in_child([] { return check_that_no_line_reaches_socket(true); }), 0);
  EXPECT_EQ(test::status_in_child([] { return check_that_no_line_reaches_socket(false); }), 0);
}

}  // namespace
}  // namespace hccl
