// SPDX-License-Identifier: Apache-2.0
// A handle must find only its own object. Removing an object must wait for pins, but not for holds.
#include "base/handle_table.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hccl {
namespace {

class Counted {
 public:
  explicit Counted(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~Counted() { --alive_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>& alive_;
};

class HandleTables : public testing::Test {
 protected:
  std::uint64_t insert() { return table_.insert(std::make_shared<Counted>(alive_)); }

  std::atomic<int> alive_{0};
  HandleTable<Counted> table_{HandleKind::stream};
};

TEST_F(HandleTables, HandleOfRemovedObjectFindsNothing) {
  const std::uint64_t first = insert();
  EXPECT_TRUE(table_.pin(first));
  EXPECT_TRUE(table_.hold(first).is(first));
  EXPECT_NE(table_.remove(first), nullptr);
  EXPECT_EQ(alive_, 0);
  EXPECT_FALSE(table_.pin(first));
  EXPECT_FALSE(table_.hold(first));
  EXPECT_EQ(table_.remove(first), nullptr);
  const std::uint64_t second = insert();  // reuses the slot
  EXPECT_NE(second, first);
  EXPECT_FALSE(table_.pin(first));
  EXPECT_FALSE(table_.hold(first));
  EXPECT_TRUE(table_.hold(second).is(second));
}

TEST_F(HandleTables, HeldObjectOutlivesItsHandle) {
  const std::uint64_t handle = insert();
  auto hold = table_.hold(handle);
  auto another = table_.hold(handle);
  EXPECT_NE(table_.remove(handle), nullptr);  // does not wait for the hold
  EXPECT_FALSE(hold.is(handle));
  EXPECT_FALSE(table_.hold(handle));
  EXPECT_TRUE(table_.handles().empty());
  EXPECT_NE(hold.shared(), nullptr);
  EXPECT_EQ(alive_, 1);
  const auto pin = table_.pin(insert());
  ASSERT_TRUE(pin);
  EXPECT_NE(pin.shared(), hold.shared()) << "the slot of a held object was reused";
  hold = {};
  EXPECT_EQ(alive_, 2);
  another = {};
  EXPECT_EQ(alive_, 1);
}

TEST_F(HandleTables, RemovalWaitsForPins) {
  const std::uint64_t handle = insert();
  std::atomic<bool> removed{false};
  std::thread remover;
  {
    const auto pin = table_.pin(handle);
    ASSERT_TRUE(pin);
    remover = std::thread([&] {
      EXPECT_NE(table_.remove(handle), nullptr);
      removed = true;
    });
    while (table_.hold(handle)) std::this_thread::yield();  // until the removal has begun
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    EXPECT_FALSE(removed);
    EXPECT_NE(pin.shared(), nullptr);
    EXPECT_EQ(alive_, 1);
  }
  remover.join();
  EXPECT_EQ(alive_, 0);
}

// Each slot must be reused exactly once, no matter which thread releases the slot last.
TEST_F(HandleTables, SlotsAreReusedUnderContention) {
  constexpr int kRounds = 2000;
  std::atomic<std::uint64_t> shared{insert()};
  const auto replace = [&] {
    for (int i = 0; i < kRounds; ++i) {
      const std::uint64_t handle = shared.load();
      const auto hold = table_.hold(handle);
      if (hold && hold.shared() == nullptr) ADD_FAILURE() << "nothing is held";
      if (table_.remove(handle)) shared.store(insert());
    }
  };
  std::array<std::thread, 4> threads;
  for (std::thread& thread : threads) thread = std::thread(replace);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(alive_, 1);
  EXPECT_EQ(table_.handles(), std::vector<std::uint64_t>{shared.load()});
  std::array<std::uint64_t, 8> fresh{};
  for (std::uint64_t& handle : fresh) handle = insert();
  EXPECT_EQ(alive_, 9) << "two handles share a slot";
  const auto slot = [](std::uint64_t handle) { return (handle & 0xffffffff) >> 4; };
  EXPECT_LT(std::ranges::max(fresh, {}, slot) & 0xffffffff, 20U << 4) << "slots have leaked";
}

}  // namespace
}  // namespace hccl
