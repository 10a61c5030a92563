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
// Does not block. Errors: hcclInvalidArgument if the range is in no allocation, hcclOutOfMemory if
// it cannot be mapped.
hcclResult_t hcclEmulationHostView(uint64_t device_address, uint64_t size, void** view);

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
// they do. With 0 it asks, and begins work that nobody waits for. Returns hcclSuccess if the work
// in (after, up_to] has succeeded, whatever has failed before or behind it. Returns hcclBusy if the
// work up to `up_to` has not run in time, which is no failure: nothing is logged, there is no
// message, and the caller may wait again. If work in the range has failed, returns the code of that
// failure, and hcclGetLastErrorMessage() gives its text; a failed copy goes before a failed
// collective. What is returned counts as reported, as by synEventSynchronize (see "Failures" in
// synapse_api.h), and is returned again for the same range. Errors of the call itself:
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
// are blocked there. A callback may come after the stream has been destroyed, or a communicator
// has been aborted, for their work runs or fails first: `argument` must live until it has come.
// synDestroy returns after all of them, unless a callback calls it, so its caller must hold no lock
// that they take. They do not come any more while the process exits, nor in a forked child. Errors:
// those of hcclEmulationStreamWait, a null callback; hcclSystemError or hcclOutOfMemory if the
// thread cannot be started or there is no memory. If the call fails, the callback does not come.
hcclResult_t hcclEmulationStreamNotify(void* stream_handle, uint64_t after, uint64_t up_to,
                                       void (*callback)(hcclResult_t result, const char* message,
                                                        void* argument),
                                       void* argument);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif  // HCCL_EMULATION_H_
