// SPDX-License-Identifier: Apache-2.0
#include "unfinished_works.h"

#include "communicator.h"
#include "work.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace hccl_torch {

namespace {

using Clock = std::chrono::steady_clock;

// The longest wait for an aborted communicator's operations, which normally end immediately.
constexpr std::chrono::milliseconds kAbortTime{2000};

// Returns the time until the deadline, or 0 after it.
std::chrono::milliseconds time_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

}  // namespace

void UnfinishedWorks::add(c10::intrusive_ptr<Work> work) {
  const std::lock_guard lock(mutex_);
  if (work->uses_device()) DeviceWorks::instance().count(1);
  drop_expected(*work);
  works_.push_back(std::move(work));
}

void UnfinishedWorks::expect(c10::intrusive_ptr<Work> work) {
  const std::lock_guard lock(mutex_);
  DeviceWorks::instance().count(1);
  expected_.push_back(std::move(work));
}

void UnfinishedWorks::forget(const Work& work) {
  const std::lock_guard lock(mutex_);
  drop_expected(work);
}

void UnfinishedWorks::drop_expected(const Work& work) {
  const auto found =
      std::find_if(expected_.begin(), expected_.end(),
                   [&](const c10::intrusive_ptr<Work>& one) { return one.get() == &work; });
  if (found == expected_.end()) return;
  expected_.erase(found);
  DeviceWorks::instance().count(-1);
}

c10::intrusive_ptr<Work> UnfinishedWorks::first_that_has_run() {
  const std::lock_guard lock(mutex_);
  if (works_.empty() || !works_.front()->has_run()) return {};
  return works_.front();
}

void UnfinishedWorks::remove_first(const Work& work) {
  const std::lock_guard lock(mutex_);
  if (works_.empty() || works_.front().get() != &work) return;
  if (work.uses_device()) DeviceWorks::instance().count(-1);
  works_.pop_front();
}

void UnfinishedWorks::end_those_before(const Work& work) {
  std::vector<c10::intrusive_ptr<Work>> before;
  {
    const std::lock_guard lock(mutex_);
    for (const c10::intrusive_ptr<Work>& one : works_) {
      if (one.get() == &work) break;
      if (one->has_run() && !one->has_ended()) before.push_back(one);
    }
  }
  for (const c10::intrusive_ptr<Work>& one : before) one->end_alone();
}

// Drops an operation only after its steps have run. Until then, later operations on its memory find
// it here and wait for it.
void UnfinishedWorks::reap() {
  while (const c10::intrusive_ptr<Work> work = first_that_has_run()) {
    work->complete();
    remove_first(*work);
  }
}

std::vector<c10::intrusive_ptr<Work>> UnfinishedWorks::find_writers_of(const MemoryRange& range,
                                                                       bool also_without_step) {
  std::vector<c10::intrusive_ptr<Work>> writers;
  const std::lock_guard lock(mutex_);
  for (const c10::intrusive_ptr<Work>& work : works_) {
    if (work->writes_to(range, also_without_step)) writers.push_back(work);
  }
  return writers;
}

void UnfinishedWorks::find_users_of(const MemoryRange& range,
                                    std::vector<c10::intrusive_ptr<Work>>& users) {
  const std::lock_guard lock(mutex_);
  for (const c10::intrusive_ptr<Work>& work : works_) {
    if (work->uses(range)) users.push_back(work);
  }
  for (const c10::intrusive_ptr<Work>& work : expected_) {
    if (work->uses(range)) users.push_back(work);
  }
}

void UnfinishedWorks::find_others_before(const DeviceUse& use, const void* stream,
                                         std::vector<c10::intrusive_ptr<Work>>& users) {
  const std::lock_guard lock(mutex_);
  for (const c10::intrusive_ptr<Work>& work : works_) {
    if (work->lane() != stream && work->conflicts_with(use)) users.push_back(work);
  }
  for (const c10::intrusive_ptr<Work>& work : expected_) {
    if (work->conflicts_with(use)) users.push_back(work);
  }
}

bool UnfinishedWorks::await_end(std::chrono::milliseconds timeout) {
  std::deque<c10::intrusive_ptr<Work>> works;
  {
    const std::lock_guard lock(mutex_);
    works = works_;
  }
  std::erase_if(works, [](const c10::intrusive_ptr<Work>& work) { return work->is_part(); });
  for (const c10::intrusive_ptr<Work>& work : works) {
    if (!work->is_receive()) work->complete();
  }
  const auto deadline = Clock::now() + timeout;
  return std::ranges::all_of(works, [&](const c10::intrusive_ptr<Work>& work) {
    return work->ends_within(time_until(deadline));
  });
}

void UnfinishedWorks::close(Communicator& communicator) {
  reap();
  std::deque<c10::intrusive_ptr<Work>> works;
  {
    const std::lock_guard lock(mutex_);
    works.swap(works_);
    DeviceWorks::instance().count(-static_cast<int>(expected_.size()));
    expected_.clear();
    for (const c10::intrusive_ptr<Work>& work : works) {
      if (work->uses_device()) DeviceWorks::instance().count(-1);
    }
  }
  if (works.empty()) return;
  communicator.abort();
  const auto deadline = Clock::now() + kAbortTime;
  for (c10::intrusive_ptr<Work>& work : works) {
    if (!work->ends_within(time_until(deadline))) work.release();
  }
}

}  // namespace hccl_torch
