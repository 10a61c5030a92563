// SPDX-License-Identifier: Apache-2.0
// One failure of queued work: its reason, whether it has been reported to the program, and the
// streams whose work it suppresses.
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

struct FailureNote {
  hcclResult_t code = hcclInternalError;
  std::string text;

  friend bool operator==(const FailureNote&, const FailureNote&) = default;
};

// Stores the reason for the failure that the running command is about to return. Uses no heap, so
// it works when memory is short. Truncates a text of more than 1024 bytes. Called by the command.
void explain_failure(hcclResult_t code, std::string_view text) noexcept;

// Takes the reason that explain_failure() stored for the last command that ran on this thread.
// Returns null if there is none, or if memory is short.
[[nodiscard]] std::shared_ptr<const FailureNote> take_explanation() noexcept;

// One failure, shared by all work that failed because of it: on the stream where it happened, and
// on the streams that waited for that work. Thread safety: any thread.
class WorkFailure {
 public:
  WorkFailure();
  WorkFailure(const WorkFailure&) = delete;
  WorkFailure& operator=(const WorkFailure&) = delete;

  // Returns the number of failures that have been reported to the program.
  [[nodiscard]] static std::uint64_t reports() noexcept;
  // Returns whether this failure was among the first `reports` failures that were reported.
  [[nodiscard]] bool was_reported_by(std::uint64_t reports) const noexcept {
    const std::uint64_t own = report_.load(std::memory_order_acquire);
    return own != 0 && own <= reports;
  }
  [[nodiscard]] bool was_reported() const noexcept {
    return report_.load(std::memory_order_acquire) != 0;
  }

  // Sets the reason; null if it is not known. Call it before the failure is shared.
  void explain(std::shared_ptr<const FailureNote> note) noexcept { note_ = std::move(note); }
  [[nodiscard]] const std::shared_ptr<const FailureNote>& note() const noexcept { return note_; }

  // Adds a stream whose work the failure suppresses. Returns false, and does not add the stream, if
  // the failure has already been reported.
  [[nodiscard]] bool hold(std::weak_ptr<Stream> stream) noexcept;
  // Marks the failure as reported, and releases all streams that were added: the failure does not
  // suppress work that is queued on them from now on.
  void report() noexcept;

 private:
  std::shared_ptr<const FailureNote> note_;
  std::atomic<std::uint64_t> report_{0};  // number of the report; 0 if there was none
  std::mutex mutex_;
  std::vector<std::weak_ptr<Stream>> held_;
};

}  // namespace hccl::device
