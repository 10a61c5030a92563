// SPDX-License-Identifier: Apache-2.0
// Tests where the secret for HCCL_COMM_ID comes from, and the texts for an unsuitable or missing
// secret. Opens no connection.
#include "bootstrap/shared_secret.h"

#include "base/config.h"
#include "base/error.h"
#include "base/text.h"
#include "bootstrap/comm_id.h"
#include "dumped_memory.h"
#include "processes.h"
#include "ranks.h"
#include "scoped_environment.h"
#include "text_parts.h"

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <spawn.h>
#include <sys/wait.h>

namespace hccl::bootstrap::test {
namespace {

using hccl::test::count_of;

UniqueId fixed_id(const char* address) {
  return {.kind = UniqueId::Kind::fixed_address, .addresses = parse_comm_id(address)};
}

constexpr const char* kLoopback = "127.0.0.1:5555";
constexpr const char* kElsewhere = "203.0.113.7:5555";  // a documentation address (RFC 5737)

class SharedSecret : public testing::Test {
 public:
  ~SharedSecret() override { std::filesystem::remove_all(folder_); }

 protected:
  SharedSecret() {
    for (const char* name : {"HCCL_SECRET", "HCCL_SECRET_FILE", "HCCL_REQUIRE_SECRET"})
      environment_.remove(name);
    std::filesystem::create_directory(folder_);
  }

  [[nodiscard]] std::string path(const char* name) const { return folder_ + "/" + name; }
  [[nodiscard]] std::string file_with(const std::string& content, int mode = 0600) const {
    const std::string result = path("secret");
    std::ofstream(result) << content;
    EXPECT_EQ(chmod(result.c_str(), static_cast<mode_t>(mode)), 0);
    return result;
  }
  void set(const char* name, const std::string& value) { environment_.set(name, value); }

  // Returns the key, or the error text if there is none.
  static std::string key(const char* address = kLoopback) {
    load_config();
    try {
      std::string found;
      for (const std::byte byte : join_secret(fixed_id(address))) found += static_cast<char>(byte);
      return found;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), hcclInvalidArgument);
      return error.what();
    }
  }
  std::string refusal(const std::string& file) {
    set("HCCL_SECRET_FILE", file);
    return key();
  }

 private:
  hccl::test::ScopedEnvironment environment_;
  const std::string folder_ = text(testing::TempDir(), "hccl-secret-", getpid());
};

TEST_F(SharedSecret, OmitsTrailingNewlineOfFile) {
  set("HCCL_SECRET_FILE", file_with("a secret of the file\n"));
  EXPECT_EQ(key(), "a secret of the file");
  set("HCCL_SECRET_FILE", file_with("a secret of the file\r\n"));
  EXPECT_EQ(key(), "a secret of the file");
  set("HCCL_SECRET_FILE", file_with("a secret of the file\r"));
  EXPECT_EQ(key(), "a secret of the file\r") << "a carriage return alone does not end a line";
  set("HCCL_SECRET_FILE", file_with(std::string(4096, 's'), 0400));
  EXPECT_EQ(key(), std::string(4096, 's'));
}

TEST_F(SharedSecret, EntersTheKeyOfAnIdToo) {
  UniqueId id{.addresses = parse_comm_id(kLoopback)};
  id.secret.fill(std::byte{3});
  const JoinKey alone(id);
  set("HCCL_SECRET", "one secret");
  load_config();
  const JoinKey one(id);
  set("HCCL_SECRET", "other secret");
  load_config();
  const JoinKey other(id);
  EXPECT_NE(alone.session_key(), one.session_key());
  EXPECT_NE(one.session_key(), other.session_key());
  EXPECT_NE(one.session_key(), JoinKey(fixed_id(kLoopback)).session_key());
  EXPECT_NE(one.check(), other.check());
}

// As long as the secret in docs/how-to/secure-a-job.md.
constexpr std::size_t kHiddenSize = 32;

