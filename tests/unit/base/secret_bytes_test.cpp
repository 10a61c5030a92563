// SPDX-License-Identifier: Apache-2.0
#include "base/secret_bytes.h"

#include "dumped_memory.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl {
namespace {

TEST(SecretBytes, AreExcludedFromCoreDumpsAndForkedChildren) {
  const SecretBytes secret(100, std::byte{42});
  const auto address = reinterpret_cast<std::uintptr_t>(secret.data());
  int found = 0;
  test::visit_memory_maps([&](const test::MemoryMap& map) {
    if (address < map.begin || address >= map.end) return;
    ++found;
    EXPECT_TRUE(map.has("dd")) << map.flags;  // do not dump
    EXPECT_TRUE(map.has("wf")) << map.flags;  // wipe on fork
  });
  EXPECT_EQ(found, 1);
  const pid_t child = fork();
  if (child == 0) {
    const bool is_empty =
        std::ranges::all_of(secret, [](std::byte byte) { return byte == std::byte{0}; });
    _exit(is_empty ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(secret[99], std::byte{42});
}

}  // namespace
}  // namespace hccl
