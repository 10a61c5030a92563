// SPDX-License-Identifier: Apache-2.0
#include "inbox.h"

#include "allocator.h"
#include "call.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <c10/util/Exception.h>

namespace hccl_torch {

namespace {

// How long a message that does not come keeps the destructor waiting.
constexpr std::chrono::milliseconds kLook{50};

}  // namespace

void unpack(at::Tensor& to, const at::Tensor& bytes, int source, std::int64_t tag) {
  TORCH_CHECK_WITH(DistBackendError, bytes.nbytes() == to.nbytes(), "rank ", source, " has sent ",
                   bytes.nbytes(), " bytes with tag ", tag, " for a tensor of ", to.nbytes(),
                   "; receive them into a tensor of their size");
  if (to.numel() > 0) copy_into(to, bytes.view(to.scalar_type()).view(to.sizes()));
}

Inbox::~Inbox() {
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

c10::intrusive_ptr<c10d::Work> Inbox::receive(at::Tensor& tensor, int tag) {
  Request request{queue_.defer(c10d::OpType::RECV, "recv", tensor), tensor, tag};
  request.work->operation().source = source_;
  c10::intrusive_ptr<c10d::Work> work = request.work;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
    if (!thread_.joinable()) thread_ = std::thread(&Inbox::run, this);
  }
  changed_.notify_one();
  return work;
}

bool Inbox::is_busy() {
  const std::lock_guard lock(mutex_);
  return !requests_.empty();
}

bool Inbox::is_stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

std::optional<at::Tensor> Inbox::take(std::int64_t tag) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(early_.begin(), early_.end(),
                                  [&](const Early& early) { return early.tag == tag; });
  if (found == early_.end()) return std::nullopt;
  at::Tensor bytes = std::move(found->bytes);
  early_.erase(found);
  return bytes;
}

void Inbox::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !requests_.empty(); });
    if (requests_.empty()) return;
    const Request request = requests_.front();
    lock.unlock();
    serve(request);
    lock.lock();
    requests_.pop_front();
  }
}

// Messages of other tags that come first are kept.
void Inbox::serve(const Request& request) {
  try {
    at::Tensor tensor = request.tensor;
    if (request.tag == 0) {
      Issue issue(queue_, request.work, communicator_->stream_from(source_));
      const at::Tensor to = issue.output(tensor, false);
      check(hcclRecv(to.data_ptr(), to.nbytes(), hcclUint8, source_, communicator_->get(),
                     issue.stream()),
            "hcclRecv");
      static_cast<void>(issue.end());
      return;
    }
    std::optional<at::Tensor> bytes = take(request.tag);
    while (!bytes) {
      const TagHeader header = receive_header(&request);
      at::Tensor message = empty_scratch({header.bytes}, at::kByte);
      receive_now(&request, message);
      if (header.tag == request.tag) {
        bytes = message;
      } else {
        const std::lock_guard lock(mutex_);
        early_.push_back({header.tag, message});
      }
    }
    unpack(tensor, *bytes, source_, request.tag);
    Issue issue(queue_, request.work, communicator_->stream_from(source_));
    issue.fill(tensor);
    static_cast<void>(issue.end());
  } catch (const c10::Error& error) {
    request.work->fail(error.what_without_backtrace());
  } catch (const std::exception& error) {
    request.work->fail(error.what());
  }
}

void Inbox::take_in() {
  const TagHeader header = receive_header(nullptr);
  at::Tensor message = empty_scratch({header.bytes}, at::kByte);
  receive_now(nullptr, message);
  const std::lock_guard lock(mutex_);
  early_.push_back({header.tag, message});
}

TagHeader Inbox::receive_header(const Request* request) {
  at::Tensor bytes = empty_scratch({static_cast<std::int64_t>(sizeof(TagHeader))}, at::kByte);
  receive_now(request, bytes);
  return *static_cast<const TagHeader*>(bytes.const_data_ptr());
}

void Inbox::receive_now(const Request* request, at::Tensor buffer) {
  const c10::intrusive_ptr<Work> part =
      queue_.make_part(request != nullptr ? request->work.get() : nullptr, "recv");
  {
    Issue issue(queue_, part, communicator_->stream_from(source_));
    const at::Tensor to = issue.output(buffer, false);
    check(hcclRecv(to.data_ptr(), to.nbytes(), hcclUint8, source_, communicator_->get(),
                   issue.stream()),
          "hcclRecv");
    issue.end_part();
  }
  while (!part->ends_within(kLook)) {
    TORCH_CHECK_WITH(DistBackendError, !is_stopping(), "the process group has been destroyed");
  }
  if (const std::exception_ptr error = part->exception()) std::rethrow_exception(error);
}

}  // namespace hccl_torch
