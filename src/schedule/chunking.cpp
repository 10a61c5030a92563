// SPDX-License-Identifier: Apache-2.0
// Cuts elements into parts of nearly equal length.
#include "schedule/chunking.h"

#include <algorithm>

namespace hccl::schedule {
namespace {

// Minimum number of aligned units in a part. A part with one more unit is then at most a sixteenth
// longer.
constexpr std::uint64_t kFewestUnits = 16;

}  // namespace

Cut::Cut(std::uint64_t count, std::uint32_t parts, std::uint32_t alignment)
    : count_(count), unit_(count / parts >= kFewestUnits * alignment ? alignment : 1) {
  const std::uint64_t units = count / unit_ + (count % unit_ == 0 ? 0 : 1);
  units_ = units / parts;
  one_more_ = units % parts;
}

std::uint64_t Cut::begin(std::uint32_t part) const {
  const std::uint64_t number = part;
  const std::uint64_t before = units_ * number + std::min(one_more_, number);
  // The last unit may be incomplete. Comparing units before multiplying avoids an overflow.
  return before > count_ / unit_ ? count_ : before * unit_;
}

std::uint32_t Cut::part_of(std::uint64_t element) const {
  const std::uint64_t unit = element / unit_;
  const std::uint64_t in_longer = one_more_ * (units_ + 1);
  if (unit < in_longer) return static_cast<std::uint32_t>(unit / (units_ + 1));
  return static_cast<std::uint32_t>(one_more_ + (unit - in_longer) / units_);
}

std::uint64_t Cut::longest() const { return begin(1); }

Chunking::Chunking(const Shape& shape, const Schedule& schedule, std::uint64_t count,
                   std::uint32_t alignment)
    : block_(count),
      part_(Cut(count, shape.channels, alignment).part(shape.channel)),
      block_chunks_(std::max(schedule.block_chunks, 1U)),
      slots_(schedule.scratch_chunks),
      chunks_(part_.count, block_chunks_, alignment) {}

std::uint64_t Chunking::packed(std::uint32_t chunk) const {
  return chunk / block_chunks_ * part_.count + chunks_.begin(chunk % block_chunks_);
}

std::uint64_t Chunking::elements(const Span& span) const {
  return packed(span.first_chunk + span.chunk_count) - packed(span.first_chunk);
}

Elements Chunking::run(const Span& span, std::uint64_t position) const {
  const std::uint64_t place = packed(span.first_chunk) + position;
  if (span.role == Role::scratch) return scratch_run(span, place);
  const std::uint64_t left = elements(span) - position;
  const std::uint64_t within = place % part_.count;
  const bool one_piece = part_.count == block_;
  return {place / part_.count * block_ + part_.first + within,
          one_piece ? left : std::min(left, part_.count - within)};
}

Elements Chunking::scratch_run(const Span& span, std::uint64_t place) const {
  const std::uint64_t within = place % part_.count;
  const std::uint32_t in_block = chunks_.part_of(within);
  const auto block = static_cast<std::uint32_t>(place / part_.count);
  const std::uint32_t slot = span.slot + (block * block_chunks_ + in_block - span.first_chunk);
  const std::uint64_t before = within - chunks_.begin(in_block);
  return {slot * chunks_.longest() + before, chunks_.part(in_block).count - before};
}

}  // namespace hccl::schedule
