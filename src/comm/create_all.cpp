// SPDX-License-Identifier: Apache-2.0
// Joining blocks, so every rank does it on a thread of its own.
#include "comm/create_all.h"

#include <exception>
#include <thread>

namespace hccl::comm {
namespace {

struct Joining {
  std::shared_ptr<Communicator> communicator;
  std::exception_ptr error;
};

}  // namespace

std::vector<std::shared_ptr<Communicator>> create_all(
    const hcclUniqueId& id, const std::vector<std::shared_ptr<device::Device>>& devices) {
  std::vector<Joining> joining(devices.size());
  const auto join = [&](std::size_t rank) {
    try {
      joining[rank].communicator = Communicator::create(id, static_cast<int>(devices.size()),
                                                        static_cast<int>(rank), devices[rank]);
    } catch (...) {
      joining[rank].error = std::current_exception();
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t rank = 1; rank < devices.size(); ++rank) threads.emplace_back(join, rank);
  join(0);
  threads.clear();  // joins them

  std::exception_ptr first_error;
  std::vector<std::shared_ptr<Communicator>> made;
  for (Joining& one : joining) {
    if (one.error && !first_error) first_error = one.error;
    if (one.communicator) made.push_back(std::move(one.communicator));
  }
  if (!first_error) return made;
  for (const auto& communicator : made) communicator->leave();
  std::rethrow_exception(first_error);
}

}  // namespace hccl::comm
