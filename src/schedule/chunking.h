// SPDX-License-Identifier: Apache-2.0
// Maps chunks to elements: cuts a message into one part per channel, and each part into chunks. All
// functions are pure.
#pragma once

#include "schedule/schedule.h"
#include "schedule/shape.h"

namespace hccl::schedule {

struct Elements {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  friend bool operator==(const Elements&, const Elements&) = default;
};

// Cuts `count` elements into `parts` parts of nearly equal length. Parts begin at multiples of
// `alignment` elements, unless count / parts is less than 16 * `alignment`.
class Cut {
 public:
  Cut(std::uint64_t count, std::uint32_t parts, std::uint32_t alignment);

  [[nodiscard]] std::uint64_t begin(std::uint32_t part) const;  // begin(parts) is the end
  [[nodiscard]] Elements part(std::uint32_t number) const {
    return {begin(number), begin(number + 1) - begin(number)};
  }
  // Returns the number of the part that holds an element, which must be less than `count`.
  [[nodiscard]] std::uint32_t part_of(std::uint64_t element) const;
  [[nodiscard]] std::uint64_t longest() const;

 private:
  std::uint64_t count_;
  std::uint64_t unit_;      // elements; parts begin at multiples of this
  std::uint64_t units_;     // units in each of the shorter parts
  std::uint64_t one_more_;  // number of longer parts (by one unit), which come first
};

// Maps the chunks of one channel to elements. Elements are numbered from the beginning of the
// user's buffer or, in scratch, from the beginning of this channel's scratch.
class Chunking {
 public:
  // `count` is the number of elements of the message, or of one block; `alignment` is the number of
  // elements in a cache line. All ranks of a call must pass the same values.
  Chunking(const Shape& shape, const Schedule& schedule, std::uint64_t count,
           std::uint32_t alignment);

  // Returns the number of elements that a transfer of the span moves.
  [[nodiscard]] std::uint64_t elements(const Span& span) const;
  // Returns the run of contiguous elements that starts at element `position` of the span. The
  // elements of the run are numbered from the beginning of the buffer that the span's role names.
  // `position` must be less than elements(span).
  [[nodiscard]] Elements run(const Span& span, std::uint64_t position) const;
  [[nodiscard]] std::uint64_t scratch_elements() const { return slots_ * chunks_.longest(); }

 private:
  // Returns the number of elements that precede a chunk if this channel's parts of all blocks are
  // placed end to end.
  [[nodiscard]] std::uint64_t packed(std::uint32_t chunk) const;
  [[nodiscard]] Elements scratch_run(const Span& span, std::uint64_t place) const;

  std::uint64_t block_;  // elements
  Elements part_;        // this channel's part of a block
  std::uint32_t block_chunks_;
  std::uint64_t slots_;
  Cut chunks_;
};

}  // namespace hccl::schedule
