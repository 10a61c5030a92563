// SPDX-License-Identifier: Apache-2.0
// The HCCL API: communicators and collective operations between devices.
//
// Buffers. A buffer is a device address as synDeviceMalloc() returns it, or one inside such an
// allocation, cast to a pointer; or, beyond Gaudi's library and refused under HCCL_STRICT=1, memory
// of this process, which costs two more copies. Counts are elements, never bytes.
// Host memory that cannot be accessed as the call needs it fails the communicator on all ranks with
// hcclInvalidArgument and a text that names the address; it must stay as it is until the operation
// has completed. Buffers belong to the caller: inputs must stay unchanged, and outputs are
// undefined, until the operation has completed on its stream.
//
// Order. A collective returns as soon as it is queued; it runs in the order of its stream (the
// synStreamHandle in the last argument), together with the copies, memsets and events of that
// stream. Its completion, and any failure after the call has returned, shows in
// synStreamSynchronize(), synEventSynchronize() and the query calls (synFailHccl), and in
// hcclCommGetAsyncError(). Behind a copy that has failed on its stream a call does not run, because
// its data may be wrong: it fails the communicator on all ranks, and the text tells of the copy
// (see "Failures" in synapse_api.h). All ranks of a communicator must issue its collectives in the
// same order with matching arguments; a mismatch fails on every rank before anything is written. A
// count of 0 is valid and only keeps the order.
//
// Types. Every hcclDataType_t, with hcclSum, hcclProd, hcclMin, hcclMax and hcclAvg. Gaudi's
// library, and HCCL_STRICT=1, take float, bfloat16, half, int32 and uint32 only, and neither
// hcclProd nor hcclAvg.
//
// Errors common to all collectives: hcclInvalidArgument for an unknown communicator, a null stream,
// a data type, reduction or root that is not acceptable, or a buffer that is no memory, leaves its
// allocation or overlaps in a way the function does not allow; hcclInvalidUsage for a stream that
// does not exist; hcclOutOfMemory if a buffer is host memory and the device has not the 1 MiB free
// that each stream of a communicator takes for such; and the code of the failure if the
// communicator has failed before. A call that returns an error has queued nothing. After a failure
// hcclGetLastErrorMessage() says what was wrong.
//
// Threads. Any number of host threads may call; calls on one stream are taken one after the other.
// A thread that pthread_cancel() is aimed at leaves the library first: a blocking call returns when
// it would without.
// In a child forked from a process that has initialised the library every call returns
// hcclInvalidUsage.
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

// Writes HCCL_VERSION_CODE of the library in use to `version`. hcclInvalidArgument if it is null.
hcclResult_t hcclGetVersion(int* version);

// A fixed sentence for a code, also for values that are no code. Never null; do not free it.
const char* hcclGetErrorString(hcclResult_t result);

// What was wrong in this thread's last hccl call, or null if it succeeded. The text stays valid
// until the next hccl call of the same thread; do not free it. Asking does not clear it.
const char* hcclGetLastErrorMessage(void);

// ---- Communicators ----------------------------------------------------------------------------

// Makes the id of a new communicator and starts its rendezvous in this process, which must live
// until every rank has joined; an id that is never used keeps its socket until the process ends. To
// be called on one rank; the program brings the id to the others. With HCCL_COMM_ID=address:port
// the process's first id uses that address, and the other ranks may pass a zeroed id. Does not wait
// for anybody. hcclInvalidArgument: `id` is null; hcclSocketError: the address cannot be used.
hcclResult_t hcclGetUniqueId(hcclUniqueId* id);

// Joins the communicator of `id` as `rank` of `nranks` and stores its handle in `comm`; blocks
// until all ranks have joined, or HCCL_INIT_TIMEOUT is over. Needs synInitialize() and an acquired
// device. Ranks may come in any order and before the id's maker does. The handle is ended by
// hcclCommDestroy() or hcclCommAbort(). hcclInvalidArgument: `comm` is null, `nranks` < 1, `rank`
// not in [0, nranks), or an id that hcclGetUniqueId() did not make while HCCL_COMM_ID is not set;
// hcclInvalidUsage: no device; hcclInternalError: ranks are missing after HCCL_INIT_TIMEOUT;
// hcclSystemError or hcclSocketError: a rank has died or cannot be reached (the text names it).
hcclResult_t hcclCommInitRank(hcclComm_t* comm, int nranks, hcclUniqueId id, int rank);

