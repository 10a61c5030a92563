// SPDX-License-Identifier: Apache-2.0
// Opaque handles for the C API. A handle consists of a kind, an index and a generation, and is
// never a pointer. Therefore a handle of the wrong kind, or one whose object has been destroyed,
// causes an error instead of undefined behaviour. A look-up takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <sched.h>

namespace hccl {

// The kind of object that a handle identifies. The low four bits of a handle hold its kind.
enum class HandleKind : std::uint8_t { stream = 1, event, communicator };

template <class T>
class HandleTable {
  struct Entry {
    // generation << 32 | alive << 31 | holds << 16 | pins
    std::atomic<std::uint64_t> state{0};
    std::shared_ptr<T> object;
  };
  static constexpr std::uint64_t kHold = 1ull << 16;
  static constexpr std::uint64_t kPins = kHold - 1;
  static constexpr std::uint64_t kAlive = 1ull << 31;
  static constexpr std::uint64_t kGeneration = 1ull << 32;
  static constexpr std::size_t kChunk = 1024;
  static constexpr std::size_t kChunks = 1024;

 public:
  // Keeps an object alive while a call uses it. remove() waits until all pins are released.
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
    Pin& operator=(Pin&& other) noexcept {
      std::swap(slot_, other.slot_);
      return *this;
    }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    ~Pin() {
      if (slot_ != nullptr) slot_->state.fetch_sub(1, std::memory_order_release);
    }
    explicit operator bool() const noexcept { return slot_ != nullptr; }
    T* operator->() const noexcept { return slot_->object.get(); }
    T& operator*() const noexcept { return *slot_->object; }
    [[nodiscard]] const std::shared_ptr<T>& shared() const noexcept { return slot_->object; }

   private:
    friend class HandleTable;
    explicit Pin(Entry* slot) noexcept : slot_(slot) {}
    Entry* slot_ = nullptr;
  };

  explicit HandleTable(HandleKind kind) : kind_(static_cast<std::uint64_t>(kind)) {}
  ~HandleTable() {
    for (const auto& chunk : chunks_) delete chunk.load();
  }
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // Returns a new handle to the object, or 0 if a million handles are in use.
  [[nodiscard]] std::uint64_t insert(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    std::size_t index = 0;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else {
      if (used_ == kChunk * kChunks) return 0;
      if (free_.capacity() <= used_) free_.reserve(2 * used_ + 1);  // let_go() must not allocate
      index = used_;
      if (index % kChunk == 0) chunks_[index / kChunk].store(new Chunk, std::memory_order_release);
      ++used_;
    }
    Entry& slot = existing(index);
    slot.object = std::move(object);
    const std::uint64_t state =
        slot.state.fetch_add(kGeneration + kAlive, std::memory_order_acq_rel) + kGeneration +
        kAlive;
    return handle_of(state, index);
  }

  [[nodiscard]] Pin pin(std::uint64_t handle) noexcept {
    Entry* slot = find(handle);
    if (slot == nullptr) return {};
    const std::uint64_t state = slot->state.fetch_add(1, std::memory_order_acquire);
    Pin pinned(slot);
    if (!is_alive(state, handle)) return {};
    return pinned;
  }

  // Keeps an object alive like a pin, but remove() does not wait for holds. Used by groups, which
  // keep objects across several API calls. The table must outlive the hold.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept
        : table_(std::exchange(other.table_, nullptr)),
          handle_(other.handle_),
          slot_(other.slot_) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(handle_, other.handle_);
      std::swap(slot_, other.slot_);
      return *this;
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() {
      if (table_ != nullptr) table_->let_go(*slot_, handle_);
    }
    explicit operator bool() const noexcept { return table_ != nullptr; }
    T* operator->() const noexcept { return slot_->object.get(); }
    T& operator*() const noexcept { return *slot_->object; }
    [[nodiscard]] const std::shared_ptr<T>& shared() const noexcept { return slot_->object; }
    // Returns whether `handle` is the held handle and its object has not been removed.
    [[nodiscard]] bool is(std::uint64_t handle) const noexcept {
      return table_ != nullptr && handle_ == handle &&
             is_alive(slot_->state.load(std::memory_order_acquire), handle);
    }

