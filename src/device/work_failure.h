// SPDX-License-Identifier: Apache-2.0
// One failure of queued work: why it happened, whether the program knows, and which streams it
// keeps from running what is queued behind it.
#pragma once

#include <hccl_types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace hccl::device {

class Stream;

// Why work failed.
struct FailureNote {
  hcclResult_t code = hcclInternalError;
  std::string text;

  friend bool operator==(const FailureNote&, const FailureNote&) = default;
};

// By a command that is about to return a failure: keeps why, for whoever waits for the command and
// for what is queued behind it. Uses no heap, so it works when memory is short; a text that does
// not fit is cut.
void explain_failure(hcclResult_t code, std::string_view text) noexcept;

// Takes what explain_failure() kept for the command that ran last on this thread. Returns null if
// it kept nothing, or if no memory is left for it.
[[nodiscard]] std::shared_ptr<const FailureNote> take_explanation() noexcept;

// Shared by all work that failed for the same reason, on the stream where it happened and on those
// that waited for it. Thread-safe.
class WorkFailure {
 public:
  WorkFailure();
  WorkFailure(const WorkFailure&) = delete;
  WorkFailure& operator=(const WorkFailure&) = delete;

  // Returns a number that grows with each report of a failure to the program.
  [[nodiscard]] static std::uint64_t reports() noexcept;
  // Returns true if the program had been told before the `reports`th report was over.
  [[nodiscard]] bool was_reported_by(std::uint64_t reports) const noexcept {
    const std::uint64_t own = report_.load(std::memory_order_acquire);
    return own != 0 && own <= reports;
  }
  [[nodiscard]] bool was_reported() const noexcept {
    return report_.load(std::memory_order_acquire) != 0;
  }

  // Before the failure is shared: keeps why it happened; null if that is not known.
  void explain(std::shared_ptr<const FailureNote> note) noexcept { note_ = std::move(note); }
  [[nodiscard]] const std::shared_ptr<const FailureNote>& note() const noexcept { return note_; }

  // Adds a stream that the failure keeps from running its work. Returns false if the program knows
  // of the failure already, and does not add the stream then.
  [[nodiscard]] bool hold(std::weak_ptr<Stream> stream) noexcept;
  // The program gets to know: what it queues from now on runs on all streams that were added.
  void report() noexcept;

 private:
  std::shared_ptr<const FailureNote> note_;
  std::atomic<std::uint64_t> report_{0};  // its number; 0: the program does not know
  std::mutex mutex_;
  std::vector<std::weak_ptr<Stream>> held_;
};

}  // namespace hccl::device
