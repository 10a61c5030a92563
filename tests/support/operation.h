// SPDX-License-Identifier: Apache-2.0
// One collective with its buffers: poisoned, guarded, queued with its copies on a stream, and
// compared bit by bit with the scalar reference.
#pragma once

#include "call/collective.h"
#include "elements.h"
#include "session.h"

#include <hccl.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hccl::test {

// Where a rank's buffers lie, or how they are named: a view is device memory, which the call gets
// by its address in the host view. Mixed: each buffer of each rank in another way.
enum class Placement { device, host, view, mixed };

// Returns the placement of one of a rank's buffers: never mixed, but one of the others by `mix`.
[[nodiscard]] Placement placement_of(Placement placement, std::uint64_t mix);

struct Operation {
  Collective collective = Collective::all_reduce;
  hcclDataType_t type = hcclFloat32;
  hcclRedOp_t reduction = hcclSum;
  int root = 0;
  std::size_t count = 0;  // as the call takes it
  bool in_place = false;
  std::size_t offset = 0;  // elements between the guard and each buffer
  std::uint64_t seed = 1;
  Placement placement = Placement::device;
  std::vector<std::string> nodes{};  // of each rank, if there are several
  std::string algorithm{};           // HCCL_ALGO, then
};
[[nodiscard]] std::string describe(const Operation& operation);
// Returns an operation on device memory, out of place.
[[nodiscard]] Operation make_operation(Collective collective, std::size_t count,
                                       hcclDataType_t type = hcclFloat32,
                                       hcclRedOp_t reduction = hcclSum, int root = 0);

// Bytes of an allocation: guard, offset, payload, guard; everything but a payload's data is poison.
struct Region {
  std::size_t start = 0;   // of the payload within the allocation
  std::size_t length = 0;  // of the payload
  std::vector<std::byte> before;
  std::vector<std::byte> after;
};

class OperationRun {
 public:
  OperationRun(const Session& session, const Group& group, const Operation& operation);

  // Queues upload of poison and inputs, the collective and the download; returns what the
  // collective returned. Nothing is waited for.
  hcclResult_t queue(synStreamHandle stream);
  void queue_upload(synStreamHandle stream);
  hcclResult_t queue_collective(synStreamHandle stream);
  void queue_download(synStreamHandle stream);

  // After the stream has been synchronised: every byte of both allocations is as it must be.
  void verify() const;
  // Every byte is as it was uploaded.
  void verify_untouched() const;

 private:
  [[nodiscard]] Data data() const;
  [[nodiscard]] Placement place(std::size_t buffer) const;
  [[nodiscard]] static void* address(Region& region, const DeviceMemory& memory, Placement place);
  [[nodiscard]] std::size_t send_elements() const;
  [[nodiscard]] std::size_t receive_elements() const;
  // Words of elements from `first` on: of a rank's data, and of what this rank is to receive.
  void input(int source, std::size_t first, std::span<std::uint64_t> words) const;
  void output(std::size_t first, std::span<std::uint64_t> words) const;
  void output_of_parts(std::size_t part, std::size_t skipped, std::size_t first,
                       std::span<std::uint64_t> words) const;
  void fold_inputs(std::size_t first, std::span<std::uint64_t> words) const;
  // The result by the plan across nodes, which matters to reductions only.
  [[nodiscard]] std::vector<std::uint64_t> planned_outputs() const;
  void compare(const Region& region, const std::vector<std::byte>& expected,
               const char* which) const;

  const Group& group_;
  Operation operation_;
  std::size_t element_;
  Region send_;
  Region receive_;
  std::size_t send_start_;     // of the call's send buffer within its allocation
  std::size_t receive_start_;  // and of its receive buffer
  Placement send_place_;       // in host memory, the buffers are the regions' `after`
  Placement receive_place_;
  DeviceMemory send_memory_;
  DeviceMemory receive_memory_;  // unused in place: then everything lies in `send_`
};

// Queues an operation, synchronises the stream and verifies what has come.
void run_and_verify(const Session& session, const Group& group, synStreamHandle stream,
                    const Operation& operation);

}  // namespace hccl::test
