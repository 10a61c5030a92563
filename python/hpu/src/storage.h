// SPDX-License-Identifier: Apache-2.0
// Each HPU storage owns the CPU storage over the same bytes, with which CPU kernels compute.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

namespace hccl_torch_hpu {

inline const c10::Device kHpu(c10::kHPU, 0);

// Throws c10::Error for a device that the machine does not show. All others are this process's own,
// whatever their number: launchers number the processes of a machine so.
void require_visible_device(c10::Device device);

// Returns the HPU allocator, whose blocks own CPU storages. Static lifetime.
[[nodiscard]] c10::Allocator* allocator();
// Returns an allocator of CPU memory that lies on the device. Static lifetime.
[[nodiscard]] c10::Allocator* host_side_allocator();

// Returns an HPU storage over the bytes of a CPU storage on the device.
[[nodiscard]] c10::Storage wrap_storage(const c10::Storage& host);
// Returns the CPU storage of an HPU storage. The HPU storage keeps it alive.
[[nodiscard]] c10::StorageImpl* host_storage(c10::StorageImpl* device);
// Makes an HPU storage see what has become of its CPU storage, which may have grown.
void follow_host(c10::StorageImpl* device, c10::StorageImpl* host);
// Makes an HPU storage have at least `bytes`; the contents stay.
void grow(c10::StorageImpl* device, std::size_t bytes);

}  // namespace hccl_torch_hpu
