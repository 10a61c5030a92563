// SPDX-License-Identifier: Apache-2.0
// Tests a node's modules: their registry and its locks.

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "children.h"
#include "device/module_lock.h"
#include "device/module_registry.h"
#include "device/runtime.h"

#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl::device {
namespace {

// Tests modules whose socket names another user has bound. Anyone can compute these names. One
// process at a time must still be able to claim the module, or the error must name the other user.

constexpr uid_t kSquatter = 65534;
// A user without folders. The user id depends on the pid, because tests run in parallel and remove
// the user's folders at the end.
const uid_t kUser = 60'000 + static_cast<uid_t>(getpid() % 5000);

void become(uid_t user) {
  if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) _exit(1);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

// A process that runs `body` and then stays alive until it is killed.
class Helper {
 public:
  explicit Helper(const std::function<void()>& body) {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe(ready.data()), 0);
    pid_ = test::start_child([&] {
      body();
      if (write(ready[1], "", 1) == 1) pause();
      return 1;
    });
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  ~Helper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// Runs `body` in a process of kUser. Returns the result, or the error text.
std::string result_of(const std::function<std::string()>& body) {
  std::array<int, 2> answer{};
  EXPECT_EQ(pipe(answer.data()), 0);
  const pid_t pid = test::start_child([&] {
    become(kUser);
    std::string result;
    try {
      result = body();
    } catch (const Error& error) {
      result = error.what();
    }
    return write(answer[1], result.data(), result.size()) >= 0;
  });
  close(answer[1]);
  std::string result;
  std::array<char, 1000> part{};
  for (ssize_t count = 0; (count = read(answer[0], part.data(), part.size())) > 0;)
    result.append(part.data(), static_cast<std::size_t>(count));
  close(answer[0]);
  waitpid(pid, nullptr, 0);
  return result;
}

// Returns the name that kUser's claim on a module binds. Computes it as any user can.
std::string name_of(std::uint32_t id) {
  std::string node = node_identity();
  node.replace(0, node.find(' ', 4), text("uid ", kUser));
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : node) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  }
  return text("hccl-module-", std::hex, hash, "-", std::dec, id);
}

// As the squatter, binds the name of kUser's claim, without listening.
void hold(std::uint32_t id) {
  const std::string name = name_of(id);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  become(kSquatter);
  const int own = ::socket(AF_UNIX, SOCK_STREAM, 0);
  void* const generic = &address;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(own, static_cast<sockaddr*>(generic), length) != 0) _exit(1);
}

std::string claim(std::uint32_t id) {
  if (claim_module(id)) return "by name";
  return claim_module_by_lock(id) ? "by lock" : "held";
}

const std::vector<std::string> kFolders{text("/dev/shm/hccl-", kUser), text("/tmp/hccl-", kUser)};

// Keeps a claim until the process ends. Exits at once if the claim has failed.
template <class Claim>
void hold_until_the_end(Claim claim) {
  if (!claim) _exit(1);
  static const Claim held = std::move(claim);
}

class HeldNames : public testing::Test {
 public:
  ~HeldNames() override { remove_folders(); }

 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    remove_folders();
  }

  // Claims module_ as kUser, and keeps the claim.
  template <class Claim>
  void hold_as_user(Claim claim) const {
    become(kUser);
    hold_until_the_end(claim(module_));
  }

  const std::uint32_t module_ = static_cast<std::uint32_t>(2'000'000 + getpid());

 private:
  void remove_folders() const {
    for (const std::string& folder : kFolders) {
      unlink((folder + '/' + name_of(module_)).c_str());
      rmdir(folder.c_str());
    }
  }
};

