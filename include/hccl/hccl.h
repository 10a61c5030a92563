// SPDX-License-Identifier: Apache-2.0
// The HCCL API: communicators and collective operations between devices.
//
// Buffers. A buffer argument is a device address cast to a pointer: an address that
// synDeviceMalloc() returned, or one inside that allocation. Unlike Gaudi's library, hccl also
// accepts ordinary host memory of the process, which may cost additional copies; HCCL_STRICT=1
// refuses such buffers. Counts are numbers of elements, never of bytes. The caller owns the
// buffers. Until an operation has completed on its stream, its inputs must not change, its outputs
// are undefined, and the memory must stay mapped. If the process cannot read a host input or cannot
// write a host output, the communicator fails on all ranks with hcclInvalidArgument, and the error
// text names the address. If an earlier operation has used the same buffer, only its first and its
// last page are checked: a signal may end the process if the program has since protected pages in
// between, or replaced them by a mapping that does not allow the access. A program that unmaps or
// protects a buffer must first learn from this API that the operation has completed.
//
// Order. A collective returns as soon as it is queued. It runs on its stream (the synStreamHandle
// in the last argument), in order with that stream's copies, memsets and events.
// synStreamSynchronize(), synEventSynchronize(), synStreamQuery() and synEventQuery() report its
// completion or its failure (synFailHccl); hcclCommGetAsyncError() reports the failure too. All
// ranks of a communicator must issue its collectives in the same order with matching arguments; a
// mismatch fails the communicator on all ranks before any output is written. A count of 0 is valid:
// the call moves no data, but all ranks must make it. A collective that is queued after a failed
// copy on the same stream does not run, because its input may be wrong; the communicator then fails
// on all ranks, and the error text names the copy (see "Failures" in synapse_api.h).
//
// Types. Collectives accept every hcclDataType_t, and the reductions hcclSum, hcclProd, hcclMin,
// hcclMax and hcclAvg. Gaudi's library supports only float, bfloat16, half, int32 and uint32, and
// neither hcclProd nor hcclAvg. HCCL_STRICT=1 refuses what Gaudi's library does not support.
//
// Errors. A collective, send or receive that returns an error has queued nothing, unless
// HCCL_BLOCKING=1 makes it return the failure of the queued work. hcclGetLastErrorMessage()
// describes the error. In addition to the errors that their docstrings list under "Errors:", all
// collectives, sends and receives return
// - hcclInvalidArgument for an argument that is not valid, such as an unknown communicator or
//   stream, an out-of-range data type, reduction, root or peer, a count that is too large, a stream
//   or buffer of another device, or a buffer that is not mapped, extends past its allocation, or
//   overlaps the other buffer in a way that the function does not allow;
// - hcclOutOfMemory if a buffer is in host memory and the device has no room for the staging buffer
//   (about 5 MiB for each stream of a communicator);
// - the code of the failure if the communicator has already failed.
//
// Threads. Any number of host threads may call the library; calls on one stream take effect one
// after the other. pthread_cancel() takes effect when the thread leaves the library, and does not
// shorten a blocking call. In a child forked from a process that has initialised the library, every
// function that returns an hcclResult_t returns hcclInvalidUsage. Functions without a "Blocks:"
// line do not block, except that a call that queues work waits while its stream's queue is full
// and, under HCCL_BLOCKING=1, until the work has run.
//
// Example. An all-reduce of `count` floats on one of `n` ranks, each of which has acquired a device
// (synapse_api.h); rank 0 has passed `id`, from hcclGetUniqueId(), to the others:
//
//   hcclComm_t comm;
//   hcclCommInitRank(&comm, n, id, rank);
//   hcclAllReduce(input, output, count, hcclFloat32, hcclSum, comm, stream);
//   synStreamSynchronize(stream);
//   hcclCommDestroy(comm);
#ifndef HCCL_HCCL_H_
#define HCCL_HCCL_H_

#include "hccl_types.h"

#include <stddef.h>
#include <stdint.h>

#define HCCL_P2P_SUPPORTED 1

