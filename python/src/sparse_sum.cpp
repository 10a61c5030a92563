// SPDX-License-Identifier: Apache-2.0
#include "sparse_sum.h"

#include <vector>

#include <ATen/ATen.h>

namespace hccl_torch {

namespace {

std::vector<at::Tensor> gather(c10d::Backend& group, at::Tensor own,
                               std::vector<at::Tensor> parts) {
  std::vector<std::vector<at::Tensor>> outputs{std::move(parts)};
  std::vector<at::Tensor> inputs{std::move(own)};
  group.allgather(outputs, inputs, {})->wait();
  return outputs[0];
}

}  // namespace

void sum_sparse(c10d::Backend& group, at::Tensor& tensor) {
  const at::Tensor own = tensor.coalesce();
  at::Tensor counts = at::empty({group.getSize()}, at::kLong);
  at::Tensor count = at::full({1}, own._nnz(), at::kLong);
  group._allgather_base(counts, count, {})->wait();

  std::vector<at::Tensor> indices, values;
  for (int rank = 0; rank < group.getSize(); ++rank) {
    const auto elements = counts[rank].item<std::int64_t>();
    std::vector<std::int64_t> extents = own._values().sizes().vec();
    extents[0] = elements;
    indices.push_back(at::empty({own.sparse_dim(), elements}, at::kLong));
    values.push_back(at::empty(extents, own._values().options()));
  }
  indices = gather(group, own._indices(), std::move(indices));
  values = gather(group, own._values(), std::move(values));
  tensor.copy_(
      at::sparse_coo_tensor(at::cat(indices, 1), at::cat(values, 0), tensor.sizes()).coalesce());
}

}  // namespace hccl_torch
