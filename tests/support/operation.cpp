// SPDX-License-Identifier: Apache-2.0
// Lays out the buffers, computes what they must contain, and compares.
#include "operation.h"

#include "planned.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace hccl::test {
namespace {

constexpr std::size_t kGuard = 128;
constexpr std::byte kPoison{0xA5};

std::size_t allocation_size(std::size_t offset, std::size_t payload) {
  return kGuard + offset + payload + kGuard;
}

// Returns the operation. If the test has set no nodes and the ranks are processes, takes the nodes
// from HCCL_TEST_LAYOUT, unless that puts all ranks on one node.
Operation placed(Operation operation, const World& world, const Group& group) {
  if (!operation.nodes.empty() || world.threads) return operation;
  for (const int member : group.members) operation.nodes.push_back(node_of(member));
  const auto differ = [&](const std::string& node) { return node != operation.nodes.front(); };
  if (std::ranges::none_of(operation.nodes, differ)) operation.nodes.clear();
  return operation;
}

Region make_region(std::size_t offset, std::size_t payload) {
  Region region;
  region.start = kGuard + offset;
  region.length = payload;
  region.before.assign(allocation_size(offset, payload), kPoison);
  region.after.assign(region.before.size(), std::byte{0});
  return region;
}

bool is_in_host_memory(Placement place) {
  return place == Placement::host || place == Placement::pinned;
}

// Stores `elements` elements at `where`. words_of(first, words) must fill `words` with consecutive
// elements from index `first`.
template <class WordsOf>
void store(std::size_t elements, const WordsOf& words_of, hcclDataType_t type, std::byte* where) {
  std::array<std::uint64_t, 512> block{};
  for (std::size_t first = 0; first < elements; first += block.size()) {
    const auto words = std::span(block).first(std::min(block.size(), elements - first));
    words_of(first, words);
    store_words(type, where + first * size_of(type), words);
  }
}

}  // namespace

Operation make_operation(Collective collective, std::size_t count, hcclDataType_t type,
                         hcclRedOp_t reduction, int root) {
  return {
      .collective = collective, .type = type, .reduction = reduction, .root = root, .count = count};
}

Placement placement_of(Placement placement, std::uint64_t mix) {
  constexpr std::array kWays{Placement::device, Placement::host, Placement::view,
                             Placement::pinned};
  return placement == Placement::mixed ? kWays[mix % kWays.size()] : placement;
}

std::string describe(const Operation& operation) {
  return join(name_of(operation.collective), " of ", operation.count, " ", name_of(operation.type),
              traits(operation.collective).reduces ? join(" ", name_of(operation.reduction)) : "",
              traits(operation.collective).has_root() ? join(" root ", operation.root) : "",
              operation.in_place ? " in place" : "",
              operation.placement == Placement::device   ? ""
              : operation.placement == Placement::host   ? " in host memory"
              : operation.placement == Placement::pinned ? " in memory from synHostMalloc"
              : operation.placement == Placement::view   ? " in host views"
                                                         : " in memory of all kinds",
              " at offset ", operation.offset, " (seed ", operation.seed, ")");
}

OperationRun::OperationRun(const Session& session, const Group& group, const Operation& operation)
    : group_(group),
      operation_(placed(operation, session.world(), group)),
      element_(size_of(operation.type)),
      send_(make_region(
          operation.offset * element_,
          (operation.in_place ? std::max(send_elements(), receive_elements()) : send_elements()) *
              element_)),
      receive_(make_region(operation.offset * element_,
                           operation.in_place ? 0 : receive_elements() * element_)),
      send_start_(send_.start),
      receive_start_(operation.in_place ? send_.start : receive_.start),
      send_place_(place(0)),
      receive_place_(place(operation.in_place ? 0 : 1)),
      send_memory_(session.device(), send_.before.size()),
      receive_memory_(session.device(), receive_.before.size()) {
  const std::size_t part = static_cast<std::size_t>(group.rank) * operation.count * element_;
  if (operation.in_place && operation.collective == Collective::all_gather) send_start_ += part;
  if (operation.in_place && operation.collective == Collective::reduce_scatter) {
    receive_start_ += part;
  }
  const auto own = [&](std::size_t first, std::span<std::uint64_t> words) {
    input(group.rank, first, words);
  };
  store(send_elements(), own, operation.type, send_.before.data() + send_start_);
  if (send_place_ == Placement::pinned)
    send_.pinned = std::make_unique<PinnedMemory>(session.device(), send_.before);
  if (receive_place_ == Placement::pinned && !operation.in_place)
    receive_.pinned = std::make_unique<PinnedMemory>(session.device(), receive_.before);
}

