// SPDX-License-Identifier: Apache-2.0
// Functions that only emulated devices have, for C99 and C++: kernels that are host functions of
// the program, host views of device memory, traffic reports, and more. A program that also runs on
// real devices should keep its calls to these functions in one place, where they are easy to
// replace, for example with synLaunch().
#ifndef HCCL_EMULATION_H_
#define HCCL_EMULATION_H_

#include <hccl_types.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

// Bitwise reductions: values of hcclRedOp_t that hcclAllReduce(), hcclReduce(), hcclReduceScatter()
// and hcclEmulationReduceScatterV() accept for integer types. For booleans (0 or 1 in an hcclUint8)
// they are the logical and, or, and exclusive or. The call returns hcclInvalidArgument for a
// floating-point type. HCCL_STRICT=1 refuses these reductions for every type, because Gaudi's
// library does not have them.
#ifdef __cplusplus
#define hcclEmulationBitAnd static_cast<hcclRedOp_t>(64)
#define hcclEmulationBitOr static_cast<hcclRedOp_t>(65)
#define hcclEmulationBitXor static_cast<hcclRedOp_t>(66)
#else
#define hcclEmulationBitAnd ((hcclRedOp_t)64)
#define hcclEmulationBitOr ((hcclRedOp_t)65)
#define hcclEmulationBitXor ((hcclRedOp_t)66)
#endif

// ---- Kernels and device memory ------------------------------------------------------------------

// Queues `kernel(arguments)` on a stream, in order with the stream's copies, events and
// collectives. The kernel runs on a thread of the library or on a thread of the program that waits
// for the stream. Therefore it must neither throw nor call the library; get the host views that it
// needs before the launch. The caller owns `arguments`, which must live until the kernel has run.
// The kernel does not run after a failed copy (see "Failures" in synapse_api.h), but it does run
// after a failed collective.
// Blocks: while the stream's queue is full; under HCCL_BLOCKING=1, until the kernel has run.
// Errors: hcclInvalidArgument for an unknown stream or a null kernel.
hcclResult_t hcclEmulationLaunch(void* stream_handle, void (*kernel)(void* arguments),
                                 void* arguments);

// Writes to `*view` a host pointer to the `size` bytes of device memory at `device_address`, which
// must lie inside one allocation. Every call for the same memory returns the same pointer. The
// pointer stays valid until the memory is freed, even if the library moves the underlying pages
// after a failure. Work that is queued after a write to the view sees the write. The view may be
// passed as the buffer of a collective, a message or a copy: calls treat an address in the view as
// the device address of that memory. For this purpose, the first call reserves an address range as
// large as the device memory. Without this range, calls treat an address in a view as ordinary host
// memory. The range is missing if the system refuses the reservation, or if RLIMIT_AS would leave
// the process less free address space than the size of the range.
// Blocks: no.
// Errors: hcclInvalidArgument if the range is not in one allocation; hcclOutOfMemory if the range
// cannot be mapped.
hcclResult_t hcclEmulationHostView(uint64_t device_address, uint64_t size, void** view);

// Writes to `*device_address` the device address behind `view`, an address in a host view: the
// reverse of hcclEmulationHostView().
// Blocks: no.
// Errors: hcclInvalidArgument if `view` is not in a host view of currently allocated memory, if the
// `size` bytes extend past the allocation, or for a null pointer.
hcclResult_t hcclEmulationDeviceAddress(const void* view, uint64_t size, uint64_t* device_address);

