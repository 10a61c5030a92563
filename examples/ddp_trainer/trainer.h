// SPDX-License-Identifier: Apache-2.0
// The training of one rank: queues the work of each step, and reports on each epoch.
#pragma once

#include "dataset.h"
#include "gradient_sync.h"
#include "network.h"
#include "optimizer.h"
#include "sampling.h"
#include "trace.h"

#include <functional>
#include <optional>

namespace ddp_trainer {

struct EpochReport {
  int epoch = 0;        // starts at 1
  double loss = 0;      // mean over the epoch's samples
  double accuracy = 0;  // on the epoch's training samples
  double test_loss = 0;
  double test_accuracy = 0;
  double seconds = 0;  // duration of the epoch's steps
  double samples_per_second = 0;
  double step_ms = 0;  // mean duration of a step
  // The mean time per step during which all ranks waited for gradients or parameters.
  double communication_ms = 0;
};

struct TrainingPlan {
  std::vector<std::size_t> widths;
  Sampling sampling;
  OptimizerOptions optimizer;
  std::uint64_t seed = 1;
  bool bfloat16 = false;
};

class Trainer {
 public:
  using StepDone = std::function<void(std::size_t done, std::size_t of)>;

  Trainer(const TrainingPlan& plan, const Split& data, const Rank& rank, GradientSync& sync);

  // Waits for all queued work, even after a failure, because kernels use this object's members.
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Trains for an epoch, then tests. Blocks until all ranks have called the function. Throws
  // SharedError if the training diverges. Returns a report that differs between ranks only in
  // `seconds`, `samples_per_second` and `step_ms`.
  [[nodiscard]] EpochReport run_epoch(int epoch, const StepDone& step_done);

  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] Buffer<float>& parameters() { return parameters_; }
  [[nodiscard]] Optimizer& optimizer() { return optimizer_; }
  [[nodiscard]] std::uint64_t steps_done() const { return steps_done_; }
  void resume_after(std::uint64_t steps) { steps_done_ = steps; }

 private:
  // The times at which the compute stream reached the start and end of GradientSync::reduce(), and
  // of share().
  struct Marks {
    std::int64_t reduce, reduced, updated, shared;
  };

  // Queues the copy of samples to the device. The samples are shifted as in `epoch`, or unchanged
  // without an epoch.
  void load_samples(const Dataset& data, const std::uint32_t* which, std::size_t count,
                    std::optional<int> epoch = std::nullopt);
  void run_step(Marks& marks);
  void queue_micro_batch(std::size_t number, bool last);
  void queue_update(Marks& marks);
  void mark(std::int64_t& when) const;
  void test();
  void sum_over_ranks(const std::vector<Score*>& scores) const;
  [[nodiscard]] double communication_seconds() const;

  TrainingPlan plan_;
  const Split& data_;
  Rank rank_;
  GradientSync& sync_;
  Layout layout_;
  Buffer<float> parameters_;
  Gradients gradients_;
  Optimizer optimizer_;
  Network network_;
  Buffer<float> input_;            // samples of a step, or a micro-batch of test samples
  std::vector<float> host_input_;  // the same samples on the host
  std::vector<std::uint8_t> classes_;
  Score score_;               // score of the epoch
  Score tested_;              // score of the test after the epoch
  std::vector<Marks> marks_;  // one for each step of the epoch; kernels write them
  std::uint64_t steps_done_ = 0;
};

}  // namespace ddp_trainer
