// SPDX-License-Identifier: Apache-2.0
// Runs one collective on poisoned and guarded buffers, with its copies queued on the same stream,
// and compares every bit of the result with the scalar reference.
#pragma once

#include "call/collective.h"
#include "elements.h"
#include "session.h"

#include <hccl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hccl::test {

// The placement of buffers. `pinned` is host memory from synHostMalloc(). `view` is device memory
// that is passed to the call by its address in the host view. With `mixed`, each buffer of each
// rank has one of the other placements.
enum class Placement { device, host, pinned, view, mixed };

// Returns `placement` unless it is `mixed`. In that case, `mix` selects one of the other
// placements.
[[nodiscard]] Placement placement_of(Placement placement, std::uint64_t mix);

struct Operation {
  Collective collective = Collective::all_reduce;
  hcclDataType_t type = hcclFloat32;
  hcclRedOp_t reduction = hcclSum;
  int root = 0;
  std::size_t count = 0;  // the argument of the call
  bool in_place = false;
  std::size_t offset = 0;  // elements between the guard and each buffer
  std::uint64_t seed = 1;
  Placement placement = Placement::device;
  std::vector<std::string> nodes{};  // of each rank; empty: as in HCCL_TEST_LAYOUT, else one node
  std::string algorithm{};           // HCCL_ALGO, if there are several nodes
};
[[nodiscard]] std::string describe(const Operation& operation);
// Returns an out-of-place operation on device memory.
[[nodiscard]] Operation make_operation(Collective collective, std::size_t count,
                                       hcclDataType_t type = hcclFloat32,
                                       hcclRedOp_t reduction = hcclSum, int root = 0);

// The bytes of an allocation: guard, offset, payload and guard. Everything except inputs is
// poisoned before the call.
struct Region {
  std::size_t start = 0;   // of the payload, within the allocation
  std::size_t length = 0;  // of the payload
  std::vector<std::byte> before;
  std::vector<std::byte> after;
  std::unique_ptr<PinnedMemory> pinned;  // for Placement::pinned, in place of `after`

  // Returns the address of the allocation if it is in host memory.
  [[nodiscard]] std::byte* host() { return pinned ? pinned->bytes().data() : after.data(); }
  // Returns the content after the call.
  [[nodiscard]] std::span<const std::byte> result() const {
    if (pinned) return pinned->bytes();
    return after;
  }
};

class OperationRun {
 public:
  OperationRun(const Session& session, const Group& group, const Operation& operation);

  // Queues the upload of poison and inputs, the collective, and the download. Returns the
  // collective's result. Does not block.
  hcclResult_t queue(synStreamHandle stream);
  void queue_upload(synStreamHandle stream);
  hcclResult_t queue_collective(synStreamHandle stream);
  void queue_download(synStreamHandle stream);

  // Requires that every byte of both allocations has its expected value. The stream must have been
  // synchronised.
  void verify() const;
  // Requires that no byte has changed since the upload.
  void verify_untouched() const;

 private:
  [[nodiscard]] Data data() const;
  [[nodiscard]] Placement place(std::size_t buffer) const;
  [[nodiscard]] static void* address(Region& region, const DeviceMemory& memory, Placement place);
  [[nodiscard]] std::size_t send_elements() const;
  [[nodiscard]] std::size_t receive_elements() const;
  // Fill `words` with consecutive elements from index `first` on: input() takes them from the input
  // of `source`, output() from this rank's expected result.
  void input(int source, std::size_t first, std::span<std::uint64_t> words) const;
  void output(std::size_t first, std::span<std::uint64_t> words) const;
  void output_of_parts(std::size_t part, std::size_t skipped, std::size_t first,
                       std::span<std::uint64_t> words) const;
  void fold_inputs(std::size_t first, std::span<std::uint64_t> words) const;
  // Returns this rank's expected result of a reduction between nodes, whose bits depend on the
  // plan.
  [[nodiscard]] std::vector<std::uint64_t> planned_outputs() const;
  void compare(const Region& region, const std::vector<std::byte>& expected,
               const char* which) const;

  const Group& group_;
  Operation operation_;
  std::size_t element_;
  Region send_;
  Region receive_;
  std::size_t send_start_;     // offset of the call's send buffer in its allocation
  std::size_t receive_start_;  // offset of the receive buffer
  Placement send_place_;
  Placement receive_place_;
  DeviceMemory send_memory_;
  DeviceMemory receive_memory_;  // in place, holds no buffer: send_memory_ holds both
};

// Queues an operation, synchronises the stream and verifies the result.
void run_and_verify(const Session& session, const Group& group, synStreamHandle stream,
                    const Operation& operation);

}  // namespace hccl::test
