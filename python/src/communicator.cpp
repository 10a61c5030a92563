// SPDX-License-Identifier: Apache-2.0
#include "communicator.h"

#include "call.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <unistd.h>

namespace hccl_torch {

namespace {

// Returns the store key for the group's unique id. A launcher's store outlives groups, and group
// names are reused, so the key contains the number of earlier groups of this name: the number of
// earlier calls, counted in the store, divided by the group size.
std::string key_of(c10d::Store& store, const std::string& group, int size) {
  const std::string prefix = "hccl_torch/" + group;
  const std::int64_t arrival = store.add(prefix + "/arrivals", 1) - 1;
  return prefix + "/" + std::to_string(arrival / size);
}

hcclUniqueId agree_on_id(c10d::Store& store, int rank, int size, const std::string& key) {
  hcclUniqueId id{};
  if (rank == 0) {
    check(hcclGetUniqueId(&id), "hcclGetUniqueId");
    store.set(key, std::vector<std::uint8_t>(id.internal, id.internal + id.length));
  } else {
    const std::vector<std::uint8_t> bytes = store.get(key);
    TORCH_CHECK_WITH(DistBackendError, bytes.size() <= sizeof id.internal,
                     "hccl_torch: the store's value under ", key,
                     " is not a group id; use a store that no other program writes to");
    std::copy(bytes.begin(), bytes.end(), id.internal);
    id.length = bytes.size();
  }
  if (store.add(key + "/readers", 1) == size) {
    store.deleteKey(key);
    store.deleteKey(key + "/readers");
  }
  return id;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace

Communicator::Communicator(c10d::Store& store, GroupIdentity identity,
                           std::chrono::milliseconds timeout)
    : identity_(std::move(identity)), process_(::getpid()) {
  const hcclUniqueId id = agree_on_id(store, identity_.rank, identity_.size,
                                      key_of(store, identity_.name, identity_.size));
  check(hcclCommInitRank(&handle_, identity_.size, id, identity_.rank), "hcclCommInitRank");
  set_timeout(timeout);
}

Communicator::~Communicator() {
  if (aborted_) return;
  if (is_idle()) {
    hcclCommDestroy(handle_);
  } else {
    hcclCommAbort(handle_);
  }
}

hcclComm_t Communicator::get() const {
  TORCH_CHECK_WITH(DistBackendError, !aborted_, "hccl_torch: ", describe(),
                   " was aborted; make another group");
  return handle_;
}

std::string Communicator::describe() const {
  std::string text =
      c10::str("group ", identity_.name, " (rank ", identity_.rank, " of ", identity_.size);
  const auto rank = static_cast<std::size_t>(identity_.rank);
  if (rank < identity_.global_ranks.size() && identity_.global_ranks[rank] != identity_.rank)
    text += c10::str(", global rank ", identity_.global_ranks[rank]);
  return text + c10::str(", host ", host_name(), ")");
}

const Stream& Communicator::message_stream(std::pair<int, bool> way) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Stream>& stream = message_streams_[way];
  if (!stream) stream = std::make_unique<Stream>();
  return *stream;
}

bool Communicator::is_idle() {
  const auto has_run = [](const Stream& stream) {
    return StreamRange{&stream, 0, stream.queued()}.has_run();
  };
  const std::lock_guard lock(mutex_);
  return has_run(stream_) &&
         std::all_of(message_streams_.begin(), message_streams_.end(),
                     [&](const auto& entry) { return !entry.second || has_run(*entry.second); });
}

std::string Communicator::fault() const {
  const char* const text = hcclCommGetAsyncErrorMessage(handle_);
  return text == nullptr ? "" : text;
}

void Communicator::set_timeout(std::chrono::milliseconds timeout) {
  check(hcclEmulationSetTimeout(get(), static_cast<std::uint64_t>(timeout.count())),
        "hcclEmulationSetTimeout");
  timeout_ = timeout;
}

bool Communicator::is_in_forked_child() const noexcept { return ::getpid() != process_; }

void Communicator::abort() noexcept {
  if (!aborted_.exchange(true)) hcclCommAbort(handle_);
}

}  // namespace hccl_torch
