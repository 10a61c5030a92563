// SPDX-License-Identifier: Apache-2.0
// Device and host memory, copies and fills.
#include "api/guard.h"
#include "api/handles.h"
#include "base/log.h"
#include "device/copy.h"

#include <synapse_api.h>

#include <cstdlib>
#include <map>
#include <mutex>

using namespace hccl;
using namespace hccl::api;

namespace {

// Host ranges the program has mapped or allocated; a count, because programs map a range twice.
class HostRanges {
 public:
  void add(const void* pointer) {
    const std::lock_guard lock(mutex_);
    ++ranges_[pointer];
  }
  [[nodiscard]] bool remove(const void* pointer) {
    const std::lock_guard lock(mutex_);
    const auto entry = ranges_.find(pointer);
    if (entry == ranges_.end()) return false;
    if (--entry->second == 0) ranges_.erase(entry);
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<const void*, int> ranges_;
};

HostRanges& mapped_ranges() {
  static auto* ranges = new HostRanges;  // outlives static destructors
  return *ranges;
}

HostRanges& allocated_ranges() {
  static auto* ranges = new HostRanges;
  return *ranges;
}

void check_flags(uint32_t flags) {
  if (flags != 0) throw SynError(synInvalidArgument, text("flags is ", flags, "; pass 0"));
}

// Work that fails on the stream's turn: told in the log, since the call has returned long ago.
template <class Work>
void enqueue(device::Stream& stream, Work work) {
  stream.enqueue([work = std::move(work)]() noexcept {
    try {
      work();
      return device::Outcome::success;
    } catch (const std::exception& error) {
      log_line(LogLevel::error, "device", error.what());
      return device::Outcome::failed;
    }
  });
}

void enqueue_copy(device::Stream& stream, uint64_t src, uint64_t size, uint64_t dst,
                  synDmaDir direction) {
  if (size == 0) return;
  device::Arena& arena = stream.device().arena();
  switch (direction) {
    case HOST_TO_DRAM:
      static_cast<void>(arena.resolve(dst, size, "dst"));
      enqueue(stream,
              [=, &arena] { copy_to_device(arena, dst, to_handle<const void*>(src), size); });
      return;
    case DRAM_TO_HOST:
      static_cast<void>(arena.resolve(src, size, "src"));
      enqueue(stream, [=, &arena] { copy_to_host(arena, to_handle<void*>(dst), src, size); });
      return;
    case DRAM_TO_DRAM:
      static_cast<void>(arena.resolve(src, size, "src"));
      static_cast<void>(arena.resolve(dst, size, "dst"));
      enqueue(stream, [=, &arena] { copy_on_device(arena, dst, src, size); });
      return;
    default:
      throw SynError(synInvalidArgument,
                     text("direction ", static_cast<int>(direction), " is no synDmaDir"));
  }
}

synStatus enqueue_fill(uint64_t address, uint32_t value, std::size_t width, std::size_t elements,
                       synStreamHandle handle) {
  return syn_guard([&] {
    const StreamPin stream = find_stream(handle);
    if (elements == 0) return;
    if (elements > SIZE_MAX / width) {
      throw SynError(synInvalidArgument,
                     text(elements, " elements of ", width, " bytes are more than any memory"));
    }
    device::Arena& arena = stream->device().arena();
    static_cast<void>(arena.resolve(address, elements * width, "pDeviceMem"));
    enqueue(*stream, [=, &arena] { fill(arena, address, value, width, elements * width); });
  });
}

}  // namespace

synStatus SYN_API_CALL synDeviceMalloc(synDeviceId deviceId, uint64_t size, uint64_t,
                                       uint32_t flags, uint64_t* buffer) {
  return syn_guard([&] {
    require_pointer(buffer, "buffer");
    check_flags(flags);
    runtime().require_initialized();
    *buffer = runtime().device(deviceId)->arena().allocate(size);
  });
}

synStatus SYN_API_CALL synDeviceFree(synDeviceId deviceId, uint64_t buffer, uint32_t flags) {
  return syn_guard([&] {
    check_flags(flags);
    runtime().require_initialized();
    runtime().device(deviceId)->free_memory(buffer);
  });
}

synStatus SYN_API_CALL synHostMalloc(synDeviceId deviceId, uint64_t size, uint32_t flags,
                                     void** buffer) {
  return syn_guard([&] {
    require_pointer(buffer, "buffer");
    check_flags(flags);
    runtime().require_initialized();
    static_cast<void>(runtime().device(deviceId));
    constexpr std::size_t kPage = 4096;
    void* memory = size == 0 || size > PTRDIFF_MAX - kPage
                       ? nullptr
                       : std::aligned_alloc(kPage, (size + kPage - 1) / kPage * kPage);
    if (memory == nullptr)
      throw SynError(synOutOfHostMemory, text("no ", size, " bytes of host memory"));
    allocated_ranges().add(memory);
    *buffer = memory;
  });
}

synStatus SYN_API_CALL synHostFree(synDeviceId deviceId, const void* buffer, uint32_t flags) {
  return syn_guard([&] {
    check_flags(flags);
    runtime().require_initialized();
    static_cast<void>(runtime().device(deviceId));
    if (!allocated_ranges().remove(buffer)) {
      throw SynError(synInvalidArgument,
                     text("host address ", buffer, " is not from synHostMalloc"));
    }
    // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): the program owned it, between two C calls
    std::free(const_cast<void*>(buffer));
  });
}

synStatus SYN_API_CALL synHostMap(synDeviceId deviceId, uint64_t size, const void* buffer) {
  return syn_guard([&] {
    runtime().require_initialized();
    static_cast<void>(runtime().device(deviceId));
    if (size == 0 || buffer == nullptr)
      throw SynError(synInvalidArgument, "nothing to map: size is 0 or buffer is null");
    mapped_ranges().add(buffer);
  });
}

synStatus SYN_API_CALL synHostUnmap(synDeviceId deviceId, const void* buffer) {
  return syn_guard([&] {
    runtime().require_initialized();
    static_cast<void>(runtime().device(deviceId));
    if (!mapped_ranges().remove(buffer)) {
      throw SynError(synMappingNotFound, text("host address ", buffer, " is not mapped"));
    }
  });
}

synStatus SYN_API_CALL synMemCopyAsync(synStreamHandle streamHandle, uint64_t src, uint64_t size,
                                       uint64_t dst, synDmaDir direction) {
  return syn_guard([&] { enqueue_copy(*find_stream(streamHandle), src, size, dst, direction); });
}

synStatus SYN_API_CALL synMemCopyAsyncMultiple(synStreamHandle streamHandle, const uint64_t* src,
                                               const uint64_t* size, const uint64_t* dst,
                                               synDmaDir direction, uint64_t numCopies) {
  return syn_guard([&] {
    const StreamPin stream = find_stream(streamHandle);
    if (numCopies == 0) return;
    require_pointer(src, "src");
    require_pointer(size, "size");
    require_pointer(dst, "dst");
    for (uint64_t copy = 0; copy < numCopies; ++copy)
      enqueue_copy(*stream, src[copy], size[copy], dst[copy], direction);
  });
}

synStatus SYN_API_CALL synMemsetD8Async(uint64_t pDeviceMem, const unsigned char value,
                                        const size_t numOfElements, synStreamHandle streamHandle) {
  return enqueue_fill(pDeviceMem, value, 1, numOfElements, streamHandle);
}

synStatus SYN_API_CALL synMemsetD16Async(uint64_t pDeviceMem, const uint16_t value,
                                         const size_t numOfElements, synStreamHandle streamHandle) {
  return enqueue_fill(pDeviceMem, value, 2, numOfElements, streamHandle);
}

synStatus SYN_API_CALL synMemsetD32Async(uint64_t pDeviceMem, const uint32_t value,
                                         const size_t numOfElements, synStreamHandle streamHandle) {
  return enqueue_fill(pDeviceMem, value, 4, numOfElements, streamHandle);
}
