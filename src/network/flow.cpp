// SPDX-License-Identifier: Apache-2.0
// Moves bytes between connections and memory in small pieces, so that received data is still in the
// cache when it is folded, and sends and receives do not delay each other for long.
#include "network/flow.h"

#include "reduce/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace hccl::network {
namespace {

constexpr std::uint64_t kLongestPiece = std::uint64_t{256} << 10;

const std::byte kSignalByte{0x21};

std::uint64_t take_signal(const Flow& flow) {
  std::byte signal{};
  return flow.connection->endpoint->try_receive_into({&signal, 1});
}

void fold(const Layout& layout, const std::byte* operand, const std::byte* arrived,
          std::byte* destination, std::size_t bytes) {
  const Operands& operands = layout.operands();
  const std::array<const std::byte*, 2> sources{operand, arrived};
  reduce::reduce_tile(operands.type, operands.operation, sources, {&destination, 1},
                      bytes / layout.element_bytes(), reduce::StorePolicy::cached);
}

std::uint64_t fold_arrived(const Flow& flow, const Layout& layout, std::span<std::byte> into) {
  const std::span<const std::byte> operand =
      layout.source(flow.transfer->operand, flow.moved, into.size());
  transport::Endpoint& endpoint = *flow.connection->endpoint;
  const std::span<const std::byte> arrived = endpoint.try_receive(operand.size());
  const std::size_t whole = arrived.size() - arrived.size() % layout.element_bytes();
  if (whole == 0) return 0;
  fold(layout, operand.data(), arrived.data(), into.data(), whole);
  endpoint.release(whole);
  return whole;
}

std::uint64_t move_locally(const Flow& flow, const Layout& layout, std::span<std::byte> into) {
  const std::span<const std::byte> from =
      layout.source(flow.transfer->operand, flow.moved, into.size());
  const std::size_t count = from.size();
  if (flow.transfer->action == schedule::Action::reduce) {
    fold(layout, into.data(), from.data(), into.data(), count);
  } else if (from.data() != into.data()) {
    std::memmove(into.data(), from.data(), count);
  }
  return count;
}

}  // namespace

Layout::Layout(const schedule::Chunking& chunking, const Operands& operands)
    : chunking_(chunking),
      operands_(operands),
      element_bytes_(std::max<std::size_t>(reduce::element_size(operands.type), 1)) {}

std::uint64_t Layout::bytes(const schedule::Span& span) const {
  return span.chunk_count == 0 ? 1 : chunking_.elements(span) * element_bytes_;
}

Layout::Place Layout::locate(const schedule::Span& span, std::uint64_t position,
                             std::uint64_t most) const {
  const schedule::Elements run = chunking_.run(span, position / element_bytes_);
  const std::uint64_t within = position % element_bytes_;
  Memory* memory = operands_.output;
  if (span.role == schedule::Role::input) memory = operands_.input;
  if (span.role == schedule::Role::scratch) memory = operands_.scratch;
  return {memory, run.first * element_bytes_ + within,
          std::min(run.count * element_bytes_ - within, most)};
}

std::span<const std::byte> Layout::source(const schedule::Span& span, std::uint64_t position,
                                          std::uint64_t most) const {
  const Place at = locate(span, position, std::min(most, kLongestPiece));
  return at.memory->source(at.offset, at.bytes);
}

std::span<std::byte> Layout::destination(const schedule::Span& span, std::uint64_t position,
                                         std::uint64_t most) const {
  const Place at = locate(span, position, most);
  return at.memory->destination(at.offset, at.bytes);
}

std::uint64_t Layout::address(const schedule::Span& span) const {
  const Place at = locate(span, 0, 1);
  return at.memory->address(at.offset);
}

std::uint64_t move_send(Flow& flow, const Layout& layout, std::span<const std::byte> header) {
  const std::uint64_t most = flow.allowed() - flow.moved;
  if (most == 0) return 0;
  std::span<const std::byte> piece(&kSignalByte, 1);
  if (!flow.is_signal()) piece = layout.source(flow.transfer->span, flow.moved, most);
  const std::span<const std::byte> rest = header.subspan(flow.connection->header_sent);
  const std::array<std::span<const std::byte>, 2> parts{rest, piece};
  const std::size_t taken = flow.connection->endpoint->try_send_parts(parts);
  const std::size_t of_header = std::min(taken, rest.size());
  flow.connection->header_sent += static_cast<std::uint32_t>(of_header);
  flow.moved += taken - of_header;
  return taken;
}

std::uint64_t move_receive(Flow& flow, const Layout& layout) {
  const std::uint64_t most = flow.allowed() - flow.moved;
  if (most == 0) return 0;
  std::uint64_t count = 0;
  if (flow.is_signal()) {
    count = take_signal(flow);
  } else {
    const bool straight =
        flow.connection != nullptr && flow.transfer->action != schedule::Action::reduce;
    const std::span<std::byte> into = layout.destination(
        flow.transfer->span, flow.moved,
        std::min(most, straight ? transport::kLongestDestination : kLongestPiece));
    if (flow.connection == nullptr) {
      count = move_locally(flow, layout, into);
    } else if (flow.transfer->action == schedule::Action::reduce) {
      count = fold_arrived(flow, layout, into);
    } else {
      count = flow.connection->endpoint->try_receive_into(into);
    }
  }
  flow.moved += count;
  return count;
}

}  // namespace hccl::network
