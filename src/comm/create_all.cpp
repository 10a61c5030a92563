// SPDX-License-Identifier: Apache-2.0
// Joins every rank except the first on its own thread, because joining blocks.
#include "comm/create_all.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/quiet_thread.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "bootstrap/server_registry.h"
#include "comm/create_communicator.h"

#include <exception>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>

namespace hccl::comm {
namespace {

class AllDevices {
 public:
  AllDevices(const hcclUniqueId& id, const std::vector<std::shared_ptr<device::Device>>& devices)
      : id_(id), devices_(devices), made_(devices.size()) {}

  std::vector<std::shared_ptr<Communicator>> join_all() {
    {
      std::vector<std::jthread> threads;
      start(threads);
      join(0);
    }
    if (!first_error_) return std::move(made_);
    for (const auto& communicator : made_) {
      if (communicator) communicator->leave();
    }
    bootstrap::retire_unique_id(id_);
    std::rethrow_exception(first_error_);
  }

 private:
  // Starts a thread for each device except the first. Ranks join only after all threads have
  // started. If a thread cannot start, no rank joins.
  void start(std::vector<std::jthread>& threads) {
    std::promise<bool> verdict;
    const std::shared_future<bool> may_join = verdict.get_future().share();
    ScopeExit unless_all_start([&]() noexcept { verdict.set_value(false); });
    try {
      const SignalBlock block;
      for (std::size_t rank = 1; rank < devices_.size(); ++rank) {
        threads.emplace_back([this, rank, may_join] {
          if (may_join.get()) join(rank);
        });
      }
    } catch (const std::system_error& error) {
      bootstrap::retire_unique_id(id_);
      throw Error(hcclSystemError,
                  text("cannot start the thread that joins as rank ", threads.size() + 1, ": ",
                       error.code().message(), "; ", advice_on_thread(error.code().value())));
    }
    unless_all_start.dismiss();
    verdict.set_value(true);
  }

  // Joins one rank. If it cannot join, the ranks that wait for it fail too.
  void join(std::size_t rank) noexcept {
    try {
      made_[rank] = create_communicator(id_, static_cast<int>(devices_.size()),
                                        static_cast<int>(rank), devices_[rank]);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (first_error_) return;
      first_error_ = std::current_exception();
      bootstrap::abandon_unique_id(id_, text("rank ", rank, " could not join"));
    }
  }

  hcclUniqueId id_;
  const std::vector<std::shared_ptr<device::Device>>& devices_;
  std::vector<std::shared_ptr<Communicator>> made_;  // by rank
  std::mutex mutex_;
  std::exception_ptr first_error_;
};

}  // namespace

std::vector<std::shared_ptr<Communicator>> create_all(
    const hcclUniqueId& id, const std::vector<std::shared_ptr<device::Device>>& devices) {
  return AllDevices(id, devices).join_all();
}

}  // namespace hccl::comm
