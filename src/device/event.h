// SPDX-License-Identifier: Apache-2.0
// An event: a point in a stream's work, optionally with the time at which the stream reached it.
#pragma once

#include "device/progress.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace hccl::device {

class Event {
 public:
  explicit Event(bool collects_time) : collects_time_(collects_time) {}

  // Captures everything queued on `stream` so far. Replaces the earlier capture, except in waits
  // that have already been queued.
  void record(Stream& stream);
  [[nodiscard]] Capture capture() const;

  // Blocks until the captured work is complete. Runs the captured stream's work on this thread,
  // unless another thread is running it. Returns the outcome and, if `reason` is not null, stores
  // the reason for a failure there.
  [[nodiscard]] Outcome synchronize(std::string* reason = nullptr) const;
  // Returns whether the captured work is complete. If it is, stores the outcome and, if `reason` is
  // not null, the reason for a failure. Does not block.
  [[nodiscard]] bool query(Outcome* outcome, std::string* reason = nullptr) const;

  // Returns the time, in nanoseconds on the clock of now(), at which the captured work completed.
  // Throws SynError(synObjectNotInitialized) if nothing was recorded, SynError(synBusy) if the work
  // is not complete, and SynError(synInvalidArgument) if the event does not collect times.
  [[nodiscard]] std::uint64_t time() const;

  // Returns the time in nanoseconds. Never returns the same value twice within a process.
  [[nodiscard]] static std::uint64_t now() noexcept;

 private:
  using Stamp = std::shared_ptr<std::atomic<std::uint64_t>>;

  const bool collects_time_;
  mutable std::mutex mutex_;
  Capture capture_;
  Stamp stamp_;
};

}  // namespace hccl::device
