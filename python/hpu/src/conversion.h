// SPDX-License-Identifier: Apache-2.0
// Converts the HPU tensors of one operation to CPU tensors over the same memory, and the
// operation's results back to HPU tensors.
#pragma once

#include <cstddef>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

namespace hccl_torch_hpu {

class Conversion {
 public:
  // Returns a CPU tensor over the memory of an HPU tensor. Blocks until collectives and messages
  // that use this memory have ended. Throws c10::NotImplementedError for a tensor without strides,
  // such as a sparse one, and c10::Error in a forked child.
  [[nodiscard]] at::Tensor to_host(const at::Tensor& tensor);
  // Returns a result of the operation as an HPU tensor: an argument itself, a view that shares an
  // argument's storage, or a tensor with a new storage. If the result is not in device memory,
  // copies it there first. Throws c10::NotImplementedError for sparse and quantized tensors.
  [[nodiscard]] at::Tensor to_device(const at::Tensor& result);
  // Returns a hash of the arguments' shapes and types.
  [[nodiscard]] std::size_t signature() const;
  // Updates the HPU arguments to the sizes and storages that their CPU aliases have after the
  // operation.
  void follow_aliases();

 private:
  struct Argument {
    at::Tensor device;
    at::Tensor host;
  };
  struct NewStorage {
    c10::StorageImpl* host;
    c10::Storage device;
  };
  // Returns an HPU storage over the storage of `host`, and the argument that owns this HPU storage,
  // or null if none does.
  [[nodiscard]] std::pair<c10::Storage, const Argument*> device_storage_of(const at::Tensor& host);

  c10::SmallVector<Argument, 6> arguments_;
  c10::SmallVector<NewStorage, 2> made_;
};

}  // namespace hccl_torch_hpu
