// SPDX-License-Identifier: Apache-2.0
// A library that is preloaded into hccl-perf and intercepts calls to HCCL. PERF_TEST_FAULT selects
// the fault that it injects:
//   short | long          every all-reduce omits its last element | writes one element too many
//   shifted               every message is sent from an address that is 4 bytes too high
//   missing:R             rank R's all-reduces read the receive buffer instead of the input
//   rotate                out-of-place all-reduces reduce the last rank's input first
//   die:R | stall:R       rank R kills itself | blocks forever at its third all-reduce
//   die_early:R           rank R kills itself when it joins
#include <hccl.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <unistd.h>

namespace {

const char* fault() {
  const char* value = std::getenv("PERF_TEST_FAULT");
  return value == nullptr ? "" : value;
}

bool is_fault_of(const char* kind, int rank) {
  return std::string(fault()) == std::string(kind) + std::to_string(rank);
}

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void break_rank(int rank) {
  if (is_fault_of("die:", rank)) std::raise(SIGKILL);
  while (is_fault_of("stall:", rank)) pause();
}

// Queues a send of the input to the next rank, and a receive of the previous rank's input. Returns
// the receive buffer.
const void* rotated(const void* send, void* receive, size_t count, hcclDataType_t type,
                    hcclComm_t communicator, void* stream) {
  int rank = -1;
  int ranks = 0;
  hcclCommUserRank(communicator, &rank);
  hcclCommCount(communicator, &ranks);
  hcclGroupStart();
  hcclSend(send, count, type, (rank + 1) % ranks, communicator, stream);
  hcclRecv(receive, count, type, (rank + ranks - 1) % ranks, communicator, stream);
  hcclGroupEnd();
  return receive;
}

}  // namespace

extern "C" hcclResult_t hcclCommInitRank(hcclComm_t* communicator, int ranks, hcclUniqueId id,
                                         int rank) {
  if (is_fault_of("die_early:", rank)) std::raise(SIGKILL);
  return real<decltype(&hcclCommInitRank)>("hcclCommInitRank")(communicator, ranks, id, rank);
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): reduceOp is not our style
extern "C" hcclResult_t hcclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                      hcclDataType_t datatype, hcclRedOp_t reduce_op,
                                      hcclComm_t comm, void* stream_handle) {
  static std::atomic<int> calls{0};
  int rank = -1;
  hcclCommUserRank(comm, &rank);
  if (++calls == 3) break_rank(rank);
  if (std::strcmp(fault(), "short") == 0 && count > 0) --count;
  if (std::strcmp(fault(), "long") == 0) ++count;
  if (is_fault_of("missing:", rank)) sendbuff = recvbuff;  // no change for a call in place
  if (std::strcmp(fault(), "rotate") == 0 && sendbuff != recvbuff)
    sendbuff = rotated(sendbuff, recvbuff, count, datatype, comm, stream_handle);
  return real<decltype(&hcclAllReduce)>("hcclAllReduce")(sendbuff, recvbuff, count, datatype,
                                                         reduce_op, comm, stream_handle);
}

extern "C" hcclResult_t hcclSend(const void* sendbuff, size_t count, hcclDataType_t datatype,
                                 int peer, hcclComm_t comm, void* stream_handle) {
  if (std::strcmp(fault(), "shifted") == 0) sendbuff = static_cast<const char*>(sendbuff) + 4;
  return real<decltype(&hcclSend)>("hcclSend")(sendbuff, count, datatype, peer, comm,
                                               stream_handle);
}