// Makes a communicator of `ndev` devices that this process holds, devlist[i] (a synDeviceId) as
// rank i, or device i if `devlist` is null, and stores their handles in comm[0] ... comm[ndev - 1];
// blocks until they have joined. Beyond Gaudi's library, where it always is hcclInvalidUsage, as it
// is here under HCCL_STRICT=1. hcclInvalidArgument: `comm` is null, `ndev` < 1, or a device that is
// not held or named twice; else like hcclCommInitRank().
hcclResult_t hcclCommInitAll(hcclComm_t* comm, int ndev, const int* devlist);

// Blocks until everything queued on the communicator, on any stream, has completed, or until it
// fails. May be called more than once; hcclCommDestroy() is still to follow. hcclInvalidArgument:
// unknown communicator. If the communicator has failed, on whatever rank and even if this rank's
// own work was complete before: the code that hcclCommGetAsyncError() gives.
hcclResult_t hcclCommFinalize(hcclComm_t comm);

// Finalizes and frees the communicator; the handle is unknown afterwards. A communicator that has
// failed is freed without waiting for other ranks. hcclInvalidArgument: null, unknown or already
// destroyed. hcclInvalidUsage: the open group of this thread has calls of the communicator; end the
// group first. Otherwise it may be destroyed within a group.
hcclResult_t hcclCommDestroy(hcclComm_t comm);

// Ends the communicator at once: what is queued or running on it fails, here and on the other
// ranks, every wait for it returns, and the handle is unknown afterwards. May be called while other
// threads wait. hcclInvalidArgument as for hcclCommDestroy(). (Gaudi's library waits for what is
// queued, like hcclCommDestroy().)
hcclResult_t hcclCommAbort(hcclComm_t comm);

// Writes to `asyncError` whether the communicator still works: hcclSuccess, or the code of the
// first failure; or hcclPortDown while this rank's RDMA port has no link, which fails nothing if it
// comes back before the retries are used up. Does not block. hcclInvalidArgument: unknown
// communicator or null `asyncError`.
hcclResult_t hcclCommGetAsyncError(hcclComm_t comm, hcclResult_t* asyncError);

// The text that belongs to the error hcclCommGetAsyncError() last reported, or null if there is
// none or the communicator is unknown. Valid until the communicator is destroyed; do not free it.
const char* hcclCommGetAsyncErrorMessage(hcclComm_t comm);

// Number of ranks. hcclInvalidArgument: unknown communicator or null `count`.
hcclResult_t hcclCommCount(hcclComm_t comm, int* count);

// The synDeviceId the communicator is bound to. hcclInvalidArgument: unknown communicator or null
// `device`. (Gaudi's library succeeds and writes nothing.)
hcclResult_t hcclCommSynDevice(hcclComm_t comm, int* device);

// This process's rank. hcclInvalidArgument: unknown communicator or null `rank`.
hcclResult_t hcclCommUserRank(hcclComm_t comm, int* rank);

// ---- Collectives ------------------------------------------------------------------------------
// n is the number of ranks. "In place" is the only overlap of the two buffers that is allowed.

// Element-wise reduction of every rank's `count` elements; only the root receives the result,
// `recvbuff` may be null elsewhere. In place: sendbuff == recvbuff on the root.
hcclResult_t hcclReduce(const void* sendbuff, void* recvbuff, size_t count, hcclDataType_t datatype,
                        hcclRedOp_t reduceOp, int root, hcclComm_t comm, void* stream_handle);

// hcclBroadcast(buff, buff, ...): the older, in-place form.
hcclResult_t hcclBcast(void* buff, size_t count, hcclDataType_t datatype, int root, hcclComm_t comm,
                       void* stream_handle);