// Allocates `size` bytes of device memory and writes the address of its host view, a multiple of
// 128, to `*memory`. The program can use this memory like memory from malloc(), but calls on it are
// faster: other ranks of the node access it directly, but get data in buffers from malloc() only
// through copies in shared memory or through system calls. The memory belongs to the device that
// the calling thread acquired last, or else to the first device of the process. Free the memory
// with hcclEmulationMemFree() before you release the device.
//
//   void* gradients = NULL;
//   hcclEmulationMemAlloc(&gradients, count * sizeof(float));
//   /* write gradients, then: */
//   hcclAllReduce(gradients, gradients, count, hcclFloat32, hcclSum, comm, stream);
//   synStreamSynchronize(stream);
//   hcclEmulationMemFree(gradients);
//
// In a forked child, the address is not mapped; see hcclEmulationKeepAtFork().
// Blocks: no.
// Errors: hcclInvalidUsage if the process holds no device; hcclInvalidArgument if `size` is 0 or
// `memory` is null; hcclOutOfMemory if no device memory of that size is free, or if it cannot be
// mapped.
hcclResult_t hcclEmulationMemAlloc(void** memory, uint64_t size);

// Frees memory from hcclEmulationMemAlloc(). Calls that have been queued may still use the memory,
// but the program must not. Does nothing if `memory` is null or its device has been released.
// Blocks: no.
// Errors: hcclInvalidArgument if `memory` was not returned by hcclEmulationMemAlloc() or has been
// freed.
hcclResult_t hcclEmulationMemFree(void* memory);

// Sets whether processes that are forked from now on get a copy of the `size` bytes of device
// memory at `device_address`, which must lie inside one allocation. With `keep` 1, a child gets a
// private copy, as of the moment of the fork, at the same address in the host view. The copy is
// ordinary memory, which the child's own children inherit. With `keep` 0, the default, that address
// range is not mapped in the child. Freeing the memory ends the setting.
//
// A fork copies the kept ranges, without their holes, while the forking thread waits. This takes
// tens of ms for 64 MiB on an idle machine, and up to seconds per GiB on a busy one. Meanwhile, all
// other uses of this rank's device memory wait: its calls, the work of its streams, and therefore
// collectives of other ranks. The copy may or may not contain writes that are in progress during
// the fork.
//
// The copy may fail in three ways. The fork proceeds after at most 10 s plus 1 s for each GiB; if
// the copy is not complete by then, the child gets no copy at all. If the process has fewer than
// two free file descriptors, the child gets no copy at all, and a warning is written to stderr. If
// the system has no memory for the copy of a range, the child lacks that range, and a warning is
// written to stderr. Memory that the child lacks is not mapped in the child.
//
// vfork(), posix_spawn() and clone() copy no device memory. Handlers of pthread_atfork() may call
// the library in the parent, unless they were registered before the library was loaded. Such early
// handlers run while device memory is locked, and must neither call the library nor take a lock
// that another thread holds while it calls the library.
// Blocks: only while another thread forks.
// Errors: hcclInvalidArgument if the range is not in one allocation; hcclOutOfMemory if its view
// cannot be mapped.
hcclResult_t hcclEmulationKeepAtFork(uint64_t device_address, uint64_t size, int keep);

// Returns to the system all pages that lie wholly within the `size` bytes of device memory at
// `device_address`, which must lie inside one allocation. A page has 4096 bytes and is aligned in
// the host view. The returned pages read as zeros from then on, and are allocated again when
// written. The rest of the range keeps its contents, and all addresses stay valid. No rank may have
// work queued or running that uses the range: wait for the streams first. Trim rarely, and trim
// large ranges, because the next calls on the allocation check all its pages again.
// Blocks: no.
// Errors: hcclInvalidArgument if the range is not in one allocation; hcclSystemError if the system
// refuses.
hcclResult_t hcclEmulationTrim(uint64_t device_address, uint64_t size);

// Checks that this process can read `size` bytes of its memory at `memory`, and also write them if
// `writable` is 1. A program that calls this function before it accesses memory of unknown origin
// avoids SIGSEGV and SIGBUS. Preserves the contents of the memory, even while other threads and
// processes store to it. Faults its pages in: pages that were never touched are allocated if
// `writable` is 1, and pages of a file are read. Therefore pass only the bytes that are used, not a
// range with large gaps. Checks every page that the calling thread has not yet found accessible. If
// the thread has found all pages accessible before, checks only that they are still mapped, and
// that the first and the last of them are still accessible.
// Blocks: for as long as the system takes to fault the pages in.
// Errors: hcclInvalidArgument if the memory is null, not mapped, protected or past the end of its
// file (the text names the first such address), unless `size` is 0; hcclSystemError if no file
// descriptor is available for the check.
hcclResult_t hcclEmulationCheckMemory(const void* memory, uint64_t size, int writable);

