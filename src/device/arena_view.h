// SPDX-License-Identifier: Apache-2.0
// Maps the memory file of a device, which may belong to this process or to a peer. Divides the file
// into windows, and maps each window on first use. Records which pages are in this process's page
// tables.
#pragma once

#include "base/file_descriptor.h"
#include "base/hash_index.h"
#include "base/shared_memory.h"
#include "device/address.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace hccl::device {

// The content of a range: data, a hole (no pages are allocated), or both.
enum class Content : std::uint8_t { data, hole, mixed };

class ArenaView {
 public:
  // The longest range that at() guarantees to be contiguous.
  static constexpr std::size_t kLongestSpan = 1u << 20;
  static constexpr std::uint64_t kWindowBytes = 256ull << 20;

  // Returns this process's view of a memory file. All callers share the view. Duplicates `file`.
  // Throws Error(hcclSystemError).
  [[nodiscard]] static std::shared_ptr<ArenaView> open(const FileDescriptor& file);
  ~ArenaView();
  ArenaView(const ArenaView&) = delete;
  ArenaView& operator=(const ArenaView&) = delete;

  // Returns the host address of file offset `offset`, valid for kLongestSpan bytes or to the end of
  // the file, whichever comes first. Maps the window on first use. Throws Error(hcclOutOfMemory).
  [[nodiscard]] std::byte* at(std::uint64_t offset) {
    std::byte* base = windows_[offset / kWindowBytes].base.load(std::memory_order_acquire);
    if (base == nullptr) [[unlikely]] {
      base = map_window(offset / kWindowBytes);
    }
    return base + offset % kWindowBytes;
  }

  // Returns whether every page of the range is known to be allocated and in this process's page
  // tables.
  [[nodiscard]] bool populated(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    const std::uint64_t page = offset / kPageBytes;
    if (bytes == 0 || (offset + bytes - 1) / kPageBytes != page)
      return populated_words(offset, bytes);
    const Window& window = windows_[offset / kWindowBytes];
    const std::uint64_t bit = page % (kWindowBytes / kPageBytes);
    return window.base.load(std::memory_order_acquire) != nullptr &&
           (window.pages[bit / 64].load(std::memory_order_relaxed) >> bit % 64 & 1) != 0;
  }

  // Starting at *position, populates the first slice of the range that is not populated yet, and
  // advances *position past it. A slice is at most kSlice bytes long, so the caller can check for
  // an abort between calls. Allocates the pages of holes even if `write` is false, so do not call
  // it for holes that will only be read. Returns whether *position has reached the end of the
  // range. Throws Error(hcclOutOfMemory).
  [[nodiscard]] bool populate_slice(std::uint64_t offset, std::uint64_t bytes, bool write,
                                    std::uint64_t* position);
  void populate(std::uint64_t offset, std::uint64_t bytes, bool write);

  // Returns whether the range consists of data, a hole or both. Allocates no pages. Call it once
  // for a whole range, not for each piece: the kernel examines every page from the start of the
  // range to the next hole, even beyond the range.
  [[nodiscard]] Content content(std::uint64_t offset, std::uint64_t bytes) const;

  // Returns whether the range is a hole. Makes one system call.
  [[nodiscard]] bool is_hole(std::uint64_t offset, std::uint64_t bytes) const;

  // Returns the offset of the first data at or after `offset`, or the end of the file if there is
  // none. If the kernel cannot distinguish holes from data, everything counts as data.
  [[nodiscard]] std::uint64_t next_data(std::uint64_t offset) const;

  // Marks the pages of the range as not populated.
  void forget(std::uint64_t offset, std::uint64_t bytes) noexcept;
  // Marks the pages of a buffer at `offset` as not populated if the process that owns the device
  // may have replaced them since the last call for that buffer. `serial`: the current serial number
  // of the pages (Placement::serial).
  void follow(std::uint64_t offset, std::uint64_t bytes, std::uint32_t serial) noexcept {
    const std::uint64_t page = offset / 4096;
    const std::uint64_t known = page << 32 | serial;
    Followed& entry = followed_[hash_index(page, kFollowedBits)];
    if (entry.known.load(std::memory_order_relaxed) == known &&
        entry.end.load(std::memory_order_relaxed) >= offset + bytes)
      return;
    forget(offset, bytes);
    entry.known.store(known, std::memory_order_relaxed);
    entry.end.store(offset + bytes, std::memory_order_relaxed);
  }

  [[nodiscard]] const FileDescriptor& file() const noexcept { return file_; }
  // Returns the size of the file.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::uint64_t kSlice = 4ull << 20;
  static constexpr std::size_t kWords = kWindowBytes / 4096 / 64;
  struct Window {
    std::atomic<std::byte*> base{nullptr};
    // One bit per page, created with the mapping.
    std::unique_ptr<std::atomic<std::uint64_t>[]> pages;
  };

  ArenaView(FileDescriptor file, std::uint64_t bytes);
  [[nodiscard]] bool populated_words(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  std::byte* map_window(std::uint64_t index);
  std::size_t mapped_bytes(std::uint64_t index) const noexcept;
  void mark(std::uint64_t offset, std::uint64_t bytes, bool value) noexcept;

  FileDescriptor file_;
  std::uint64_t bytes_;
  std::vector<Window> windows_;
  std::mutex mutex_;
  // The last buffer that follow() recorded in this entry: its page and serial number, and the end
  // of its range.
  struct Followed {
    std::atomic<std::uint64_t> known{0};
    std::atomic<std::uint64_t> end{0};
  };
  static constexpr unsigned kFollowedBits = 10;
  std::array<Followed, 1 << kFollowedBits> followed_{};
};

}  // namespace hccl::device
