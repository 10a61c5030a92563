// SPDX-License-Identifier: Apache-2.0
#include "network/averaging.h"

#include "reduce/reduce.h"

#include <algorithm>

namespace hccl::network {
namespace {

constexpr std::uint64_t kScaledPiece = 64 << 10;

}  // namespace

bool prescales(const CollectiveCall& call) {
  return call.reduction() == hcclAvg && reduce::needs_prescale(call.data_type());
}

void prescale(const CollectiveCall& call, Memory& input, Memory& to, std::uint64_t bytes,
              int ranks) {
  for (std::uint64_t at = 0; at < bytes;) {
    const auto most = static_cast<std::size_t>(std::min(kScaledPiece, bytes - at));
    const std::span<const std::byte> from = input.source(at, most);
    reduce::prescale_tile(call.data_type(), from.data(), to.destination(at, from.size()).data(),
                          reduce::elements_in(call.data_type(), from.size()),
                          static_cast<std::uint32_t>(ranks));
    at += from.size();
  }
}

void divide(const CollectiveCall& call, Memory& output, std::uint64_t bytes, int ranks) {
  for (std::uint64_t at = 0; at < bytes;) {
    const std::span<std::byte> piece =
        output.destination(at, static_cast<std::size_t>(std::min(kScaledPiece, bytes - at)));
    reduce::average_tile(call.data_type(), piece.data(),
                         reduce::elements_in(call.data_type(), piece.size()),
                         static_cast<std::uint32_t>(ranks));
    at += piece.size();
  }
}

}  // namespace hccl::network