TEST_F(HeldNames, OneProcessAtATimeClaimsByLock) {
  EXPECT_EQ(result_of([&] { return claim(module_); }), "by name");
  const Helper squatter([&] { hold(module_); });
  EXPECT_EQ(result_of([&] { return claim(module_); }), "by lock");
  {
    const Helper holder([&] { hold_as_user(claim_module_by_lock); });
    EXPECT_EQ(result_of([&] { return claim(module_); }), "held");
  }
  // The holder was killed and left its lock file behind.
  EXPECT_EQ(result_of([&] { return claim(module_); }), "by lock");
}

TEST_F(HeldNames, LockHoldsAfterSquatterExits) {
  auto squatter = std::make_unique<Helper>([&] { hold(module_); });
  const Helper holder([&] { hold_as_user(claim_module_by_lock); });
  squatter.reset();
  EXPECT_EQ(result_of([&] { return claim(module_); }), "held");
}

TEST_F(HeldNames, HolderOfSameUserPreventsClaim) {
  const Helper holder([&] { hold_as_user(claim_module); });
  EXPECT_EQ(result_of([&] { return claim(module_); }), "held");
}

TEST_F(HeldNames, SquatterDoesNotPreventAcquisition) {
  const std::uint32_t module = 5;
  const Helper squatter([module] { hold(module); });
  EXPECT_EQ(result_of([module] {
              Runtime::instance().initialize();
              return text("module ", Runtime::instance().acquire(module)->module());
            }),
            "module 5");
  for (const std::string& folder : kFolders) unlink((folder + '/' + name_of(module)).c_str());
}

TEST_F(HeldNames, HeldFoldersAreErrorThatNamesUser) {
  const Helper squatter([&] {
    hold(module_);
    for (const std::string& folder : kFolders) {
      if (mkdir(folder.c_str(), 0777) != 0) _exit(1);
    }
  });
  const std::string error = result_of([&] { return claim(module_); });
  EXPECT_EQ(error,
            text("user 65534 has bound the unix socket name for module ", module_,
                 " on this node, and user ", kUser,
                 " has no usable directory for a lock file (/run/user/", kUser,
                 "/hccl: No such file or directory, ", kFolders[0], ": belongs to user 65534, ",
                 kFolders[1], ": belongs to user 65534); set HCCL_NODE_ID on all ranks of this ",
                 "machine to one name that other users cannot guess"));
}

// Tests the registry. A module must have at most one holder on a node, and errors must be able to
// name the holder.

TEST(ModuleRegistry, AllowsOneHolderAtATime) {
  const auto module =
      static_cast<std::uint32_t>(1'000'000 + getpid());  // a module that no other process uses
  auto claim = claim_module(module);
  ASSERT_TRUE(claim);
  EXPECT_FALSE(claim_module(module));
  claim.reset();
  EXPECT_TRUE(claim_module(module));
}

TEST(ModuleRegistry, NamesProcessAndProgramOfHolder) {
  const auto module = static_cast<std::uint32_t>(2'000'000 + getpid());
  const Helper holder([module] { hold_until_the_end(claim_module(module)); });
  EXPECT_FALSE(claim_module(module));
  const std::string own_name = process_name(getpid());
  ASSERT_NE(own_name, "");
  for (int ask = 0; ask < 3; ++ask)
    EXPECT_EQ(holder_text(module), text("pid ", holder.pid(), " (", own_name, ")"));
}

TEST(ModuleRegistry, NamesThisProcessAsHolder) {
  const auto module = static_cast<std::uint32_t>(3'000'000 + getpid());
  const auto claim = claim_module(module);
  ASSERT_TRUE(claim);
  EXPECT_EQ(holder_text(module), "this process");
}

TEST(ModuleRegistry, NamesNoHolderAfterTooManyQueries) {
  const auto module = static_cast<std::uint32_t>(4'000'000 + getpid());
  const auto claim = claim_module(module);
  ASSERT_TRUE(claim);
  std::string answer;
  for (int ask = 0; ask < 70'000 && answer != "another process on this node"; ++ask)
    answer = holder_text(module);
  EXPECT_EQ(answer, "another process on this node");
}

}  // namespace
}  // namespace hccl::device
