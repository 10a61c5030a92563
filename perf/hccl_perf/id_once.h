// SPDX-License-Identifier: Apache-2.0
// Shares the unique id among the threads of one process: the first thread that calls get() creates
// or receives the id, and the others wait.
#pragma once

#include "id_exchange.h"
#include "session.h"

#include <mutex>
#include <optional>

namespace hccl_perf {

class IdOnce {
 public:
  IdOnce(IdExchange exchange, bool is_root) : exchange_(std::move(exchange)), is_root_(is_root) {}

  [[nodiscard]] hcclUniqueId get() {
    const std::lock_guard lock(mutex_);
    if (!id_) id_ = exchange_(is_root_ ? std::optional(make_unique_id()) : std::nullopt);
    return *id_;
  }

 private:
  std::mutex mutex_;
  IdExchange exchange_;
  bool is_root_;
  std::optional<hcclUniqueId> id_;
};

}  // namespace hccl_perf