   private:
    friend class HandleTable;
    Hold(HandleTable* table, std::uint64_t handle, Entry* slot) noexcept
        : table_(table), handle_(handle), slot_(slot) {}
    HandleTable* table_ = nullptr;
    std::uint64_t handle_ = 0;
    Entry* slot_ = nullptr;
  };

  [[nodiscard]] Hold hold(std::uint64_t handle) noexcept {
    Entry* slot = find(handle);
    if (slot == nullptr) return {};
    std::uint64_t state = slot->state.load(std::memory_order_acquire);
    do {
      if (!is_alive(state, handle)) return {};
    } while (!slot->state.compare_exchange_weak(state, state + kHold, std::memory_order_acquire));
    return {this, handle, slot};
  }

  // Removes the object from the table: from now on, look-ups of the handle fail. Blocks until all
  // pins are released. Returns the object, or null if the handle is not alive.
  [[nodiscard]] std::shared_ptr<T> remove(std::uint64_t handle) {
    Entry* slot = find(handle);
    if (slot == nullptr) return nullptr;
    std::uint64_t state = slot->state.load(std::memory_order_acquire);
    do {
      if (!is_alive(state, handle)) return nullptr;
    } while (!slot->state.compare_exchange_weak(state, (state & ~kAlive) + kHold,
                                                std::memory_order_acq_rel));
    const Hold own(this, handle, slot);
    while ((slot->state.load(std::memory_order_acquire) & kPins) != 0) sched_yield();
    return slot->object;
  }

  // Returns every handle that is alive.
  [[nodiscard]] std::vector<std::uint64_t> handles() {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> alive;
    for (std::size_t index = 0; index < used_; ++index) {
      const std::uint64_t state = existing(index).state.load(std::memory_order_acquire);
      if ((state & kAlive) != 0) alive.push_back(handle_of(state, index));
    }
    return alive;
  }

 private:
  using Chunk = std::array<Entry, kChunk>;

  // Releases a hold. If it was the last hold on a removed object, frees the slot for another
  // object.
  void let_go(Entry& slot, std::uint64_t handle) noexcept {
    const std::uint64_t before = slot.state.fetch_sub(kHold, std::memory_order_acq_rel);
    if ((before & (kAlive | (kAlive - kHold))) != kHold) return;
    const std::shared_ptr<T> object =
        std::move(slot.object);  // destroyed after the lock is released
    const std::lock_guard lock(mutex_);
    free_.push_back(index_of(handle));
  }

  [[nodiscard]] std::uint64_t handle_of(std::uint64_t state, std::size_t index) const noexcept {
    return (state & ~(kGeneration - 1)) | (index + 1) << 4 | kind_;
  }
  static std::size_t index_of(std::uint64_t handle) noexcept {
    return ((handle & 0xffffffffu) >> 4) - 1;  // the null handle gives a huge index
  }
  static bool is_alive(std::uint64_t state, std::uint64_t handle) noexcept {
    return (state & kAlive) != 0 && state >> 32 == handle >> 32;
  }
  // Returns the slot at an index that insert() has used.
  Entry& existing(std::size_t index) noexcept {
    return (*chunks_[index / kChunk].load(std::memory_order_acquire))[index % kChunk];
  }
  // Returns the slot at the handle's index, or null if there is none. Ignores the generation.
  Entry* find(std::uint64_t handle) noexcept {
    const std::size_t index = index_of(handle);
    if (index >= kChunk * kChunks || (handle & 15) != kind_) return nullptr;
    Chunk* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[index % kChunk];
  }

  const std::uint64_t kind_;
  std::array<std::atomic<Chunk*>, kChunks> chunks_{};
  std::mutex mutex_;
  std::vector<std::size_t> free_;
  std::size_t used_ = 0;
};

}  // namespace hccl
