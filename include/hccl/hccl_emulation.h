// SPDX-License-Identifier: Apache-2.0
// Functions that only emulated devices have: kernels that are functions of the program, device
// memory seen from the host, and reports on what a communicator has moved. A program that also runs
// on real devices keeps its calls of this header in one place, and launches its recipes (synLaunch)
// there instead. C99 and C++.
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

// Bitwise reductions: values of hcclRedOp_t that hcclAllReduce(), hcclReduce() and
// hcclReduceScatter() take for integer types. On truth values (0 or 1 in an hcclUint8) they are the
// logical and, or, and exclusive or. A floating-point type is hcclInvalidArgument, and so is every
// type under HCCL_STRICT=1, because Gaudi's library has no such reductions.
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

// Queues `kernel(arguments)` on a stream, in order with its copies, events and collectives. The
// kernel runs on a thread of the library or on one that waits for the stream, so it must neither
// throw nor call the library; get the host views of the memory it uses beforehand. The caller owns
// `arguments`, which must live until the kernel has run. Behind a failed copy the kernel does not
// run (see "Failures" in synapse_api.h); behind a failed collective it does.
// Blocks: no.
// Errors: hcclInvalidArgument for an unknown stream or a null kernel.
hcclResult_t hcclEmulationLaunch(void* stream_handle, void (*kernel)(void* arguments),
                                 void* arguments);

// Writes to `*view` the place of `size` bytes of device memory, inside one allocation, in the
// host's address space. Every call gives the same place. It stays valid until the memory is freed,
// even when the library moves the pages behind it after a failure. Work that is ordered after a
// write to the view sees the write. Calls take an address in the view for the device address of
// that memory, so it can be a buffer of a collective, a message or a copy. For that the first call
// reserves an address range as long as the device memory. Where the system refuses it, or RLIMIT_AS
// would leave the process less than its length beside it, an address in a view is a buffer in host
// memory instead.
// Blocks: no.
// Errors: hcclInvalidArgument if the range is not in one allocation; hcclOutOfMemory if it cannot
// be mapped.
hcclResult_t hcclEmulationHostView(uint64_t device_address, uint64_t size, void** view);

// Writes to `*device_address` the device address of the `size` bytes at `view`: the reverse of
// hcclEmulationHostView().
// Blocks: no.
// Errors: hcclInvalidArgument if `view` lies in no host view of memory that is allocated now, if
// the range leaves its allocation, or for a null pointer.
hcclResult_t hcclEmulationDeviceAddress(const void* view, uint64_t size, uint64_t* device_address);

// Sets how processes forked from now on see `size` bytes of device memory, inside one allocation.
// With `keep` 1, a child gets a private copy, as of the moment of the fork, at the same place in
// the host view; it is ordinary memory of the child and of its own children. With `keep` 0, the
// default, that place is not mapped in the child. Freeing the memory ends the setting.
//
// A fork copies the kept ranges, without their holes, while the forking thread waits: tens of ms
// for 64 MiB on an idle machine, up to seconds per GiB on a busy one. Meanwhile all other uses of
// this rank's device memory wait: its calls, the work of its streams, and so collectives of other
// ranks. The copy may or may not contain writes that are under way during the fork. The fork goes
// on after 10 s plus 1 s for each GiB; the child then has none of the memory. It also has none if
// the process has fewer than two free descriptors. If there is no memory for a range, the child
// lacks that range. In the last two cases a warning is written to stderr. Memory that the child
// lacks is not mapped there.
//
// vfork(), posix_spawn() and clone() are untouched. Handlers of pthread_atfork() may call the
// library in the parent, unless they were registered before it was loaded: such handlers run while
// device memory is locked, and must neither call it nor take a lock under which another thread
// does.
// Blocks: only while another thread forks.
// Errors: hcclInvalidArgument if the range is not in one allocation; hcclOutOfMemory if its view
// cannot be mapped.
hcclResult_t hcclEmulationKeepAtFork(uint64_t device_address, uint64_t size, int keep);

// Gives the whole pages (of 4096 bytes, as in the host view) within `size` bytes of device memory,
// inside one allocation, back to the system. They read as zeros from then on and are allocated
// again when written. The rest of the range keeps its contents, and all addresses stay valid. No
// work that uses the range may be queued or running, on any rank: wait for the streams first. The
// next calls on buffers of the allocation look at all their pages once more, so trim seldom, and
// much at a time.
// Blocks: no.
// Errors: hcclInvalidArgument if the range is not in one allocation; hcclSystemError if the system
// refuses.
hcclResult_t hcclEmulationTrim(uint64_t device_address, uint64_t size);

// Checks that this process can read `size` bytes of its memory at `memory`, or also write them if
// `writable` is 1, for code that is about to do so by instructions, which would raise a signal.
// Keeps the contents of the memory, also while other threads and processes store to it, but brings
// its pages in: pages that were never touched are allocated if `writable` is 1, and those of a file
// are read. So pass the bytes that are used, not a span with large gaps. Looks at every page that
// the calling thread has not found accessible before, else at the mapping and at the first and the
// last page.
// Blocks: for as long as the system takes to bring the pages in.
// Errors: hcclInvalidArgument if the memory is null, not mapped, protected or past the end of its
// file (the text names the first such page); hcclSystemError if no descriptor is left to ask with.
hcclResult_t hcclEmulationCheckMemory(const void* memory, uint64_t size, int writable);

