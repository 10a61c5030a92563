// SPDX-License-Identifier: Apache-2.0
// Shards optimizer state and updates as ZeRO does: each rank gets the reduced gradients of one
// shard and updates the parameters of that shard, and all ranks gather the new parameters. With
// float32 gradients, this moves as many bytes as an all-reduce.
#include "network_work.h"

#include <algorithm>

namespace ddp_trainer {
namespace {

class Sharded final : public GradientSync {
 public:
  explicit Sharded(const Rank& rank) : rank_(rank), work_(rank) {}

  [[nodiscard]] std::size_t padded(std::size_t parameters) const override {
    const auto ranks = static_cast<std::size_t>(rank_.ranks);
    return (parameters + ranks - 1) / ranks * ranks;
  }

  [[nodiscard]] Range owned(std::size_t parameters) const override {
    const Range shard = shard_of(padded(parameters));
    return {std::min(shard.begin, parameters), std::min(shard.end, parameters)};
  }

  void reduce(Gradients& gradients) override {
    const Range shard = shard_of(gradients.count());
    gradients.to_wire(rank_, 0, gradients.count());
    work_.begin("reduce-scatter", gradients.wire_bytes(gradients.count()), [&] {
      check(hcclReduceScatter(gradients.wire(0), gradients.wire(shard.begin), shard.size(),
                              gradients.wire_type(), hcclSum, rank_.communicator,
                              rank_.network->handle()),
            "hcclReduceScatter");
    });
    work_.join();
    gradients.from_wire(rank_, shard.begin, shard.end);
  }

  void share(Buffer<float>& parameters) override {
    const Range shard = shard_of(parameters.count());
    work_.begin("all-gather", parameters.count() * sizeof(float), [&] {
      check(hcclAllGather(parameters.device(shard.begin), parameters.device(), shard.size(),
                          hcclFloat32, rank_.communicator, rank_.network->handle()),
            "hcclAllGather");
    });
    work_.join();
  }

 private:
  [[nodiscard]] Range shard_of(std::size_t padded) const {
    const std::size_t size = padded / static_cast<std::size_t>(rank_.ranks);
    const auto rank = static_cast<std::size_t>(rank_.rank);
    return {rank * size, (rank + 1) * size};
  }

  Rank rank_;
  NetworkWork work_;
};

}  // namespace

std::unique_ptr<GradientSync> make_sharded(const Rank& rank) {
  return std::make_unique<Sharded>(rank);
}

}  // namespace ddp_trainer