// ---- Traffic, plans and time limits -------------------------------------------------------------

// The path that this rank's calls on a communicator take, and the number of bytes and transfers
// that its completed calls have moved over transports since the communicator was created.
typedef struct hcclEmulationTraffic_t {
  // "node" if the ranks run all calls through the memory of one node, "copy" if there is one rank.
  // Otherwise the name of the last call's algorithm, or "none" before the first call.
  char algorithm[32];
  // "memory" for the paths "node" and "copy", otherwise the transport to the peer. For all peers,
  // names each transport once, as in "shm+tcp".
  char transport[32];
  uint64_t bytes_sent;  // payload, 32-byte headers and 1-byte signals
  uint64_t bytes_received;
  uint64_t sends;  // calls to the transport that moved at least one byte
  uint64_t receives;
} hcclEmulationTraffic_t;

// Writes to `*traffic` this rank's traffic with rank `peer`, or with all other ranks if `peer` is
// -1. Does not count calls in progress.
// Blocks: no.
// Errors: hcclInvalidArgument for an unknown communicator, a `peer` that is not another rank of the
// communicator, or a null pointer.
hcclResult_t hcclEmulationTraffic(hcclComm_t comm, int peer, hcclEmulationTraffic_t* traffic);

// The call that hcclEmulationPlan() describes.
typedef struct hcclEmulationPlanRequest_t {
  const char* collective;  // "all_reduce", "broadcast", "all_gather", "reduce_scatter", "reduce",
                           // "all_to_all" or "barrier"
  uint64_t bytes;          // of the message, or of one rank's block in collectives with blocks
  int root;                // of a broadcast or reduce
  int in_place;            // 1: the buffers are the same memory
  int json;                // 1: one JSON object, on one line; 0: text, a line for each step
} hcclEmulationPlanRequest_t;

// Writes to `buffer` a description of how this rank would run a call on the communicator now: the
// algorithm, the transports and, if the call runs by schedules, the steps in every channel. Sends
// nothing. Writes at most `size` bytes, including a terminating zero. Sets `*length` to the length
// of the whole text without the zero. If this length is more than `size` - 1, the text in `buffer`
// is truncated. `buffer` may be null if `size` is 0.
// Blocks: no.
// Errors: hcclInvalidArgument for an unknown communicator or collective, a root that is not one of
// the communicator's ranks, or a null pointer.
hcclResult_t hcclEmulationPlan(hcclComm_t comm, const hcclEmulationPlanRequest_t* request,
                               char* buffer, uint64_t size, uint64_t* length);

// Sets how long, in milliseconds, this rank's calls on the communicator wait for other ranks before
// they fail; 0 means no limit. Replaces HCCL_TIMEOUT for waits that begin from now on. Does not
// change the limits of other ranks and communicators, but if a wait of one rank times out, the
// communicator fails on all ranks. May be called by any thread at any time.
// Blocks: no.
// Errors: hcclInvalidArgument for an unknown communicator.
hcclResult_t hcclEmulationSetTimeout(hcclComm_t comm, uint64_t milliseconds);

// ---- Positions in streams -----------------------------------------------------------------------
// A stream numbers the pieces of work queued on it from 1. If `*queued` is first A and later B, the
// work in (A, B] was queued in between. If A is read before a call and B after it, and no other
// thread queues work on the stream in between, (A, B] is the work of that call. A call queues at
// least one piece, with three exceptions: a copy or memset of 0 bytes queues nothing; recording an
// event, or making a stream wait for an event, queues a piece only if one is needed; and a call in
// an open group queues nothing before hcclGroupEnd().

