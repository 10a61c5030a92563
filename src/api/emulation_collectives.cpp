// SPDX-License-Identifier: Apache-2.0
// Collectives over blocks of different sizes, and hcclEmulationProbe(). The collectives run as
// concurrent sends and receives, or as one reduce for each block. Empty blocks are sent and reduced
// too: if one rank passes a count of 0 for a block and another rank a different count, the calls
// fail as a mismatch instead of waiting for a message that is never sent.
#include "api/queueing.h"
#include "call/collective_call.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include <hccl_emulation.h>

using namespace hccl;
using namespace hccl::api;

namespace {

// One rank's block of a buffer.
struct Block {
  std::uint64_t address = 0;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  int rank = 0;

  [[nodiscard]] std::uint64_t end() const { return address + bytes; }
  [[nodiscard]] bool overlaps(const Block& other) const {
    return bytes != 0 && other.bytes != 0 && address < other.end() && other.address < end();
  }
};

// The blocks of one buffer, by rank.
struct BlockLayout {
  const char* name;  // of the buffer, for error texts
  std::vector<Block> blocks;

  [[nodiscard]] const Block& of(int rank) const { return blocks[static_cast<std::size_t>(rank)]; }
};

// An array of counts or displacements, and its name for error texts.
struct Numbers {
  const std::uint64_t* values;
  const char* name;
};

void refuse_in_strict_mode() {
  if (!strict_mode()) return;
  throw Error(hcclUnsupported,
              "HCCL_STRICT=1: Gaudi's library does not support blocks of different sizes; send and "
              "receive them in a group");
}

// Returns the blocks of a buffer. Throws Error if `counts` is null, if a block ends past 2^63
// bytes, or if the memory from the start of the buffer to the end of its last block is not valid.
BlockLayout lay_out(const comm::Communicator& communicator, std::uint64_t buffer, const char* name,
                    hcclDataType_t type, const Numbers& counts,
                    const std::uint64_t* displacements) {
  if (counts.values == nullptr)
    throw Error(hcclInvalidArgument, text(counts.name, " is null; pass a count for each rank"));
  const std::uint64_t size = reduce::element_size(type);
  const std::uint64_t most = reduce::elements_in(type, std::numeric_limits<std::int64_t>::max());
  BlockLayout layout{name, {}};
  std::uint64_t next = 0, end = 0;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const std::uint64_t count = counts.values[rank];
    const std::uint64_t first = displacements != nullptr && count != 0 ? displacements[rank] : next;
    if (first > most || count > most - first) {
      throw Error(
          hcclInvalidArgument,
          text(counts.name, '[', rank, "] is ", count, ": the block that begins at element ", first,
               " would end past 2^63 bytes; pass smaller counts or displacements"));
    }
    layout.blocks.push_back({buffer + first * size, count, count * size, rank});
    next = first + count;
    if (count != 0) end = std::max(end, next);
  }
  if (end != 0) check_memory(communicator, buffer, end * size, name);
  return layout;
}

// Throws Error if the memory of `block` is not valid.
void check_own(const comm::Communicator& communicator, const Block& block, const char* name) {
  if (block.bytes != 0) check_memory(communicator, block.address, block.bytes, name);
}

[[noreturn]] void refuse_overlap(const Block& a, const char* a_name, const Block& b,
                                 const char* b_name) {
  throw Error(
      hcclInvalidArgument,
      text("the block of rank ", a.rank, " in ", a_name, " overlaps that of rank ", b.rank, " in ",
           b_name, " by ", std::min(a.end(), b.end()) - std::max(a.address, b.address),
           " bytes; pass displacements and buffers that do not overlap"));
}

// Returns the blocks that are not empty, in the order of their addresses.
std::vector<Block> sorted(std::vector<Block> blocks) {
  std::erase_if(blocks, [](const Block& block) { return block.bytes == 0; });
  std::ranges::sort(blocks, {}, &Block::address);
  return blocks;
}

// Throws Error(hcclInvalidArgument) if an output block overlaps another output block or an input
// block.
void check_apart(const BlockLayout& read, const BlockLayout& written) {
  const std::vector<Block> outputs = sorted(written.blocks);
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    if (outputs[i].overlaps(outputs[i - 1]))
      refuse_overlap(outputs[i - 1], written.name, outputs[i], written.name);
  }
  for (const Block& input : read.blocks) {
    // The outputs are sorted and do not overlap each other, so it is enough to check the first
    // output that ends after the start of the input.
    const auto found = std::ranges::upper_bound(outputs, input.address, {}, &Block::end);
    if (found != outputs.end() && input.overlaps(*found))
      refuse_overlap(input, read.name, *found, written.name);
  }
}

