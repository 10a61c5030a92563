// SPDX-License-Identifier: Apache-2.0
// One holder per module and node; a claim ends with its holder.
#include "device/module_registry.h"

#include "base/process.h"
#include "base/text.h"

#include <array>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl::device {
namespace {

TEST(ModuleRegistry, OneHolderAtATime) {
  const auto module = static_cast<std::uint32_t>(1'000'000 + getpid());  // nobody else's
  auto claim = claim_module(module);
  ASSERT_TRUE(claim);
  EXPECT_FALSE(claim_module(module));
  claim.reset();
  EXPECT_TRUE(claim_module(module));
}

// A child that holds the module until it is told to end.
class Holder {
 public:
  explicit Holder(std::uint32_t module) {
    if (pipe(ready_.data()) != 0 || pipe(end_.data()) != 0) std::abort();
    pid_ = fork();
    if (pid_ != 0) {
      close(ready_[1]);
      close(end_[0]);
      char byte = 0;
      held_ = read(ready_[0], &byte, 1) == 1;
      return;
    }
    close(end_[1]);
    const auto claim = claim_module(module);
    char byte = 0;
    if (claim && write(ready_[1], &byte, 1) == 1) static_cast<void>(read(end_[0], &byte, 1));
    _exit(0);
  }
  ~Holder() {
    close(end_[1]);
    close(ready_[0]);
    waitpid(pid_, nullptr, 0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool held() const { return held_; }

 private:
  std::array<int, 2> ready_{};
  std::array<int, 2> end_{};
  pid_t pid_ = -1;
  bool held_ = false;
};

TEST(ModuleRegistry, NamesTheHoldersProcessAndProgram) {
  const auto module = static_cast<std::uint32_t>(2'000'000 + getpid());
  const Holder holder(module);
  ASSERT_TRUE(holder.held());
  EXPECT_FALSE(claim_module(module));
  const std::string own_name = process_name(getpid());
  ASSERT_NE(own_name, "");
  for (int ask = 0; ask < 3; ++ask)
    EXPECT_EQ(holder_text(module), text("pid ", holder.pid(), " (", own_name, ")"));
}

TEST(ModuleRegistry, SaysThatThisProcessHoldsAModule) {
  const auto module = static_cast<std::uint32_t>(3'000'000 + getpid());
  const auto claim = claim_module(module);
  ASSERT_TRUE(claim);
  EXPECT_EQ(holder_text(module), "this process");
}

TEST(ModuleRegistry, AHolderThatIsAskedTooOftenIsNamedNoMoreAndNobodyWaits) {
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
