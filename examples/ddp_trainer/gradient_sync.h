// SPDX-License-Identifier: Apache-2.0
// The interface of the modes, which are different ways to keep the ranks' parameters equal. A mode
// determines when gradients are reduced, and which rank updates which parameters.
#pragma once

#include "device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace ddp_trainer {

class Trace;

// A rank's position in the job, and its streams. Kernels run on `compute`, collectives on
// `network`.
struct Rank {
  int rank = 0;
  int ranks = 1;
  hcclComm_t communicator = nullptr;
  Stream* compute = nullptr;
  Stream* network = nullptr;
  const Device* device = nullptr;
  Trace* trace = nullptr;
};

// The gradients of a rank, in one float buffer, and their wire form, which collectives reduce. The
// wire form is the same buffer, or a copy in bfloat16.
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
  // Queue on the compute stream the conversion of the elements [begin, end) to or from the wire
  // form. Do nothing if the wire form is the same buffer.
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

// ready(), reduce() and share() queue work and do not block. Work that is queued on the compute
// stream after reduce() sees the gradients in owned() summed over all ranks.
class GradientSync {
 public:
  GradientSync() = default;
  virtual ~GradientSync() = default;
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;

  // Returns the length of the gradient and parameter buffers, including the mode's padding.
  [[nodiscard]] virtual std::size_t padded(std::size_t parameters) const { return parameters; }
  // Returns the range of the parameters that this rank updates.
  [[nodiscard]] virtual Range owned(std::size_t parameters) const { return {0, parameters}; }
  // Declares that the gradients in `range` will be complete when the work queued so far on the
  // compute stream has run. Called for each layer during the last backward pass of a step. Each
  // range must begin where the previous range ended.
  virtual void ready(Gradients& /*gradients*/, Range /*range*/) {}
  // Makes the compute stream wait for the sums. Called after the backward pass.
  virtual void reduce(Gradients& gradients) = 0;
  // Makes the compute stream wait until this rank has all parameters. Called after the update.
  virtual void share(Buffer<float>& /*parameters*/) {}
};

// Returns the mode "ddp", which reduces buckets of gradients while the backward pass continues.
[[nodiscard]] std::unique_ptr<GradientSync> make_ddp(const Rank& rank, std::size_t bucket_bytes);
// Returns the mode "fast_ddp", which reduces all gradients in one all-reduce after the backward
// pass.
[[nodiscard]] std::unique_ptr<GradientSync> make_fast_ddp(const Rank& rank);
// Returns the mode "sharded": each rank gets the sums for its shard of the parameters and updates
// that shard. Then all ranks gather the parameters.
[[nodiscard]] std::unique_ptr<GradientSync> make_sharded(const Rank& rank);

}  // namespace ddp_trainer
