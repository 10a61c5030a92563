// SPDX-License-Identifier: Apache-2.0
// Queues steps on the device and waits for them.
#include "trainer.h"

#include "errors.h"
#include "matrix.h"

#include <algorithm>
#include <chrono>

namespace ddp_trainer {
namespace {

// Copies a sample, shifted. Rows and columns that the shift leaves empty are 0.
void copy_shifted(const float* sample, Shift shift, float* to) {
  constexpr int kSide = Dataset::kSide;
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      const int from_row = row - shift.down;
      const int from_column = column - shift.right;
      const bool inside =
          from_row >= 0 && from_row < kSide && from_column >= 0 && from_column < kSide;
      to[row * kSide + column] = inside ? sample[from_row * kSide + from_column] : 0;
    }
  }
}

}  // namespace

Trainer::Trainer(const TrainingPlan& plan, const Split& data, const Rank& rank, GradientSync& sync)
    : plan_(plan),
      data_(data),
      rank_(rank),
      sync_(sync),
      layout_(plan.widths),
      parameters_(*rank.device, sync.padded(layout_.parameters())),
      gradients_(*rank.device, parameters_.count(), plan.bfloat16),
      optimizer_(plan.optimizer, *rank.device, sync.owned(parameters_.count())),
      network_(*rank.device, layout_, plan.sampling.micro_batch,
               gradient_limit(plan.sampling.batch / plan.sampling.micro_batch)),
      input_(*rank.device, plan.sampling.own_samples() * plan.widths.front()) {
  std::fill_n(parameters_.host(), parameters_.count(), 0.0F);
  std::fill_n(gradients_.values().host(), gradients_.count(), 0.0F);
  initialize(layout_, plan.seed, parameters_.host());
}

Trainer::~Trainer() {
  synStreamSynchronize(rank_.network->handle());
  synStreamSynchronize(rank_.compute->handle());
}

EpochReport Trainer::run_epoch(int epoch, const StepDone& step_done) {
  const Sampling& sampling = plan_.sampling;
  const std::vector<std::uint32_t> order = shuffled(data_.training.size(), plan_.seed, epoch);
  const std::size_t steps = sampling.steps(order.size());
  marks_.assign(steps, {});
  score_ = {};
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t step = 0; step < steps; ++step) {
    rank_.trace->set_step(static_cast<std::uint32_t>(steps_done_ + 1));
    load_samples(data_.training, order.data() + sampling.first(step, rank_.rank),
                 sampling.own_samples(), epoch);
    run_step(marks_[step]);
    step_done(step + 1, steps);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  test();
  sum_over_ranks({&score_, &tested_});
  if (const std::int64_t diverged = score_.diverged + tested_.diverged; diverged > 0) {
    throw SharedError(text("the training diverged in epoch ", epoch, ": ", diverged,
                           " samples have a loss that is NaN or at least ", Score::kHighestLoss,
                           "; give a lower --rate"));
  }
  EpochReport report;
  report.epoch = epoch;
  report.loss = score_.mean_loss();
  report.accuracy = score_.accuracy();
  report.test_loss = tested_.mean_loss();
  report.test_accuracy = tested_.accuracy();
  report.seconds = took.count();
  report.samples_per_second = static_cast<double>(steps * sampling.batch) / took.count();
  report.step_ms = took.count() * 1000 / static_cast<double>(steps);
  report.communication_ms = communication_seconds() * 1000 / static_cast<double>(steps);
  return report;
}

// The caller must not change host_input_ and classes_ before the queued work has run.
void Trainer::load_samples(const Dataset& data, const std::uint32_t* which, std::size_t count,
                           std::optional<int> epoch) {
  host_input_.resize(count * Dataset::kPixels);
  classes_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Shift shift = epoch ? shift_of(which[i], plan_.seed, *epoch) : Shift{};
    copy_shifted(data.sample(which[i]), shift, host_input_.data() + i * Dataset::kPixels);
    classes_[i] = data.classes[which[i]];
  }
  check(
      synMemCopyAsync(rank_.compute->handle(), reinterpret_cast<std::uintptr_t>(host_input_.data()),
                      host_input_.size() * sizeof(float),
                      reinterpret_cast<std::uintptr_t>(input_.device()), HOST_TO_DRAM),
      "synMemCopyAsync");
}

void Trainer::run_step(Marks& marks) {
  ++steps_done_;
  rank_.trace->launch(*rank_.compute, "clear gradients", [this] {
    std::fill_n(gradients_.values().host(), gradients_.count(), 0.0F);
  });
  const std::size_t micro_batches = plan_.sampling.micro_batches();
  for (std::size_t number = 0; number < micro_batches; ++number)
    queue_micro_batch(number, number + 1 == micro_batches);
  queue_update(marks);
  rank_.compute->synchronize();
}

