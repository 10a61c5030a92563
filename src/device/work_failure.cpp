// SPDX-License-Identifier: Apache-2.0
// Explains and reports failures.
#include "device/work_failure.h"

#include "device/stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

namespace hccl::device {

namespace {

// The number of held streams (WorkFailure::hold()) for which each WorkFailure reserves memory. A
// failure usually holds only a few streams: its own, and those that wait for the failed work.
constexpr std::size_t kUsualStreams = 8;

std::atomic<std::uint64_t> last_report{0};

// The text that explain_failure() stores for the command running on this thread. Plain storage
// without a destructor, because a thread may end after static objects have been destroyed.
struct Explanation {
  hcclResult_t code;
  std::array<char, 1024> text;
  std::size_t length;
};
constinit thread_local Explanation explanation{};

}  // namespace

void explain_failure(hcclResult_t code, std::string_view text) noexcept {
  explanation.code = code;
  explanation.length = std::min(text.size(), explanation.text.size());
  std::memcpy(explanation.text.data(), text.data(), explanation.length);
}

std::shared_ptr<const FailureNote> take_explanation() noexcept {
  const std::size_t length = std::exchange(explanation.length, 0);
  if (length == 0) return nullptr;
  try {
    return std::make_shared<const FailureNote>(
        FailureNote{explanation.code, std::string(explanation.text.data(), length)});
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

WorkFailure::WorkFailure() { held_.reserve(kUsualStreams); }

std::uint64_t WorkFailure::reports() noexcept {
  return last_report.load(std::memory_order_acquire);
}

bool WorkFailure::hold(std::weak_ptr<Stream> stream) noexcept {
  const std::lock_guard lock(mutex_);
  if (was_reported()) return false;
  try {
    held_.push_back(std::move(stream));
  } catch (const std::bad_alloc&) {
    // Without memory, report() cannot release the stream. The stream is still released if its own
    // Progress is the first to report the failure.
    return true;
  }
  return true;
}

void WorkFailure::report() noexcept {
  std::vector<std::weak_ptr<Stream>> held;
  {
    const std::lock_guard lock(mutex_);
    if (was_reported()) return;
    report_.store(last_report.fetch_add(1, std::memory_order_acq_rel) + 1,
                  std::memory_order_release);
    held.swap(held_);
  }
  for (const std::weak_ptr<Stream>& one : held) {
    if (const auto stream = one.lock()) stream->release(*this);
  }
}

}  // namespace hccl::device