// ---- Traffic, plans and time limits -------------------------------------------------------------

// How this rank's calls on a communicator run, and what the completed ones have moved over
// transports since the communicator was created.
typedef struct hcclEmulationTraffic_t {
  // The path of the last call: "node" where all ranks share one node's memory, "copy" with one
  // rank, else the name of its algorithm; "none" before the first call.
  char algorithm[32];
  // "memory" for "node" and "copy", else the transport to the peer. To all peers: each transport
  // once, as "shm+tcp".
  char transport[32];
  uint64_t bytes_sent;  // payload, and 32 bytes for each call and stream that it uses
  uint64_t bytes_received;
  uint64_t sends;  // calls of the transport that moved at least one byte
  uint64_t receives;
} hcclEmulationTraffic_t;

// Writes to `*traffic` what this rank has exchanged with rank `peer`, or with all other ranks if
// `peer` is -1. Calls in progress do not count yet.
// Blocks: no.
// Errors: hcclInvalidArgument for an unknown communicator, a peer that is not another of its ranks,
// or a null pointer.
hcclResult_t hcclEmulationTraffic(hcclComm_t comm, int peer, hcclEmulationTraffic_t* traffic);

// The call that hcclEmulationPlan() describes.
typedef struct hcclEmulationPlanRequest_t {
  const char* collective;  // "all_reduce", "broadcast", "all_gather", "reduce_scatter", "reduce",
                           // "all_to_all" or "barrier"
  uint64_t bytes;          // of the message, or of one rank's block of those that have blocks
  int root;                // of a broadcast or reduce
  int in_place;            // 1: the buffers are the same memory
  int json;                // 1: one JSON object, on one line; 0: text, a line for each step
} hcclEmulationPlanRequest_t;

// Writes to `buffer` how this rank would run a call on the communicator now: the algorithm, the
// transports, and the steps in every channel. Writes at most `size` bytes, with a closing zero
// among them. `*length` becomes the length of the whole text without the zero; it did not fit if
// that is more than `size` - 1. `buffer` may be null if `size` is 0. Sends nothing.
// Blocks: no.
// Errors: hcclInvalidArgument for an unknown communicator or collective, a root that is not one of
// its ranks, or a null pointer.
hcclResult_t hcclEmulationPlan(hcclComm_t comm, const hcclEmulationPlanRequest_t* request,
                               char* buffer, uint64_t size, uint64_t* length);

// Sets how long calls of this rank on the communicator wait for other ranks before they fail, in
// milliseconds; 0 means for ever. It replaces HCCL_TIMEOUT for waits that begin from now on. Other
// ranks and communicators keep their limits, but a communicator that fails fails on all its ranks.
// Any thread may call at any time.
// Blocks: no.
// Errors: hcclInvalidArgument for an unknown communicator.
hcclResult_t hcclEmulationSetTimeout(hcclComm_t comm, uint64_t milliseconds);

// ---- Positions in streams -----------------------------------------------------------------------
// A stream numbers the pieces of work queued on it from 1. Between two readings A and B of
// `*queued`, the work in (A, B] has been queued: that of one call, if no other thread queues
// meanwhile. A call queues one piece or more. Recording an event, and a stream's wait for one,
// queue a piece only if they need one. A call in an open group queues none before hcclGroupEnd().

// Writes to `*queued` the position of the last piece of work that has been queued on the stream,
// and to `*completed` that of the last one that has run; all before it have run too. Either pointer
// may be null. Wakes no thread and makes no system call.
// Blocks: no.
// Errors: hcclInvalidArgument for an unknown stream.
hcclResult_t hcclEmulationStreamPosition(void* stream_handle, uint64_t* queued,
                                         uint64_t* completed);

// A value of `timeout_ms` with which a wait has no limit of its own.
#define HCCL_EMULATION_NO_TIMEOUT UINT64_MAX

// Waits until the work up to position `up_to` has run, for at most `timeout_ms` milliseconds, and
// returns how the work in (after, up_to] ended, whatever failed before or behind it:
// - hcclSuccess if it has succeeded;
// - hcclBusy if the work up to `up_to` has not run in time. That is not a failure: nothing is
//   logged, there is no message, and the caller may wait again;
// - the code of the failure if work in the range has failed. hcclGetLastErrorMessage() gives its
//   text. A failed copy goes before a failed collective.
//
// With HCCL_EMULATION_NO_TIMEOUT the calling thread runs the work itself, as in
// synStreamSynchronize(). Calls with other ranks then fail after HCCL_TIMEOUT or the limit of
// hcclEmulationSetTimeout(). With another limit the thread runs only work that need not wait for
// other ranks, leaves the rest to the stream's own thread and sleeps, so that it returns in time
// whatever the ranks do. With 0 it polls, and begins work that nobody waits for.
//
// A failure that is returned counts as reported, as by synEventSynchronize() (see "Failures" in
// synapse_api.h), and is returned again for the same range. A stream remembers the last 256 runs of
// failed work, each of positions in a row with one failure. Past that the two oldest become one, so
// work between them that has succeeded counts as failed.
// Blocks: for at most `timeout_ms`.
// Errors: hcclInvalidArgument for an unknown stream, an `up_to` that has not been queued, or an
// `after` behind `up_to`.
hcclResult_t hcclEmulationStreamWait(void* stream_handle, uint64_t after, uint64_t up_to,
                                     uint64_t timeout_ms);

