// SPDX-License-Identifier: Apache-2.0
// The Synapse runtime API: devices, device memory, streams, events. The graph calls are in
// synapse_graph_api.h, which this header includes.
//
// The functions return synSuccess or another status, except for two that return a text. After an
// error, synGetLastErrorMessage() describes the cause. The docstrings list the codes that are
// specific to a function. The functions of the runtime also return
// - synUninitialized before synInitialize() and after synDestroy(). The functions for the driver
//   version, configuration, error texts and kernel libraries, synProfilerGetCurrentTimeNS() and
//   synDumpStateAndTerminate() do not check this;
// - synInvalidArgument for a null pointer to a result, and for a device that is not acquired;
// - synFail in a child forked from a process that has initialised the library.
//
// Sizes are in bytes unless a docstring says elements. Functions without a "Blocks:" line do not
// block, except that a call that queues work waits while its stream's queue is full and, if it
// queues copies or fills under HCCL_BLOCKING=1, until they have run. Any thread may call any
// function; calls on one stream take effect one after the other.
//
// A copy to a device and back:
//
//   synDeviceId device;
//   synStreamHandle stream;
//   uint64_t address;
//   synInitialize();
//   synDeviceAcquire(&device, NULL);
//   synStreamCreateGeneric(&stream, device, 0);
//   synDeviceMalloc(device, size, 0, 0, &address);
//   synHostMap(device, size, data);
//   synMemCopyAsync(stream, (uint64_t)data, size, address, HOST_TO_DRAM);
//   synMemCopyAsync(stream, address, size, (uint64_t)data, DRAM_TO_HOST);
//   synStreamSynchronize(stream);
#ifndef HCCL_SYNAPSE_API_H_
#define HCCL_SYNAPSE_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__linux__)
#include <linux/types.h>
#endif

#include "synapse_api_types.h"
#include "synapse_common_types.h"

#ifndef SYN_API_CALL
#if defined(_WIN32)
#define SYN_API_CALL __stdcall
#else
#define SYN_API_CALL
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

// ---- Start and end ----------------------------------------------------------------------------

// Starts the runtime and reads the environment. Further calls succeed and do nothing.
// Errors: synInvalidArgument if an environment variable is malformed (the text names it);
// synAlreadyInitialized from a further call if HABANA_DISABLE_DOUBLE_SYN_INITIALIZE is set.
synStatus SYN_API_CALL synInitialize(void);

// Runs all queued work, releases the devices that are still held and ends the runtime.
// synInitialize() may start it again.
// Blocks: until the queued work has run.
synStatus SYN_API_CALL synDestroy(void);

// Writes the driver version as text, truncated to `len` bytes including the terminating zero.
synStatus SYN_API_CALL synDriverGetVersion(char* pDriverVersion, int len);

// ---- Devices ----------------------------------------------------------------------------------

// Acquires the device with this module id for the process and stores its device id in `pDeviceId`.
// synDeviceRelease() releases the device.
// Errors: synUnavailable if the device is held, by this or another process; synNoDeviceFound if
// there is no such module; under HCCL_STRICT=1, synDeviceAlreadyAcquired if the process already
// holds a device.
synStatus SYN_API_CALL synDeviceAcquireByModuleId(synDeviceId* pDeviceId, synModuleId moduleId);

// Acquires the device at a PCI address ("dddd:bb:dd.f"), or the first free one if `pciBus` is null
// or empty.
// Errors: those of synDeviceAcquireByModuleId().
synStatus SYN_API_CALL synDeviceAcquire(synDeviceId* pDeviceId, const char* pciBus);

// Acquires the first free device of a type; synDeviceTypeInvalid means any type.
// Errors: those of synDeviceAcquireByModuleId().
synStatus SYN_API_CALL synDeviceAcquireByDeviceType(synDeviceId* pDeviceId,
                                                    synDeviceType deviceType);

// Waits for the work of the device's streams, destroys these streams, frees the device's memory and
// releases the device. If the device still has communicators, its memory and its module remain in
// use until these are destroyed.
// Blocks: until the queued work has run.
synStatus SYN_API_CALL synDeviceRelease(synDeviceId deviceId);