#ifndef HCCL_WRAPPER_USE_STREAM
#define HCCL_WRAPPER_USE_STREAM 1
#endif
#if HCCL_WRAPPER_USE_STREAM == 0
#error "HCCL_WRAPPER_USE_STREAM=0 is not supported: every operation takes a stream"
#endif

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

// ---- Versions and errors ----------------------------------------------------------------------

// Writes the version of the loaded library to `version`, encoded like HCCL_VERSION_CODE.
// Errors: hcclInvalidArgument if `version` is null.
hcclResult_t hcclGetVersion(int* version);

// Returns a static text that describes a result code. Never returns null: all unknown codes share
// one text. Do not free it.
const char* hcclGetErrorString(hcclResult_t result);

// Returns the error text of this thread's last hccl call, or null if that call succeeded or
// returned hcclBusy. Reading the text does not clear it. The text stays valid until the same
// thread's next hccl call; do not free it.
const char* hcclGetLastErrorMessage(void);

// ---- Communicators ----------------------------------------------------------------------------

// Creates the id of a new communicator and starts its rendezvous in this process. Call it on one
// rank only, and pass the id to the other ranks out of band (a file, MPI, a key-value store). This
// process must live until every rank has joined. The socket of an id that is never used stays open
// until the process ends. With HCCL_COMM_ID=address:port, the first id that the process creates
// uses that address, and the other ranks may pass an all-zero id.
// Blocks: for at most 2 s, while another process listens on the address in HCCL_COMM_ID; also while
// name servers resolve a host name in HCCL_COMM_ID, at most HCCL_INIT_TIMEOUT.
// Errors: hcclInvalidArgument if `id` is null, if an environment variable is malformed, or if this
// machine does not have the address in HCCL_COMM_ID or an interface in HCCL_SOCKET_IFNAME;
// hcclSocketError if the process cannot listen on the address, or if no name server answers;
// hcclSystemError if no interface can be used or a system call fails.
hcclResult_t hcclGetUniqueId(hcclUniqueId* id);

// Joins, as rank `rank` of `nranks`, the communicator that `id` identifies, and stores the handle
// in `comm`. Needs synInitialize() and an acquired device: uses the device that the calling thread
// acquired last, or else the first device of the process. Ranks may join in any order, even before
// the process that created the id. The handle is valid until hcclCommDestroy() or hcclCommAbort().
// Blocks: until all ranks have joined, at most HCCL_INIT_TIMEOUT.
// Errors: hcclInvalidArgument if `comm` is null, `nranks` is not in [1, 4096], `rank` is not in
// [0, nranks), ranks pass different `nranks`, or hcclGetUniqueId() did not create the id and
// HCCL_COMM_ID is not set; hcclInvalidUsage without a device, or if two ranks pass the same `rank`;
// hcclInternalError if ranks are missing after HCCL_INIT_TIMEOUT; hcclSystemError or
// hcclSocketError if a rank, which the text names, has died or cannot be reached.
hcclResult_t hcclCommInitRank(hcclComm_t* comm, int nranks, hcclUniqueId id, int rank);

// Creates a communicator whose ranks are `ndev` devices that this process holds, and stores their
// handles in comm[0] ... comm[ndev - 1]. Rank i uses device devlist[i] (a synDeviceId), or device i
// if `devlist` is null. Gaudi's library always returns hcclInvalidUsage, as hccl does under
// HCCL_STRICT=1.
// Blocks: until the devices have joined, at most HCCL_INIT_TIMEOUT.
// Errors: hcclInvalidArgument if `comm` is null, `ndev` < 1, `devlist` names a device twice, or a
// device is not acquired by this process; otherwise those of hcclCommInitRank().
hcclResult_t hcclCommInitAll(hcclComm_t* comm, int ndev, const int* devlist);

// Waits until all work that is queued on the communicator, on any stream, has run. May be called
// more than once. Does not free the communicator: call hcclCommDestroy() as well.
// Blocks: until the work has run or the communicator fails.
// Errors: hcclInvalidArgument for an unknown communicator; the code of hcclCommGetAsyncError() if
// the communicator has failed on any rank, even if this rank's own work had completed before.
hcclResult_t hcclCommFinalize(hcclComm_t comm);