// Writes to `*queued` the position of the last piece of work that has been queued on the stream,
// and to `*completed` the position up to which all work has run. Either pointer may be null. Wakes
// no thread and makes no system call.
// Blocks: no.
// Errors: hcclInvalidArgument for an unknown stream.
hcclResult_t hcclEmulationStreamPosition(void* stream_handle, uint64_t* queued,
                                         uint64_t* completed);

// The value of `timeout_ms` that sets no limit.
#define HCCL_EMULATION_NO_TIMEOUT UINT64_MAX

// Waits until the work up to position `up_to` has run, for at most `timeout_ms` milliseconds, and
// returns how the work in (after, up_to] ended, regardless of failures outside this range:
// - hcclSuccess if it has succeeded;
// - hcclBusy if the work up to `up_to` has not run in time. That is not a failure: nothing is
//   logged, there is no message, and the caller may wait again;
// - the code of the failure if work in the range has failed. hcclGetLastErrorMessage() gives its
//   text. A failed copy takes precedence over a failed collective.
//
// With HCCL_EMULATION_NO_TIMEOUT, the calling thread runs the work itself, as in
// synStreamSynchronize(). Calls with other ranks then fail after HCCL_TIMEOUT or the limit of
// hcclEmulationSetTimeout(). With 0, the calling thread runs no work: it only makes the stream's
// own thread start pending work immediately. With any other limit, the calling thread runs only
// work that need not wait for other ranks, and leaves the rest to the stream's own thread.
// Therefore the call returns in time, whatever the other ranks do.
//
// A failure that this function returns counts as reported, as if synEventSynchronize() had returned
// it (see "Failures" in synapse_api.h). A later call for the same range returns it again. A stream
// remembers the last 256 runs of failed work; a run consists of consecutive positions with the same
// failure. When there are more, the two oldest runs are merged, so successful work between them
// counts as failed.
// Blocks: for at most `timeout_ms`.
// Errors: hcclInvalidArgument for an unknown stream, an `up_to` that has not been queued, or an
// `after` greater than `up_to`.
hcclResult_t hcclEmulationStreamWait(void* stream_handle, uint64_t after, uint64_t up_to,
                                     uint64_t timeout_ms);

// Calls `callback` exactly once, when the work up to position `up_to` has run. Passes the result
// that hcclEmulationStreamWait() would return for (after, up_to], and its text. A failure then
// counts as reported. The text is "" for hcclSuccess, and valid only during the callback. The work
// starts even if no thread waits for it.
//
// One thread of the library runs all callbacks one after the other, even those for work that has
// already run. If several callbacks for the same stream are due, they run in the order of their
// positions. Signals are blocked on that thread. Callbacks may call the library. They must not
// throw, and should not block, because a blocked callback delays the others. A callback may run
// after the stream has been destroyed or the communicator aborted, because both calls first let the
// work run or fail; `argument` must live until the callback has run. No callback runs in a forked
// child, or if this call fails.
//
// synDestroy() returns after all callbacks have run, unless a callback calls synDestroy(). The
// caller of synDestroy() must therefore not hold a lock that a callback takes. At process exit, an
// atexit() handler ends the callbacks: it waits at most 200 ms for a running callback, and
// callbacks that have not begun do not run. The first call to this function registers the handler.
// Exit handlers that are registered later run earlier, while callbacks still run.
// Blocks: no.
// Errors: those of hcclEmulationStreamWait(); hcclInvalidArgument for a null callback;
// hcclSystemError if the thread cannot be started; hcclOutOfMemory if there is no memory.
hcclResult_t hcclEmulationStreamNotify(void* stream_handle, uint64_t after, uint64_t up_to,
                                       void (*callback)(hcclResult_t result, const char* message,
                                                        void* argument),
                                       void* argument);

