// SPDX-License-Identifier: Apache-2.0
// An operation that has been queued: waiting for it, its future and its error.
#pragma once

#include "communicator.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace hccl_torch {

class Completer;

// An operation: its name for texts, the memory that it uses, and the steps that end it.
struct Operation {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  std::string name;  // "allreduce"
  std::uint64_t sequence = 0;
  std::string group;                         // for texts
  std::vector<at::Tensor> outputs;           // the future's value
  std::vector<at::Tensor> buffers;           // live until the operation has ended
  std::vector<std::function<void()>> steps;  // to be done then, by the first to notice
};

class Work final : public c10d::Work {
 public:
  Work(int rank, std::shared_ptr<Communicator> communicator, std::shared_ptr<Completer> completer,
       Operation operation);

  // Before the work is handed out or once its group of calls is complete: all has been queued.
  void begin();
  [[nodiscard]] Operation& operation() noexcept { return operation_; }

  bool isCompleted() override;
  bool isSuccess() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  // Blocks until the operation has ended or `timeout` is over (0: no limit but the library's).
  // Throws c10::DistBackendError.
  bool wait(std::chrono::milliseconds timeout) override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override;

  // Blocks until the operation has ended. Throws nothing.
  void complete();

 private:
  [[nodiscard]] std::exception_ptr end(bool succeeded);

  const std::shared_ptr<Communicator> communicator_;
  const std::shared_ptr<Completer> completer_;
  Operation operation_;
  std::optional<Event> event_;
  std::mutex end_mutex_;  // held by the thread that ends the operation
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  bool settled_ = false;  // a future that is made now is complete from the start
};

// Ends operations whose futures are awaited. Its thread starts with the first of them.
class Completer {
 public:
  Completer() = default;
  ~Completer();
  Completer(const Completer&) = delete;
  Completer& operator=(const Completer&) = delete;

  void post(c10::intrusive_ptr<Work> work);

 private:
  // Lives as long as the thread, which may outlive the completer.
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<c10::intrusive_ptr<Work>> works;
    bool stopping = false;
  };
  static void run(const std::shared_ptr<Queue>& queue);

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;
};

}  // namespace hccl_torch
