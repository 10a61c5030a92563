// SPDX-License-Identifier: Apache-2.0
// Asks the kernel whether host pages are mapped, and what this process may do with them.
#include "device/host_memory.h"

#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/text.h"
#include "device/accessible_ranges.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <optional>
#include <span>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

namespace hccl::device {
namespace {

bool is_mapped(std::uint64_t address) {
  const std::uint64_t page = system_page_bytes();
  unsigned char resident = 0;
  return mincore(reinterpret_cast<void*>(address / page * page), page, &resident) == 0 ||
         errno != ENOMEM;
}

// Single bytes of memory, one for each of some pages. Fewer than PIPE_BUF, so a pipe takes all of
// them or none.
constexpr std::size_t kMostBytes = 1024;
using Bytes = std::span<const iovec>;

// Moves single bytes out of memory and back: the kernel says EFAULT where an instruction would
// raise a signal.
class HostProbe {
 public:
  HostProbe() {
    std::array<int, 2> ends{-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
      throw Error(hcclSystemError,
                  text("cannot make a pipe: ", system_error_text(errno), "; raise ulimit -n"));
    }
    out_ = FileDescriptor(ends[0]);
    in_ = FileDescriptor(ends[1]);
  }

  // False where a byte cannot be accessed; then the probe is of no more use.
  [[nodiscard]] bool access(Bytes bytes, HostAccess access) const {
    if (!moved_all(bytes, [&](Bytes rest) {
          return writev(in_.get(), rest.data(), static_cast<int>(rest.size()));
        }))
      return false;
    if (access == HostAccess::write) {
      return moved_all(bytes, [&](Bytes rest) {
        return readv(out_.get(), rest.data(), static_cast<int>(rest.size()));
      });
    }
    std::array<std::byte, kMostBytes> dropped;
    return moved_all(bytes, [&](Bytes rest) {
      return read(out_.get(), dropped.data(), std::min(dropped.size(), rest.size()));
    });
  }

 private:
  template <class Move>
  [[nodiscard]] static bool moved_all(Bytes rest, Move move) {
    while (!rest.empty()) {
      const ssize_t count = move(rest);
      if (count > 0) {
        rest = rest.subspan(static_cast<std::size_t>(count));
      } else if (errno != EINTR) {
        return false;
      }
    }
    return true;
  }

  FileDescriptor out_, in_;
};

// Each thread's own, made at its first call on host memory.
thread_local std::optional<HostProbe> probe;

bool can_access(Bytes bytes, HostAccess access) {
  if (!probe) probe.emplace();
  if (probe->access(bytes, access)) return true;
  probe.reset();
  return false;
}

}  // namespace

std::uint64_t system_page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void check_host_range(std::uint64_t address, std::uint64_t bytes, const char* what) {
  if (address == 0)
    throw Error(hcclInvalidArgument, text(what, " is null; pass device or host memory"));
  const bool wraps = bytes > std::numeric_limits<std::uint64_t>::max() - address;
  if (!wraps && is_mapped(address) && (bytes <= 1 || is_mapped(address + bytes - 1))) return;
  throw Error(hcclInvalidArgument,
              text(what, " 0x", std::hex, address, std::dec, " + ", bytes,
                   " bytes is neither in device memory nor mapped host memory; pass an address "
                   "from synDeviceMalloc, or memory of this process"));
}

void require_host_access(std::uint64_t address, std::uint64_t bytes, HostAccess access,
                         const char* what) {
  if (bytes == 0) return;
  AccessibleRanges& ranges = AccessibleRanges::of_this_thread(access);
  ranges.recheck(address, bytes);
  if (ranges.admits(address, bytes)) return;
  std::array<iovec, kMostBytes> pages;
  const std::uint64_t end = address + bytes;
  for (std::uint64_t at = address; at < end;) {
    std::size_t count = 0;
    for (; at < end && count < pages.size();
         at = (at / system_page_bytes() + 1) * system_page_bytes())
      pages[count++] = {reinterpret_cast<void*>(at), 1};
    const Bytes tried(pages.data(), count);
    if (can_access(tried, access)) continue;
    const auto bad = std::ranges::find_if(tried, [&](const iovec& page) {
      return !can_access({&page, 1}, access);
    });
    if (bad == tried.end()) continue;  // it has been mapped meanwhile
    throw Error(
        hcclInvalidArgument,
        text(what, " 0x", std::hex, address, std::dec, " + ", bytes, " bytes: host address ",
             bad->iov_base, " cannot be ", access == HostAccess::read ? "read" : "written",
             ": not mapped, protected or past the end of its file; pass memory of this "
             "process"));
  }
}

}  // namespace hccl::device
