// SPDX-License-Identifier: Apache-2.0
// Queues the sends and receives of pairs of ranks.
#include "pairs.h"

#include <functional>

namespace hccl_perf {
namespace {

// Queues a send. The API passes device addresses as pointers, which are never dereferenced.
hcclResult_t send(const Call& call, std::uint64_t address, hcclComm_t communicator, void* stream) {
  return hcclSend(reinterpret_cast<const void*>(address), call.count, call.type.code,
                  partner_of(call.rank, call.ranks), communicator, stream);
}

hcclResult_t receive(const Call& call, std::uint64_t address, hcclComm_t communicator,
                     void* stream) {
  return hcclRecv(reinterpret_cast<void*>(address), call.count, call.type.code,
                  partner_of(call.rank, call.ranks), communicator, stream);
}

// Issues the calls as one group. Closes the group even after a failure. Returns the first failure.
hcclResult_t grouped(const std::function<hcclResult_t()>& calls) {
  hcclResult_t result = hcclGroupStart();
  if (result != hcclSuccess) return result;
  result = calls();
  const hcclResult_t ended = hcclGroupEnd();
  return result != hcclSuccess ? result : ended;
}

}  // namespace

hcclResult_t ping_pong(const Call& call, hcclComm_t communicator, void* stream) {
  if (in_first_half(call.rank, call.ranks)) {
    const hcclResult_t sent = send(call, call.send, communicator, stream);
    return sent != hcclSuccess ? sent : receive(call, call.receive, communicator, stream);
  }
  const hcclResult_t received = receive(call, call.receive, communicator, stream);
  return received != hcclSuccess ? received : send(call, call.send, communicator, stream);
}

hcclResult_t exchange_both_ways(const Call& call, hcclComm_t communicator, void* stream) {
  return grouped([&] {
    const hcclResult_t sent = send(call, call.send, communicator, stream);
    return sent != hcclSuccess ? sent : receive(call, call.receive, communicator, stream);
  });
}

hcclResult_t send_window(const Call& call, hcclComm_t communicator, void* stream) {
  const bool sends = in_first_half(call.rank, call.ranks);
  return grouped([&] {
    for (std::uint64_t i = 0; i < kWindow; ++i) {
      const std::uint64_t offset = i * call.count * call.type.size;
      const hcclResult_t result = sends
                                      ? send(call, call.send + offset, communicator, stream)
                                      : receive(call, call.receive + offset, communicator, stream);
      if (result != hcclSuccess) return result;
    }
    return hcclSuccess;
  });
}

}  // namespace hccl_perf
