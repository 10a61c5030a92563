// SPDX-License-Identifier: Apache-2.0
#include "any_source.h"

#include "call.h"

#include <utility>

#include <c10/util/Exception.h>
#include <hccl_emulation.h>

namespace hccl_torch {

namespace {

using Clock = std::chrono::steady_clock;

// Milliseconds for which one look for a message keeps the destructor waiting.
constexpr std::uint64_t kLook = 50;

// A timeout of 0 never passes.
Clock::time_point deadline_after(std::chrono::milliseconds timeout) {
  return timeout.count() == 0 ? Clock::time_point::max() : Clock::now() + timeout;
}

}  // namespace

c10::intrusive_ptr<c10d::Work> AnySource::receive(at::Tensor& tensor, int tag) {
  c10::intrusive_ptr<Work> work = queue_.defer(c10d::OpType::RECVANYSOURCE, "recv", tensor);
  thread_.post({work, tensor, tag, deadline_after(communicator_->timeout())});
  return work;
}

void AnySource::receive_next(const DeferredReceive& receive) {
  std::optional<int> source;
  while (!source) source = look(receive);
  at::Tensor tensor = receive.tensor;
  Issue issue(queue_, receive.work, communicator_->stream_from(*source));
  issue.operation().source = *source;
  issue.receive(issue.output(tensor, false), *source);
  static_cast<void>(issue.end());
}

// Keeps messages of other tags for those who ask for them.
void AnySource::receive_tagged(const DeferredReceive& receive) {
  for (;;) {
    if (const auto early = inboxes_.take(receive.tag)) {
      receive.work->operation().source = early->first;
      return inboxes_.from(early->first).deliver(receive, early->second);
    }
    if (const std::optional<int> source = look(receive)) inboxes_.from(*source).try_take_in();
  }
}

std::optional<int> AnySource::look(const DeferredReceive& receive) {
  thread_.require_running();
  TORCH_CHECK_WITH(DistBackendError, Clock::now() < receive.deadline,
                   "no rank has sent a message within ", communicator_->timeout().count(),
                   " ms; see that one does, or give the group a longer timeout");
  int source = -1;
  const hcclResult_t result = hcclEmulationProbe(communicator_->get(), kLook, &source, nullptr);
  if (result == hcclBusy) return std::nullopt;
  check(result, "hcclEmulationProbe");
  return source;
}

}  // namespace hccl_torch