// Finalises and frees the communicator; the handle is invalid afterwards. Succeeds even if the
// communicator has failed.
// Blocks: like hcclCommFinalize().
// Errors: hcclInvalidArgument if the communicator is null, unknown or already destroyed;
// hcclInvalidUsage if the calling thread's open group contains calls on the communicator; end the
// group first. A communicator without calls in the group may be destroyed before the group ends.
hcclResult_t hcclCommDestroy(hcclComm_t comm);

// Aborts the communicator immediately: queued and running operations fail on all ranks, calls that
// wait for them return, and the handle is invalid afterwards. May be called while other threads
// wait for its operations. Gaudi's library waits for queued work, like hcclCommDestroy(); hccl does
// not.
// Blocks: no.
// Errors: hcclInvalidArgument if the communicator is null, unknown or already destroyed.
hcclResult_t hcclCommAbort(hcclComm_t comm);

// Writes the communicator's state to `asyncError`: hcclSuccess while it works, or the code of its
// first failure, or hcclPortDown while this rank's RDMA port has no link. hcclPortDown is not a
// failure: the communicator fails only if the link does not come back before the retries are
// exhausted.
// Blocks: no.
// Errors: hcclInvalidArgument for an unknown communicator or a null `asyncError`.
hcclResult_t hcclCommGetAsyncError(hcclComm_t comm, hcclResult_t* asyncError);

// Returns the text of the error that hcclCommGetAsyncError() currently reports, or null if there is
// none or the communicator is unknown. The text stays valid until the communicator is destroyed; do
// not free it.
const char* hcclCommGetAsyncErrorMessage(hcclComm_t comm);

// Writes the communicator's number of ranks to `count`.
// Errors: hcclInvalidArgument for an unknown communicator or a null `count`.
hcclResult_t hcclCommCount(hcclComm_t comm, int* count);

// Writes the synDeviceId of the communicator's device to `device`. Gaudi's library succeeds but
// writes nothing.
// Errors: hcclInvalidArgument for an unknown communicator or a null `device`.
hcclResult_t hcclCommSynDevice(hcclComm_t comm, int* device);

// Writes this handle's rank in the communicator to `rank`.
// Errors: hcclInvalidArgument for an unknown communicator or a null `rank`.
hcclResult_t hcclCommUserRank(hcclComm_t comm, int* rank);

// ---- Collectives ------------------------------------------------------------------------------
// n is the number of ranks. The two buffers may overlap only as the line "In place:" states.

// Reduces the `count` elements of every rank, element by element, and stores the result in
// `recvbuff` of the root. On other ranks, `recvbuff` is not used and may be null.
// In place: sendbuff == recvbuff on the root.
hcclResult_t hcclReduce(const void* sendbuff, void* recvbuff, size_t count, hcclDataType_t datatype,
                        hcclRedOp_t reduceOp, int root, hcclComm_t comm, void* stream_handle);

// The older, in-place form of hcclBroadcast(): hcclBroadcast(buff, buff, ...).
hcclResult_t hcclBcast(void* buff, size_t count, hcclDataType_t datatype, int root, hcclComm_t comm,
                       void* stream_handle);

// Copies the root's `count` elements to `recvbuff` of every rank, including the root. `sendbuff`
// must be a valid buffer on all ranks.
// In place: sendbuff == recvbuff. The root then only reads its buffer.
hcclResult_t hcclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           hcclDataType_t datatype, int root, hcclComm_t comm, void* stream_handle);

// Reduces the `count` elements of every rank, element by element. All ranks receive the result,
// which is bitwise identical on all of them.
// In place: sendbuff == recvbuff.
hcclResult_t hcclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           hcclDataType_t datatype, hcclRedOp_t reduceOp, hcclComm_t comm,
                           void* stream_handle);

// Reduces the n * `recvcount` elements of every rank, element by element. Rank r receives the
// `recvcount` elements of the result that begin at element r * `recvcount`.
// In place: recvbuff == sendbuff + rank * recvcount elements.
hcclResult_t hcclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               hcclDataType_t datatype, hcclRedOp_t reduceOp, hcclComm_t comm,
                               void* stream_handle);