// Waits until all streams of the device have run the work queued so far.
// Blocks: until the work has run.
// Errors: those of synStreamSynchronize() if any of that work failed.
synStatus SYN_API_CALL synDeviceSynchronize(synDeviceId deviceId);

// Write the number of devices on this host, whether free or acquired. synDeviceGetCount() counts
// all devices, and synDeviceGetCountByDeviceType() those of one type. synDeviceCount() writes one
// number for each type, at the index of its synDeviceType.
synStatus SYN_API_CALL synDeviceGetCount(uint32_t* pCount);
synStatus SYN_API_CALL synDeviceGetCountByDeviceType(uint32_t* pCount, synDeviceType deviceType);
synStatus SYN_API_CALL synDeviceCount(uint32_t count[synDeviceTypeSize]);

// Writes the module ids of this host's devices. `size` is the capacity of `pDeviceModuleIds` on
// entry and the number of ids written on return.
synStatus SYN_API_CALL synDeviceGetModuleIDs(uint32_t* pDeviceModuleIds, uint32_t* size);

// Writes the free and the total size of the device's memory, in bytes.
synStatus SYN_API_CALL synDeviceGetMemoryInfo(synDeviceId deviceId, uint64_t* free,
                                              uint64_t* total);

// Describe an acquired device. For the fields, see the structures.
synStatus SYN_API_CALL synDeviceGetInfo(synDeviceId deviceId, synDeviceInfo* pDeviceInfo);
synStatus SYN_API_CALL synDeviceGetInfoV2(synDeviceId deviceId, synDeviceInfoV2* pDeviceInfo);

// Write one value for each of `querySize` attributes. synDeviceGetAttribute() needs an acquired
// device; the others do not.
synStatus SYN_API_CALL synDeviceGetAttribute(uint64_t* pRetVal,
                                             const synDeviceAttribute* deviceAttr,
                                             const unsigned querySize, synDeviceId deviceId);
synStatus SYN_API_CALL synDeviceGetAttributeByModuleId(uint64_t* pRetVal,
                                                       const synDeviceAttribute* deviceAttr,
                                                       const unsigned querySize,
                                                       synModuleId moduleId);
synStatus SYN_API_CALL synDeviceTypeGetAttribute(uint64_t* pRetVal,
                                                 const synDeviceAttribute* deviceAttr,
                                                 const unsigned querySize,
                                                 synDeviceType deviceType);

// Write the name of the device's family in capitals ("GAUDI2"), or its PCI address, as text. The
// text is truncated to `len` bytes including the terminating zero.
synStatus SYN_API_CALL synDeviceGetName(char* pName, int len, synDeviceId deviceId);
synStatus SYN_API_CALL synDeviceGetPCIBusId(char* pPciBusId, int len, synDeviceId deviceId);

// ---- Memory -----------------------------------------------------------------------------------

// Allocates `size` bytes of device memory and stores its address, never 0, in `buffer`. Functions
// that take a device address accept any address inside an allocation. Device addresses are not host
// pointers. `reqAddr` is a hint that may be ignored; `flags` must be 0.
// Errors: synOutOfDeviceMemory if no range of that size is free; synInvalidArgument if `size` is 0.
synStatus SYN_API_CALL synDeviceMalloc(synDeviceId deviceId, uint64_t size, uint64_t reqAddr,
                                       uint32_t flags, uint64_t* buffer);

// Frees the allocation that starts at `buffer`. Work that is already queued can still use the
// memory: it is released only after this work has completed.
// Errors: synInvalidArgument if `buffer` is not the start of an allocation.
synStatus SYN_API_CALL synDeviceFree(synDeviceId deviceId, uint64_t buffer, uint32_t flags);

// Allocate and free page-aligned host memory, which copies may use without synHostMap().
// Errors: synOutOfHostMemory if `size` is 0 or no memory is available; synInvalidArgument if
// `buffer` is not from synHostMalloc().
synStatus SYN_API_CALL synHostMalloc(synDeviceId deviceId, uint64_t size, uint32_t flags,
                                     void** buffer);
