// SPDX-License-Identifier: Apache-2.0
// Unique ids and the lifetime of communicators.
#include "api/guard.h"
#include "api/handles.h"
#include "base/config.h"
#include "base/log.h"
#include "bootstrap/server_registry.h"
#include "comm/create_all.h"
#include "comm/create_communicator.h"
#include "comm/group.h"

#include <hccl.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

using namespace hccl;
using namespace hccl::api;

namespace {

// Stores new handles to the communicators at `comm`. If there are too few handles, fails the
// communicators, so that other ranks do not wait for them, and destroys the first handles. Throws
// Error(hcclOutOfMemory).
void hand_out(std::span<const std::shared_ptr<comm::Communicator>> communicators,
              hcclComm_t* comm) {
  std::vector<std::uint64_t> handles;
  try {
    handles.reserve(communicators.size());
    for (const auto& communicator : communicators) {
      const std::uint64_t handle = comm::communicators().insert(communicator);
      if (handle == 0) throw Error(hcclOutOfMemory, "too many communicators; destroy some");
      handles.push_back(handle);
    }
  } catch (...) {
    for (const std::uint64_t handle : handles)
      static_cast<void>(comm::communicators().remove(handle));
    for (const auto& communicator : communicators) {
      communicator->fail(
          "failed during initialisation, because it got no handle; destroy some of its "
          "communicators");
      communicator->leave();
    }
    throw;
  }
  std::ranges::transform(handles, comm, to_handle<hcclComm_t>);
}

// Throws Error(hcclInvalidUsage) if the thread's open group contains calls on the communicator:
// hcclGroupEnd could not queue them once the communicator is destroyed.
void require_no_collected_calls(const comm::Communicator& communicator) {
  const comm::Group* const group = comm::Group::current();
  if (group == nullptr || !group->has_calls_of(communicator)) return;
  throw Error(hcclInvalidUsage,
              "hcclCommDestroy: the open group of this thread contains calls on the communicator; "
              "call hcclGroupEnd first");
}

// Returns the device of each rank for hcclCommInitAll. Throws Error(hcclInvalidArgument) if `count`
// is not positive, or if `ids` names a device twice or one that this process does not hold.
std::vector<std::shared_ptr<device::Device>> devices_of(int count, const int* ids) {
  if (count < 1)
    throw Error(hcclInvalidArgument, text("ndev is ", count, "; pass the number of devices"));
  std::vector<std::shared_ptr<device::Device>> devices;
  for (int rank = 0; rank < count; ++rank) {
    const int id = ids == nullptr ? rank : ids[rank];
    auto device = runtime().device(static_cast<std::uint32_t>(id));
    if (std::ranges::find(devices, device) != devices.end())
      throw Error(hcclInvalidArgument,
                  text("devlist names device ", id, " twice; name each device once"));
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace

hcclResult_t hcclGetUniqueId(hcclUniqueId* id) {
  return guard(__func__, [&] {
    require_pointer(id, "id");
    *id = bootstrap::create_unique_id();
  });
}

hcclResult_t hcclCommInitRank(hcclComm_t* comm, int nranks, hcclUniqueId commId, int rank) {
  return guard(__func__, [&] {
    require_pointer(comm, "comm");
    const auto device = runtime().current();
    if (!device) {
      throw Error(hcclInvalidUsage, "no device: call synInitialize and synDeviceAcquire first");
    }
    const auto made = comm::create_communicator(commId, nranks, rank, device);
    hand_out({&made, 1}, comm);
  });
}

hcclResult_t hcclCommInitAll(hcclComm_t* comm, int ndev, const int* devlist) {
  return guard(__func__, [&] {
    require_pointer(comm, "comm");
    if (strict_mode()) {
      throw Error(hcclInvalidUsage,
                  "HCCL_STRICT=1: Gaudi's library does not support hcclCommInitAll, because each "
                  "process drives one device; start one process per device and call "
                  "hcclCommInitRank in each");
    }
    const auto devices = devices_of(ndev, devlist);
    hand_out(comm::create_all(bootstrap::create_unique_id(), devices), comm);
  });
}

hcclResult_t hcclCommFinalize(hcclComm_t comm) {
  return guard(__func__, [&] {
    // Holds no pin while it waits: hcclCommAbort() waits until all pins are released.
    const auto communicator = find_communicator(comm).shared();
    communicator->finalize();
    communicator->throw_if_failed();
  });
}

hcclResult_t hcclCommDestroy(hcclComm_t comm) {
  return guard(__func__, [&] {
    if (comm::Group::current() != nullptr) {
      log(LogLevel::warning, "api",
          "hcclCommDestroy was called while this thread has an open group, whose calls have not "
          "been queued; call hcclGroupEnd first");
    }
    // The handle stays valid until the work has run, so that another thread can abort the
    // communicator.
    const auto communicator = find_communicator(comm).shared();
    require_no_collected_calls(*communicator);
    communicator->finalize();
    if (comm::communicators().remove(to_number(comm))) return communicator->leave();
    // Another thread removed the handle first. If the communicator has failed, as it does when that
    // thread aborts it, this call succeeds. Otherwise find_communicator() throws.
    if (!communicator->failed()) static_cast<void>(find_communicator(comm));
  });
}

hcclResult_t hcclCommAbort(hcclComm_t comm) {
  return guard(__func__, [&] {
    // remove() waits for the calls that still use the communicator, so the fault must end them
    // first.
    find_communicator(comm)->fail("called hcclCommAbort");
    if (const auto communicator = comm::communicators().remove(to_number(comm)))
      communicator->leave();
  });
}

hcclResult_t hcclCommGetAsyncError(hcclComm_t comm, hcclResult_t* asyncError) {
  return guard(__func__, [&] {
    require_pointer(asyncError, "asyncError");
    *asyncError = find_communicator(comm)->async_error();
  });
}

const char* hcclCommGetAsyncErrorMessage(hcclComm_t comm) {
  const char* message = nullptr;
  static_cast<void>(guard(__func__, [&] {
    if (const CommunicatorPin pin = comm::communicators().pin(to_number(comm)))
      message = pin->async_error_text();
  }));
  return message;
}

hcclResult_t hcclCommCount(hcclComm_t comm, int* count) {
  return guard(__func__, [&] {
    require_pointer(count, "count");
    *count = find_communicator(comm)->size();
  });
}

hcclResult_t hcclCommSynDevice(hcclComm_t comm, int* device) {
  return guard(__func__, [&] {
    require_pointer(device, "device");
    *device = static_cast<int>(find_communicator(comm)->device().id());
  });
}

hcclResult_t hcclCommUserRank(hcclComm_t comm, int* rank) {
  return guard(__func__, [&] {
    require_pointer(rank, "rank");
    *rank = find_communicator(comm)->rank();
  });
}

// Acquiring the device has already prepared it.
hcclResult_t hcclDeviceInit(void* device, void* context) {
  return guard(__func__, [&] {
    if (device != nullptr || context != nullptr)
      throw Error(hcclInvalidArgument, "hcclDeviceInit: pass null for device and context");
  });
}
