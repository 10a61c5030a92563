/* SPDX-License-Identifier: Apache-2.0 */
/* What only emulated devices offer: kernels that are functions of the program, device memory seen
 * from the host, and what a communicator's calls have moved. A program that is to run on real
 * devices too launches its recipes there (synLaunch) and keeps its calls of this header in one
 * place. C99 and C++. */
#ifndef HCCL_EMULATION_H_
#define HCCL_EMULATION_H_

#include <hccl_types.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

// hcclEmulationBitAnd, hcclEmulationBitOr and hcclEmulationBitXor reduce bit by bit. They are
// values of hcclRedOp_t that hcclAllReduce(), hcclReduce() and hcclReduceScatter() take for integer
// types; a floating-point type is hcclInvalidArgument, and so is every type under HCCL_STRICT=1,
// because Gaudi's library has no such reductions. They reduce truth values (0 or 1 in an hcclUint8)
// by the logical and, or, and exclusive or.
#ifdef __cplusplus
#define hcclEmulationBitAnd static_cast<hcclRedOp_t>(64)
#define hcclEmulationBitOr static_cast<hcclRedOp_t>(65)
#define hcclEmulationBitXor static_cast<hcclRedOp_t>(66)
#else
#define hcclEmulationBitAnd ((hcclRedOp_t)64)
#define hcclEmulationBitOr ((hcclRedOp_t)65)
#define hcclEmulationBitXor ((hcclRedOp_t)66)
#endif

// Queues `kernel(arguments)` on a stream, in order with its copies, events and collectives, and
// returns at once. It runs on a thread of the library or on one that waits for the stream, so it
// must neither throw nor call the library; memory it uses it gets from hcclEmulationHostView
// beforehand. `arguments` stay the caller's and must live until it has run. Behind a failed copy it
// does not run (see "Failures" in synapse_api.h); behind a failed collective it does. Errors:
// hcclInvalidArgument for an unknown stream or a null kernel.
hcclResult_t hcclEmulationLaunch(void* stream_handle, void (*kernel)(void* arguments),
                                 void* arguments);

// Gives in `*view` where `size` bytes of device memory, inside one allocation, lie in the host's
// address space. The same for every call, valid until the memory is freed, also when the library
// moves the pages behind it after a failure. Writes are seen by work that is ordered after them.
// Calls take an address in the view for the device address of what it shows, so it can be a buffer
// of a collective, a message or a copy. That takes an address range as long as the device memory,
// which the first call reserves; where the system refuses it, or RLIMIT_AS would leave the process
// less than its length beside it, an address in a view is a buffer in host memory instead. Does not
// block. Errors: hcclInvalidArgument if the range is in no allocation, hcclOutOfMemory if it cannot
// be mapped.
hcclResult_t hcclEmulationHostView(uint64_t device_address, uint64_t size, void** view);

// The reverse: gives in `*device_address` the device address of the `size` bytes at `view`. Does
// not block. Errors: hcclInvalidArgument if `view` lies in no host view of memory that is
// allocated now, if the range leaves its allocation, or for a null pointer.
hcclResult_t hcclEmulationDeviceAddress(const void* view, uint64_t size, uint64_t* device_address);

// Sets how processes forked from now on see `size` bytes of device memory, inside one allocation.
// With `keep` 1, the child has a private copy, as of the moment of the fork, at the same place in
// the host view, which stays ordinary memory of it and of its own children. With 0, the default,
// that place is not mapped in the child. Freeing the memory ends the setting. Each fork copies the
// kept ranges, without their holes, while the thread that forks waits: tens of ms for 64 MiB on an
// idle machine, up to seconds per GiB on a busy one. Meanwhile all other uses of this rank's device
// memory wait too: its calls, and work of its streams and of collectives, for which other ranks
// then wait. The copy may or may not contain writes that are under way during the fork. After 10 s
// and 1 s for each GiB the fork goes on, and the child does without all of it, as it does where the
// process has no two file descriptors left; it does without a range for which it has no memory. The
// place is then not mapped in the child, and for the last two a warning is written to stderr.
// vfork, posix_spawn and clone are untouched. Handlers of pthread_atfork() may call the library in
// the process that forks, unless they were registered before it was loaded: such handlers run while
// device memory is locked, and must neither call it nor take a lock under which another thread
// does. Does not block, unless another thread forks. Errors: hcclInvalidArgument if the range is in
// no allocation, hcclOutOfMemory if its view cannot be mapped.
hcclResult_t hcclEmulationKeepAtFork(uint64_t device_address, uint64_t size, int keep);

// Gives the whole pages (of 4096 bytes, as the host view has them) inside `size` bytes of device
// memory, inside one allocation, back to the system. They read as zeros from then on and are there
// again when they are written. The rest of the range keeps its contents, all addresses stay valid.
// No work that uses the range may be queued or run meanwhile, on any rank: wait for the streams
// first. The next calls on buffers of the allocation look at all their pages once more, so trim
// seldom and much. Does not block for work. Errors: hcclInvalidArgument if the range is in no
// allocation, hcclSystemError if the system refuses.
hcclResult_t hcclEmulationTrim(uint64_t device_address, uint64_t size);

