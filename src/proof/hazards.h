// SPDX-License-Identifier: Apache-2.0
// Proves that the transfers of a step do not interfere with each other.
#pragma once

#include "proof/symbols.h"
#include "proof/verifier.h"

namespace hccl::proof {

using schedule::Step;
using schedule::Transfer;

// Finds the hazards of one rank's schedule. The shape and the schedule must outlive the check. If
// two receives of a step access the same memory and one of them writes it, both must cover the same
// range; they then access it slice by slice, in list order. A send that forwards must read exactly
// the range that a receive of the step writes. Any other send must not read memory that the step
// writes.
class HazardCheck {
 public:
  HazardCheck(const Shape& shape, const Schedule& schedule);

  // Returns a hazard of the step, or nothing. Call it for all steps in order.
  [[nodiscard]] std::optional<Violation> verify(std::uint32_t step);

 private:
  // For each cell, the number of the last receive that accessed the cell, plus one; 0 if none did.
  using Touched = std::array<std::vector<std::uint32_t>, 3>;

  [[nodiscard]] std::optional<std::string> read(std::uint32_t transfer, const Span& span);
  [[nodiscard]] std::optional<std::string> write(std::uint32_t transfer);
  [[nodiscard]] std::optional<std::string> send(const Transfer& transfer) const;
  // Returns the last receive of this step that accessed the cell, or null.
  [[nodiscard]] const Transfer* toucher(const Touched& touched, Role memory,
                                        std::uint32_t cell) const;
  [[nodiscard]] Location locate(const Span& span) const {
    return location_of(*shape_, *schedule_, span);
  }
  static void mark(Touched& touched, const Location& where, std::uint32_t transfer);

  const Shape* shape_;
  const Schedule* schedule_;
  std::uint32_t first_of_step_ = 0;  // the first receive of the step
  Touched read_;
  Touched written_;
};

}  // namespace hccl::proof