// Returns the complement of a byte of the hidden secret, which this process never stores itself.
std::uint8_t complement_of_hidden(std::size_t i) {
  return static_cast<std::uint8_t>(~('a' + (i * i + 5 * i + 3) % 26));
}

// The file's secret must be only in memory that core dumps do not contain, like the keys that are
// derived from it. OpenSSL's copies of derived keys are not searched for.
TEST_F(SharedSecret, OfFileIsNotInCoreDumps) {
  if (hccl::test::sanitized()) GTEST_SKIP() << "needs another build: without sanitizers";
  const pid_t writer = fork();
  if (writer == 0) {
    std::string secret;
    for (std::size_t i = 0; i < kHiddenSize; ++i)
      secret += static_cast<char>(~complement_of_hidden(i));
    static_cast<void>(file_with(secret));
    _exit(0);
  }
  ASSERT_EQ(waitpid(writer, nullptr, 0), writer);
  set("HCCL_SECRET_FILE", path("secret"));
  load_config();
  const JoinKey key(fixed_id(kLoopback));
  EXPECT_EQ(key.session_key().size(), 32U);
  EXPECT_NE(key.check(), 0);
  EXPECT_FALSE(hccl::test::dump_contains(kHiddenSize, complement_of_hidden));
  // The search finds the secret in ordinary memory.
  const SecretBytes hidden = join_secret(fixed_id(kLoopback));
  const std::vector<std::byte> copy(hidden.begin(), hidden.end());
  EXPECT_EQ(copy.size(), kHiddenSize);
  EXPECT_TRUE(hccl::test::dump_contains(kHiddenSize, complement_of_hidden));
}

TEST_F(SharedSecret, RefusesUnsuitableFileAndSaysHowToFix) {
  const auto expect_error = [&](const std::string& file, const std::string& what) {
    EXPECT_EQ(refusal(file), text("HCCL_SECRET_FILE=\"", file, "\" ", what));
  };
  expect_error(path("absent"),
               text("cannot be read: No such file or directory; name a file that user ", geteuid(),
                    " may read"));
  expect_error(path(""), "is not a regular file; name one that holds the secret");
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  expect_error(path("fifo"), "is not a regular file; name one that holds the secret");
  expect_error(file_with("secret", 0640), "is open to other users; chmod it to 600");
  expect_error(file_with("secret", 0604), "is open to other users; chmod it to 600");
  for (const char* line : {"\n", "\r\n"})
    expect_error(file_with(line), "is empty; write the secret into it");
  expect_error(file_with(std::string(4097, 's')),
               "is larger than 4096 bytes; name a file that holds nothing but the secret");
}

// A process with this environment. The destructor kills the process.
class ProcessWithEnvironment {
 public:
  explicit ProcessWithEnvironment(const std::string& variable) {
    const std::array<const char*, 3> arguments{"sleep", "1000", nullptr};
    const std::array<const char*, 2> environment{variable.c_str(), nullptr};
    // posix_spawnp() does not change the strings, but its parameters lack const.
    EXPECT_EQ(posix_spawnp(&pid_, arguments[0], nullptr, nullptr,
                           const_cast<char* const*>(arguments.data()),
                           const_cast<char* const*>(environment.data())),
              0);
    await_environment();
  }
  ~ProcessWithEnvironment() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ProcessWithEnvironment(const ProcessWithEnvironment&) = delete;
  ProcessWithEnvironment& operator=(const ProcessWithEnvironment&) = delete;

  [[nodiscard]] std::string file() const { return text("/proc/", pid_, "/environ"); }

 private:
  // Waits until the new program's environment can be read. posix_spawnp() may return earlier.
  void await_environment() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::ifstream(file()).peek() == std::ifstream::traits_type::eof() &&
           std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
  }

  pid_t pid_ = -1;
};

