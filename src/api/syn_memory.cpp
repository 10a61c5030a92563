// SPDX-License-Identifier: Apache-2.0
// Device and host memory, copies and fills.
#include "api/guard.h"
#include "api/handles.h"
#include "api/host_ranges.h"
#include "base/log.h"
#include "device/copy.h"

#include <synapse_api.h>

#include <cstdlib>

using namespace hccl;
using namespace hccl::api;

namespace {

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

// Records why a copy or a fill has failed, for later work that fails as a result. Also logs the
// reason, because there may be no later work. Does not use the heap, because memory may have run
// out.
void note_failure(const char* name, hcclResult_t code, const char* why) noexcept {
  device::explain_failure(code, why);
  log_failed_work(name, code, why);
}

// Queues a copy or a fill. `name` describes it in log lines. `work` runs in stream order and throws
// an exception if it fails.
template <class Work>
void enqueue(device::Stream& stream, const char* name, uint64_t bytes, Work work) {
  log(LogLevel::trace, "device", "queued ", name, ", ", bytes, " B, on stream ", stream.id());
  stream.enqueue([=, stream_id = stream.id(), work = std::move(work)]() noexcept {
    try {
      work();
      log(LogLevel::trace, "device", "ended ", name, ", ", bytes, " B, on stream ", stream_id);
      return device::Outcome::success;
    } catch (const Error& error) {
      note_failure(name, error.code(), error.what());
    } catch (const std::exception& error) {
      note_failure(name, hcclOutOfMemory, error.what());
    }
    return device::Outcome::failed;
  });
}

void enqueue_copy(device::Stream& stream, uint64_t src, uint64_t size, uint64_t dst,
                  synDmaDir direction) {
  if (size == 0) return;
  device::Arena& arena = stream.device().arena();
  // Replaces an address in a host view with the device address behind it.
  const bool from_view = arena.behind_view(src) != src;
  const bool to_view = arena.behind_view(dst) != dst;
  src = arena.behind_view(src);
  dst = arena.behind_view(dst);
  if ((direction == HOST_TO_DRAM && from_view) || (direction == DRAM_TO_HOST && to_view))
    direction = DRAM_TO_DRAM;
  switch (direction) {
    case HOST_TO_DRAM:
      static_cast<void>(arena.resolve(dst, size, "dst"));
      enqueue(stream, "copy to the device", size,
              [=, &arena] { copy_to_device(arena, dst, to_handle<const void*>(src), size); });
      return;
    case DRAM_TO_HOST:
      static_cast<void>(arena.resolve(src, size, "src"));
      enqueue(stream, "copy to the host", size,
              [=, &arena] { copy_to_host(arena, to_handle<void*>(dst), src, size); });
      return;
    case DRAM_TO_DRAM:
      static_cast<void>(arena.resolve(src, size, "src"));
      static_cast<void>(arena.resolve(dst, size, "dst"));
      enqueue(stream, "copy on the device", size,
              [=, &arena] { copy_on_device(arena, dst, src, size); });
      return;
    default:
      throw SynError(synInvalidArgument,
                     text("direction ", static_cast<int>(direction),
                          " is not a synDmaDir; pass HOST_TO_DRAM, DRAM_TO_HOST or DRAM_TO_DRAM"));
  }
}

// Queues copies in order. Throws at the first one that is not valid; the copies before it stay
// queued or, with HCCL_BLOCKING, have run.
void enqueue_copies(device::Stream& stream, const uint64_t* src, const uint64_t* size,
                    const uint64_t* dst, synDmaDir direction, uint64_t copies) {
  try {
    for (uint64_t copy = 0; copy < copies; ++copy)
      enqueue_copy(stream, src[copy], size[copy], dst[copy], direction);
  } catch (...) {
    if (blocking_mode()) {
      const CancellationBlock block;
      stream.run_until(stream.pushed());  // failures of these copies are reported by later calls
    }
    throw;
  }
}

synStatus enqueue_fill(Callee callee, uint64_t address, uint32_t value, std::size_t width,
                       std::size_t elements, synStreamHandle handle) {
  return syn_queueing_guard(callee, [&] {
    const StreamPin stream = find_stream(handle);
    if (elements == 0) return;
    if (elements > SIZE_MAX / width) {
      throw SynError(synInvalidArgument, text(elements, " elements of ", width,
                                              " bytes exceed the address space; pass fewer"));
    }
    device::Arena& arena = stream->device().arena();
    const uint64_t filled = arena.behind_view(address);
    static_cast<void>(arena.resolve(filled, elements * width, "pDeviceMem"));
    enqueue(*stream, "fill", elements * width,
            [=, &arena] { fill(arena, filled, value, width, elements * width); });
    wait_if_blocking(*stream);
  });
}

}  // namespace