// Copies the root's `count` elements to `recvbuff` of every rank, the root's own included. In
// place: sendbuff == recvbuff. `sendbuff` must be a valid buffer on all ranks.
hcclResult_t hcclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           hcclDataType_t datatype, int root, hcclComm_t comm, void* stream_handle);

// Element-wise reduction of every rank's `count` elements; all ranks receive the result, the same
// bits everywhere. In place: sendbuff == recvbuff.
hcclResult_t hcclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           hcclDataType_t datatype, hcclRedOp_t reduceOp, hcclComm_t comm,
                           void* stream_handle);

// Element-wise reduction of every rank's n * `recvcount` elements; rank r receives part r of the
// result, `recvcount` elements. In place: recvbuff == sendbuff + rank * recvcount elements.
hcclResult_t hcclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               hcclDataType_t datatype, hcclRedOp_t reduceOp, hcclComm_t comm,
                               void* stream_handle);

// Every rank receives the `sendcount` elements of all ranks, in rank order: n * `sendcount`
// elements. In place: sendbuff == recvbuff + rank * sendcount elements.
hcclResult_t hcclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           hcclDataType_t datatype, hcclComm_t comm, void* stream_handle);

// Sends part p of `sendbuff` to rank p and stores what rank p sends as part p of `recvbuff`.
// `count` is the total number of elements in either buffer, n parts of count / n;
// hcclInvalidArgument if n does not divide it. In place, which Gaudi's library does not do and
// HCCL_STRICT=1 refuses: sendbuff == recvbuff.
hcclResult_t hcclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                          hcclDataType_t datatype, hcclComm_t comm, void* stream_handle);

// Completes on the stream once every rank's stream has reached its barrier. The host does not wait.
// Gaudi's library, and HCCL_STRICT=1, return hcclUnsupported.
hcclResult_t hcclBarrier(hcclComm_t comm, void* stream_handle);

// ---- Point to point and groups ----------------------------------------------------------------

// Sends `count` elements to rank `peer`, which must receive the same count and type: else both
// fail, with hcclInvalidUsage. Sends and receives of a pair of ranks match in the order of the
// calls, whatever their streams. Each is complete when the peer has received; outside a group it
// occupies its stream until then. To oneself only within a group, whose sends and receives to
// oneself on one stream pair in order (hcclInternalError if one is left over).
hcclResult_t hcclSend(const void* sendbuff, size_t count, hcclDataType_t datatype, int peer,
                      hcclComm_t comm, void* stream_handle);

// The other side of hcclSend(): receives `count` elements from rank `peer`.
hcclResult_t hcclRecv(void* recvbuff, size_t count, hcclDataType_t datatype, int peer,
                      hcclComm_t comm, void* stream_handle);

// Between hcclGroupStart() and the matching hcclGroupEnd() of the same thread, operations are
// collected, and queued together by the outermost hcclGroupEnd(), whose success means queued and
// not completed. The sends and receives of a group progress together, so ranks that exchange in one
// group cannot block each other; collectives keep their order, and come before these. Argument
// errors are returned by the calls themselves, and leave the group open. Groups nest; a stream may
// have 1024 calls in one. hcclInvalidUsage: hcclGroupEnd() without a start, or a call too many.
// hcclInvalidArgument, from hcclGroupEnd(): a stream was destroyed within the group.
hcclResult_t hcclGroupStart(void);
hcclResult_t hcclGroupEnd(void);

// ---- Device -----------------------------------------------------------------------------------

// Exports the `size` bytes of device memory at `addr` as a dma-buf and stores its descriptor, then
// owned by the caller, in `fd`. The dma-buf begins with the page of `addr`: the memory lies at
// addr % 4096 in it. It keeps these pages, also when the memory is freed. 0 on success,
// hcclInvalidArgument (positive) if `fd` is null, else the negative code: -hcclInvalidArgument for
// a range that is not in one allocation, -hcclUnsupported where the system makes no dma-bufs (it
// needs /dev/udmabuf).
int hcclLookupDMABuff(uint64_t addr, uint64_t size, int* fd);

// Prepares the acquired device for communication, which acquiring it has already done. Both
// arguments must be null.
hcclResult_t hcclDeviceInit(void* device, void* context);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif  // HCCL_HCCL_H_