Placement OperationRun::place(std::size_t buffer) const {
  return placement_of(operation_.placement,
                      static_cast<std::uint64_t>(group_.rank) + buffer + operation_.seed / 1000);
}

Data OperationRun::data() const {
  if (!traits(operation_.collective).reduces) return Data::bits;
  const bool exact = operation_.reduction == hcclMin || operation_.reduction == hcclMax;
  return exact && group_.size() > 1 ? Data::specials : Data::numbers;
}

std::size_t OperationRun::send_elements() const {
  const std::size_t parts = operation_.collective == Collective::reduce_scatter
                                ? static_cast<std::size_t>(group_.size())
                                : 1;
  return operation_.count * parts;
}

std::size_t OperationRun::receive_elements() const {
  if (operation_.collective == Collective::reduce && operation_.root != group_.rank) return 0;
  const std::size_t parts =
      operation_.collective == Collective::all_gather ? static_cast<std::size_t>(group_.size()) : 1;
  return operation_.count * parts;
}

void OperationRun::input(int source, std::size_t first, std::span<std::uint64_t> words) const {
  element_words(operation_.type, data(), operation_.seed, source, first, words);
}

void OperationRun::output(std::size_t first, std::span<std::uint64_t> words) const {
  const auto rank = static_cast<std::size_t>(group_.rank);
  switch (operation_.collective) {
    case Collective::broadcast:
      return input(operation_.root, first, words);
    case Collective::all_gather:
      return output_of_parts(operation_.count, 0, first, words);
    case Collective::all_to_all: {
      const std::size_t part = operation_.count / static_cast<std::size_t>(group_.size());
      return output_of_parts(part, rank * part, first, words);
    }
    case Collective::reduce_scatter:
      return fold_inputs(rank * operation_.count + first, words);
    default:
      return fold_inputs(first, words);
  }
}

// Concatenates elements [skipped, skipped + part) of each rank's input, and fills `words` with
// elements of the concatenation, starting at index `first`.
void OperationRun::output_of_parts(std::size_t part, std::size_t skipped, std::size_t first,
                                   std::span<std::uint64_t> words) const {
  while (!words.empty()) {
    const std::size_t within = first % part;
    const std::size_t length = std::min(part - within, words.size());
    input(static_cast<int>(first / part), skipped + within, words.first(length));
    words = words.subspan(length);
    first += length;
  }
}

void OperationRun::fold_inputs(std::size_t first, std::span<std::uint64_t> words) const {
  const auto ranks = static_cast<std::size_t>(group_.size());
  std::vector<std::uint64_t> inputs(ranks * words.size());
  for (std::size_t source = 0; source < ranks; ++source) {
    input(static_cast<int>(source), first,
          std::span(inputs).subspan(source * words.size(), words.size()));
  }
  fold_rows(operation_.type, operation_.reduction, inputs, ranks, words);
}

std::vector<std::uint64_t> OperationRun::planned_outputs() const {
  if (receive_elements() == 0) return {};
  return planned_reduction(
      operation_, group_.rank,
      [this](int source, std::span<std::uint64_t> words) { input(source, 0, words); });
}

hcclResult_t OperationRun::queue(synStreamHandle stream) {
  queue_upload(stream);
  const hcclResult_t result = queue_collective(stream);
  queue_download(stream);
  return result;
}

void OperationRun::queue_upload(synStreamHandle stream) {
  send_.after = send_.before;
  receive_.after = receive_.before;
  for (Region* region : {&send_, &receive_}) {
    if (region->pinned) std::ranges::copy(region->before, region->host());
  }
  if (!is_in_host_memory(send_place_)) upload(stream, send_.before, send_memory_.address());
  if (!is_in_host_memory(receive_place_))
    upload(stream, receive_.before, receive_memory_.address());
}

void* OperationRun::address(Region& region, const DeviceMemory& memory, Placement place) {
  if (is_in_host_memory(place)) return region.host();
  return place == Placement::view ? memory.view() : memory.pointer();
}

