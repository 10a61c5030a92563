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
// Calls take an address in the view for the device address of what it shows, so it can be a buffer
// of a collective, a message or a copy; where the system refuses to reserve an address range as
// long as the device memory (RLIMIT_AS), it is a buffer in host memory instead. Does not block.
// Errors: hcclInvalidArgument if the range is in no allocation, hcclOutOfMemory if it cannot be
// mapped.
hcclResult_t hcclEmulationHostView(uint64_t device_address, uint64_t size, void** view);

// The reverse: gives in `*device_address` the device address of the `size` bytes at `view`. Does
// not block. Errors: hcclInvalidArgument if `view` lies in no host view of memory that is
// allocated now, if the range leaves its allocation, or for a null pointer.
hcclResult_t hcclEmulationDeviceAddress(const void* view, uint64_t size, uint64_t* device_address);

// Whether processes forked from now on keep `size` bytes of device memory, inside one allocation:
// with `keep` 1, the child finds a private copy, as of the moment of the fork, at the same place in
// the host view, which stays ordinary memory of it and of its own children; with 0, which is how
// memory begins, that place is not mapped in the child. Freed memory is forgotten. Each fork copies
// what is kept, without its holes, while the thread that forks waits (tens of ms for 64 MiB; at
// most 10 s and 1 s for each GiB, after which the child does without) and other threads wait to
// allocate or free device memory. What they or queued work write meanwhile may be in the copy or
// not. vfork, posix_spawn and clone are untouched. Does not block, unless another thread forks.
// Errors: hcclInvalidArgument if the range is in no allocation, hcclOutOfMemory if its view cannot
// be mapped.
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

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif  // HCCL_EMULATION_H_
