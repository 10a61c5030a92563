// SPDX-License-Identifier: Apache-2.0
// Waits for all watched streams together, and calls the program's callbacks.
#include "device/notifier.h"

#include "base/process.h"
#include "base/quiet_thread.h"
#include "device/stream.h"
#include "device/verified_buffers.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace hccl::device {
namespace {

using namespace std::chrono_literals;

// Limits the wait when the process exits: a callback may wait for a lock that the exiting thread
// holds.
constexpr auto kExitTimeout = 200ms;

constinit thread_local bool is_notifier = false;

}  // namespace

Notifier& Notifier::instance() {
  static auto* const notifier = new Notifier;
  return *notifier;
}

void Notifier::start() {
  if (running_ || exiting_) return;
  static const int registered = std::atexit(&Notifier::stop_at_exit);
  static_cast<void>(registered);
  start_quiet_thread([this] { run(); }).detach();
  running_ = true;
}

Notifier::Watch& Notifier::watch_of(Stream& stream) {
  const auto found = std::ranges::find(watches_, stream.progress(), &Watch::progress);
  if (found != watches_.end()) return *found;
  watches_.push_back({stream.progress(), stream.weak_from_this(), {}});
  return watches_.back();
}

void Notifier::add(Stream& stream, const Notification& notification) {
  {
    const std::lock_guard lock(mutex_);
    start();
    auto& pending = watch_of(stream).pending;
    const auto place =
        std::ranges::upper_bound(pending, notification.up_to, {}, &Notification::up_to);
    pending.insert(place, notification);
    stream.progress()->change_notifications(1);
  }
  bell_.ring();
  stream.hurry();
}

bool Notifier::take_due(Due& due) {
  const std::lock_guard lock(mutex_);
  if (exiting_) return false;
  for (std::size_t looked = 0; looked < watches_.size(); ++looked) {
    turn_ = (turn_ + 1) % watches_.size();
    Watch& watch = watches_[turn_];
    if (watch.pending.empty() || !watch.progress->reached(watch.pending.front().up_to)) continue;
    due = {watch.progress, watch.stream, watch.pending.front()};
    watch.pending.pop_front();
    watch.progress->change_notifications(-1);
    return true;
  }
  return false;
}

void Notifier::give(const Due& due) {
  const Notification& what = due.notification;
  const auto failure = due.progress->failure_in(what.after, what.up_to);
  HostEpoch::advance();
  if (failure == nullptr) return what.callback(hcclSuccess, "", what.argument);
  const auto stream = due.stream.lock();
  due.progress->report(what.after, what.up_to, stream ? stream->pushed() : what.up_to);
  what.callback(failure->code, failure->text.c_str(), what.argument);
}

void Notifier::give_all() {
  Due due;
  while (take_due(due)) give(due);
}

bool Notifier::has_work() {
  const std::lock_guard lock(mutex_);
  if (stopping_ || exiting_) return true;
  std::erase_if(watches_, [](const Watch& watch) { return watch.pending.empty(); });
  bool due = false;
  for (const Watch& watch : watches_) {
    const std::uint64_t first = watch.pending.front().up_to;
    watch.progress->ask_to_be_woken_at(first);
    due = due || watch.progress->reached(first);
  }
  return due;
}

bool Notifier::ends() {
  const std::lock_guard lock(mutex_);
  if (!stopping_ && !exiting_) return false;
  running_ = false;
  stopping_ = false;
  ++ends_;
  ended_.notify_all();
  return true;
}

void Notifier::run() {
  pthread_setname_np(pthread_self(), "hccl-notify");
  is_notifier = true;
  for (;;) {
    give_all();
    if (ends()) return;
    bell_.sleep(1h, [this] { return has_work(); });
  }
}

void Notifier::stop() {
  if (is_notifier) return;
  std::unique_lock lock(mutex_);
  if (!running_) return;
  stopping_ = true;
  bell_.ring_always();
  const std::uint64_t seen = ends_;
  const auto gone = [&] { return ends_ != seen; };
  if (exiting_) {
    ended_.wait_for(lock, kExitTimeout, gone);
  } else {
    ended_.wait(lock, gone);
  }
}

void Notifier::stop_at_exit() {
  if (is_forked_child()) return;
  Notifier& notifier = instance();
  {
    const std::lock_guard lock(notifier.mutex_);
    notifier.exiting_ = true;
  }
  notifier.stop();
}

}  // namespace hccl::device
