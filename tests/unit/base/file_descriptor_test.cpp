// SPDX-License-Identifier: Apache-2.0
// Tests file descriptors and sealed memory files.

#include "base/file_descriptor.h"

#include "base/error.h"
#include "base/process.h"
#include "base/shared_memory.h"
#include "children.h"
#include "thrown.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hccl {
namespace {

// Tests FileDescriptor. Each descriptor must have one owner. A forked child must not inherit the
// library's descriptors, but must inherit all others.

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

FileDescriptor open_null() { return FileDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC)); }

// Runs `check` in a forked child. Returns whether the check held.
template <class Check>
bool holds_in_child(Check check) {
  install_fork_guard();
  return test::status_in_child(check) == 0;
}

TEST(FileDescriptor, ClosesOnce) {
  int number = -1;
  {
    FileDescriptor first = open_null();
    number = first.get();
    const FileDescriptor second = std::move(first);
    EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): tests the state
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(FileDescriptor, EmptyIsHarmless) {
  FileDescriptor none;
  none.reset();
  EXPECT_EQ(none.release(), -1);
  FileDescriptor failed(-1);
  EXPECT_FALSE(failed.valid());
}

TEST(FileDescriptor, DuplicatesAreIndependentAndCloseOnExec) {
  FileDescriptor first = open_null();
  const FileDescriptor second = first.duplicate();
  first.reset();
  ASSERT_TRUE(is_open(second.get()));
  EXPECT_EQ(fcntl(second.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_THROW(static_cast<void>(FileDescriptor().duplicate()), Error);
}

TEST(FileDescriptor, ClosedStandardStreamsStayClosed) {
  EXPECT_TRUE(holds_in_child([] {
    close(STDIN_FILENO);
    close(STDERR_FILENO);
    const FileDescriptor first = open_null();
    const FileDescriptor second = first.duplicate();
    const bool above = first.get() > STDERR_FILENO && second.get() > STDERR_FILENO;
    const bool close_on_exec = (fcntl(first.get(), F_GETFD) & FD_CLOEXEC) != 0;
    return above && close_on_exec && !is_open(STDIN_FILENO) && !is_open(STDERR_FILENO);
  }));
}

TEST(FileDescriptor, PlaceholdersReserveStandardStreamNumbers) {
  EXPECT_TRUE(holds_in_child([] {
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    int others = -1;
    {
      const StandardStreamPlaceholders placeholders;
      if (write(STDERR_FILENO, "x", 1) >= 0) return false;
      others = open("/dev/null", O_RDWR | O_CLOEXEC);
    }
    return others > STDERR_FILENO && !is_open(STDOUT_FILENO) && !is_open(STDERR_FILENO);
  }));
}

TEST(FileDescriptor, IsClosedInForkedChild) {
  const FileDescriptor ours = open_null();
  const int others = open("/dev/null", O_RDWR | O_CLOEXEC);
  const int noted = open("/dev/null", O_RDWR | O_CLOEXEC);
  close_in_forked_children(noted);
  EXPECT_TRUE(
      holds_in_child([&] { return !is_open(ours.get()) && !is_open(noted) && is_open(others); }));
  forget_in_forked_children(noted);
  EXPECT_TRUE(holds_in_child([&] { return is_open(noted); }));
  close(others);
  close(noted);
}

TEST(FileDescriptor, ReleasedStaysOpenInForkedChild) {
  FileDescriptor owned = open_null();
  const int number = owned.release();
  EXPECT_TRUE(holds_in_child([&] { return is_open(number); }));
  close(number);
}

TEST(FileDescriptor, NumberReusedByChildStaysOpen) {
  FileDescriptor owned = open_null();
  EXPECT_TRUE(holds_in_child([&] {
    const int own =
        open("/dev/null", O_RDWR);  // gets the lowest free number, which the fork has just freed
    const int number = owned.get();
    owned.reset();
    return own == number && is_open(own);
  }));
}

TEST(FileDescriptor, HighNumbersAreClosedInForkedChild) {
  const FileDescriptor low = open_null();
  const FileDescriptor high(fcntl(low.get(), F_DUPFD_CLOEXEC, 900));
  ASSERT_GE(high.get(), 900);
  EXPECT_TRUE(holds_in_child([&] { return !is_open(high.get()); }));
}

// Tests memory files. They must be sealed when they are created. An unsealed file from another
// process must be refused.

constexpr std::uint64_t kBytes = 65536;

FileDescriptor file_with_seals(int seals) {
  FileDescriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(file.get(), kBytes), 0);
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

// Returns the error text, or an empty string if the file is accepted.
std::string refusal_of(const FileDescriptor& file, std::uint64_t bytes = kBytes) {
  return test::error_of(hcclSystemError, [&] { require_sealed(file, bytes, "rank 3"); });
}

TEST(SharedMemory, IsSealedWhenCreated) {
  const FileDescriptor file = create_memory_file("test", kBytes);
  EXPECT_EQ(refusal_of(file), "");
  EXPECT_NE(ftruncate(file.get(), 0), 0);
}

TEST(SharedMemory, RefusesResizableFile) {
  for (const int seals :
       {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_GROW | F_SEAL_SEAL}) {
    EXPECT_EQ(refusal_of(file_with_seals(seals)),
              "rank 3 sent shared memory that it can still resize (not sealed); install the same "
              "version of hccl on all ranks")
        << seals;
  }
}

TEST(SharedMemory, RefusesOtherKindsOfFile) {
  const FileDescriptor other(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_NE(refusal_of(other).find("(not a memory file)"), std::string::npos);
  EXPECT_NE(refusal_of(FileDescriptor()).find("(not a memory file)"), std::string::npos);
}

TEST(SharedMemory, RefusesWrongSize) {
  const FileDescriptor file = create_memory_file("test", kBytes);
  EXPECT_EQ(
      refusal_of(file, 2 * kBytes),
      "rank 3 sent 65536 bytes of shared memory instead of 131072; install the same version of "
      "hccl on all ranks");
}

}  // namespace
}  // namespace hccl