// Returns a send to every rank and a receive from every rank, including this rank itself. The order
// starts at this rank, so that the ranks do not all read from the same rank first.
std::vector<PointToPoint> messages_of(const comm::Communicator& communicator, hcclDataType_t type,
                                      const BlockLayout& sent, const BlockLayout& received) {
  const int ranks = communicator.size();
  std::vector<PointToPoint> calls;
  calls.reserve(2 * static_cast<std::size_t>(ranks));
  const auto add = [&](Direction direction, const Block& block, int peer) {
    PointToPoint& call = calls.emplace_back();
    call.direction = direction;
    call.type = static_cast<std::uint8_t>(type);
    call.peer = peer;
    call.count = block.count;
    call.address = block.address;
  };
  for (int step = 0; step < ranks; ++step) {
    const int to = (communicator.rank() + step) % ranks;
    const int from = (communicator.rank() + ranks - step) % ranks;
    add(Direction::send, sent.of(to), to);
    add(Direction::receive, received.of(from), from);
  }
  return calls;
}

}  // namespace

hcclResult_t hcclEmulationAllGatherV(const void* sendbuff, void* recvbuff, const uint64_t* counts,
                                     const uint64_t* displacements, hcclDataType_t type,
                                     hcclComm_t comm, void* stream_handle) {
  return submit(__func__, type, comm, stream_handle, [&](const comm::Communicator& communicator) {
    refuse_in_strict_mode();
    const BlockLayout received =
        lay_out(communicator, behind_view(communicator, to_number(recvbuff)), "recvbuff", type,
                {counts, "counts"}, displacements);
    Block own = received.of(communicator.rank());
    const bool in_place = own.address == behind_view(communicator, to_number(sendbuff));
    own.address = behind_view(communicator, to_number(sendbuff));
    check_own(communicator, own, "sendbuff");
    check_apart({"sendbuff", in_place ? std::vector<Block>() : std::vector<Block>{own}}, received);
    const BlockLayout sent{"sendbuff",
                           std::vector<Block>(static_cast<std::size_t>(communicator.size()), own)};
    return messages_of(communicator, type, sent, received);
  });
}

// NOLINTNEXTLINE(readability-function-size): the parameters are the API's
hcclResult_t hcclEmulationReduceScatterV(const void* sendbuff, void* recvbuff,
                                         const uint64_t* counts, const uint64_t* displacements,
                                         hcclDataType_t type, hcclRedOp_t op, hcclComm_t comm,
                                         void* stream_handle) {
  return submit(__func__, type, comm, stream_handle, [&](const comm::Communicator& communicator) {
    refuse_in_strict_mode();
    check_reduction(op, type);
    BlockLayout sent = lay_out(communicator, behind_view(communicator, to_number(sendbuff)),
                               "sendbuff", type, {counts, "counts"}, displacements);
    std::vector<CollectiveCall> calls;
    for (const Block& block : sent.blocks) {
      CollectiveCall& call = calls.emplace_back();
      call.collective = Collective::reduce;
      call.type = static_cast<std::uint8_t>(type);
      call.operation = static_cast<std::uint8_t>(op);
      call.root = block.rank;
      call.count = block.count;
      call.send = block.address;
      call.recv = behind_view(communicator, to_number(recvbuff));
    }
    Block& own = sent.blocks[static_cast<std::size_t>(communicator.rank())];
    Block result = own;
    result.address = behind_view(communicator, to_number(recvbuff));
    check_own(communicator, result, "recvbuff");
    if (own.address == result.address) own.bytes = 0;  // in place
    check_apart(sent, {"recvbuff", {result}});
    return calls;
  });
}

// NOLINTNEXTLINE(readability-function-size): the parameters are the API's
hcclResult_t hcclEmulationAlltoAllV(const void* sendbuff, const uint64_t* send_counts,
                                    const uint64_t* send_displacements, void* recvbuff,
                                    const uint64_t* recv_counts, const uint64_t* recv_displacements,
                                    hcclDataType_t type, hcclComm_t comm, void* stream_handle) {
  return submit(__func__, type, comm, stream_handle, [&](const comm::Communicator& communicator) {
    refuse_in_strict_mode();
    const BlockLayout sent =
        lay_out(communicator, behind_view(communicator, to_number(sendbuff)), "sendbuff", type,
                {send_counts, "send_counts"}, send_displacements);
    const BlockLayout received =
        lay_out(communicator, behind_view(communicator, to_number(recvbuff)), "recvbuff", type,
                {recv_counts, "recv_counts"}, recv_displacements);
    check_apart(sent, received);
    return messages_of(communicator, type, sent, received);
  });
}

hcclResult_t hcclEmulationProbe(hcclComm_t comm, uint64_t timeout_ms, int* source,
                                uint64_t* bytes) {
  return guard(__func__, [&] {
    if (source == nullptr)
      throw Error(hcclInvalidArgument, "source is null; pass the address of a variable");
    // Holds no pin while it waits: hcclCommAbort() waits until all pins are released.
    const std::shared_ptr<comm::Communicator> communicator = find_communicator(comm).shared();
    constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();  // 24 days
    const std::chrono::milliseconds timeout(std::min(timeout_ms, kMost));
    const std::optional<Offer> offer = communicator->probe(timeout);
    if (!offer) return hcclBusy;
    *source = offer->source;
    if (bytes != nullptr) *bytes = offer->bytes;
    return hcclSuccess;
  });
}
