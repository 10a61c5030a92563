// SPDX-License-Identifier: Apache-2.0
// HPU storages. Each one owns a CPU storage over the same bytes, on which the CPU kernels compute.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

namespace hccl_torch_hpu {

inline const c10::Device kHpu(c10::kHPU, 0);

// Throws c10::Error for a device that is not visible on this machine. Every visible device number
// refers to the only device of this process, because launchers give each process on a machine a
// different number.
void require_visible_device(c10::Device device);

// Returns the HPU allocator, whose blocks own CPU storages. The allocator has static lifetime.
[[nodiscard]] c10::Allocator* allocator();
// Returns an allocator of device memory that PyTorch treats as CPU memory. The allocator has static
// lifetime.
[[nodiscard]] c10::Allocator* host_side_allocator();

// Returns an HPU storage over the bytes of a CPU storage in device memory.
[[nodiscard]] c10::Storage wrap_storage(const c10::Storage& host);
// Returns the CPU storage of an HPU storage, which keeps the CPU storage alive.
[[nodiscard]] c10::StorageImpl* host_storage(c10::StorageImpl* device);
// Makes an HPU storage use the current memory and size of its CPU storage.
void follow_host(c10::StorageImpl* device, c10::StorageImpl* host);
// Enlarges an HPU storage to at least `bytes` bytes and preserves the contents. Does nothing if the
// storage is large enough; otherwise blocks until collectives and messages that use the storage
// have ended. Throws c10::Error if the storage cannot be resized or no device memory is left.
void grow(c10::StorageImpl* device, std::size_t bytes);

}  // namespace hccl_torch_hpu