// Queues a forward and a backward pass. The gradients of all micro-batches of a step are added up,
// and are complete after the `last` micro-batch.
void Trainer::queue_micro_batch(std::size_t number, bool last) {
  const std::size_t rows = plan_.sampling.micro_batch;
  const float* const input = input_.host() + number * rows * Dataset::kPixels;
  const std::uint8_t* const classes = classes_.data() + number * rows;
  rank_.trace->launch(*rank_.compute, "forward", [=, this] {
    network_.forward(parameters_.host(), input, rows);
    score_.add(network_.score(classes, rows));
    network_.begin_backward(classes, rows, 1.0F / static_cast<float>(plan_.sampling.batch));
  });
  for (std::size_t layer = layout_.layers().size(); layer-- > 0;) {
    rank_.trace->launch(*rank_.compute, "backward", [=, this] {
      network_.backward(layer, parameters_.host(), input, gradients_.values().host(), rows);
    });
    if (last)
      sync_.ready(gradients_, {layout_.layers()[layer].weights, layout_.layers()[layer].end()});
  }
}

void Trainer::queue_update(Marks& marks) {
  mark(marks.reduce);
  sync_.reduce(gradients_);
  mark(marks.reduced);
  rank_.trace->launch(*rank_.compute, "update", [this, step = steps_done_] {
    optimizer_.update(parameters_.host(), gradients_.values().host(), step);
  });
  mark(marks.updated);
  sync_.share(parameters_);
  mark(marks.shared);
}

void Trainer::mark(std::int64_t& when) const {
  rank_.compute->launch([&when] { when = now_ns(); });
}

// Computes the score of this rank's share of the test samples.
void Trainer::test() {
  const std::size_t rows = plan_.sampling.micro_batch;
  const auto ranks = static_cast<std::size_t>(rank_.ranks);
  const auto rank = static_cast<std::size_t>(rank_.rank);
  const std::size_t begin = data_.test.size() * rank / ranks;
  const std::size_t end = data_.test.size() * (rank + 1) / ranks;
  tested_ = {};
  std::vector<std::uint32_t> which;
  for (std::size_t at = begin; at < end; at += rows) {
    which.clear();
    for (std::size_t i = at; i < std::min(at + rows, end); ++i)
      which.push_back(static_cast<std::uint32_t>(i));
    load_samples(data_.test, which.data(), which.size());
    rank_.compute->launch([this, count = which.size()] {
      network_.forward(parameters_.host(), input_.host(), count);
      tested_.add(network_.score(classes_.data(), count));
    });
    rank_.compute->synchronize();
  }
}

void Trainer::sum_over_ranks(const std::vector<Score*>& scores) const {
  constexpr std::size_t kValues = 4;
  Buffer<std::int64_t> sums(*rank_.device, kValues * scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const Score& score = *scores[i];
    const std::int64_t values[kValues] = {score.loss, score.correct, score.samples, score.diverged};
    std::copy_n(values, kValues, sums.host() + kValues * i);
  }
  check(hcclAllReduce(sums.device(), sums.device(), sums.count(), hcclInt64, hcclSum,
                      rank_.communicator, rank_.network->handle()),
        "hcclAllReduce");
  rank_.network->synchronize();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::int64_t* const values = sums.host() + kValues * i;
    *scores[i] = {values[0], values[1], values[2], values[3]};
  }
}

// Returns the seconds during which all ranks communicated and none computed. In each wait for
// gradients or parameters, this time begins when the last rank starts to wait, and ends when the
// first rank continues. The result is meaningful only if all ranks run on one machine, because
// each machine has its own monotonic clock.
double Trainer::communication_seconds() const {
  Buffer<std::int64_t> latest(*rank_.device, 4 * marks_.size());
  for (std::size_t step = 0; step < marks_.size(); ++step) {
    const Marks& mine = marks_[step];
    const std::int64_t values[4] = {mine.reduce, -mine.reduced, mine.updated, -mine.shared};
    std::copy_n(values, 4, latest.host() + 4 * step);
  }
  check(hcclAllReduce(latest.device(), latest.device(), latest.count(), hcclInt64, hcclMax,
                      rank_.communicator, rank_.network->handle()),
        "hcclAllReduce");
  rank_.network->synchronize();
  std::int64_t sum = 0;
  for (std::size_t at = 0; at < latest.count(); at += 2)
    sum += std::max<std::int64_t>(0, -latest.host()[at + 1] - latest.host()[at]);
  return static_cast<double>(sum) / 1e9;
}

}  // namespace ddp_trainer