synStatus SYN_API_CALL synHostFree(synDeviceId deviceId, const void* buffer, uint32_t flags);

// Map the caller's host memory for copies, and unmap it. The memory must stay valid while it is
// mapped. Any alignment is allowed.
// Errors: synInvalidArgument from synHostMap() if `size` is 0 or `buffer` is null;
// synMappingNotFound from synHostUnmap() if `buffer` is not mapped.
synStatus SYN_API_CALL synHostMap(synDeviceId deviceId, uint64_t size, const void* buffer);
synStatus SYN_API_CALL synHostUnmap(synDeviceId deviceId, const void* buffer);

// Queues a copy of `size` bytes; `direction` states which of `src` and `dst` is a host address.
// Both sides must stay valid, and the source unchanged, until the copy has completed. Any alignment
// and size are allowed.
// Errors: synInvalidArgument for an unknown stream, an unknown `direction`, or a device range that
// is not inside one allocation (the text names it).
synStatus SYN_API_CALL synMemCopyAsync(synStreamHandle streamHandle, uint64_t src, uint64_t size,
                                       uint64_t dst, synDmaDir direction);

// Queues `numCopies` copies like synMemCopyAsync(). The arrays may be freed when the call returns.
// If a copy is invalid, the copies before it stay queued.
// Errors: those of synMemCopyAsync().
synStatus SYN_API_CALL synMemCopyAsyncMultiple(synStreamHandle streamHandle, const uint64_t* src,
                                               const uint64_t* size, const uint64_t* dst,
                                               synDmaDir direction, uint64_t numCopies);

// Queue a fill of device memory with `numOfElements` elements of 1, 2 or 4 bytes, all of the given
// value.
// Errors: those of synMemCopyAsync().
synStatus SYN_API_CALL synMemsetD8Async(uint64_t pDeviceMem, const unsigned char value,
                                        const size_t numOfElements, synStreamHandle streamHandle);
synStatus SYN_API_CALL synMemsetD16Async(uint64_t pDeviceMem, const uint16_t value,
                                         const size_t numOfElements, synStreamHandle streamHandle);
synStatus SYN_API_CALL synMemsetD32Async(uint64_t pDeviceMem, const uint32_t value,
                                         const size_t numOfElements, synStreamHandle streamHandle);

// ---- Streams ----------------------------------------------------------------------------------

// Failures. A copy or memset that fails leaves wrong data behind. Therefore later work does not run
// if it is queued on the same stream, or on another stream behind a wait for an event that captured
// the failed work: copies, memsets and kernels fail for the same reason, and a collective fails its
// communicator on all ranks. This state ends on all of these streams when synStreamSynchronize(),
// synEventSynchronize() or synDeviceSynchronize() has reported the failure on one of them; work
// queued from then on runs. Queries report a failure without ending this state. An event keeps the
// failure of the work that it captured until the event is recorded again after the failure was
// reported. A failed collective fails its communicator but does not stop its stream.

// Creates a stream: a queue of work (copies, memsets, event records, event waits, kernels,
// collectives, sends and receives) that runs in order. `flags` must be 0. The stream exists until
// synStreamDestroy(), or until its device is released.
synStatus SYN_API_CALL synStreamCreateGeneric(synStreamHandle* pStreamHandle, synDeviceId deviceId,
                                              uint32_t flags);

// The older form of synStreamCreateGeneric(). Ignores `streamType` and `flags`, because all streams
// are generic.
synStatus SYN_API_CALL synStreamCreate(synStreamHandle* pStreamHandle, synDeviceId deviceId,
                                       synStreamType streamType, uint32_t flags);

// Waits for the stream's work and frees the stream; the handle is invalid afterwards.
// Blocks: until the work has run.
synStatus SYN_API_CALL synStreamDestroy(synStreamHandle streamHandle);

// Waits until the work queued so far has completed. Several threads may wait at the same time. A
// failure is reported once on each stream that it affects.
// Blocks: until the work has completed.
// Errors: synFail if a copy or memset in that work failed, else synFailHccl if a collective in it
// failed; the text describes the failure.
synStatus SYN_API_CALL synStreamSynchronize(synStreamHandle streamHandle);

