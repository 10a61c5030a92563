// SPDX-License-Identifier: Apache-2.0
// Matches receives that cannot be queued in the library when they are posted, because it is not yet
// known which messages they get. These are receives from any rank, receives with a tag, receives
// from this rank itself, and receives that follow any of these. The library matches messages
// between two ranks in the order of the calls; this class matches receives in the order of the
// posts.
#pragma once

#include "communicator.h"
#include "operation_queue.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <ATen/core/Tensor.h>

namespace hccl_torch {

// Precedes the elements of a message with a tag other than 0. For the library, the header and the
// elements are two messages.
struct TagHeader {
  std::uint64_t mark = kMark;
  std::int64_t tag = 0;
  std::int64_t bytes = 0;

  static constexpr std::uint64_t kMark = 0x6863'636c'2d74'6167;
  // The size on the wire. It is not a multiple of any element size above 1, so that a message
  // without a tag is rarely mistaken for a header.
  static constexpr std::int64_t kWireBytes = 27;
};

// A receive gets the first matching message that no earlier receive has taken. Messages that match
// no posted receive are stored in the matcher if they have a tag or come from this rank; messages
// without a tag from other ranks stay with the sender. Threads start on demand. Thread safety: any
// thread.
class ReceiveMatcher {
 public:
  static constexpr int kAnySource = -1;

  ReceiveMatcher(OperationQueue& queue, std::shared_ptr<Communicator> communicator)
      : queue_(queue), communicator_(std::move(communicator)) {}
  ~ReceiveMatcher() { stop(); }
  ReceiveMatcher(const ReceiveMatcher&) = delete;
  ReceiveMatcher& operator=(const ReceiveMatcher&) = delete;

  // Posts a receive and returns its Work. Does not wait for the message. Work::sourceRank() returns
  // the sender once the receive has ended. Throws c10::TypeError, c10::ValueError and
  // c10::DistBackendError.
  [[nodiscard]] c10::intrusive_ptr<c10d::Work> post(at::Tensor& tensor, int source, int tag);
  // Returns whether a receive without a tag from `source` must be posted here: because `source` is
  // this rank, or because the receive, if queued in the library now, would overtake an earlier one.
  // Returns false in a forked child.
  [[nodiscard]] bool must_post(int source);
  // Returns whether any posted receive is still waiting for its message.
  [[nodiscard]] bool has_posted();
  // Accepts a message from this rank to itself. The caller must not write to `bytes` afterwards.
  void send_to_self(const at::Tensor& bytes, int tag);
  // Fails the receives that have not been matched with a message, and ends the threads. Later posts
  // fail.
  void stop();

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Clock = std::chrono::steady_clock;

  struct Receive {
    c10::intrusive_ptr<Work> work;
    at::Tensor tensor;
    int source = kAnySource;
    int tag = 0;
    Clock::time_point deadline;
    bool is_matched = false;  // being queued in the library; then removed from the list

    [[nodiscard]] bool fits(int from) const { return source == kAnySource || source == from; }
  };
  using Receives = std::list<Receive>;
  struct Message {
    int source = 0;
    std::int64_t tag = 0;
    at::Tensor bytes;
  };
  struct Source {
    bool is_busy = false;     // whether a thread is receiving a message from this source
    std::uint64_t taken = 0;  // value of taken_ when the last message was taken
    std::thread reader;
  };

  // The functions that the threads run. A reader serves the receives from one rank; the prober
  // serves the receives from any rank and from this rank.
  void read(int source);
  void probe();

  // Call all functions below with the lock held. Functions with a parameter `lock` release it
  // temporarily.
  [[nodiscard]] bool is_own(int source) const { return source == communicator_->rank(); }
  void start_thread(int source);
  [[nodiscard]] bool is_probed(const Receive& receive) const;
  [[nodiscard]] bool waits_for_any() const;
  // Returns the receive that the reader of `source` may serve now, or the end of the list.
  [[nodiscard]] Receives::iterator next_from(int source);
  // Blocks until a receive from any rank is posted or the matcher stops. While waiting, fails the
  // prober's receives whose deadlines have passed.
  void await_turn(Lock& lock);
  // Probes the library once for a message, and matches the message with a receive. If the probe
  // fails, fails the receives from any rank.
  void probe_once(Lock& lock);
  // Matches a message that `source` offers with the first suitable receive. Does nothing if a
  // message from `source` is being received, or has been taken since taken_ had the value `before`.
  // Returns whether it matched a receive.
  bool take_offer(Lock& lock, int source, std::uint64_t bytes, std::uint64_t before);
  // Records that a message from `source` was taken. Marks the source as not busy.
  void release(int source);
  // Queues an untagged receive in the library, on the stream for messages from `source`. Fails the
  // receive if it cannot be queued.
  void queue_plain(Lock& lock, Receives::iterator receive, int source);
  // Receives a message with a tag and passes it to arrive(), whether or not it is for `work`. If
  // the message cannot be received, fails `work`.
  void read_tagged(Lock& lock, const c10::intrusive_ptr<Work>& work, int source);
  // Delivers a message to the first matching receive. Stores the message if no receive matches.
  void arrive(Lock& lock, Message message);
  // Fails the unmatched receives for which `condition` holds.
  template <class Condition>
  void fail_if(Lock& lock, const std::string& reason, Condition condition);

  // Call the following functions without the lock.
  [[nodiscard]] Message receive_tagged(int source, Work& work);
  // Receives a message of `bytes` bytes. Blocks until it has arrived. Gives up when the matcher
  // stops, unless a header has announced the message (`is_coming`). Throws c10::DistBackendError.
  [[nodiscard]] at::Tensor receive_now(int source, std::int64_t bytes, Work& work, bool is_coming);
  void queue_receive(const Receive& receive, int source);
  // Copies a message to the tensor of a receive, and ends the receive. Fails the receive if the
  // message and the tensor have different sizes.
  void deliver(Receive receive, const Message& message) noexcept;
  [[nodiscard]] std::string reason_of_timeout(const Receive& receive) const;

  OperationQueue& queue_;
  const std::shared_ptr<Communicator> communicator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Receives posted_;                 // in the order of the posts
  std::deque<Message> unexpected_;  // in the order of their arrival
  std::map<int, Source> sources_;
  std::uint64_t taken_ = 0;  // number of messages taken from sources
  std::thread prober_;
  std::atomic<bool> stopping_{false};
};

}  // namespace hccl_torch