// Calls `callback` once when the work up to position `up_to` has run, with the result that
// hcclEmulationStreamWait() would return for (after, up_to], which then counts as reported, and its
// text: "" for hcclSuccess. The text is valid during the callback. The work begins although nobody
// waits for it.
//
// One thread of the library runs all callbacks one after the other, in order of positions for each
// stream, even if the work has run already. Signals are blocked there. Callbacks may call the
// library. They must not throw, and should not block, because that delays the others. A callback
// may come after the stream has been destroyed or the communicator aborted, because their work runs
// or fails first: `argument` must live until it has come. None comes in a forked child, and none if
// this call fails.
//
// synDestroy() returns after all callbacks, unless one of them calls it, so its caller must hold no
// lock that they take. When the process exits, callbacks end with an exit handler (atexit) that the
// first call of this function registers. Exit handlers registered later run before it, and
// callbacks still come meanwhile. The handler waits at most 200 ms for a callback that is running,
// and those that have not begun do not come.
// Blocks: no.
// Errors: those of hcclEmulationStreamWait(); hcclInvalidArgument for a null callback;
// hcclSystemError or hcclOutOfMemory if the thread cannot be started or there is no memory.
hcclResult_t hcclEmulationStreamNotify(void* stream_handle, uint64_t after, uint64_t up_to,
                                       void (*callback)(hcclResult_t result, const char* message,
                                                        void* argument),
                                       void* argument);

// ---- Blocks of different sizes ------------------------------------------------------------------
// Collectives on blocks of different sizes, which Gaudi's library does not have and HCCL_STRICT=1
// refuses with hcclUnsupported. n is the number of ranks. Counts and displacements are arrays of n
// elements, which the call reads before it returns. They count elements; a displacement counts from
// the beginning of the buffer. Null in place of displacements puts the blocks one behind the other.
// A block of no elements has no displacement, and a buffer without elements may be null.
//
// Each call is queued like a collective and takes part in groups. In a group it is equivalent to
// the calls it consists of, each of which counts as a call on the stream: n reduces, or n sends and
// n receives, one of each to itself. If two ranks pass different counts for the same block, both
// fail with hcclInvalidUsage, and with them the communicator, before that block is written; other
// blocks may have been written. Errors are those of all collectives (see hccl.h), and
// hcclInvalidArgument for null counts, blocks of an output that overlap, an output that overlaps an
// input other than in place, and sizes past 2^63 bytes.

// Gives every rank the blocks of all: rank r sends counts[r] elements, which are stored at
// displacements[r] of `recvbuff`. All ranks pass the same counts; displacements may differ.
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
// recv_counts[p] elements that rank p sends at recv_displacements[p] of `recvbuff`. A rank must
// expect from another as many as that one sends.
// In place: never.
hcclResult_t hcclEmulationAlltoAllV(const void* sendbuff, const uint64_t* send_counts,
                                    const uint64_t* send_displacements, void* recvbuff,
                                    const uint64_t* recv_counts, const uint64_t* recv_displacements,
                                    hcclDataType_t type, hcclComm_t comm, void* stream_handle);

// ---- Receiving from any rank --------------------------------------------------------------------

// Waits until another rank of the communicator has offered this one a message for which no receive
// has been called, for at most `timeout_ms` milliseconds (0 only looks). Writes the rank to
// `*source` and the message's size in bytes to `*bytes`, which may be null. hcclRecv() from that
// rank gets this message next; until then it stays offered. A message is offered as soon as its
// hcclSend() has its turn on the sender's stream. Messages of a rank from which receives are queued
// show once those have completed. Ranks that have offered messages take turns. No other thread may
// receive from any rank in the same way meanwhile: both might be told of one message. Returns
// hcclBusy, with nothing written, if the time is over (at once in a communicator of one rank), and
// the code of the failure if the communicator fails or has failed.
// Blocks: for at most `timeout_ms`. hcclCommAbort() ends the wait. hcclCommDestroy() does not: it
// returns, and the probe waits until its time is over.
// Errors: hcclInvalidArgument for an unknown communicator or a null `source`.
hcclResult_t hcclEmulationProbe(hcclComm_t comm, uint64_t timeout_ms, int* source, uint64_t* bytes);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif  // HCCL_EMULATION_H_