// How this rank's calls on a communicator run, and what the completed ones have moved over
// transports since it was made.
typedef struct {
  // Of the last call: "node" where all ranks share one node's memory, "copy" with one rank, else
  // its algorithm's name; "none" before the first.
  char algorithm[32];
  // "memory" in the first two cases, else the transport to the peer; to all: each once, as
  // "shm+tcp".
  char transport[32];
  uint64_t bytes_sent;  // payload, and 32 bytes for each call and stream that it uses
  uint64_t bytes_received;
  uint64_t sends;  // calls of the transport that moved at least one byte
  uint64_t receives;
} hcclEmulationTraffic_t;

// Writes to `*traffic` what has been exchanged with rank `peer`; with all other ranks if it is -1.
// Does not block; calls in progress are not counted yet. Errors: hcclInvalidArgument for an unknown
// communicator, a peer that is not another of its ranks, a null pointer.
hcclResult_t hcclEmulationTraffic(hcclComm_t comm, int peer, hcclEmulationTraffic_t* traffic);

typedef struct {
  const char* collective;  // "all_reduce", "broadcast", "all_gather", "reduce_scatter", "reduce",
                           // "all_to_all" or "barrier"
  uint64_t bytes;          // of the message, or of one rank's block of those that have blocks
  int root;                // of a broadcast or reduce
  int in_place;            // 1: the buffers are the same memory
  int json;                // 1: one JSON object, on one line; 0: text, a line for each step
} hcclEmulationPlanRequest_t;

// Writes to `buffer` how this rank would run the call on the communicator now: algorithm,
// transports, and its steps in every channel. At most `size` bytes, a closing zero among them;
// `*length` becomes the length of the whole, without it, and more than `size` - 1 if it did not fit
// (`buffer` may be null if `size` is 0). Sends nothing, does not block. Errors: hcclInvalidArgument
// for an unknown communicator or collective, a root that is none of its ranks, a null pointer.
hcclResult_t hcclEmulationPlan(hcclComm_t comm, const hcclEmulationPlanRequest_t* request,
                               char* buffer, uint64_t size, uint64_t* length);

// Sets how long calls of this rank on the communicator wait for other ranks before they fail, in
// milliseconds; 0: for ever. It counts as HCCL_TIMEOUT does, whose place it takes, for waits that
// begin from now on; others keep their limit. Other ranks and communicators keep theirs too, but
// a communicator that fails fails on all its ranks. Any thread at any time; does not block. Errors:
// hcclInvalidArgument for an unknown communicator.
hcclResult_t hcclEmulationSetTimeout(hcclComm_t comm, uint64_t milliseconds);

// A stream numbers the pieces of work queued on it from 1. What is queued between two readings of
// `*queued`, A and B, is the work in (A, B]: that of one call, if no other thread queues meanwhile.
// A call queues one piece or several, also events and waits for events that need one; a call of an
// open group none before hcclGroupEnd.

// Writes to `*queued` the position of the last piece of work that has been queued on the stream,
// and to `*completed` that of the last one that has run: all up to there has. Either may be null.
// Does not block, wakes no thread, makes no system call. Errors: hcclInvalidArgument for an unknown
// stream.
hcclResult_t hcclEmulationStreamPosition(void* stream_handle, uint64_t* queued,
                                         uint64_t* completed);

// A wait has no limit of its own.
#define HCCL_EMULATION_NO_TIMEOUT UINT64_MAX

// Waits until the work up to position `up_to` has run, at most `timeout_ms` milliseconds. With
// HCCL_EMULATION_NO_TIMEOUT the calling thread runs the work itself, as in synStreamSynchronize,
// and returns when it has run or failed; calls with other ranks fail after HCCL_TIMEOUT or the
// limit of hcclEmulationSetTimeout. With another limit it runs only what need not wait for other
// ranks, leaves the rest to the stream's thread, and sleeps, so that it returns in time whatever
// they do. With 0 it polls, and begins work that nobody waits for. Returns hcclSuccess if the work
// in (after, up_to] has succeeded, whatever has failed before or behind it. Returns hcclBusy if the
// work up to `up_to` has not run in time, which is no failure: nothing is logged, there is no
// message, and the caller may wait again. If work in the range has failed, returns the code of that
// failure, and hcclGetLastErrorMessage() gives its text; a failed copy goes before a failed
// collective. What is returned counts as reported, as by synEventSynchronize (see "Failures" in
// synapse_api.h), and is returned again for the same range. A stream remembers the last 256 runs of
// failed work, each of positions in a row with one failure; past that the two oldest become one, so
// that work between them that has succeeded counts as failed. Errors of the call itself:
// hcclInvalidArgument for an unknown stream, an `up_to` that has not been queued, or an `after`
// behind `up_to`.
hcclResult_t hcclEmulationStreamWait(void* stream_handle, uint64_t after, uint64_t up_to,
                                     uint64_t timeout_ms);

