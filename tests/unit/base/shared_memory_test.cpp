// SPDX-License-Identifier: Apache-2.0
// Memory files: sealed when they are made, and refused if another process hands over one that is
// not.
#include "base/shared_memory.h"

#include "base/error.h"
#include "thrown.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hccl {
namespace {

constexpr std::uint64_t kBytes = 65536;

FileDescriptor file_with_seals(int seals) {
  FileDescriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(file.get(), kBytes), 0);
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

// The text of the refusal; empty if the file is taken.
std::string refusal_of(const FileDescriptor& file, std::uint64_t bytes = kBytes) {
  return test::error_of(hcclSystemError, [&] { require_sealed(file, bytes, "rank 3"); });
}

TEST(SharedMemory, OfOursIsSealed) {
  const FileDescriptor file = create_memory_file("test", kBytes);
  EXPECT_EQ(refusal_of(file), "");
  EXPECT_NE(ftruncate(file.get(), 0), 0);
}

TEST(SharedMemory, ThatCanBeResizedIsRefused) {
  for (const int seals :
       {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_GROW | F_SEAL_SEAL}) {
    EXPECT_EQ(refusal_of(file_with_seals(seals)),
              "rank 3 handed over memory that it can still resize (not sealed); install the same "
              "hccl on all ranks")
        << seals;
  }
}

TEST(SharedMemory, ThatIsNoMemoryFileIsRefused) {
  const FileDescriptor other(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_NE(refusal_of(other).find("(no memory file)"), std::string::npos);
  EXPECT_NE(refusal_of(FileDescriptor()).find("(no memory file)"), std::string::npos);
}

TEST(SharedMemory, OfAnotherSizeIsRefused) {
  const FileDescriptor file = create_memory_file("test", kBytes);
  EXPECT_EQ(refusal_of(file, 2 * kBytes),
            "rank 3 handed over 65536 bytes of memory instead of 131072; install the same hccl on "
            "all ranks");
}

}  // namespace
}  // namespace hccl