// Returns synSuccess if the work queued so far has completed, and synBusy if not.
// Errors: those of synStreamSynchronize().
synStatus SYN_API_CALL synStreamQuery(synStreamHandle streamHandle);

// Makes work that is queued on the stream from now on wait for the work that the event captured
// when it was last recorded. An event that was never recorded counts as complete. The host does not
// wait. `flags` must be 0.
synStatus SYN_API_CALL synStreamWaitEvent(synStreamHandle streamHandle, synEventHandle eventHandle,
                                          const uint32_t flags);

// Set and get the engines that a stream prefers, as a bit mask; get the mask of all engines, and
// the mask that the next stream should use. The masks have no effect on emulated devices, and
// synStreamGetAffinity() always writes 1.
synStatus SYN_API_CALL synStreamSetAffinity(synDeviceId deviceId, synStreamHandle pStreamHandle,
                                            uint64_t streamAffinityMask);
synStatus SYN_API_CALL synStreamGetAffinity(synDeviceId deviceId, synStreamHandle pStreamHandle,
                                            uint64_t* streamAffinityMask);
synStatus SYN_API_CALL synDeviceGetAffinityMaskRange(synDeviceId deviceId,
                                                     uint64_t* deviceAffinityMaskRange);
synStatus SYN_API_CALL synDeviceGetNextStreamAffinity(synDeviceId deviceId,
                                                      uint64_t* nextDeviceAffinity);

// ---- Events -----------------------------------------------------------------------------------

// Creates an event. `flags` is 0 or EVENT_COLLECT_TIME; the device id is not checked. The event
// exists until synEventDestroy() or synDestroy().
synStatus SYN_API_CALL synEventCreate(synEventHandle* pEventHandle, synDeviceId deviceId,
                                      const uint32_t flags);

// Frees an event, even before it has completed; work that waits for it is not affected.
synStatus SYN_API_CALL synEventDestroy(synEventHandle eventHandle);

// Captures the work queued on the stream so far: the event completes when that work does. Recording
// again replaces the capture; waits that are already queued keep the old one.
synStatus SYN_API_CALL synEventRecord(synEventHandle eventHandle, synStreamHandle streamHandle);

// Returns synSuccess if the captured work has completed or the event was never recorded, and
// synBusy if not.
// Errors: those of synEventSynchronize().
synStatus SYN_API_CALL synEventQuery(synEventHandle eventHandle);

// Waits until the captured work has completed. Several threads may wait at the same time.
// Blocks: until the work has completed.
// Errors: synFail if a copy or memset in that work failed, else synFailHccl if a collective in it
// failed; the text describes the failure.
synStatus SYN_API_CALL synEventSynchronize(synEventHandle eventHandle);

// Writes the time in nanoseconds between the completions of the start event and the end event. If
// `eventHandleEnd` is null, writes the time at which the start event completed, on the clock of
// synProfilerGetCurrentTimeNS().
// Errors: synObjectNotInitialized if an event was not recorded; synBusy if an event is not
// complete; synInvalidArgument if an event was not created with EVENT_COLLECT_TIME, or if the end
// event completed before the start event.
synStatus SYN_API_CALL synEventElapsedTime(uint64_t* pNanoSeconds,
                                           const synEventHandle eventHandleStart,
                                           const synEventHandle eventHandleEnd);

// ---- Configuration and errors -----------------------------------------------------------------

// Writes the value of a configuration key (the name of an environment variable) as text to
// `configValue`, truncated to `valueSize` bytes including the terminating zero. For Boolean keys,
// writes true as "1" and false as "0".
// Errors: synInvalidArgument for an unknown key; `configValue` is then empty.
synStatus SYN_API_CALL synConfigurationGet(const char* configurationName, char* configValue,
                                           uint64_t valueSize);

