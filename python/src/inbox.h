// SPDX-License-Identifier: Apache-2.0
// Receives from one rank whose messages have tags. The library's messages match in the order of the
// calls; a message with a tag other than 0 comes as two, of which the first tells tag and size.
// What comes before it is asked for waits here.
#pragma once

#include "communicator.h"
#include "operation_queue.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace hccl_torch {

// The first message of the two.
struct TagHeader {
  std::int64_t tag = 0;
  std::int64_t bytes = 0;
};

// Receives on a thread of its own, which the first request starts.
class Inbox {
 public:
  Inbox(OperationQueue& queue, std::shared_ptr<Communicator> communicator, int source)
      : queue_(queue), communicator_(std::move(communicator)), source_(source) {}
  // Fails the requests that wait.
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // Returns the work of a receive into `tensor` at once. With tag 0 it gets the message that
  // follows those of the requests before.
  [[nodiscard]] c10::intrusive_ptr<c10d::Work> receive(at::Tensor& tensor, int tag);
  // Returns whether requests wait, so that others must wait behind them.
  [[nodiscard]] bool is_busy();
  // Returns the message of this tag that has come, if one has.
  [[nodiscard]] std::optional<at::Tensor> take(std::int64_t tag);
  // Takes in one message that is offered, whatever its tag. Blocks until it has come. By one thread
  // at a time. Throws c10::DistBackendError.
  void take_in();

 private:
  struct Request {
    c10::intrusive_ptr<Work> work;
    at::Tensor tensor;
    std::int64_t tag = 0;
  };
  struct Early {
    std::int64_t tag = 0;
    at::Tensor bytes;
  };

  void run();
  void serve(const Request& request);
  // Receives into `buffer`, and waits for it. Throws c10::DistBackendError.
  void receive_now(const Request* request, at::Tensor buffer);
  [[nodiscard]] TagHeader receive_header(const Request* request);
  [[nodiscard]] bool is_stopping();

  OperationQueue& queue_;
  const std::shared_ptr<Communicator> communicator_;
  const int source_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;  // the first is being served
  std::deque<Early> early_;
  bool stopping_ = false;
  std::thread thread_;
};

// Writes the bytes of a message into the tensor that it is for. Throws c10::DistBackendError if
// their sizes differ.
void unpack(at::Tensor& to, const at::Tensor& bytes, int source, std::int64_t tag);

}  // namespace hccl_torch