synStatus SYN_API_CALL synDeviceMalloc(synDeviceId deviceId, uint64_t size, uint64_t,
                                       uint32_t flags, uint64_t* buffer) {
  return syn_guard(__func__, [&] {
    require_pointer(buffer, "buffer");
    check_flags(flags);
    runtime().require_initialized();
    *buffer = runtime().device(deviceId)->arena().allocate(size);
  });
}

synStatus SYN_API_CALL synDeviceFree(synDeviceId deviceId, uint64_t buffer, uint32_t flags) {
  return syn_guard(__func__, [&] {
    check_flags(flags);
    runtime().require_initialized();
    runtime().device(deviceId)->free_memory(buffer);
  });
}

synStatus SYN_API_CALL synHostMalloc(synDeviceId deviceId, uint64_t size, uint32_t flags,
                                     void** buffer) {
  return syn_guard(__func__, [&] {
    require_pointer(buffer, "buffer");
    check_flags(flags);
    runtime().require_initialized();
    static_cast<void>(runtime().device(deviceId));
    constexpr std::size_t kPage = 4096;
    void* memory = size == 0 || size > PTRDIFF_MAX - kPage
                       ? nullptr
                       : std::aligned_alloc(kPage, (size + kPage - 1) / kPage * kPage);
    if (memory == nullptr)
      throw SynError(synOutOfHostMemory, text("cannot allocate ", size, " bytes of host memory"));
    allocated_ranges().add(memory);
    *buffer = memory;
  });
}

synStatus SYN_API_CALL synHostFree(synDeviceId deviceId, const void* buffer, uint32_t flags) {
  return syn_guard(__func__, [&] {
    check_flags(flags);
    runtime().require_initialized();
    static_cast<void>(runtime().device(deviceId));
    if (!allocated_ranges().remove(buffer)) {
      throw SynError(synInvalidArgument,
                     text("host address ", buffer, " was not returned by synHostMalloc"));
    }
    // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): the program owned this memory
    std::free(const_cast<void*>(buffer));
  });
}

synStatus SYN_API_CALL synHostMap(synDeviceId deviceId, uint64_t size, const void* buffer) {
  return syn_guard(__func__, [&] {
    runtime().require_initialized();
    static_cast<void>(runtime().device(deviceId));
    if (size == 0 || buffer == nullptr)
      throw SynError(synInvalidArgument, "nothing to map: size is 0 or buffer is null");
    mapped_ranges().add(buffer);
  });
}

synStatus SYN_API_CALL synHostUnmap(synDeviceId deviceId, const void* buffer) {
  return syn_guard(__func__, [&] {
    runtime().require_initialized();
    static_cast<void>(runtime().device(deviceId));
    if (!mapped_ranges().remove(buffer)) {
      throw SynError(synMappingNotFound, text("host address ", buffer, " is not mapped"));
    }
  });
}

synStatus SYN_API_CALL synMemCopyAsync(synStreamHandle streamHandle, uint64_t src, uint64_t size,
                                       uint64_t dst, synDmaDir direction) {
  return syn_queueing_guard(__func__, [&] {
    const StreamPin stream = find_stream(streamHandle);
    enqueue_copy(*stream, src, size, dst, direction);
    wait_if_blocking(*stream);
  });
}

synStatus SYN_API_CALL synMemCopyAsyncMultiple(synStreamHandle streamHandle, const uint64_t* src,
                                               const uint64_t* size, const uint64_t* dst,
                                               synDmaDir direction, uint64_t numCopies) {
  return syn_queueing_guard(__func__, [&] {
    const StreamPin stream = find_stream(streamHandle);
    if (numCopies == 0) return;
    require_pointer(src, "src");
    require_pointer(size, "size");
    require_pointer(dst, "dst");
    enqueue_copies(*stream, src, size, dst, direction, numCopies);
    wait_if_blocking(*stream);
  });
}

synStatus SYN_API_CALL synMemsetD8Async(uint64_t pDeviceMem, const unsigned char value,
                                        const size_t numOfElements, synStreamHandle streamHandle) {
  return enqueue_fill(__func__, pDeviceMem, value, 1, numOfElements, streamHandle);
}

synStatus SYN_API_CALL synMemsetD16Async(uint64_t pDeviceMem, const uint16_t value,
                                         const size_t numOfElements, synStreamHandle streamHandle) {
  return enqueue_fill(__func__, pDeviceMem, value, 2, numOfElements, streamHandle);
}

synStatus SYN_API_CALL synMemsetD32Async(uint64_t pDeviceMem, const uint32_t value,
                                         const size_t numOfElements, synStreamHandle streamHandle) {
  return enqueue_fill(__func__, pDeviceMem, value, 4, numOfElements, streamHandle);
}