// Sets the value of a configuration key for this process. An empty value removes the setting, so
// that the environment applies again.
// Errors: synInvalidArgument if the new value, or the value of another of the library's variables,
// is not valid (the text names the variable); nothing is then set.
synStatus SYN_API_CALL synConfigurationSet(const char* configurationName, const char* configValue);

// Writes a short text for a status, truncated to `len` bytes including the terminating zero;
// STATUS_DESCRIPTION_MAX_SIZE bytes are enough for every status.
synStatus SYN_API_CALL synStatusGetBriefDescription(synStatus status, char* statusDescription,
                                                    size_t len);

// Returns a static text that describes a status. Never returns null: all unknown values share one
// text. Do not free it.
const char* SYN_API_CALL synGetErrorString(synStatus status);

// Return the status and the text of this thread's last syn call; after a successful call,
// synSuccess and an empty text. The text is never null and stays valid until the thread's next syn
// call. Neither function clears the error.
synStatus SYN_API_CALL synGetLastError(void);
const char* SYN_API_CALL synGetLastErrorMessage(void);

// Writes `msg`, unless it is null, and the state of every stream and communicator to the log, and
// aborts the process. `flags` is ignored.
synStatus SYN_API_CALL synDumpStateAndTerminate(const char* msg, uint64_t flags);

// Reports how many bytes of device memory a framework's own allocator uses at a given time. The
// report has no effect on emulated devices.
synStatus SYN_API_CALL synUpdateMemoryConsumption(uint64_t usedMemory, uint64_t timestampSeconds);

// ---- Profiler ---------------------------------------------------------------------------------

// Collect a trace between start and stop. Call synProfilerGetTrace() twice: first with a null
// `buffer`, to get the number of bytes and of entries in the trace, then with a buffer of that
// size, to fill it. An emulated device records nothing, so it needs no memory, and its traces are
// empty.
// Errors: synInvalidArgument for an unknown synTraceType.
synStatus SYN_API_CALL synProfilerQueryRequiredMemory(synDeviceId deviceId,
                                                      uint32_t* bytesRequired);
synStatus SYN_API_CALL synProfilerSetUserBuffer(const synDeviceId deviceId, void* userBuffer);
synStatus SYN_API_CALL synProfilerStart(synTraceType type, const synDeviceId deviceId);
synStatus SYN_API_CALL synProfilerStop(synTraceType type, const synDeviceId deviceId);
synStatus SYN_API_CALL synProfilerGetTrace(synTraceType type, const synDeviceId deviceId,
                                           synTraceFormat format, void* buffer, size_t* size,
                                           size_t* numEntries);

// Writes the time in nanoseconds on the clock that timestamps events.
synStatus SYN_API_CALL synProfilerGetCurrentTimeNS(uint64_t* nanoTime);

// Add the program's own entries to the trace. A measurement starts at `nanoTime`, and may have
// arguments and the name of a thread. An event has a start and an end. `args` holds `argsSize`
// strings: each name is followed by its value. An emulated device ignores the entries.
synStatus SYN_API_CALL synProfilerAddCustomMeasurement(const char* description, uint64_t nanoTime);
synStatus SYN_API_CALL synProfilerAddCustomMeasurementArgs(const char* description,
                                                           uint64_t nanoTime, const char** args,
                                                           size_t argsSize);
synStatus SYN_API_CALL synProfilerAddCustomMeasurementArgsAndThread(const char* description,
                                                                    uint64_t nanoTime,
                                                                    const char** args,
                                                                    size_t argsSize,
                                                                    const char* threadName);
synStatus SYN_API_CALL synProfilerAddCustomEvent(const char* description, uint64_t nanoTimeStart,
                                                 uint64_t nanoTimeEnd, const char** args,
                                                 size_t argsSize);

// Write the number of kernel libraries, which is 0 on emulated devices, or the paths and versions
// of the libraries.
synStatus SYN_API_CALL synTPCLibraryGetVersionSize(uint32_t* size);
synStatus SYN_API_CALL synTPCLibraryGetVersions(const char** libraryPaths, uint32_t* versions);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#include "synapse_graph_api.h"

#endif  // HCCL_SYNAPSE_API_H_
