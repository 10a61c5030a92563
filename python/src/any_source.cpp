// SPDX-License-Identifier: Apache-2.0
#include "any_source.h"

#include "call.h"

#include <tuple>
#include <utility>

#include <c10/util/Exception.h>
#include <hccl_emulation.h>
#include <unistd.h>

namespace hccl_torch {

namespace {

// How long a look for a message keeps the destructor waiting, in milliseconds.
constexpr std::uint64_t kLook = 50;

// A timeout of 0 never passes.
std::chrono::steady_clock::time_point deadline_after(std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  return timeout.count() == 0 ? Clock::time_point::max() : Clock::now() + timeout;
}

}  // namespace

AnySource::~AnySource() {
  if (!thread_.joinable()) return;
  if (communicator_->is_in_forked_child()) {
    thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

c10::intrusive_ptr<c10d::Work> AnySource::receive(at::Tensor& tensor, int tag) {
  Request request{queue_.defer(c10d::OpType::RECVANYSOURCE, "recv", tensor), tensor, tag,
                  deadline_after(communicator_->timeout())};
  c10::intrusive_ptr<c10d::Work> work = request.work;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
    if (!thread_.joinable()) thread_ = std::thread(&AnySource::run, this);
  }
  changed_.notify_one();
  return work;
}

void AnySource::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !requests_.empty(); });
    if (requests_.empty()) return;
    const Request request = std::move(requests_.front());
    requests_.pop_front();
    lock.unlock();
    serve(request);
    lock.lock();
  }
}

void AnySource::serve(const Request& request) {
  try {
    if (request.tag == 0) {
      receive_next(request);
    } else {
      receive_tagged(request);
    }
  } catch (const c10::Error& error) {
    request.work->fail(error.what_without_backtrace());
  } catch (const std::exception& error) {
    request.work->fail(error.what());
  }
}

void AnySource::receive_next(const Request& request) {
  const int source = find_source(request.deadline);
  at::Tensor tensor = request.tensor;
  Issue issue(queue_, request.work, communicator_->stream_from(source));
  const at::Tensor to = issue.output(tensor, false);
  issue.operation().source = source;
  check(
      hcclRecv(to.data_ptr(), to.nbytes(), hcclUint8, source, communicator_->get(), issue.stream()),
      "hcclRecv");
  static_cast<void>(issue.end());
}

// Messages of other tags that come first are kept for those who ask for them.
void AnySource::receive_tagged(const Request& request) {
  auto [source, bytes] = inboxes_.take(request.tag);
  while (!bytes.defined()) {
    inboxes_.from(find_source(request.deadline)).take_in();
    std::tie(source, bytes) = inboxes_.take(request.tag);
  }
  at::Tensor tensor = request.tensor;
  unpack(tensor, bytes, source, request.tag);
  Issue issue(queue_, request.work, communicator_->stream_from(source));
  issue.operation().source = source;
  issue.fill(tensor);
  static_cast<void>(issue.end());
}

int AnySource::find_source(Deadline deadline) {
  for (;;) {
    int source = -1;
    const hcclResult_t result = hcclEmulationProbe(communicator_->get(), kLook, &source, nullptr);
    if (result == hcclSuccess) return source;
    if (result != hcclBusy) check(result, "hcclEmulationProbe");
    TORCH_CHECK_WITH(DistBackendError, std::chrono::steady_clock::now() < deadline,
                     "no rank has sent a message within ", communicator_->timeout().count(),
                     " ms; see that one does, or give the group a longer timeout");
    const std::lock_guard lock(mutex_);
    TORCH_CHECK_WITH(DistBackendError, !stopping_, "the process group has been destroyed");
  }
}

}  // namespace hccl_torch
