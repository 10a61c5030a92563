// SPDX-License-Identifier: Apache-2.0
#include "completer.h"

#include "work.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include <unistd.h>

namespace hccl_torch {

namespace {

// The state of the completer that started this thread, or null on other threads.
thread_local const void* running = nullptr;

std::atomic<bool (*)()> condition{nullptr};

}  // namespace

Completer::Completer() : process_(::getpid()) {}

bool Completer::stop() {
  if (::getpid() != process_) return true;
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
  return state_->changed.wait_for(lock, kDrainTimeout, [&] { return state_->threads == own(); });
}

void Completer::abandon() {
  const std::lock_guard lock(state_->mutex);
  state_->abandoned = true;
}

void Completer::set_condition(bool (*can_run)()) { condition = can_run; }

bool Completer::drain(std::chrono::milliseconds timeout) {
  if (::getpid() != process_) return true;
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, timeout, [&] {
    return state_->lanes.empty() && state_->idle == state_->threads - own();
  });
}

int Completer::own() const { return running == state_.get() ? 1 : 0; }

void Completer::post(c10::intrusive_ptr<Work> work) {
  const void* const lane = work->lane();
  const std::lock_guard lock(state_->mutex);
  state_->lanes[lane].works.push_back(std::move(work));
  if (find_lane(*state_) != state_->lanes.end()) call_for_thread(state_);
}

std::map<const void*, Completer::Lane>::iterator Completer::find_lane(State& state) {
  return std::find_if(state.lanes.begin(), state.lanes.end(),
                      [](const auto& entry) { return !entry.second.has_waiter; });
}

void Completer::call_for_thread(const std::shared_ptr<State>& state) {
  const auto lanes = std::ranges::count_if(
      state->lanes, [](const auto& entry) { return !entry.second.has_waiter; });
  if (lanes <= state->idle) {
    state->changed.notify_all();
  } else {
    std::thread(run, state).detach();
    ++state->threads;
    ++state->idle;
  }
}

// Dropping the last reference to the Work may destroy many other objects, including Python objects,
// so the caller must not hold the lock.
void Completer::complete_future(c10::intrusive_ptr<Work> work, bool abandoned) {
  bool (*const can_run)() = condition;
  if (abandoned || (can_run != nullptr && !can_run())) {
    static_cast<void>(work.release());
  } else {
    work->complete_future();
  }
}

void Completer::run(const std::shared_ptr<State>& state) {
  running = state.get();
  std::unique_lock lock(state->mutex);
  for (;; ++state->idle) {
    state->changed.notify_all();
    state->changed.wait(lock, [&] {
      return find_lane(*state) != state->lanes.end() || (state->stopping && state->lanes.empty());
    });
    --state->idle;
    const auto lane = find_lane(*state);
    if (lane == state->lanes.end()) break;
    c10::intrusive_ptr<Work> work = lane->second.works.front();
    lane->second.has_waiter = true;
    lock.unlock();
    work->complete();
    lock.lock();
    lane->second.has_waiter = false;
    lane->second.works.pop_front();
    if (lane->second.works.empty()) {
      state->lanes.erase(lane);
    } else {
      call_for_thread(state);
    }
    const bool abandoned = state->abandoned;
    lock.unlock();
    complete_future(std::move(work), abandoned);
    lock.lock();
  }
  --state->threads;
  state->changed.notify_all();
}

}  // namespace hccl_torch
