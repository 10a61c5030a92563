// SPDX-License-Identifier: Apache-2.0
// The functions of hccl_emulation.h that launch kernels, and that report traffic and plans.
#include "api/copy_text.h"
#include "api/guard.h"
#include "api/handles.h"
#include "base/config.h"
#include "base/text.h"
#include "call/collective.h"
#include "comm/blocking.h"

#include <cstring>
#include <optional>
#include <string>

#include <hccl_emulation.h>

using namespace hccl;
using namespace hccl::api;

namespace {

Collective collective_named(const char* name) {
  std::string names;
  for (int number = 1; number < static_cast<int>(Collective::point_to_point); ++number) {
    const auto collective = static_cast<Collective>(number);
    if (std::strcmp(name_of(collective), name) == 0) return collective;
    names += text(names.empty() ? "" : ", ", name_of(collective));
  }
  throw Error(hcclInvalidArgument, text("'", name, "' is not a collective; pass one of ", names));
}

}  // namespace

hcclResult_t hcclEmulationLaunch(void* stream_handle, void (*kernel)(void* arguments),
                                 void* arguments) {
  return guard(__func__, [&] {
    if (kernel == nullptr)
      throw Error(hcclInvalidArgument, "kernel is null; pass the function to run");
    const StreamPin stream = find_stream(stream_handle);
    stream->enqueue([kernel, arguments]() noexcept {
      kernel(arguments);
      return device::Outcome::success;
    });
    if (blocking_mode()) [[unlikely]]
      comm::wait_for_stream(*stream);
  });
}

hcclResult_t hcclEmulationTraffic(hcclComm_t comm, int peer, hcclEmulationTraffic_t* traffic) {
  return guard(__func__, [&] {
    const CommunicatorPin communicator = find_communicator(comm);
    if (traffic == nullptr)
      throw Error(hcclInvalidArgument, "traffic is null; pass the address of a variable");
    const TrafficReport report =
        communicator->traffic(peer == -1 ? std::nullopt : std::optional(peer));
    *traffic = {};
    copy_text(report.algorithm, traffic->algorithm, sizeof(traffic->algorithm));
    copy_text(report.transport, traffic->transport, sizeof(traffic->transport));
    traffic->bytes_sent = report.bytes_sent;
    traffic->bytes_received = report.bytes_received;
    traffic->sends = report.sends;
    traffic->receives = report.receives;
  });
}

hcclResult_t hcclEmulationPlan(hcclComm_t comm, const hcclEmulationPlanRequest_t* request,
                               char* buffer, uint64_t size, uint64_t* length) {
  return guard(__func__, [&] {
    const CommunicatorPin communicator = find_communicator(comm);
    if (request == nullptr || request->collective == nullptr || length == nullptr)
      throw Error(hcclInvalidArgument,
                  "request, request->collective or length is null; pass all three");
    if (buffer == nullptr && size > 0)
      throw Error(hcclInvalidArgument, "buffer is null; pass a buffer, or a size of 0");
    const Collective collective = collective_named(request->collective);
    const bool rooted = traits(collective).has_root();
    if (rooted && (request->root < 0 || request->root >= communicator->size())) {
      throw Error(hcclInvalidArgument,
                  text("root is ", request->root, " in a communicator of size ",
                       communicator->size(), "; pass 0 to ", communicator->size() - 1));
    }
    const std::string plan =
        communicator->plan_of({collective, request->bytes, rooted ? request->root : 0,
                               request->in_place != 0, request->json != 0});
    *length = plan.size();
    if (size > 0) copy_text(plan, buffer, size);
  });
}