// Gathers the `sendcount` elements of every rank on all ranks: `recvbuff` receives n * `sendcount`
// elements, in rank order.
// In place: sendbuff == recvbuff + rank * sendcount elements.
hcclResult_t hcclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           hcclDataType_t datatype, hcclComm_t comm, void* stream_handle);

// Sends block p of `sendbuff` to rank p, and stores the block from rank p as block p of `recvbuff`,
// for every rank p. Each buffer has `count` elements, in n blocks of count / n elements.
// In place: sendbuff == recvbuff, which Gaudi's library does not support and HCCL_STRICT=1 refuses.
// Errors: hcclInvalidArgument if `count` is not a multiple of n.
hcclResult_t hcclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                          hcclDataType_t datatype, hcclComm_t comm, void* stream_handle);

// Queues a barrier: later work on the stream runs only after the streams of all ranks have reached
// their barriers. Does not block the host. Gaudi's library returns hcclUnsupported, as does hccl
// under HCCL_STRICT=1.
hcclResult_t hcclBarrier(hcclComm_t comm, void* stream_handle);

// ---- Point to point and groups ----------------------------------------------------------------

// Sends `count` elements to rank `peer`, which must receive the same count and type. The sends of a
// rank to a peer match the peer's receives in the order of the calls, regardless of streams. A send
// completes when its buffer may be overwritten, which may be as late as the peer's receive. Outside
// a group, the send occupies its stream until then. A rank may send to itself only within a group:
// on each stream, its first send to itself is paired with its first receive from itself, and so on.
// Errors: hcclInvalidUsage on both ranks, reported after the calls have returned (see "Order"), if
// count or type differs; hcclInternalError if a send to self has no matching receive (or vice
// versa), or if the two differ in count or type. In a group, hcclGroupEnd() returns this
// hcclInternalError.
hcclResult_t hcclSend(const void* sendbuff, size_t count, hcclDataType_t datatype, int peer,
                      hcclComm_t comm, void* stream_handle);

// Receives `count` elements from rank `peer`: the counterpart of hcclSend().
hcclResult_t hcclRecv(void* recvbuff, size_t count, hcclDataType_t datatype, int peer,
                      hcclComm_t comm, void* stream_handle);

// Begin and end a group of the calling thread. Operations that the thread issues within the group
// are collected, and the outermost hcclGroupEnd() queues them together. When that call succeeds,
// the operations are queued, but need not have completed. When it fails, some of the operations may
// be queued. The sends and receives of a group progress concurrently, so ranks that exchange
// messages in one group cannot block each other. The collectives of a group run in the order of the
// calls, and before its sends and receives on the same stream. Groups nest. A group may have at
// most 1024 calls on each stream. A call in a group reports its argument errors immediately; the
// group stays open.
// Errors: hcclInvalidUsage from hcclGroupEnd() without a matching hcclGroupStart(), and from the
// 1025th call on a stream; hcclInvalidArgument from hcclGroupEnd() if a stream that the group uses
// has been destroyed; from hcclGroupEnd() also hcclInternalError (see hcclSend()), and the code of
// the failure if a communicator that the group uses has failed.
hcclResult_t hcclGroupStart(void);
hcclResult_t hcclGroupEnd(void);

// ---- Device -----------------------------------------------------------------------------------

// Exports the `size` bytes of device memory at `addr` as a dma-buf and stores its file descriptor,
// which the caller must close, in `fd`. The dma-buf begins with the page that contains `addr`, so
// the memory is at offset addr % 4096. The dma-buf keeps its pages allocated even after the memory
// is freed. Returns 0 on success.
// Errors: hcclInvalidArgument (positive) if `fd` is null; otherwise negative codes:
// -hcclInvalidArgument for a range that is empty or not within one allocation, -hcclUnsupported if
// the system cannot create dma-bufs, which requires /dev/udmabuf.
int hcclLookupDMABuff(uint64_t addr, uint64_t size, int* fd);

// Has no effect, because acquiring a device also prepares it for communication. Both arguments must
// be null.
// Errors: hcclInvalidArgument if an argument is not null.
hcclResult_t hcclDeviceInit(void* device, void* context);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif  // HCCL_HCCL_H_