// ---- Blocks of different sizes ------------------------------------------------------------------
// Collectives on blocks of different sizes, which Gaudi's library does not have and HCCL_STRICT=1
// refuses with hcclUnsupported. n is the number of ranks. Counts and displacements are arrays of n
// numbers, which the call reads before it returns. Both are in elements; a displacement is relative
// to the beginning of the buffer. If the displacements are null, the blocks are contiguous. The
// displacement of an empty block is ignored, and a buffer without elements may be null.
//
// Each call is queued like a collective and may be part of a group. In a group, the call is
// equivalent to n reduces, or to n sends and n receives, one of each with the rank itself. Each of
// these counts towards the limit of calls on the stream. If two ranks pass different counts for the
// same block, their calls and the communicator fail with hcclInvalidUsage before that block is
// written; other blocks may have been written. The errors are those of all collectives (see
// hccl.h), and hcclInvalidArgument for null counts, output blocks that overlap each other, an
// output that overlaps an input in any way other than in place, and sizes above 2^63 bytes. If the
// two counts that a rank passes for its own block in hcclEmulationAlltoAllV() differ, that call, or
// in a group hcclGroupEnd(), returns hcclInternalError.

// Gathers the blocks of all ranks on every rank: rank r sends counts[r] elements, which are stored
// at displacements[r] of `recvbuff`. All ranks pass the same counts; displacements may differ.
// In place: sendbuff == recvbuff + displacements[rank] elements.
hcclResult_t hcclEmulationAllGatherV(const void* sendbuff, void* recvbuff, const uint64_t* counts,
                                     const uint64_t* displacements, hcclDataType_t type,
                                     hcclComm_t comm, void* stream_handle);

// Reduces every rank's n blocks, element by element: block r has counts[r] elements and lies at
// displacements[r] of `sendbuff`. Rank r receives the result of block r. All ranks pass the same
// counts; displacements may differ. `op` is as in hcclReduceScatter().
// In place: recvbuff == sendbuff + displacements[rank] elements.
hcclResult_t hcclEmulationReduceScatterV(const void* sendbuff, void* recvbuff,
                                         const uint64_t* counts, const uint64_t* displacements,
                                         hcclDataType_t type, hcclRedOp_t op, hcclComm_t comm,
                                         void* stream_handle);

// Sends send_counts[p] elements from send_displacements[p] of `sendbuff` to rank p, and stores the
// recv_counts[p] elements from rank p at recv_displacements[p] of `recvbuff`, for every rank p. For
// each pair of ranks, the sender's count and the receiver's count must be equal.
// In place: never.
hcclResult_t hcclEmulationAlltoAllV(const void* sendbuff, const uint64_t* send_counts,
                                    const uint64_t* send_displacements, void* recvbuff,
                                    const uint64_t* recv_counts, const uint64_t* recv_displacements,
                                    hcclDataType_t type, hcclComm_t comm, void* stream_handle);

// ---- Receiving from any rank --------------------------------------------------------------------

// Waits, for at most `timeout_ms` milliseconds (0 polls), until another rank of the communicator
// has offered this rank a message for which no receive has been called. Writes the sending rank to
// `*source` and the message's size in bytes to `*bytes`, unless `bytes` is null. The message stays
// offered; the next hcclRecv() from that rank receives it. A message is offered as soon as its
// hcclSend() starts to run on the sender's stream. If receives from a rank are queued, messages
// from that rank are reported only after those receives have completed. Successive probes report
// the ranks round robin. Only one thread at a time may probe and then receive, because two threads
// might get the same message. Returns hcclBusy and writes nothing when the time has elapsed; in a
// communicator of one rank, immediately. Returns the code of the failure if the communicator fails
// or has failed.
// Blocks: for at most `timeout_ms`. hcclCommAbort() ends the wait. hcclCommDestroy() does not: it
// returns, but the probe keeps waiting until its time has elapsed.
// Errors: hcclInvalidArgument for an unknown communicator or a null `source`.
hcclResult_t hcclEmulationProbe(hcclComm_t comm, uint64_t timeout_ms, int* source, uint64_t* bytes);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif  // HCCL_EMULATION_H_
