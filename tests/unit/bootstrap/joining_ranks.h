// SPDX-License-Identifier: Apache-2.0
// Joins ranks, and checks the data that each rank gets from the others.
#pragma once

#include "base/error.h"
#include "base/secret.h"
#include "base/text.h"
#include "bootstrap/join.h"
#include "bootstrap/messages.h"

#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hccl::bootstrap::test {

constexpr std::chrono::seconds kPatience{20};

// The outcome of a rank's join.
struct Ending {
  hcclResult_t code = hcclSuccess;
  std::string text;
  RankTable table;
};

inline Hello hello_of(int rank, int size) {
  return {.rank = rank,
          .size = size,
          .process = ProcessIdentity::mine(),
          .node_socket = random_secret()};
}

inline FileDescriptor memory_with(int value) {
  FileDescriptor memory(memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(pwrite(memory.get(), &value, sizeof(value), 0), static_cast<ssize_t>(sizeof(value)));
  return memory;
}

inline int value_in(const FileDescriptor& memory) {
  int value = -1;
  EXPECT_EQ(pread(memory.get(), &value, sizeof(value), 0), static_cast<ssize_t>(sizeof(value)));
  return value;
}

inline Contribution contribution_of(int rank) {
  const std::string bytes = text("blob of rank ", rank, std::string(1000, 'x'));
  Contribution mine;
  mine.blob.resize(bytes.size());
  std::memcpy(mine.blob.data(), bytes.data(), bytes.size());
  mine.memory = memory_with(1000 + rank);
  mine.announce = [rank](const CommunicatorSecret&) {
    return Bytes(10 + static_cast<std::size_t>(rank), std::byte{0x5A});
  };
  return mine;
}

inline Ending try_join(const hcclUniqueId& id, int size, int rank,
                       std::chrono::milliseconds limit = kPatience) {
  try {
    RankTable table = join(
        id, size, rank, contribution_of(rank), [](int ranks) { return memory_with(-ranks); },
        Deadline::after(limit));
    return {hcclSuccess, "", std::move(table)};
  } catch (const Error& error) {
    return {error.code(), error.what(), {}};
  }
}

// Returns the first error in the table, or an empty string if there is none.
inline std::string table_error(const RankTable& table, int size, int rank) {
  if (table.members.size() != static_cast<std::size_t>(size)) return "wrong number of members";
  if (value_in(table.control) != -size) return "wrong control block";
  for (int peer = 0; peer < size; ++peer) {
    const RankInfo& member = table.members[static_cast<std::size_t>(peer)];
    const Contribution expected = contribution_of(peer);
    if (member.rank != peer) return text("wrong rank at ", peer);
    if (member.blob != expected.blob) return text("wrong blob of ", peer);
    if (value_in(member.memory) != 1000 + peer) return text("wrong memory of ", peer);
    if (member.pid == getpid() && member.process.valid()) return "a pidfd of itself";
    if (member.pid != getpid() && !member.process.valid()) return text("no pidfd of ", peer);
  }
  if (table.members[static_cast<std::size_t>(rank)].pid != getpid()) return "wrong own pid";
  return {};
}

// Joins all ranks, each on its own thread. Returns each rank's outcome.
inline std::vector<Ending> join_as_threads(const hcclUniqueId& id, int size,
                                           std::chrono::milliseconds limit = kPatience) {
  std::vector<Ending> endings(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  threads.reserve(endings.size());
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back(
        [&, rank] { endings[static_cast<std::size_t>(rank)] = try_join(id, size, rank, limit); });
  }
  for (std::thread& thread : threads) thread.join();
  return endings;
}

inline void expect_all_joined(const std::vector<Ending>& endings) {
  const int size = static_cast<int>(endings.size());
  for (int rank = 0; rank < size; ++rank) {
    const Ending& ending = endings[static_cast<std::size_t>(rank)];
    EXPECT_EQ(ending.code, hcclSuccess) << "rank " << rank << ": " << ending.text;
    if (ending.code != hcclSuccess) continue;
    EXPECT_EQ(table_error(ending.table, size, rank), "") << "rank " << rank;
  }
}

}  // namespace hccl::bootstrap::test
