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

  // Captures everything queued on `stream` so far. Replaces an earlier capture, but waits that are
  // already queued keep the earlier one.
  void record(Stream& stream);
  [[nodiscard]] Capture capture() const;

  // Blocks until the captured work is complete, and runs work of its stream meanwhile. Returns the
  // outcome, and writes the reason of a failure to `reason`, unless that is null.
  [[nodiscard]] Outcome synchronize(std::string* reason = nullptr) const;
  // Returns whether the captured work is complete. If so, sets the outcome and the reason of a
  // failure. Does not block.
  [[nodiscard]] bool query(Outcome* outcome, std::string* reason = nullptr) const;

  // Returns the time on the clock of now(), in nanoseconds, at which the captured work completed.
  // Throws SynError(synObjectNotInitialized) if nothing was recorded, SynError(synBusy) if the work
  // is not complete, SynError(synInvalidArgument) if the event collects no time.
  [[nodiscard]] std::uint64_t time() const;

  // Returns nanoseconds of a clock that never repeats a value within a process.
  [[nodiscard]] static std::uint64_t now() noexcept;

 private:
  using Stamp = std::shared_ptr<std::atomic<std::uint64_t>>;

  const bool collects_time_;
  mutable std::mutex mutex_;
  Capture capture_;
  Stamp stamp_;
};

}  // namespace hccl::device
