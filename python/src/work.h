// SPDX-License-Identifier: Apache-2.0
// A queued operation: whether it has ended, its future and its error.
#pragma once

#include "communicator.h"
#include "memory_range.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace hccl_torch {

class Completer;
class UnfinishedWorks;

// The kinds of calls in an operation. A coalesced operation may have several kinds.
enum Part : unsigned { kCollective = 1, kSend = 2, kReceive = 4 };

// The description of an operation: its name, its memory, and the steps that run when it ends.
struct Operation {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* name = "";  // the function of torch.distributed
  std::uint64_t sequence = 0;
  bool is_part = false;          // whether this is a part of another operation
  unsigned parts = kCollective;  // a bit set of Part
  std::chrono::milliseconds timeout =
      kNoTimeout;   // limit of wait() without an argument; kNoTimeout: the group's timeout
  int source = -1;  // for a receive: the rank that sent the message
  std::vector<at::Tensor> outputs;   // value of the future
  std::vector<MemoryRange> written;  // memory of the outputs
  std::vector<at::Tensor> buffers;   // kept until the operation has ended
  std::vector<DeviceUse>
      device_memory;  // of HPU tensors; fixed before other threads can see the operation
  std::vector<std::function<void()>> steps;  // see Issue::then()
};

// An operation has begun when its library calls are queued, and has run when these calls have run.
// It has ended when its steps have run as well, or when it has failed. Thread safety: any thread,
// after the operation has begun.
class Work final : public c10d::Work {
 public:
  // Creates a Work. `title` is the operation's title in the profiler, or null if no profiler runs.
  Work(std::shared_ptr<Communicator> communicator, std::shared_ptr<Completer> completer,
       std::shared_ptr<UnfinishedWorks> unfinished, Operation operation, const char* title);

  // Returns the operation, which may be changed only before it begins.
  [[nodiscard]] Operation& operation() noexcept { return operation_; }
  // Adds the work that the operation has queued on a stream.
  void add(StreamRange range);
  // Marks the operation as begun. Call it after all calls of the operation have been queued.
  void begin();
  // Fails a deferred operation that cannot be queued. `reason` becomes part of the error text. If
  // the operation's future has been requested, the completer then completes it.
  void fail(const std::string& reason);

  bool isCompleted() override;
  bool isSuccess() const override;
  int sourceRank() const override { return operation_.source; }
  std::vector<at::Tensor> result() override { return operation_.outputs; }
  void synchronize() override { wait(kNoTimeout); }
  // Blocks until the operation has ended, but for at most `timeout`. kNoTimeout stands for
  // Operation::timeout. Throws c10::DistBackendError if the operation fails or the wait times out.
  bool wait(std::chrono::milliseconds timeout) override;
  void abort() override { communicator_->abort(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override { return operation_.sequence; }

  // Returns a key that operations share if they end in order: the stream, or this object if the
  // operation has not begun or has no library calls.
  [[nodiscard]] const void* lane() const;
  // Return whether the operation has messages, and whether it consists only of receives.
  [[nodiscard]] bool has_messages() const { return (operation_.parts & (kSend | kReceive)) != 0; }
  [[nodiscard]] bool is_receive() const { return operation_.parts == kReceive; }
  [[nodiscard]] bool is_part() const { return operation_.is_part; }
  // Returns whether the operation has begun and writes to these bytes. If `also_without_step` is
  // false, considers only writes in a step.
  [[nodiscard]] bool writes_to(const MemoryRange& range, bool also_without_step) const;
  // Return whether the operation uses HPU tensors, and whether it uses these bytes of one.
  [[nodiscard]] bool uses_device() const { return !operation_.device_memory.empty(); }
  [[nodiscard]] bool uses(const MemoryRange& range) const;
  // Returns whether the operation reads these bytes of an HPU tensor.
  [[nodiscard]] bool reads(const MemoryRange& range) const;
  // Returns whether the operation must not run at the same time as one with this use of memory.
  [[nodiscard]] bool conflicts_with(const DeviceUse& use) const;
  // Returns whether the operation has run. Neither blocks nor wakes a thread that could run it.
  [[nodiscard]] bool has_run() const;
  // Blocks until the operation has run, but for at most `timeout`. If it has run, ends it, as
  // complete() does, and returns true.
  [[nodiscard]] bool ends_within(std::chrono::milliseconds timeout) noexcept {
    return complete_within(static_cast<std::uint64_t>(timeout.count()));
  }
  [[nodiscard]] bool has_ended() const;
  // Ends an operation that has run, but not the operations before it.
  void end_alone() noexcept;
  // Blocks until the operation has run, and ends it and the operations before it that have run.
  // Throws nothing.
  void complete() noexcept;
  // Throws c10::DistBackendError with the text of the library's last error on this thread. The
  // error also names the operation.
  [[noreturn]] void throw_failed() const;
  // Completes the future of an operation that has ended, which runs the future's callbacks. Also
  // ends and drops other operations that have run.
  void complete_future() noexcept;

 private:
  // Blocks until the operation has run. Returns its error, null if it has none, or nullopt on a
  // time-out.
  [[nodiscard]] std::optional<std::exception_ptr> await_run(std::uint64_t milliseconds) noexcept;
  // Runs the steps of an operation that has run, or stores `error` if it is not null.
  void conclude(std::exception_ptr error) noexcept;
  // Blocks until a deferred operation has begun or failed. Returns false on a time-out.
  [[nodiscard]] bool has_begun_within(std::uint64_t milliseconds);
  // Does the same as ends_within(), or waits without a limit for HCCL_EMULATION_NO_TIMEOUT.
  [[nodiscard]] bool complete_within(std::uint64_t milliseconds) noexcept;
  [[nodiscard]] std::exception_ptr end(hcclResult_t result) noexcept;
  // Returns the beginning of error texts: the operation's name and identity.
  [[nodiscard]] std::string describe() const;

  const std::shared_ptr<Communicator> communicator_;
  const std::shared_ptr<Completer> completer_;
  const std::shared_ptr<UnfinishedWorks> unfinished_;
  Operation operation_;
  std::vector<StreamRange> ranges_;
  bool has_steps_ = false;  // set before has_begun_
  std::atomic<bool> has_begun_{false};
  std::mutex end_mutex_;  // held by the thread that ends the operation
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  bool future_is_completed_ = false;  // set before a thread completes the future
};

}  // namespace hccl_torch
