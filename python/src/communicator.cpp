// SPDX-License-Identifier: Apache-2.0
#include "communicator.h"

#include "call.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace hccl_torch {

namespace {

// The store of a launcher outlives the groups, whose names repeat.
std::string key_of(const std::string& group) {
  static std::mutex mutex;
  static std::map<std::string, int> made;
  const std::lock_guard lock(mutex);
  return "hccl_torch/" + group + "/" + std::to_string(made[group]++);
}

hcclUniqueId agree_on_id(c10d::Store& store, int rank, int size, const std::string& key) {
  hcclUniqueId id{};
  if (rank == 0) {
    check(hcclGetUniqueId(&id), "hcclGetUniqueId");
    store.set(key, std::vector<std::uint8_t>(id.internal, id.internal + id.length));
  } else {
    const std::vector<std::uint8_t> bytes = store.get(key);
    TORCH_CHECK_WITH(DistBackendError, bytes.size() <= sizeof id.internal,
                     "hccl_torch: the store holds no id of this group under ", key);
    std::copy(bytes.begin(), bytes.end(), id.internal);
    id.length = bytes.size();
  }
  if (store.add(key + "/readers", 1) == size) {
    store.deleteKey(key);
    store.deleteKey(key + "/readers");
  }
  return id;
}

}  // namespace

Communicator::Communicator(c10d::Store& store, int rank, int size, const std::string& group) {
  const hcclUniqueId id = agree_on_id(store, rank, size, key_of(group));
  check(hcclCommInitRank(&handle_, size, id, rank), "hcclCommInitRank");
}

Communicator::~Communicator() {
  if (!aborted_) hcclCommDestroy(handle_);
}

std::string Communicator::fault() const {
  const char* const text = hcclCommGetAsyncErrorMessage(handle_);
  return text == nullptr ? "" : text;
}

void Communicator::abort() noexcept {
  if (!aborted_.exchange(true)) hcclCommAbort(handle_);
}

void Communicator::finalize() noexcept {
  if (!aborted_) hcclCommFinalize(handle_);
}

}  // namespace hccl_torch
