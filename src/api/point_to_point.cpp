// SPDX-License-Identifier: Apache-2.0
// Sends, receives and groups.
#include "api/queueing.h"

#include <hccl.h>

#include <limits>

using namespace hccl;
using namespace hccl::api;

namespace {

void check_buffer(const comm::Communicator& communicator, const PointToPoint& call) {
  const auto type = static_cast<hcclDataType_t>(call.type);
  constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int64_t>::max();
  if (call.count > kMostBytes / 8 && call.count > reduce::elements_in(type, kMostBytes))
    throw Error(hcclInvalidArgument, text("count ", call.count,
                                          " is too large: the buffer would exceed 2^63 - 1 bytes; "
                                          "look for a negative number converted to unsigned"));
  if (call.count == 0) return;  // nothing will be touched
  const char* const name = call.direction == Direction::send ? "sendbuff" : "recvbuff";
  check_memory(communicator, call.address, call.bytes(), name);
}

// NOLINTNEXTLINE(readability-function-size): the parameters are the API's
hcclResult_t submit_message(Callee callee, Direction direction, const void* buffer,
                            std::size_t count, hcclDataType_t type, int peer, hcclComm_t comm,
                            void* stream) {
  return submit(callee, type, comm, stream, [&](const comm::Communicator& communicator) {
    PointToPoint call;
    call.direction = direction;
    call.type = static_cast<std::uint8_t>(type);
    call.peer = peer;
    call.count = count;
    call.address = behind_view(communicator, to_number(buffer));
    check_buffer(communicator, call);
    check_rank(peer, communicator.size(), "peer");
    return call;
  });
}

}  // namespace

hcclResult_t hcclSend(const void* sendbuff, size_t count, hcclDataType_t datatype, int peer,
                      hcclComm_t comm, void* stream_handle) {
  return submit_message(__func__, Direction::send, sendbuff, count, datatype, peer, comm,
                        stream_handle);
}

hcclResult_t hcclRecv(void* recvbuff, size_t count, hcclDataType_t datatype, int peer,
                      hcclComm_t comm, void* stream_handle) {
  return submit_message(__func__, Direction::receive, recvbuff, count, datatype, peer, comm,
                        stream_handle);
}

hcclResult_t hcclGroupStart() {
  return queueing_guard(__func__, [] { comm::Group::start(); });
}

hcclResult_t hcclGroupEnd() {
  return queueing_guard(__func__, [] { comm::Group::end(); });
}
