// SPDX-License-Identifier: Apache-2.0
#include "completer.h"

#include "work.h"

#include <chrono>
#include <thread>
#include <utility>

#include <unistd.h>

namespace hccl_torch {

namespace {

// How long a callback that waits for something else can keep the end of a group waiting.
constexpr std::chrono::seconds kPatience{5};

// What this thread completes works for; null for threads of others.
thread_local const void* running = nullptr;

}  // namespace

Completer::Completer() : process_(::getpid()) {}

bool Completer::stop() {
  if (::getpid() != process_) return true;
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
  return state_->changed.wait_for(lock, kPatience, [&] { return state_->threads == own(); });
}

bool Completer::drain() {
  if (::getpid() != process_) return true;
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, kPatience, [&] {
    return state_->works.empty() && state_->idle == state_->threads - own();
  });
}

int Completer::own() const { return running == state_.get() ? 1 : 0; }

void Completer::post(c10::intrusive_ptr<Work> work) {
  const std::lock_guard lock(state_->mutex);
  state_->works.push_back(std::move(work));
  if (!state_->has_leader) call_for_leader(state_);
}

void Completer::call_for_leader(const std::shared_ptr<State>& state) {
  if (state->idle > 0) {
    state->changed.notify_all();
  } else {
    std::thread(run, state).detach();
    ++state->threads;
  }
}

void Completer::run(const std::shared_ptr<State>& state) {
  running = state.get();
  std::unique_lock lock(state->mutex);
  for (;;) {
    ++state->idle;
    state->changed.notify_all();
    state->changed.wait(
        lock, [&] { return !state->has_leader && (state->stopping || !state->works.empty()); });
    --state->idle;
    if (state->works.empty()) break;
    c10::intrusive_ptr<Work> work = std::move(state->works.front());
    state->works.pop_front();
    state->has_leader = true;
    lock.unlock();
    work->complete();
    lock.lock();
    state->has_leader = false;
    if (!state->works.empty()) call_for_leader(state);
    lock.unlock();
    work->settle();
    work.reset();  // may be the last reference, and end much else
    lock.lock();
  }
  --state->threads;
  state->changed.notify_all();
}

}  // namespace hccl_torch
