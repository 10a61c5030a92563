// SPDX-License-Identifier: Apache-2.0
// Reads host memory of the other ranks' processes by cross-memory attach: process_vm_readv() copies
// from another process, if the system permits it.
#pragma once

#include "node/control_block.h"
#include "node/fault.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hccl::node {

// When ranks read each other's memory, if the system permits it. rarely: only data for which a
// staging buffer takes longer even on a machine whose kernel copies slowly. always: also data for
// which a staging buffer takes longer only on other machines. if_faster: `rarely` or `always`,
// whichever suits this machine.
enum class DirectReads : std::uint8_t { never, rarely, if_faster, always };

// Every rank has a tag: a random number in the memory of its process. The control block holds the
// tag's value and address. A reader reads the tag together with the data, and compares it with the
// value in the control block. This check is needed because the peer's pid may belong to another
// process once the peer has exited.
//
// Thread safety: any thread may call any function.
class CrossMemory {
 public:
  // `pids`: the pid of each rank's process, or 0 if this process does not know a valid pid for that
  // rank. If `reads` is `never`, no rank reads memory of this process, and this process reads no
  // other rank's memory.
  CrossMemory(ControlBlock control, int rank, std::vector<int> pids, DirectReads reads);
  ~CrossMemory();
  CrossMemory(const CrossMemory&) = delete;
  CrossMemory& operator=(const CrossMemory&) = delete;

  // Returns whether this process may read memory of `peer`; false until the peer has published its
  // tag. The first call after that makes a system call to find out.
  [[nodiscard]] bool can_read(int peer);
  [[nodiscard]] bool can_read_all();
  // Returns whether data of moderate length should go through a staging buffer although it could be
  // read directly.
  [[nodiscard]] bool prefers_staging() const;
  // Returns whether `peer` has found that it may read memory of this process.
  [[nodiscard]] bool is_readable_by(int peer) const {
    return (record(peer).readable.load(std::memory_order_relaxed) & bit(rank_)) != 0;
  }

  // Copies `bytes` bytes at `address` in the process of `peer` to `to`. Returns false if that
  // fails, for example because the peer has exited; can_read() then returns false too. The peer
  // must keep the memory unchanged during the copy, unless the communicator fails. Throws the
  // recorded fault if the communicator has failed.
  [[nodiscard]] bool read(int peer, std::byte* to, std::uint64_t address, std::uint64_t bytes);

 private:
  [[nodiscard]] static std::uint64_t bit(int rank) { return std::uint64_t{1} << rank; }
  [[nodiscard]] RankRecord& record(int rank) const { return control_.header().records[rank]; }
  [[nodiscard]] bool read_piece(int peer, std::byte* to, std::uint64_t address,
                                std::uint64_t bytes) const;

  const ControlBlock control_;
  const Fault fault_;
  const int rank_;
  const std::vector<int> pids_;
  const DirectReads reads_;
  std::uint64_t tag_ = 0;                     // peers read it
  std::atomic<std::uint64_t> unreadable_{0};  // ranks that cannot be read: one bit per rank
};
static_assert(kMaxRanks <= 64);

}  // namespace hccl::node