// Calls `callback` once when the work up to position `up_to` has run, with what
// hcclEmulationStreamWait would return for (after, up_to]: hcclSuccess and "", or a failure, which
// counts as reported then, and its text, which is valid during the call. Does not block; the work
// is begun although nobody waits for it. All callbacks run one after the other on one thread of the
// library, in order of positions for each stream, also if the work has run already; they may call
// the library, and should not block, because that delays the others. They must not throw; signals
// are blocked there. A callback may come after the stream has been destroyed, or a communicator has
// been aborted, for their work runs or fails first: `argument` must live until it has come.
// synDestroy returns after all of them, unless a callback calls it, so its caller must hold no lock
// that they take. None comes in a forked child. When the process exits, they end with an exit
// handler (atexit) that the first call of this function registers: until it runs, in the exit
// handlers registered after it, callbacks still come; it waits at most 200 ms for one that runs,
// and those that have not begun do not come. Errors: those of hcclEmulationStreamWait, a null
// callback; hcclSystemError or hcclOutOfMemory if the thread cannot be started or there is no
// memory. If the call fails, the callback does not come.
hcclResult_t hcclEmulationStreamNotify(void* stream_handle, uint64_t after, uint64_t up_to,
                                       void (*callback)(hcclResult_t result, const char* message,
                                                        void* argument),
                                       void* argument);

// ---- Blocks of different sizes ------------------------------------------------------------------
// Collectives whose ranks have blocks of different sizes, which Gaudi's library does not have and
// HCCL_STRICT=1 refuses with hcclUnsupported. n is the number of ranks. Counts and displacements
// are arrays of n elements, which the call reads before it returns. They count elements, and a
// displacement is one from the beginning of the buffer; null instead of displacements puts the
// blocks one behind the other. A block of no elements has no displacement, and a buffer without
// elements may be null.
//
// Each call is queued like a collective and takes part in groups. In a group it is equivalent to
// the calls it consists of: n reduces, or n sends and n receives, one of each to itself; each
// counts as a call on the stream. If two ranks pass different counts for the same block, both fail
// with hcclInvalidUsage, and with them the communicator, before that block is written; other blocks
// may have been written. Errors are those of all collectives (see hccl.h), and hcclInvalidArgument
// for null counts, blocks of an output that overlap, an output that overlaps an input other than in
// place, and sizes past 2^63 bytes.

// Every rank receives the blocks of all: rank r sends counts[r] elements, which are stored at
// displacements[r] of `recvbuff`. All ranks pass the same counts; displacements may differ. In
// place: sendbuff == recvbuff + displacements[rank] elements.
hcclResult_t hcclEmulationAllGatherV(const void* sendbuff, void* recvbuff, const uint64_t* counts,
                                     const uint64_t* displacements, hcclDataType_t type,
                                     hcclComm_t comm, void* stream_handle);

// Element-wise reduction of every rank's n blocks: block r has counts[r] elements and lies at
// displacements[r] of `sendbuff`; rank r receives the result of block r. All ranks pass the same
// counts; displacements may differ. `op` as in hcclReduceScatter(). In place: recvbuff == sendbuff
// + displacements[rank] elements.
hcclResult_t hcclEmulationReduceScatterV(const void* sendbuff, void* recvbuff,
                                         const uint64_t* counts, const uint64_t* displacements,
                                         hcclDataType_t type, hcclRedOp_t op, hcclComm_t comm,
                                         void* stream_handle);

// Sends send_counts[p] elements from send_displacements[p] of `sendbuff` to rank p, and stores the
// recv_counts[p] elements that rank p sends at recv_displacements[p] of `recvbuff`. What a rank
// expects from another must be what that one sends. Not in place.
hcclResult_t hcclEmulationAlltoAllV(const void* sendbuff, const uint64_t* send_counts,
                                    const uint64_t* send_displacements, void* recvbuff,
                                    const uint64_t* recv_counts, const uint64_t* recv_displacements,
                                    hcclDataType_t type, hcclComm_t comm, void* stream_handle);

// ---- Receiving from any rank --------------------------------------------------------------------

// Waits until another rank of the communicator has offered this one a message that no receive has
// been called for, for at most `timeout_ms` milliseconds (0: only looks), and writes the rank to
// `*source` and the message's size in bytes to `*bytes`, which may be null. hcclRecv() from that
// rank gets this message next; until then it stays offered. A message is offered as soon as its
// hcclSend() has its turn on the sender's stream; messages of a rank from which receives are queued
// are seen once those have completed. Ranks that have offered messages take turns. Blocks; whoever
// calls hcclCommAbort() meanwhile ends the wait. hcclCommDestroy() does not: it returns, and the
// probe waits until its time is over. Not for use while another thread receives from any rank in
// the same way: both may be told of one message. Returns hcclBusy, with nothing written, if the
// time is over (at once in a communicator of one rank), and the code of the failure if the
// communicator fails or has failed. Errors: hcclInvalidArgument for an unknown communicator or a
// null `source`.
hcclResult_t hcclEmulationProbe(hcclComm_t comm, uint64_t timeout_ms, int* source, uint64_t* bytes);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif  // HCCL_EMULATION_H_
