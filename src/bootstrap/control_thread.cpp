// SPDX-License-Identifier: Apache-2.0
// Runs the event loop in a thread with a small stack and all signals blocked.
#include "bootstrap/control_thread.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/log.h"
#include "base/process.h"
#include "base/quiet_thread.h"
#include "base/text.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <pthread.h>

namespace hccl::bootstrap {
namespace {

constexpr std::size_t kStackSize = std::size_t{512} << 10;
// The maximum time that process exit waits for the control thread. Without this limit, a callback
// that waits for a lock held by the exiting thread would cause a deadlock.
constexpr std::chrono::milliseconds kExitPatience{200};

// Allocates from the memory of a ReservedPost.
template <class T>
struct RoomAllocator {
  using value_type = T;  // NOLINT(readability-identifier-naming): the standard's name

  explicit RoomAllocator(ReservedPost& reserved_in) noexcept : reserved(&reserved_in) {}
  template <class Other>
  RoomAllocator(const RoomAllocator<Other>& other) noexcept : reserved(other.reserved) {}

  [[nodiscard]] T* allocate(std::size_t) noexcept {
    static_assert(sizeof(T) <= ReservedPost::kBytes && alignof(T) <= alignof(std::max_align_t));
    return static_cast<T*>(reserved->room());
  }
  void deallocate(T*, std::size_t) noexcept {}
  template <class Other>
  [[nodiscard]] bool operator==(const RoomAllocator<Other>& other) const noexcept {
    return reserved == other.reserved;
  }

  ReservedPost* reserved;
};

struct ReservedHandler {
  // NOLINTNEXTLINE(readability-identifier-naming): the standard's name
  using allocator_type = RoomAllocator<std::byte>;

  [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator; }
  void operator()() const { task(owner.get()); }

  allocator_type allocator;
  std::shared_ptr<void> owner;
  void (*task)(void*);
};

}  // namespace

struct ControlThread::State {
  EventLoop loop;
  std::mutex mutex;
  std::condition_variable ended;
  bool running = false;
  bool stopping = false;
  bool exiting = false;
  std::atomic<bool> has_id{false};
  std::atomic<pthread_t> id{};
};

ControlThread& ControlThread::instance() {
  static auto* const thread = new ControlThread;
  return *thread;
}

ControlThread::ControlThread() : state_(new State) {}

void ControlThread::start() {
  if (is_forked_child()) {
    throw Error(hcclInvalidUsage,
                "this process was forked from one that used hccl; start it with exec instead");
  }
  install_fork_guard();
  std::unique_lock lock(state_->mutex);
  state_->ended.wait(lock, [&] { return !state_->stopping; });
  if (state_->running) return;
  if (state_->exiting) throw Error(hcclInvalidUsage, "the process is exiting");
  static const bool registered = std::atexit(&ControlThread::stop_at_exit) == 0;
  static_cast<void>(registered);
  state_->loop.open();
  state_->loop.context().restart();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackSize);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t id{};
  const int status = [&] {
    const SignalBlock block;
    return pthread_create(&id, &attributes, &ControlThread::run, this);
  }();
  pthread_attr_destroy(&attributes);
  if (status != 0) {
    throw Error(hcclSystemError, text("cannot start the control thread: ",
                                      system_error_text(status), "; ", advice_on_thread(status)));
  }
  state_->running = true;
}

void ControlThread::stop() noexcept {
  if (is_forked_child()) return;
  std::unique_lock lock(state_->mutex);
  if (!state_->running) return;
  state_->loop.context().stop();
  if (is_current()) return;
  state_->stopping = true;
  const auto gone = [&] { return !state_->running; };
  if (state_->exiting) {
    state_->ended.wait_for(lock, kExitPatience, gone);
  } else {
    state_->ended.wait(lock, gone);
  }
  state_->stopping = false;
  state_->ended.notify_all();
}

void ControlThread::post(std::function<void()> task) {
  if (is_forked_child()) return;
  asio::post(state_->loop.context(), std::move(task));
}

void ControlThread::post(ReservedPost& reserved, std::shared_ptr<void> owner,
                         void (*task)(void* owner)) noexcept {
  if (is_forked_child()) return;
  asio::post(state_->loop.context(),
             ReservedHandler{RoomAllocator<std::byte>(reserved), std::move(owner), task});
}

bool ControlThread::is_current() const noexcept {
  return state_->has_id.load(std::memory_order_acquire) &&
         pthread_equal(state_->id.load(std::memory_order_relaxed), pthread_self()) != 0;
}

EventLoop& ControlThread::loop() noexcept { return state_->loop; }

void* ControlThread::run(void* self) {
  State& state = *static_cast<ControlThread*>(self)->state_;
  pthread_setname_np(pthread_self(), "hccl-control");
  state.id.store(pthread_self(), std::memory_order_relaxed);
  state.has_id.store(true, std::memory_order_release);
  for (bool again = true; again;) {
    again = false;
    try {
      state.loop.context().run();
    } catch (const std::exception& error) {
      // One connection may throw for lack of memory or descriptors. The others must continue.
      log(LogLevel::error, "control", "a task of the control thread failed: ", error.what());
      again = true;
    }
  }
  state.has_id.store(false, std::memory_order_release);
  const std::lock_guard lock(state.mutex);
  state.running = false;
  state.ended.notify_all();
  return nullptr;
}

void ControlThread::stop_at_exit() {
  if (is_forked_child()) return;
  ControlThread& thread = instance();
  {
    const std::lock_guard lock(thread.state_->mutex);
    thread.state_->exiting = true;
  }
  thread.stop();
}

}  // namespace hccl::bootstrap
