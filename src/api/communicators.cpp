// SPDX-License-Identifier: Apache-2.0
// Unique ids and the life of communicators.
#include "api/guard.h"
#include "api/handles.h"
#include "base/config.h"
#include "bootstrap/bootstrap.h"

#include <hccl.h>

using namespace hccl;
using namespace hccl::api;

hcclResult_t hcclGetUniqueId(hcclUniqueId* uniqueId) {
  return guard([&] {
    require_pointer(uniqueId, "uniqueId");
    *uniqueId = bootstrap::create_unique_id();
  });
}

hcclResult_t hcclCommInitRank(hcclComm_t* comm, int nranks, hcclUniqueId commId, int rank) {
  return guard([&] {
    require_pointer(comm, "comm");
    auto communicator = comm::Communicator::create(commId, nranks, rank);
    const std::uint64_t handle = comm::communicators().insert(std::move(communicator));
    if (handle == 0) throw Error(hcclOutOfMemory, "too many communicators; destroy some");
    *comm = to_handle<hcclComm_t>(handle);
  });
}

hcclResult_t hcclCommFinalize(hcclComm_t comm) {
  return guard([&] {
    // No pin while waiting: an abort waits for those.
    const auto communicator = find_communicator(comm).shared();
    communicator->finalize();
    communicator->throw_if_failed();
  });
}

hcclResult_t hcclCommDestroy(hcclComm_t comm) {
  return guard([&] {
    // The handle stays until the work is done, so that another thread can abort it.
    const auto communicator = find_communicator(comm).shared();
    communicator->finalize();
    if (comm::communicators().remove(to_number(comm))) return communicator->leave();
    // Another thread was first: with an abort, which this call has served, or with a destroy.
    if (communicator->async_error() == hcclSuccess) static_cast<void>(find_communicator(comm));
  });
}

hcclResult_t hcclCommAbort(hcclComm_t comm) {
  return guard([&] {
    // First the fault, which ends calls that still use the communicator, then the handle.
    find_communicator(comm)->fail("hcclCommAbort");
    if (const auto communicator = comm::communicators().remove(to_number(comm)))
      communicator->leave();
  });
}

hcclResult_t hcclCommGetAsyncError(hcclComm_t comm, hcclResult_t* asyncError) {
  return guard([&] {
    require_pointer(asyncError, "asyncError");
    *asyncError = find_communicator(comm)->async_error();
  });
}

const char* hcclCommGetAsyncErrorMessage(hcclComm_t comm) {
  const char* message = nullptr;
  static_cast<void>(guard([&] {
    if (const CommunicatorPin pin = comm::communicators().pin(to_number(comm)))
      message = pin->async_error_text();
  }));
  return message;
}

hcclResult_t hcclCommCount(hcclComm_t comm, int* count) {
  return guard([&] {
    require_pointer(count, "count");
    *count = find_communicator(comm)->size();
  });
}

hcclResult_t hcclCommSynDevice(hcclComm_t comm, int* device) {
  return guard([&] {
    require_pointer(device, "device");
    *device = static_cast<int>(find_communicator(comm)->device().id());
  });
}

hcclResult_t hcclCommUserRank(hcclComm_t comm, int* rank) {
  return guard([&] {
    require_pointer(rank, "rank");
    *rank = find_communicator(comm)->rank();
  });
}

// Acquiring a device has prepared it already.
hcclResult_t hcclDeviceInit(void* device, void* context) {
  return guard([&] {
    if (device != nullptr || context != nullptr)
      throw Error(hcclInvalidArgument, "hcclDeviceInit: pass null for device and context");
  });
}
