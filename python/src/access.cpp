// SPDX-License-Identifier: Apache-2.0
#include "access.h"

#include "call.h"
#include "memory_pool.h"
#include "memory_range.h"

#include <c10/util/Exception.h>
#include <hccl_emulation.h>

namespace hccl_torch {

namespace {

// Tensors of the pool lie in memory of the library, and HPU tensors in that of a device.
void require_access(const at::Tensor& tensor, const char* call, bool writable) {
  if (!tensor.is_cpu() || !tensor.has_storage() || tensor.numel() == 0 ||
      MemoryPool::instance().contains(tensor.const_data_ptr()))
    return;
  const MemoryRange range = memory_of(tensor);
  const auto bytes = static_cast<std::uint64_t>(range.end - range.begin);
  TORCH_CHECK_VALUE(hcclEmulationCheckMemory(range.begin, bytes, writable ? 1 : 0) == hcclSuccess,
                    "hccl_torch: ", call, " of ", tensor.nbytes(), " bytes: ", last_reason());
}

}  // namespace

void require_readable(const at::Tensor& tensor, const char* call) {
  require_access(tensor, call, false);
}

void require_writable(const at::Tensor& tensor, const char* call) {
  require_access(tensor, call, true);
}

}  // namespace hccl_torch