TEST_F(SharedSecret, RefusesLargeFileThatReportsSizeZero) {
  const ProcessWithEnvironment process("A=" + std::string(5000, 's'));
  ASSERT_EQ(std::filesystem::file_size(process.file()), 0U);
  EXPECT_EQ(refusal(process.file()), text("HCCL_SECRET_FILE=\"", process.file(),
                                          "\" is larger than 4096 bytes; name a file ",
                                          "that holds nothing but the secret"));
}

TEST_F(SharedSecret, RefusesFileOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const std::string file = file_with("secret");
  ASSERT_EQ(chown(file.c_str(), kOtherUser, kOtherUser), 0);
  EXPECT_EQ(refusal(file), text("HCCL_SECRET_FILE=\"", file, "\" belongs to user 65534, who can ",
                                "change it; chown it to user 0"));
}

TEST_F(SharedSecret, RefusesTwoSources) {
  set("HCCL_SECRET_FILE", file_with("a secret of the file"));
  set("HCCL_SECRET", "another");
  EXPECT_EQ(key(), "HCCL_SECRET and HCCL_SECRET_FILE are both set; unset HCCL_SECRET");
}

TEST_F(SharedSecret, IsRequiredForReachableAddress) {
  set("HCCL_REQUIRE_SECRET", "1");
  EXPECT_EQ(
      key(kElsewhere),
      "HCCL_REQUIRE_SECRET=1, but the ranks that join at 203.0.113.7:5555 share no secret; on "
      "every rank, set HCCL_SECRET_FILE to the path of a file with the same secret");
  EXPECT_NE(key("0.0.0.0:5555"), "");
  EXPECT_EQ(key(kLoopback), "");
  set("HCCL_SECRET", "0123456789abcdef");
  EXPECT_EQ(key(kElsewhere), "0123456789abcdef");
}

TEST_F(SharedSecret, MustBeLongIfRequired) {
  set("HCCL_REQUIRE_SECRET", "1");
  set("HCCL_SECRET", "0123456789abcde");
  EXPECT_EQ(key(kElsewhere),
            "HCCL_REQUIRE_SECRET=1, but the secret of HCCL_COMM_ID has only 15 bytes and can be "
            "guessed; make one with (umask 077; head -c 24 /dev/urandom | base64 > job.secret), "
            "and set HCCL_SECRET_FILE to a copy of that file on every rank");
}

// Returns the log of a process that requests the key for `address` twice.
std::string warnings(const char* address, const std::map<std::string, std::string>& environment) {
  const std::string log = text(testing::TempDir(), "hccl-secret-log-", getpid());
  Processes processes;
  auto with_log = environment;
  with_log["HCCL_DEBUG_FILE"] = log;
  processes.start(0, with_log, [&](Report&) {
    load_config();
    static_cast<void>(join_secret(fixed_id(address)));
    static_cast<void>(join_secret(fixed_id(address)));
  });
  EXPECT_TRUE(processes.finished(0));
  std::ifstream file(log);
  std::ostringstream contents;
  if (file) contents << file.rdbuf();
  std::filesystem::remove(log);
  return contents.str();
}

TEST(SecretWarnings, AppearOncePerProcess) {
  const std::string none = warnings(kElsewhere, {});
  EXPECT_EQ(count_of(none,
                     "HCCL_COMM_ID is 203.0.113.7:5555, on another machine, and the ranks "
                     "share no secret"),
            1U)
      << none;
  const std::string brief =
      warnings(kLoopback, {{"HCCL_SECRET", "0123456789abcde"}, {"HCCL_REQUIRE_SECRET", "1"}});
  EXPECT_EQ(count_of(brief, "the secret of HCCL_COMM_ID has only 15 bytes and can be guessed"), 1U)
      << brief;
  EXPECT_EQ(warnings(kLoopback, {}), "");
  EXPECT_EQ(warnings(kElsewhere, {{"HCCL_SECRET", "0123456789abcdef"}}), "");
}

}  // namespace
}  // namespace hccl::bootstrap::test
