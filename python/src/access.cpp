// SPDX-License-Identifier: Apache-2.0
#include "access.h"

#include "call.h"
#include "memory_pool.h"
#include "memory_range.h"

#include <cstdint>
#include <optional>

#include <c10/util/Exception.h>
#include <hccl_emulation.h>

namespace hccl_torch {

namespace {

// The smallest page size of any supported system.
constexpr std::uintptr_t kPageBytes = 4096;

const std::byte* next_page_boundary(const std::byte* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  return at + (kPageBytes - address % kPageBytes) % kPageBytes;
}

// Returns the longest range from the start of `run` in which every page contains elements. Sets
// `run` to the first run after that range, or to nullopt if there is none.
MemoryRange::Run take_range_of_pages(const MemoryRange& memory,
                                     std::optional<MemoryRange::Run>& run) {
  MemoryRange::Run range = *run;
  for (;;) {
    const std::byte* const page = next_page_boundary(range.end);
    run = memory.run_from(page);
    if (!run || run->begin >= page + kPageBytes) return range;
    range.end = run->end;
  }
}

// Throws unless the tensor's memory is accessible. Skips tensors from the pool, whose memory
// belongs to the library, and HPU tensors, whose memory is on the device.
void require_access(const at::Tensor& tensor, const char* call, bool writable) {
  if (!tensor.is_cpu() || !tensor.has_storage() || tensor.numel() == 0 ||
      MemoryPool::instance().contains(tensor.const_data_ptr()))
    return;
  const MemoryRange memory(tensor);
  for (auto run = memory.run_from(memory.begin()); run;) {
    const MemoryRange::Run range = take_range_of_pages(memory, run);
    const auto bytes = static_cast<std::uint64_t>(range.end - range.begin);
    TORCH_CHECK_VALUE(hcclEmulationCheckMemory(range.begin, bytes, writable ? 1 : 0) == hcclSuccess,
                      "hccl_torch: ", call, " of ", tensor.nbytes(), " bytes: ", last_reason());
  }
}

}  // namespace

void require_readable(const at::Tensor& tensor, const char* call) {
  require_access(tensor, call, false);
}

void require_writable(const at::Tensor& tensor, const char* call) {
  require_access(tensor, call, true);
}

}  // namespace hccl_torch
