// SPDX-License-Identifier: Apache-2.0
// Keeping the ranks' parameters the same: who reduces which gradients when, and who updates what.
#pragma once

#include "device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace ddp_trainer {

class Trace;

// A rank's place in the job, and its streams. Kernels run on `compute`, collectives on `network`.
struct Rank {
  int rank = 0;
  int ranks = 1;
  hcclComm_t communicator = nullptr;
  Stream* compute = nullptr;
  Stream* network = nullptr;
  const Device* device = nullptr;
  Trace* trace = nullptr;
};

// The flat gradients of a rank in float, and what of them travels: themselves, or copies in
// bfloat16.
class Gradients {
 public:
  Gradients(const Device& device, std::size_t count, bool bfloat16);

  [[nodiscard]] Buffer<float>& values() { return values_; }
  [[nodiscard]] std::size_t count() const { return values_.count(); }
  [[nodiscard]] hcclDataType_t wire_type() const { return halves_ ? hcclBfloat16 : hcclFloat32; }
  [[nodiscard]] void* wire(std::size_t offset) const {
    return halves_ ? halves_->device(offset) : values_.device(offset);
  }
  [[nodiscard]] std::size_t wire_bytes(std::size_t count) const {
    return count * (halves_ ? sizeof(std::uint16_t) : sizeof(float));
  }
  // Queue the conversion of [begin, end), if there is one.
  void to_wire(const Rank& rank, std::size_t begin, std::size_t end);
  void from_wire(const Rank& rank, std::size_t begin, std::size_t end);

 private:
  Buffer<float> values_;
  std::unique_ptr<Buffer<std::uint16_t>> halves_;
};

struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t size() const { return end - begin; }
};

// All of it queues and returns. The gradients of a step are sums over all ranks once what
// reduce() has queued on the compute stream is done.
class GradientSync {
 public:
  GradientSync() = default;
  virtual ~GradientSync() = default;
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;

  // How many elements gradients and parameters take, with what a mode adds at the end.
  [[nodiscard]] virtual std::size_t padded(std::size_t parameters) const { return parameters; }
  // The parameters this rank updates.
  [[nodiscard]] virtual Range owned(std::size_t parameters) const { return {0, parameters}; }
  // While the last backward pass of a step is queued: [begin, end), which follows what was ready
  // before, will be complete when the compute stream comes to here.
  virtual void ready(Gradients& /*gradients*/, Range /*range*/) {}
  // Behind the backward pass. The compute stream waits for the sums.
  virtual void reduce(Gradients& gradients) = 0;
  // Behind the update. The compute stream waits until the parameters are everybody's.
  virtual void share(Buffer<float>& /*parameters*/) {}
};

// "ddp": buckets of gradients are reduced while the backward pass goes on.
[[nodiscard]] std::unique_ptr<GradientSync> make_ddp(const Rank& rank, std::size_t bucket_bytes);
// "fast_ddp": one all-reduce of all gradients after the backward pass.
[[nodiscard]] std::unique_ptr<GradientSync> make_fast_ddp(const Rank& rank);
// "sharded": each rank gets the sums of its share, updates that, and all gather the parameters.
[[nodiscard]] std::unique_ptr<GradientSync> make_sharded(const Rank& rank);

}  // namespace ddp_trainer
