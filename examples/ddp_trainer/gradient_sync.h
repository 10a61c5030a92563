// SPDX-License-Identifier: Apache-2.0
// The interface that keeps the ranks' parameters equal. An implementation determines when gradients
// are reduced, and which rank updates which parameters.
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

// The flat gradients of a rank in float, and the form in which they are communicated: the gradients
// themselves or copies in bfloat16.
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
  // Queue the conversion of [begin, end) if the two forms differ.
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

// All functions only queue work. After the work that reduce() has queued on the compute stream has
// run, the gradients of a step are sums over all ranks.
class GradientSync {
 public:
  GradientSync() = default;
  virtual ~GradientSync() = default;
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;

  // Returns the number of gradients and parameters including the padding that the mode needs.
  [[nodiscard]] virtual std::size_t padded(std::size_t parameters) const { return parameters; }
  // Returns the range of the parameters that this rank updates.
  [[nodiscard]] virtual Range owned(std::size_t parameters) const { return {0, parameters}; }
  // Declares that the gradients in `range` will be complete when the compute stream reaches this
  // point. Call it while the last backward pass of a step is being queued. Each range must follow
  // the previous one.
  virtual void ready(Gradients& /*gradients*/, Range /*range*/) {}
  // Makes the compute stream wait for the sums. Call it after the backward pass.
  virtual void reduce(Gradients& gradients) = 0;
  // Makes the compute stream wait until all ranks have all parameters. Call it after the update.
  virtual void share(Buffer<float>& /*parameters*/) {}
};

// Returns the mode "ddp", which reduces buckets of gradients while the backward pass continues.
[[nodiscard]] std::unique_ptr<GradientSync> make_ddp(const Rank& rank, std::size_t bucket_bytes);
// Returns the mode "fast_ddp", which reduces all gradients in one all-reduce after the backward
// pass.
[[nodiscard]] std::unique_ptr<GradientSync> make_fast_ddp(const Rank& rank);
// Returns the mode "sharded": each rank receives the sums of its share and updates this share, and
// all ranks then gather the parameters.
[[nodiscard]] std::unique_ptr<GradientSync> make_sharded(const Rank& rank);

}  // namespace ddp_trainer
