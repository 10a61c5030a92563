// SPDX-License-Identifier: Apache-2.0
// Replaces a function of the shared library, as a tracing library does.
#include <hccl.h>

#include <gtest/gtest.h>

namespace {

struct Call {
  int times = 0;
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  hcclDataType_t type = hcclNumTypes;
  int root = -1;
  void* comm = nullptr;
  void* stream = nullptr;
};

Call last_call;

}  // namespace

hcclResult_t hcclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           hcclDataType_t datatype, int root, hcclComm_t comm,
                           void* stream_handle) {
  last_call = {last_call.times + 1, sendbuff, recvbuff, count, datatype, root, comm, stream_handle};
  return hcclBusy;
}

TEST(Interposition, InterceptsTheBroadcastOfBcast) {
  int buffer = 0;
  int comm = 0;
  int stream = 0;
  EXPECT_EQ(hcclBcast(&buffer, 5, hcclBfloat16, 3, &comm, &stream), hcclBusy);
  EXPECT_EQ(last_call.times, 1);
  EXPECT_EQ(last_call.send, &buffer);
  EXPECT_EQ(last_call.receive, &buffer);
  EXPECT_EQ(last_call.count, 5U);
  EXPECT_EQ(last_call.type, hcclBfloat16);
  EXPECT_EQ(last_call.root, 3);
  EXPECT_EQ(last_call.comm, &comm);
  EXPECT_EQ(last_call.stream, &stream);
}
