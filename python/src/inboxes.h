// SPDX-License-Identifier: Apache-2.0
// The inboxes of a process group, one for each rank whose messages have had tags.
#pragma once

#include "inbox.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace hccl_torch {

// Thread-safe.
class Inboxes {
 public:
  Inboxes(OperationQueue& queue, std::shared_ptr<Communicator> communicator)
      : queue_(queue), communicator_(std::move(communicator)) {}
  Inboxes(const Inboxes&) = delete;
  Inboxes& operator=(const Inboxes&) = delete;

  // Returns the inbox for messages of `source`, which is made by the first call.
  [[nodiscard]] Inbox& from(int source) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Inbox>& inbox = inboxes_[source];
    if (!inbox) inbox = std::make_unique<Inbox>(queue_, communicator_, source);
    return *inbox;
  }
  // Returns the inbox for messages of `source` if it has requests that wait, else null.
  [[nodiscard]] Inbox* busy_from(int source) {
    const std::lock_guard lock(mutex_);
    const auto found = inboxes_.find(source);
    return found != inboxes_.end() && found->second->is_busy() ? found->second.get() : nullptr;
  }
  // Removes a message of this tag that has arrived, and returns its source and its bytes.
  [[nodiscard]] std::optional<std::pair<int, at::Tensor>> take(std::int64_t tag) {
    const std::lock_guard lock(mutex_);
    for (const auto& [source, inbox] : inboxes_) {
      if (const auto bytes = inbox->take(tag)) return std::pair(source, *bytes);
    }
    return std::nullopt;
  }

 private:
  OperationQueue& queue_;
  const std::shared_ptr<Communicator> communicator_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Inbox>> inboxes_;
};

}  // namespace hccl_torch
