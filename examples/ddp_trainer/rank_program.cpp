// SPDX-License-Identifier: Apache-2.0
// Runs a rank: joins, trains, reports and leaves.
#include "rank_program.h"

#include "agreement.h"
#include "errors.h"
#include "progress.h"
#include "report.h"
#include "report_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>

#include <zlib.h>

namespace ddp_trainer {
namespace {

// Owns the communicator. failure() returns the reason if the communicator has failed, otherwise an
// empty string.
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

// Gathers the spans on rank 0. Blocks until all ranks have called the function. Returns the spans
// of all ranks on rank 0, and only this rank's spans on the other ranks.
std::vector<std::vector<Span>> collect_spans(const Trace& trace, const Rank& rank) {
  std::vector<Span> mine = trace.spans();
  const std::vector<std::uint64_t> counts = gather<std::uint64_t>(mine.size(), rank);
  const bool is_root = rank.rank == 0;
  const std::uint64_t room =
      is_root ? std::accumulate(counts.begin() + 1, counts.end(), 0UL) : mine.size();
  Buffer<Span> travelling(*rank.device, std::max<std::uint64_t>(room, 1));
  if (!is_root) std::ranges::copy(mine, travelling.host());
  check(hcclGroupStart(), "hcclGroupStart");
  std::uint64_t at = 0;
  for (int peer = 1; is_root && peer < rank.ranks; ++peer) {
    const std::uint64_t count = counts[static_cast<std::size_t>(peer)];
    check(hcclRecv(travelling.device(at), count * sizeof(Span), hcclUint8, peer, rank.communicator,
                   rank.network->handle()),
          "hcclRecv");
    at += count;
  }
  if (!is_root) {
    check(hcclSend(travelling.device(), mine.size() * sizeof(Span), hcclUint8, 0, rank.communicator,
                   rank.network->handle()),
          "hcclSend");
  }
  check(hcclGroupEnd(), "hcclGroupEnd");
  rank.network->synchronize();
  std::vector<std::vector<Span>> spans{std::move(mine)};
  const Span* next = travelling.host();
  for (std::size_t peer = 1; is_root && peer < counts.size(); next += counts[peer++])
    spans.emplace_back(next, next + counts[peer]);
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

  // Trains and reports. Returns 0, or the errno of the last failed write to standard output.
  [[nodiscard]] int run() {
    require_same_start(start(), rank_);
    print_line(heading(options_, inputs_.plan, trainer_.layout().parameters()));
    if (!epochs_.empty()) {
      print_line(
          text("continuing from ", options_.checkpoint_path, " after epoch ", epochs_.size()));
    }
    while (static_cast<int>(epochs_.size()) < options_.epochs) {
      run_epoch(static_cast<int>(epochs_.size()) + 1);
    }
    write_files();
    print_line(final_line(epochs_));
    return print_error_;
  }

 private:
  // Returns the facts that must be equal on all ranks, including all settings that affect
  // communication.
  Start start() {
    const std::string training =
        text(identity(inputs_.plan), ", ", options_.epochs, " epochs, mode ", options_.mode_name,
             ", buckets of ", options_.bucket_bytes, " bytes",
             options_.checkpoint_path.empty() ? "" : ", a checkpoint",
             options_.trace_path.empty() ? "" : ", a trace");
    return {training, inputs_.data.check_sum, weights_check_sum(), trainer_.steps_done()};
  }

  void run_epoch(int epoch) {
    epochs_.push_back(trainer_.run_epoch(epoch, [&](std::size_t done, std::size_t of) {
      if (rank_.rank == 0) {
        progress_.show(text("epoch ", epoch, "/", options_.epochs, " ", bar(done, of), " step ",
                            done, "/", of));
      }
    }));
    print_line(epoch_line(epochs_.back(), options_.epochs));
    if (options_.checkpoint_path.empty()) return;
    Checkpoint checkpoint = save(trainer_, rank_);
    checkpoint.epochs = epochs_;
    if (rank_.rank == 0) {
      write_checkpoint(options_.checkpoint_path, inputs_.plan, inputs_.data.check_sum, checkpoint);
    }
  }

  void write_files() {
    if (!options_.trace_path.empty()) {
      const auto spans = collect_spans(*rank_.trace, rank_);
      if (rank_.rank == 0)
        hccl_perf::write_report("--trace", options_.trace_path, trace_text(spans));
    }
    if (rank_.rank != 0) return;
    const Training training{options_, inputs_.plan, epochs_, weights_check_sum()};
    if (!options_.json_path.empty())
      hccl_perf::write_report("--json", options_.json_path, json_text(training));
  }

  std::uint32_t weights_check_sum() {
    return static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(trainer_.parameters().host()),
                trainer_.layout().parameters() * sizeof(float)));
  }

  void print_line(const std::string& line) {
    if (rank_.rank != 0) return;
    progress_.clear();
    if (std::puts(line.c_str()) < 0 || std::fflush(stdout) != 0) print_error_ = errno;
  }

  const Options& options_;
  const Inputs& inputs_;
  Rank rank_;
  std::unique_ptr<GradientSync> sync_;
  Trainer trainer_;
  hccl_perf::Progress progress_;
  std::vector<EpochReport> epochs_;
  int print_error_ = 0;
};

const Inputs& read_together(const ReadInputs& read, const Rank& rank) {
  const Inputs* inputs = nullptr;
  std::string failure;
  try {
    inputs = &read();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  require_no_failure(failure, rank);
  return *inputs;
}

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
  throw UsageError("unknown mode");
}

Inputs read_inputs(const Options& options, int ranks) {
  Inputs inputs{plan_for(options, ranks), split(read_digits(options.data_path)), std::nullopt};
  const std::size_t samples = inputs.data.training.size();
  if (samples < inputs.plan.sampling.batch) {
    throw UsageError(text("a batch of ", inputs.plan.sampling.batch, " is more than the ", samples,
                          " training samples; give a smaller --batch"));
  }
  if (!options.checkpoint_path.empty() && std::filesystem::exists(options.checkpoint_path)) {
    inputs.checkpoint =
        read_checkpoint(options.checkpoint_path, inputs.plan, inputs.data.check_sum);
  }
  return inputs;
}

void run_rank(const Options& options, const ReadInputs& read, const Place& place,
              const std::function<hcclUniqueId()>& get_id, const MakeSync& make) {
  Device device(place.local_rank);
  Communicator communicator(place, get_id());
  int unsaid = 0;
  try {
    Stream compute(device);
    Stream network(device);
    Trace trace(!options.trace_path.empty());
    const Rank rank{place.rank, place.ranks, communicator.handle(), &compute, &network,
                    &device,    &trace};
    unsaid = RankProgram(options, read_together(read, rank), rank, make).run();
    communicator.destroy();
  } catch (const SharedError&) {
    throw;
  } catch (const RunError& error) {
    const std::string what = error.what();
    const std::string failure = communicator.failure();
    throw RunError(what.find(failure) == std::string::npos ? text(what, ": ", failure) : what);
  }
  device.release();
  // Throws only after this rank has left, so that this error does not make other ranks fail.
  if (unsaid != 0) throw RunError(text("cannot write to standard output: ", std::strerror(unsaid)));
}

}  // namespace ddp_trainer
