// SPDX-License-Identifier: Apache-2.0
// Joining, training, reporting, leaving.
#include "rank_program.h"

#include "errors.h"
#include "progress.h"
#include "report.h"
#include "report_file.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <zlib.h>

namespace ddp_trainer {
namespace {

// The communicator, and why it has failed if it has.
class Communicator {
 public:
  Communicator(const Place& place, const hcclUniqueId& id) {
    check(hcclCommInitRank(&handle_, place.ranks, id, place.rank), "hcclCommInitRank");
  }
  ~Communicator() {
    if (handle_ != nullptr) hcclCommAbort(handle_);
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] hcclComm_t handle() const { return handle_; }
  void destroy() {
    check(hcclCommDestroy(handle_), "hcclCommDestroy");
    handle_ = nullptr;
  }
  [[nodiscard]] std::string failure() const {
    const char* const message = hcclCommGetAsyncErrorMessage(handle_);
    return message == nullptr ? "" : message;
  }

 private:
  hcclComm_t handle_ = nullptr;
};

// Everybody's spans, by rank.
std::vector<std::vector<Span>> gather_spans(const Trace& trace, const Rank& rank) {
  const std::vector<Span> mine = trace.spans();
  const auto ranks = static_cast<std::size_t>(rank.ranks);
  Buffer<std::uint64_t> counts(*rank.device, ranks);
  counts.host()[rank.rank] = mine.size();
  check(hcclAllGather(counts.device(static_cast<std::size_t>(rank.rank)), counts.device(), 1,
                      hcclUint64, rank.communicator, rank.network->handle()),
        "hcclAllGather");
  rank.network->synchronize();
  const std::size_t most = *std::max_element(counts.host(), counts.host() + ranks);
  Buffer<Span> send(*rank.device, most);
  Buffer<Span> all(*rank.device, most * ranks);
  std::copy(mine.begin(), mine.end(), send.host());
  check(hcclAllGather(send.device(), all.device(), most * sizeof(Span), hcclUint8,
                      rank.communicator, rank.network->handle()),
        "hcclAllGather");
  rank.network->synchronize();
  std::vector<std::vector<Span>> spans;
  for (std::size_t i = 0; i < ranks; ++i) {
    const Span* const first = all.host() + i * most;
    spans.emplace_back(first, first + counts.host()[i]);
  }
  return spans;
}

std::string bar(std::size_t done, std::size_t of) {
  constexpr std::size_t kWidth = 30;
  const std::size_t filled = of == 0 ? 0 : done * kWidth / of;
  return text('[', std::string(filled, '#'), std::string(kWidth - filled, ' '), ']');
}

class RankProgram {
 public:
  RankProgram(const Options& options, const Inputs& inputs, const Rank& rank, const MakeSync& make)
      : options_(options),
        inputs_(inputs),
        rank_(rank),
        sync_(make(options, rank)),
        trainer_(inputs.plan, inputs.data, rank, *sync_) {
    if (!inputs.checkpoint) return;
    restore(*inputs.checkpoint, trainer_);
    epochs_ = inputs.checkpoint->epochs;
  }

  void run() {
    say(heading(options_, inputs_.plan, trainer_.layout().parameters()));
    if (!epochs_.empty()) {
      say(text("continues from ", options_.checkpoint_path, " after epoch ", epochs_.size()));
    }
    while (static_cast<int>(epochs_.size()) < options_.epochs) {
      run_epoch(static_cast<int>(epochs_.size()) + 1);
    }
    write_files();
    say(final_line(epochs_));
  }

 private:
  void run_epoch(int epoch) {
    epochs_.push_back(trainer_.run_epoch(epoch, [&](std::size_t done, std::size_t of) {
      if (rank_.rank == 0) {
        progress_.show(text("epoch ", epoch, "/", options_.epochs, " ", bar(done, of), " step ",
                            done, "/", of));
      }
    }));
    say(epoch_line(epochs_.back(), options_.epochs));
    if (options_.checkpoint_path.empty()) return;
    Checkpoint checkpoint = save(trainer_, rank_);
    checkpoint.epochs = epochs_;
    if (rank_.rank == 0) write_checkpoint(options_.checkpoint_path, inputs_.plan, checkpoint);
  }

  void write_files() {
    if (!options_.trace_path.empty()) {
      const auto spans = gather_spans(*rank_.trace, rank_);
      if (rank_.rank == 0)
        hccl_perf::write_report("--trace", options_.trace_path, trace_text(spans));
    }
    if (rank_.rank != 0) return;
    const Training training{options_, inputs_.plan, epochs_, weights()};
    if (!options_.plot_path.empty())
      hccl_perf::write_report("--plot", options_.plot_path, plot_text(training));
    if (!options_.json_path.empty())
      hccl_perf::write_report("--json", options_.json_path, json_text(training));
  }

  std::string weights() {
    const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(trainer_.parameters().host()),
                             trainer_.layout().parameters() * sizeof(float));
    std::array<char, 16> written{};
    std::snprintf(written.data(), written.size(), "%08lx", sum);
    return written.data();
  }

  void say(const std::string& line) {
    if (rank_.rank != 0) return;
    progress_.clear();
    std::puts(line.c_str());
    std::fflush(stdout);
  }

  const Options& options_;
  const Inputs& inputs_;
  Rank rank_;
  std::unique_ptr<GradientSync> sync_;
  Trainer trainer_;
  hccl_perf::Progress progress_;
  std::vector<EpochReport> epochs_;
};

}  // namespace

std::unique_ptr<GradientSync> make_sync(const Options& options, const Rank& rank) {
  switch (options.mode) {
    case Mode::ddp:
      return make_ddp(rank, options.bucket_bytes);
    case Mode::fast_ddp:
      return make_fast_ddp(rank);
    case Mode::sharded:
      return make_sharded(rank);
  }
  throw UsageError("no such mode");
}

Inputs read_inputs(const Options& options, int ranks) {
  Inputs inputs{plan_for(options, ranks), split(read_digits(options.data_path)), std::nullopt};
  const std::size_t samples = inputs.data.training.size();
  if (samples < inputs.plan.sampling.batch) {
    throw UsageError(text("a batch of ", inputs.plan.sampling.batch, " is more than the ", samples,
                          " samples to train with; give a smaller --batch"));
  }
  if (!options.checkpoint_path.empty() && std::filesystem::exists(options.checkpoint_path))
    inputs.checkpoint = read_checkpoint(options.checkpoint_path, inputs.plan);
  return inputs;
}

void run_rank(const Options& options, const Inputs& inputs, const Place& place,
              const std::function<hcclUniqueId()>& get_id, const MakeSync& make) {
  Device device(place.local_rank);
  Communicator communicator(place, get_id());
  try {
    Stream compute(device);
    Stream network(device);
    Trace trace(!options.trace_path.empty());
    RankProgram(
        options, inputs,
        {place.rank, place.ranks, communicator.handle(), &compute, &network, &device, &trace}, make)
        .run();
    communicator.destroy();
  } catch (const RunError& error) {
    const std::string failure = communicator.failure();
    throw RunError(failure.empty() ? error.what() : text(error.what(), ": ", failure));
  }
  device.release();
}

}  // namespace ddp_trainer