hcclResult_t OperationRun::queue_collective(synStreamHandle stream) {
  const auto at = [](void* base, std::size_t offset) {
    return device_pointer(host_address(base) + offset);
  };
  void* const send_base = address(send_, send_memory_, send_place_);
  void* receive_base =
      operation_.in_place ? send_base : address(receive_, receive_memory_, receive_place_);
  // Send from an address in the host view and receive at a device address. The library must
  // recognise that both name the same memory.
  if (operation_.in_place && send_place_ == Placement::view && operation_.seed % 2000 == 0)
    receive_base = send_memory_.pointer();
  const void* send = at(send_base, send_start_);
  void* receive = at(receive_base, receive_start_);
  switch (operation_.collective) {
    case Collective::all_reduce:
      return hcclAllReduce(send, receive, operation_.count, operation_.type, operation_.reduction,
                           group_.handle, stream);
    case Collective::broadcast:
      return hcclBroadcast(send, receive, operation_.count, operation_.type, operation_.root,
                           group_.handle, stream);
    case Collective::all_gather:
      return hcclAllGather(send, receive, operation_.count, operation_.type, group_.handle, stream);
    case Collective::reduce_scatter:
      return hcclReduceScatter(send, receive, operation_.count, operation_.type,
                               operation_.reduction, group_.handle, stream);
    case Collective::reduce:
      // On ranks other than the root, the receive buffer may be null.
      return hcclReduce(send, operation_.root == group_.rank ? receive : nullptr, operation_.count,
                        operation_.type, operation_.reduction, operation_.root, group_.handle,
                        stream);
    case Collective::all_to_all:
      return hcclAlltoAll(send, receive, operation_.count, operation_.type, group_.handle, stream);
    case Collective::barrier:
    case Collective::point_to_point:
      break;  // not a collective with these buffers
  }
  return hcclInvalidArgument;
}

void OperationRun::queue_download(synStreamHandle stream) {
  if (!is_in_host_memory(send_place_)) download(stream, send_memory_.address(), send_.after);
  if (!is_in_host_memory(receive_place_))
    download(stream, receive_memory_.address(), receive_.after);
}

void OperationRun::verify() const {
  std::vector<std::byte> expected_send = send_.before;
  std::vector<std::byte> expected_receive = receive_.before;
  std::vector<std::byte>& target = operation_.in_place ? expected_send : expected_receive;
  if (operation_.in_place && operation_.collective == Collective::reduce_scatter) {
    // The library may use the rest of the send buffer as scratch.
    std::ranges::copy(send_.result().subspan(send_.start, send_.length),
                      target.begin() + static_cast<std::ptrdiff_t>(send_.start));
  }
  const bool planned = !operation_.nodes.empty() && traits(operation_.collective).reduces;
  const std::vector<std::uint64_t> outputs =
      planned ? planned_outputs() : std::vector<std::uint64_t>();
  const auto wanted = [&](std::size_t first, std::span<std::uint64_t> words) {
    if (planned) {
      std::ranges::copy(std::span(outputs).subspan(first, words.size()), words.begin());
    } else {
      output(first, words);
    }
  };
  store(receive_elements(), wanted, operation_.type, target.data() + receive_start_);
  compare(send_, expected_send, "send");
  compare(receive_, expected_receive, "receive");
}

void OperationRun::verify_untouched() const {
  compare(send_, send_.before, "send");
  compare(receive_, receive_.before, "receive");
}

void OperationRun::compare(const Region& region, const std::vector<std::byte>& expected,
                           const char* which) const {
  const std::span<const std::byte> result = region.result();
  if (std::ranges::equal(result, expected)) return;
  const auto [got, want] = std::mismatch(result.begin(), result.end(), expected.begin());
  const std::ptrdiff_t at = got - result.begin();
  const auto wrong = static_cast<std::size_t>(std::inner_product(
      result.begin(), result.end(), expected.begin(), std::size_t{0}, std::plus<>(),
      [](std::byte a, std::byte b) { return std::size_t{a != b}; }));
  require(false,
          join(describe(operation_), ": rank ", group_.rank, " of ", group_.size(), ": ", wrong,
               " wrong bytes in the ", which, " allocation of ", expected.size(), ", the first at ",
               at, " (payload from ", region.start, " for ", region.length,
               "): ", std::to_integer<int>(*got), " instead of ", std::to_integer<int>(*want)));
}

void run_and_verify(const Session& session, const Group& group, synStreamHandle stream,
                    const Operation& operation) {
  OperationRun run(session, group, operation);
  succeed(run.queue(stream));
  succeed(synStreamSynchronize(stream));
  run.verify();
}

}  // namespace hccl::test
