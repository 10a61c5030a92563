// SPDX-License-Identifier: Apache-2.0
// Computes the counts and bandwidth factors of the collectives, and makes their calls.
#include "collective.h"

#include "pairs.h"
#include "text.h"

#include <array>

namespace hccl_perf {
namespace {

constexpr const char* kGroupOfBoth = "a group of hcclSend and hcclRecv";
constexpr const char* kGroupOfOne = "a group of hcclSend or hcclRecv";

constexpr std::array<Collective, 11> kCollectives{{
    {CollectiveKind::all_reduce, "all_reduce", true, false, {0, 2}, "hcclAllReduce"},
    {CollectiveKind::broadcast, "broadcast", false, true, {1, 0}, "hcclBroadcast"},
    {CollectiveKind::all_gather, "all_gather", false, false, {0, 1}, "hcclAllGather"},
    {CollectiveKind::reduce_scatter, "reduce_scatter", true, false, {0, 1}, "hcclReduceScatter"},
    {CollectiveKind::reduce, "reduce", true, true, {1, 0}, "hcclReduce"},
    {CollectiveKind::all_to_all, "alltoall", false, false, {0, 1}, "hcclAlltoAll"},
    {CollectiveKind::send_receive, "sendrecv", false, false, {1, 0}, kGroupOfBoth},
    {CollectiveKind::barrier, "barrier", false, false, {0, 0}, "hcclBarrier"},
    {CollectiveKind::ping_pong, "pingpong", false, false, {1, 0}, "hcclSend or hcclRecv"},
    {CollectiveKind::bidirectional, "bidirectional", false, false, {2, 0}, kGroupOfBoth},
    {CollectiveKind::message_rate, "message_rate", false, false, {1, 0}, kGroupOfOne},
}};

struct OtherName {
  const char* name;
  const char* ours;
};

constexpr std::array<OtherName, 4> kOtherNames{{{"all2all", "alltoall"},
                                                {"all_to_all", "alltoall"},
                                                {"send_recv", "sendrecv"},
                                                {"ping_pong", "pingpong"}}};

constexpr std::uint64_t kPartAlignment = 16;  // bytes; each rank's part is a multiple of this size

}  // namespace

Counts Collective::counts(std::uint64_t bytes, const DataType& type, int ranks) const {
  const std::uint64_t elements = bytes / type.size;
  const auto size = static_cast<std::uint64_t>(ranks);
  const std::uint64_t granule = kPartAlignment / type.size;
  const std::uint64_t part = elements / size / granule * granule;
  switch (kind) {
    case CollectiveKind::all_gather:
      return {part, part, part * size, part * size * type.size};
    case CollectiveKind::reduce_scatter:
      return {part, part * size, part, part * size * type.size};
    case CollectiveKind::all_to_all:
      return {part * size, part * size, part * size, part * size * type.size};
    case CollectiveKind::message_rate:
      return {elements, elements * kWindow, elements * kWindow, elements * type.size};
    case CollectiveKind::barrier:
      return {};
    default:
      return {elements, elements, elements, elements * type.size};
  }
}

double Collective::bus_factor(int ranks) const {
  return bus.whole + bus.others * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
}

int Collective::messages_in_turn() const {
  if (kind == CollectiveKind::ping_pong) return 2;  // there and back
  return kind == CollectiveKind::message_rate ? kWindow : 1;
}

std::uint64_t Collective::default_bytes() const {
  const bool small = kind == CollectiveKind::ping_pong || kind == CollectiveKind::message_rate;
  return small ? 8 : std::uint64_t{32} << 20;
}

const Collective* find_collective(const std::string& name) {
  for (const OtherName& other : kOtherNames) {
    if (name == other.name) return find_collective(other.ours);
  }
  for (const Collective& collective : kCollectives) {
    if (name == collective.name) return &collective;
  }
  return nullptr;
}

const Collective* find_collective_of_program(const std::string& argv0) {
  const std::string base = argv0.substr(argv0.find_last_of('/') + 1);
  const std::string suffix = "_perf";
  if (base.size() <= suffix.size() || !base.ends_with(suffix)) return nullptr;
  return find_collective(base.substr(0, base.size() - suffix.size()));
}

std::string collective_names() {
  std::string names;
  for (const Collective& collective : kCollectives) {
    names += text(names.empty() ? "" : ", ", collective.name);
  }
  return names;
}

namespace {

// Queues a send to the next rank and a receive from the previous one as one group.
hcclResult_t pass_on(const Call& call, const void* from, void* to, hcclComm_t communicator,
                     void* stream) {
  const int next = (call.rank + 1) % call.ranks;
  const int previous = (call.rank + call.ranks - 1) % call.ranks;
  hcclResult_t result = hcclGroupStart();
  if (result != hcclSuccess) return result;
  result = hcclSend(from, call.count, call.type.code, next, communicator, stream);
  if (result == hcclSuccess)
    result = hcclRecv(to, call.count, call.type.code, previous, communicator, stream);
  const hcclResult_t ended = hcclGroupEnd();
  return result != hcclSuccess ? result : ended;
}

}  // namespace

hcclResult_t Call::enqueue(hcclComm_t communicator, void* stream) const {
  // The API passes device addresses as pointers, which are never dereferenced.
  const void* from = reinterpret_cast<const void*>(send);
  void* to = reinterpret_cast<void*>(receive);
  switch (collective->kind) {
    case CollectiveKind::all_reduce:
      return hcclAllReduce(from, to, count, type.code, reduction.code, communicator, stream);
    case CollectiveKind::broadcast:
      return hcclBroadcast(from, to, count, type.code, root, communicator, stream);
    case CollectiveKind::all_gather:
      return hcclAllGather(from, to, count, type.code, communicator, stream);
    case CollectiveKind::reduce_scatter:
      return hcclReduceScatter(from, to, count, type.code, reduction.code, communicator, stream);
    case CollectiveKind::reduce:
      return hcclReduce(from, to, count, type.code, reduction.code, root, communicator, stream);
    case CollectiveKind::all_to_all:
      return hcclAlltoAll(from, to, count, type.code, communicator, stream);
    case CollectiveKind::send_receive:
      return pass_on(*this, from, to, communicator, stream);
    case CollectiveKind::ping_pong:
      return ping_pong(*this, communicator, stream);
    case CollectiveKind::bidirectional:
      return exchange_both_ways(*this, communicator, stream);
    case CollectiveKind::message_rate:
      return send_window(*this, communicator, stream);
    case CollectiveKind::barrier:
      break;
  }
  return hcclBarrier(communicator, stream);
}

}  // namespace hccl_perf
