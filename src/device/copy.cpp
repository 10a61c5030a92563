// SPDX-License-Identifier: Apache-2.0
// Copies between host memory and memory files. Uses plain loads and stores, which are twice as fast
// as system calls, if can_copy_plainly() finds that they raise no signal. Otherwise uses pread()
// and pwrite(), which return zeros for holes and EFAULT for bad host addresses.
#include "device/copy.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/text.h"
#include "device/accessible_ranges.h"
#include "device/arena.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

namespace hccl::device {
namespace {

constexpr std::size_t kPiece = ArenaView::kLongestSpan;

[[noreturn]] void fail_copy(const char* what, const void* host, std::size_t bytes) {
  const int error = errno;
  if (error == EFAULT) {
    throw Error(hcclInvalidArgument,
                text("cannot ", what, " (", bytes, " bytes at host address ", host,
                     "): it is unmapped, protected or past the end of its "
                     "file; pass memory of this process"));
  }
  throw Error(error == ENOMEM || error == ENOSPC ? hcclOutOfMemory : hcclSystemError,
              text("cannot ", what, " (", bytes, " bytes): ", system_error_text(error), "; ",
                   error == ENOSPC ? "free memory on this host"
                                   : advice_on(error, "report this as a bug in hccl")));
}

// If the caller has not checked the host's pages, copies shorter than this use pread() or pwrite(),
// because the system call costs less than the check.
constexpr std::size_t kLeastCheckedCopy = 32 << 10;

// Returns whether to copy with plain loads and stores, which must not raise a signal on either side
// of the copy.
bool can_copy_plainly(HostAccess access, HostCheck check, const void* host, const ArenaView& view,
                      std::uint64_t offset, std::size_t bytes) {
  if (check == HostCheck::by_copy && bytes < kLeastCheckedCopy) return false;
  if (!view.populated(offset, bytes)) return false;
  const auto address = reinterpret_cast<std::uint64_t>(host);
  AccessibleRanges& ranges = AccessibleRanges::of_this_thread(access);
  if (check == HostCheck::by_copy) ranges.recheck(address, bytes);
  return ranges.admits(address, bytes);
}

// Calls copy(address, done, piece) for each contiguous piece of a range, with the host address of
// the piece, the number of bytes before it, and its length.
template <class Copy>
void for_each_span(ArenaView& view, std::uint64_t offset, std::size_t bytes, Copy copy) {
  for (std::size_t done = 0; done < bytes; done += kPiece)
    copy(view.at(offset + done), done, std::min(kPiece, bytes - done));
}

// Calls transfer(done) until all bytes have been moved. transfer() moves bytes from position `done`
// onwards, and returns their number as pread() does. Throws Error if transfer() fails.
template <class Transfer>
void move_all(std::size_t bytes, const char* what, const void* host, Transfer transfer) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t moved = transfer(done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) {
      const auto* const first = static_cast<const std::byte*>(host);
      fail_copy(what, host == nullptr ? nullptr : first + done, bytes - done);
    }
    done += static_cast<std::size_t>(moved);
  }
}

}  // namespace

HostCheck recheck_host_buffer(std::uint64_t address, std::uint64_t bytes, HostAccess access) {
  AccessibleRanges::of_this_thread(access).recheck_once(address, bytes);
  return HostCheck::by_caller;
}

void populate_for_copies(Arena& arena, DeviceAddress address, std::size_t bytes) {
  ArenaView& view = *arena.view();
  const std::uint64_t offset = arena.file_offset(address);
  if (!view.populated(offset, bytes)) view.populate(offset, bytes, true);
}

void copy_to_device(Arena& arena, DeviceAddress destination, const void* source, std::size_t bytes,
                    HostCheck check) {
  ArenaView& view = *arena.view();
  const int file = view.file().get();
  const std::uint64_t offset = arena.file_offset(destination);
  const auto* from = static_cast<const std::byte*>(source);
  if (can_copy_plainly(HostAccess::read, check, source, view, offset, bytes)) {
    for_each_span(view, offset, bytes, [&](std::byte* to, std::size_t done, std::size_t piece) {
      std::memcpy(to, from + done, piece);
    });
    return;
  }
  move_all(bytes, "copy from the host", source, [&](std::size_t done) {
    return pwrite(file, from + done, bytes - done, static_cast<off_t>(offset + done));
  });
}

void copy_to_host(Arena& arena, void* destination, DeviceAddress source, std::size_t bytes,
                  HostCheck check) {
  ArenaView& view = *arena.view();
  const int file = view.file().get();
  const std::uint64_t offset = arena.file_offset(source);
  auto* to = static_cast<std::byte*>(destination);
  if (can_copy_plainly(HostAccess::write, check, destination, view, offset, bytes)) {
    for_each_span(view, offset, bytes, [&](std::byte* from, std::size_t done, std::size_t piece) {
      std::memcpy(to + done, from, piece);
    });
    return;
  }
  move_all(bytes, "copy to the host", destination, [&](std::size_t done) {
    return pread(file, to + done, bytes - done, static_cast<off_t>(offset + done));
  });
}

void copy_on_device(Arena& arena, DeviceAddress destination, DeviceAddress source,
                    std::size_t bytes) {
  ArenaView& view = *arena.view();
  const std::uint64_t to = arena.file_offset(destination);
  const std::uint64_t from = arena.file_offset(source);
  // If the ranges overlap, copies pieces through a buffer, in the direction in which each piece is
  // read before it is overwritten. Otherwise reads populated pages in place.
  const bool backwards = to > from && to < from + bytes;
  const bool overlaps = to < from + bytes && from < to + bytes;
  std::vector<std::byte> buffer;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(kPiece, bytes - done);
    const std::size_t at = backwards ? bytes - done - piece : done;
    const std::byte* data = nullptr;
    if (!overlaps && view.populated(from + at, piece)) {
      data = view.at(from + at);
    } else {
      buffer.resize(std::min(kPiece, bytes));
      data = buffer.data();
      move_all(piece, "copy on the device", nullptr, [&](std::size_t part) {
        return pread(view.file().get(), buffer.data() + part, piece - part,
                     static_cast<off_t>(from + at + part));
      });
    }
    move_all(piece, "copy on the device", nullptr, [&](std::size_t part) {
      return pwrite(view.file().get(), data + part, piece - part,
                    static_cast<off_t>(to + at + part));
    });
    done += piece;
  }
}

void fill(Arena& arena, DeviceAddress destination, std::uint32_t pattern, std::size_t width,
          std::size_t bytes) {
  ArenaView& view = *arena.view();
  const std::uint64_t offset = arena.file_offset(destination);
  std::vector<std::byte> block(std::min<std::size_t>(bytes, 64 << 10) / width * width);
  for (std::size_t at = 0; at < block.size(); at += width)
    std::memcpy(block.data() + at, &pattern, width);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(block.size(), bytes - done);
    move_all(piece, "fill device memory", nullptr, [&](std::size_t part) {
      return pwrite(view.file().get(), block.data() + part, piece - part,
                    static_cast<off_t>(offset + done + part));
    });
    done += piece;
  }
}

}  // namespace hccl::device
