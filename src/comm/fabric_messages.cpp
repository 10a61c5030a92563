// SPDX-License-Identifier: Apache-2.0
// A message is a header, which says what is sent, and its bytes.
#include "comm/fabric_messages.h"

#include "base/error.h"
#include "base/text.h"
#include "comm/call_memory.h"
#include "comm/fabric_watch.h"
#include "executor/call_header.h"

#include <algorithm>
#include <array>
#include <optional>

namespace hccl::comm {
namespace {

using executor::CallHeader;
using node::Direction;
using node::PointToPoint;

constexpr std::uint32_t kMessageLane = 0xffffffff;  // no stream's
constexpr std::size_t kPiece = std::size_t{256} << 10;

CallHeader header_of(const PointToPoint& call) {
  CallHeader header;
  header.collective = static_cast<std::uint8_t>(Collective::point_to_point);
  header.type = call.type;
  header.number = call.number;
  header.count = call.count;
  return header;
}

// A message on its way.
class Item {
 public:
  Item(const PointToPoint& call, FabricMessages& messages, device::Arena& arena)
      : call_(call), messages_(messages), memory_(arena, call.address), header_(header_of(call)) {}

  [[nodiscard]] bool complete() const { return complete_; }
  [[nodiscard]] bool has_turn() const {
    return messages_.way(call_).turn.load(std::memory_order_seq_cst) == call_.number;
  }
  [[nodiscard]] const PointToPoint& call() const { return call_; }
  [[nodiscard]] transport::WaitSet::Entry interest() const {
    const bool sends = call_.direction == Direction::send;
    const bool moved = header_moved_ == sizeof(CallHeader) && moved_ == call_.bytes();
    return {&messages_.endpoint(call_),
            {.readable = !sends, .writable = sends && !moved, .flushed = sends && moved}};
  }

  // Returns whether anything moved.
  bool advance(int own_rank) {
    if (complete_ || !has_turn()) return false;
    transport::Endpoint& endpoint = messages_.endpoint(call_);
    const bool moved =
        call_.direction == Direction::send ? send(endpoint) : receive(endpoint, own_rank);
    if (header_moved_ < sizeof(CallHeader) || moved_ < call_.bytes()) return moved;
    if (call_.direction == Direction::send && !endpoint.flushed()) return moved;
    complete_ = true;
    messages_.count(call_);
    messages_.pass_turn(call_);
    return true;
  }

 private:
  [[nodiscard]] std::size_t left() const {
    return static_cast<std::size_t>(std::min<std::uint64_t>(call_.bytes() - moved_, kPiece));
  }

  bool send(transport::Endpoint& endpoint) {
    const std::span<const std::byte> rest = header_.bytes().subspan(header_moved_);
    std::span<const std::byte> piece;
    if (left() != 0) piece = memory_.get().source(moved_, left());
    const std::array<std::span<const std::byte>, 2> parts{rest, piece};
    const std::size_t taken = endpoint.try_send_parts(parts);
    const std::size_t of_header = std::min(taken, rest.size());
    header_moved_ += of_header;
    moved_ += taken - of_header;
    return taken > 0;
  }

  bool receive(transport::Endpoint& endpoint, int own_rank) {
    if (header_moved_ == 0) {
      const auto heard = endpoint.try_receive(sizeof(CallHeader));
      if (heard.size() < sizeof(CallHeader)) return false;
      check(CallHeader::from(heard), own_rank);
      endpoint.release(sizeof(CallHeader));
      header_moved_ = sizeof(CallHeader);
    }
    if (left() == 0) return true;
    const std::size_t count = endpoint.try_receive_into(memory_.get().destination(moved_, left()));
    moved_ += count;
    return count > 0;
  }

  void check(const CallHeader& theirs, int own_rank) const {
    if (theirs == header_) return;
    PointToPoint sent = call_;
    sent.direction = Direction::send;
    sent.peer = own_rank;
    sent.count = theirs.count;
    sent.type = theirs.type;
    throw Error(hcclInvalidUsage,
                text("message ", call_.number, ": rank ", call_.peer, ' ', node::describe(sent),
                     " but rank ", own_rank, ' ', node::describe(call_),
                     "; both must pass the same count and type"));
  }

  const PointToPoint& call_;
  FabricMessages& messages_;
  CallMemory memory_;
  const CallHeader header_;
  std::size_t header_moved_ = 0;
  std::uint64_t moved_ = 0;
  bool complete_ = false;
};

using Items = std::deque<Item>;

// As of a collective: see FabricLane.
class CutUnlessDone {
 public:
  CutUnlessDone(FabricMessages& messages, const Items& items)
      : messages_(messages), items_(items) {}
  ~CutUnlessDone() {
    for (const Item& item : items_) {
      if (item.complete() || !item.has_turn()) continue;
      if (const auto& endpoint = messages_.way(item.call()).endpoint) endpoint->cut();
    }
  }
  CutUnlessDone(const CutUnlessDone&) = delete;
  CutUnlessDone& operator=(const CutUnlessDone&) = delete;

