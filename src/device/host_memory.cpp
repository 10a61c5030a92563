// SPDX-License-Identifier: Apache-2.0
// Asks the kernel whether host pages are mapped, and whether this process may read or write them.
#include "device/host_memory.h"

#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/retry.h"
#include "base/text.h"
#include "device/accessible_ranges.h"
#include "device/verified_buffers.h"

#include <array>
#include <cerrno>
#include <limits>
#include <optional>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hccl::device {
namespace {

bool is_mapped(std::uint64_t address) {
  const std::uint64_t page = system_page_bytes();
  unsigned char resident = 0;
  return mincore(reinterpret_cast<void*>(address / page * page), page, &resident) == 0 ||
         errno != ENOMEM;
}

// Probes an address by writing the byte at that address to a pipe: the kernel returns EFAULT where
// a load would raise a signal.
class ReadProbe {
 public:
  ReadProbe() {
    std::array<int, 2> ends{-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
      throw Error(hcclSystemError,
                  text("cannot create a pipe: ", system_error_text(errno), "; raise ulimit -n"));
    }
    out_ = FileDescriptor(ends[0]);
    in_ = FileDescriptor(ends[1]);
  }

  // Returns whether the byte can be read.
  [[nodiscard]] bool can_read(std::uint64_t address) const {
    const auto* const byte = reinterpret_cast<const void*>(address);
    if (retried([&] { return write(in_.get(), byte, 1); }) != 1) return false;
    std::byte dropped{};
    return retried([&] { return read(out_.get(), &dropped, 1); }) == 1;
  }

 private:
  FileDescriptor out_, in_;
};

bool can_read(std::uint64_t address) {
  thread_local std::optional<ReadProbe> probe;  // created on the thread's first use
  if (!probe) probe.emplace();
  return probe->can_read(address);
}

// Returns whether the word that contains the address can be written. The kernel adds zero to the
// word atomically, so that no store of another thread or process is lost, and returns EFAULT where
// a store would raise a signal. At worst, one thread that waits on this word as a futex wakes up
// spuriously.
bool can_write(std::uint64_t address) {
  constexpr int kAddZero = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, -2048);
  static std::uint32_t nobody = 0;
  const std::uint64_t word = address / sizeof(nobody) * sizeof(nobody);
  return retried([&] {
           return syscall(SYS_futex, &nobody, FUTEX_WAKE_OP_PRIVATE, 0, nullptr, word, kAddZero);
         }) >= 0;
}

// Returns the first inaccessible address in the range, at page granularity, or nothing if the whole
// range is accessible.
std::optional<std::uint64_t> first_inaccessible(std::uint64_t address, std::uint64_t bytes,
                                                HostAccess access) {
  const std::uint64_t page = system_page_bytes();
  for (std::uint64_t at = address; at < address + bytes; at = (at / page + 1) * page) {
    if (!(access == HostAccess::read ? can_read(at) : can_write(at))) return at;
  }
  return std::nullopt;
}

VerifiedBuffers& verified_by_this_thread(HostAccess access) {
  thread_local VerifiedBuffers readable;
  thread_local VerifiedBuffers writable;
  return access == HostAccess::write ? writable : readable;
}

}  // namespace

std::uint64_t system_page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void check_host_range(std::uint64_t address, std::uint64_t bytes, const char* what) {
  thread_local VerifiedBuffers verified;
  if (verified.contains(address, bytes)) return;
  if (address == 0)
    throw Error(hcclInvalidArgument, text(what, " is null; pass device or host memory"));
  const bool wraps = bytes > std::numeric_limits<std::uint64_t>::max() - address;
  if (!wraps && is_mapped(address) && (bytes <= 1 || is_mapped(address + bytes - 1)))
    return verified.insert(address, bytes);
  throw Error(hcclInvalidArgument,
              text(what, " 0x", std::hex, address, std::dec, " + ", bytes,
                   " bytes is neither in device memory nor in mapped host memory; pass an address "
                   "from synDeviceMalloc, or memory of this process"));
}

void require_host_access(std::uint64_t address, std::uint64_t bytes, HostAccess access,
                         const char* what) {
  VerifiedBuffers& known = verified_by_this_thread(access);
  if (known.contains(address, bytes)) return;
  check_host_access(address, bytes, access, what);
  known.insert(address, bytes);
}

bool has_host_access(std::uint64_t address, std::uint64_t bytes, HostAccess access) {
  VerifiedBuffers& known = verified_by_this_thread(access);
  if (known.contains(address, bytes)) return true;
  AccessibleRanges& ranges = AccessibleRanges::of_this_thread(access);
  ranges.recheck(address, bytes);
  if (!ranges.admits(address, bytes)) return false;
  known.insert(address, bytes);
  return true;
}

void check_host_access(std::uint64_t address, std::uint64_t bytes, HostAccess access,
                       const char* what) {
  if (bytes == 0) return;
  AccessibleRanges& ranges = AccessibleRanges::of_this_thread(access);
  ranges.recheck(address, bytes);
  if (!ranges.admits(address, bytes)) check_host_pages(address, bytes, access, what);
}

void check_host_pages(std::uint64_t address, std::uint64_t bytes, HostAccess access,
                      const char* what) {
  const auto bad = first_inaccessible(address, bytes, access);
  if (!bad) return;
  throw Error(
      hcclInvalidArgument,
      text(what, " 0x", std::hex, address, std::dec, " + ", bytes, " bytes: host address 0x",
           std::hex, *bad, " cannot be ", access == HostAccess::read ? "read" : "written",
           ": it is unmapped, protected or past the end of its file; pass memory of this "
           "process"));
}

}  // namespace hccl::device
