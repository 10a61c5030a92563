// SPDX-License-Identifier: Apache-2.0
// Checks shared by the failure tests.
#include "faults.h"

#include <chrono>
#include <thread>

namespace hccl::test {
namespace {

int number(hcclResult_t result) { return static_cast<int>(result); }

hcclResult_t async_code(const Group& group) {
  hcclResult_t code = hcclSuccess;
  succeed(hcclCommGetAsyncError(group.handle, &code));
  return code;
}

}  // namespace

void expect_failed(const Group& group, hcclResult_t code, std::optional<int> rank) {
  const hcclResult_t got = async_code(group);
  const std::string message = async_message(group.handle);
  require_equal(number(got), number(code), join("the async error (", message, ")"));
  if (rank) require(names_rank(message, *rank), join("does not name rank ", *rank, ": ", message));
}

void expect_usable_remains(Session& session, const Group& group, synStreamHandle stream,
                           hcclResult_t code) {
  const DeviceMemory memory(session.device(), 4096);
  void* buffer = memory.pointer();
  require_equal(
      number(hcclAllReduce(buffer, buffer, 10, hcclFloat32, hcclSum, group.handle, stream)),
      number(code), "a later all-reduce");
  require(hcclGetLastErrorMessage() != nullptr, "a later call has an error text");
  require_equal(number(hcclBarrier(group.handle, stream)), number(code), "a later barrier");

  const std::vector<std::byte> before(4096, std::byte{0x5A});
  std::vector<std::byte> after(4096);
  upload(stream, before, memory.address());
  download(stream, memory.address(), after);
  const synStatus status = synStreamSynchronize(stream);
  require(status == synSuccess || status == synFailHccl, "synchronising after a fault");
  require(after == before, "copies still run after a fault");

  session.forget_communicators();
  succeed(hcclCommDestroy(group.handle));
}

void await_async_error(const Group& group, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    if (async_code(group) != hcclSuccess) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (std::chrono::steady_clock::now() < end);
  require(false, join(limit.count(), " s without an async error"));
}

void expect_missing_rank(hcclResult_t result) {
  require(result == hcclSystemError || result == hcclSocketError || result == hcclInternalError,
          join("joining returned ", result, ": ", last_hccl_message()));
}

Operation all_reduce_of(std::size_t count, std::uint64_t seed) {
  return {.count = count, .seed = seed};
}

}  // namespace hccl::test