 private:
  FabricMessages& messages_;
  const Items& items_;
};

const Item* first_open(const Items& items) {
  const auto found = std::ranges::find(items, false, &Item::complete);
  return found == items.end() ? nullptr : &*found;
}

// Whether an item waits for a message of another stream; those before it here pass their turn to
// it.
bool waits_for_another_stream(const Items& items) {
  return std::ranges::any_of(items, [&](const Item& item) {
    const auto before = [&](const Item& other) {
      return !other.complete() && other.has_turn() &&
             other.call().direction == item.call().direction &&
             other.call().peer == item.call().peer;
    };
    return !item.complete() && !item.has_turn() && std::ranges::none_of(items, before);
  });
}

// As long as it lives, passed turns ring.
class TurnWait {
 public:
  explicit TurnWait(std::atomic<int>& waiting) : waiting_(waiting) { ++waiting_; }
  ~TurnWait() { --waiting_; }
  TurnWait(const TurnWait&) = delete;
  TurnWait& operator=(const TurnWait&) = delete;

 private:
  std::atomic<int>& waiting_;
};

// Until one of the items whose turn it is can go on, or another stream has passed its turn.
void sleep(const Items& items, transport::WaitSet& wait_set, std::atomic<int>& waiting_for_turns) {
  std::optional<TurnWait> announced;
  if (waits_for_another_stream(items)) {
    announced.emplace(waiting_for_turns);
    if (!waits_for_another_stream(items)) return;  // it was passed before it could ring
  }
  std::vector<transport::WaitSet::Entry> entries;
  for (const Item& item : items) {
    if (!item.complete() && item.has_turn()) entries.push_back(item.interest());
  }
  static_cast<void>(wait_set.wait(entries, Deadline::after(executor::kLook)));
}

}  // namespace

void FabricMessages::prepare() {
  const auto size = static_cast<std::size_t>(fabric_.options().size);
  while (sends_.size() < size) {
    sends_.emplace_back();
    receives_.emplace_back();
  }
}

FabricMessages::Way& FabricMessages::way(const PointToPoint& call) {
  std::call_once(prepared_, [this] { prepare(); });
  const auto peer = static_cast<std::size_t>(call.peer);
  return call.direction == Direction::send ? sends_[peer] : receives_[peer];
}

void FabricMessages::number(PointToPoint& call) { call.number = way(call).numbered++; }

// Channel 0 leads from the smaller rank to the larger, 1 back.
transport::Endpoint& FabricMessages::endpoint(const PointToPoint& call) {
  Way& chosen = way(call);
  if (!chosen.endpoint) {
    const bool upwards =
        (call.direction == Direction::send) == (fabric_.options().rank < call.peer);
    chosen.endpoint = fabric_.open(call.peer, {kMessageLane, upwards ? 0U : 1U});
  }
  return *chosen.endpoint;
}

void FabricMessages::count(const PointToPoint& call) {
  Way& done = way(call);
  fabric_.traffic().add(*done.endpoint, done.counted);
  fabric_.traffic().note_algorithm("point_to_point");
}

// Like the announcement of a wait, sequentially consistent: one of the two sees the other.
void FabricMessages::pass_turn(const PointToPoint& call) {
  way(call).turn.store(call.number + 1, std::memory_order_seq_cst);
  if (waiting_for_turns_.load(std::memory_order_seq_cst) > 0) wake();
}

void FabricMessages::forget(std::uint64_t stream) {
  const std::lock_guard lock(waits_mutex_);
  waits_.erase(stream);
}

void FabricMessages::wake() {
  const std::lock_guard lock(waits_mutex_);
  for (auto& [stream, wait_set] : waits_) wait_set.ring();
}

transport::WaitSet& FabricMessages::wait_set_of(std::uint64_t stream) {
  const std::lock_guard lock(waits_mutex_);
  return waits_[stream];
}

void FabricMessages::exchange(std::uint64_t stream, std::span<const PointToPoint> calls,
                              device::Arena& arena) {
  if (fabric_.fault().raised()) fabric_.fault().throw_error();
  transport::WaitSet& wait_set = wait_set_of(stream);
  Items items;
  for (const PointToPoint& call : calls) {
    fabric_.learn(call.address, call.bytes());
    items.emplace_back(call, *this, arena);
  }
  const auto doing = [&] { return node::describe(first_open(items)->call()); };
  const auto awaited = [&] {
    std::vector<int> ranks;
    for (const Item& item : items) {
      if (!item.complete()) ranks.push_back(item.call().peer);
    }
    return ranks;
  };
  const CutUnlessDone guard(*this, items);
  FabricWatch watch(fabric_, std::nullopt, doing, awaited);
  naming_the_lost(fabric_, wait_set, doing, [&] {
    executor::Rest rest(fabric_.ladder(), watch);
    for (;;) {
      bool moved = false;
      for (Item& item : items) moved = item.advance(fabric_.options().rank) || moved;
      if (first_open(items) == nullptr) return;
      if (rest.after(moved)) sleep(items, wait_set, waiting_for_turns_);
    }
  });
}

}  // namespace hccl::comm
