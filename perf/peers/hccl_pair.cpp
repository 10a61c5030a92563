// SPDX-License-Identifier: Apache-2.0
// One of two ranks on different nodes, for the comparison over RoCE (roce.py). RANK and
// HCCL_COMM_ID give the rank and the rendezvous address.
//   hccl_pair ping_pong|exchange|all_reduce BYTES CALLS
// A call of ping_pong is a round trip, and a call of exchange is one message in each direction at
// the same time. Rank 0 prints the microseconds per call: the median and the mean.
#include "addresses.h"
#include "pair.h"

#include <hccl.h>
#include <synapse_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using peers::pointer;

void check(int code, const char* call, const char* text) {
  if (code == 0) return;
  std::fprintf(stderr, "hccl_pair: %s: %d: %s\n", call, code,
               text != nullptr ? text : "no error message");
  std::exit(1);
}

void check(hcclResult_t result, const char* call) {
  check(result, call, hcclGetLastErrorMessage());
}

void check(synStatus status, const char* call) { check(status, call, synGetLastErrorMessage()); }

struct Rank {
  Rank(int number_in, std::size_t bytes) : number(number_in) {
    check(synInitialize(), "synInitialize");
    check(synDeviceAcquireByDeviceType(&device, synDeviceGaudi2), "synDeviceAcquireByDeviceType");
    check(synStreamCreateGeneric(&stream, device, 0), "synStreamCreateGeneric");
    check(synDeviceMalloc(device, bytes, 0, 0, &send), "synDeviceMalloc");
    check(synDeviceMalloc(device, bytes, 0, 0, &recv), "synDeviceMalloc");
    check(synMemsetD8Async(send, 1, bytes, stream), "synMemsetD8Async");
    check(synMemsetD8Async(recv, 1, bytes, stream), "synMemsetD8Async");
    hcclUniqueId id{};
    if (number == 0) check(hcclGetUniqueId(&id), "hcclGetUniqueId");
    check(hcclCommInitRank(&comm, 2, id, number), "hcclCommInitRank");
  }
  ~Rank() {
    hcclCommDestroy(comm);
    synStreamDestroy(stream);
    synDeviceRelease(device);
    synDestroy();
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void post(std::size_t bytes) const {
    check(hcclSend(pointer(send), bytes, hcclUint8, 1 - number, comm, stream), "hcclSend");
  }
  void take(std::size_t bytes) const {
    check(hcclRecv(pointer(recv), bytes, hcclUint8, 1 - number, comm, stream), "hcclRecv");
  }

  void call(const std::string& what, std::size_t bytes) const {
    if (what == "all_reduce") {
      check(hcclAllReduce(pointer(send), pointer(recv), bytes / sizeof(float), hcclFloat32, hcclSum,
                          comm, stream),
            "hcclAllReduce");
    } else if (what == "exchange") {
      check(hcclGroupStart(), "hcclGroupStart");
      post(bytes);
      take(bytes);
      check(hcclGroupEnd(), "hcclGroupEnd");
    } else if (number == 0) {
      post(bytes);
      take(bytes);
    } else {
      take(bytes);
      post(bytes);
    }
    check(synStreamSynchronize(stream), "synStreamSynchronize");
  }

  const int number;
  synDeviceId device = 0;
  synStreamHandle stream = nullptr;
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
  hcclComm_t comm = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const char* const number = std::getenv("RANK");
  if (argc != 4 || number == nullptr) {
    std::fprintf(stderr, "usage: RANK=0|1 hccl_pair ping_pong|exchange|all_reduce BYTES CALLS\n");
    return 2;
  }
  const std::string what = argv[1];
  const std::size_t bytes = std::strtoull(argv[2], nullptr, 10);
  const std::size_t calls = std::strtoull(argv[3], nullptr, 10);
  const Rank rank(std::atoi(number), std::max<std::size_t>(bytes, 8));
  peers::time_calls(rank.number, calls, [&] { rank.call(what, bytes); });
  return 0;
}
