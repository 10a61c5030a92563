// SPDX-License-Identifier: Apache-2.0
// Bounds the rounding errors. The bounds hold for any folding order, provided that each fold rounds
// to the element type or to a more precise one. Computes the bounds only for blocks that are not
// bit-identical, in double.
#include "rounding.h"

#include "element_forms.h"
#include "input_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace hccl_perf {
namespace {

struct Element {
  double found;
  double expected;
  const Format& format;
  int ranks;

  [[nodiscard]] double off() const { return std::fabs(found - expected); }
};

class Sum {
 public:
  void add(double term) { magnitudes_ += std::fabs(term); }

  // Returns whether rounding may have caused the difference. Each of the two results was rounded at
  // most `ranks` times, each time by at most `roundoff` times the sum of the terms' magnitudes.
  [[nodiscard]] bool allows(const Element& element) const {
    return element.off() <= bound(element);
  }

 protected:
  [[nodiscard]] double bound(const Element& element) const {
    return 2.0 * element.ranks * element.format.roundoff * magnitudes_;
  }

 private:
  double magnitudes_ = 0;
};

class Average : public Sum {
 public:
  [[nodiscard]] bool allows(const Element& element) const {
    const double of_division = element.format.roundoff * std::fabs(element.expected);
    return element.off() <= bound(element) / element.ranks + of_division;
  }
};

// Bounds the error of a product. A partial product may overflow or underflow in one folding order
// but not in another.
class Product {
 public:
  void add(double factor) {
    int step = 0;
    mantissa_ = std::frexp(mantissa_ * factor, &step);
    exponent_ += step;
    const int magnitude = std::ilogb(factor);
    if (magnitude < 0) {
      least_ += magnitude;
    } else {
      below_ += magnitude + 1;
    }
  }

  [[nodiscard]] bool allows(const Element& element) const {
    const Format& format = element.format;
    const bool overflows = below_ >= format.above;
    const bool underflows = least_ <= format.normal;
    if (std::isnan(element.found))
      return overflows && least_ <= format.smallest;  // infinity times 0
    if (std::isinf(element.found))
      return overflows && std::signbit(element.found) == std::signbit(mantissa_);
    const double product = std::ldexp(mantissa_, exponent_);
    if (std::isinf(product)) return underflows;
    const double relative = 2.0 * element.ranks * format.roundoff * std::fabs(product);
    // On underflow, each fold may lose up to the smallest positive number, and later factors may
    // magnify that loss.
    const double lost =
        underflows ? std::ldexp(static_cast<double>(element.ranks), format.smallest + below_) : 0.0;
    return std::fabs(element.found - product) <= relative + lost;
  }

 private:
  double mantissa_ = 1;
  int exponent_ = 0;
  int below_ = 0;  // all partial products are below 2^below_
  int least_ = 0;  // all partial products are at least 2^least_
};

struct Block {
  const Expectation& expectation;
  std::uint64_t input;  // index of the block's first element in each rank's input
  std::size_t count;
  const std::byte* found;
  const std::byte* expected;
};

template <class Form, class Terms>
Agreement look_again(const Block& block, const Format& format) {
  using Stored = typename Form::Stored;
  const Expectation& expectation = block.expectation;
  std::array<Terms, kReductionBlock> terms{};
  std::array<Stored, kReductionBlock> input;
  for (int rank = 0; rank < expectation.ranks; ++rank) {
    fill_input(expectation.type, {rank, expectation.run}, block.input, block.count, input.data());
    for (std::size_t i = 0; i < block.count; ++i)
      terms[i].add(static_cast<double>(Form::load(input[i])));
  }
  Agreement agreement;
  for (std::size_t i = 0; i < block.count; ++i) {
    const std::byte* found = block.found + i * sizeof(Stored);
    const std::byte* expected = block.expected + i * sizeof(Stored);
    if (std::memcmp(found, expected, sizeof(Stored)) == 0) continue;
    const auto load = [](const std::byte* bytes) {
      Stored stored;
      std::memcpy(&stored, bytes, sizeof stored);
      return static_cast<double>(Form::load(stored));
    };
    const bool right = terms[i].allows({load(found), load(expected), format, expectation.ranks});
    ++(right ? agreement.rounded : agreement.wrong);
  }
  return agreement;
}

template <class Form>
Agreement look_again_as(const Block& block, const Format& format) {
  switch (block.expectation.reduction.code) {
    case hcclProd:
      return look_again<Form, Product>(block, format);
    case hcclAvg:
      return look_again<Form, Average>(block, format);
    default:
      return look_again<Form, Sum>(block, format);
  }
}

Agreement look_again_at(const Block& block) {
  return with_form(block.expectation.type.code, [&](auto form) {
    if constexpr (Floating<decltype(form)>) {
      return look_again_as<decltype(form)>(block, form.kFormat);
    } else {
      return Agreement{};
    }
  });
}

bool is_floating(hcclDataType_t type) {
  return with_form(type, [](auto form) { return Floating<decltype(form)>; });
}

// Returns whether the order of folding can change the result. With two ranks there is only one
// order.
bool may_round(const Expectation& expectation) {
  const hcclRedOp_t operation = expectation.reduction.code;
  return expectation.ranks > 2 && is_floating(expectation.type.code) && operation != hcclMin &&
         operation != hcclMax;
}

}  // namespace

Agreement compare_elements(const Expectation& expectation, std::uint64_t first, std::size_t count,
                           const void* found, const void* expected) {
  const std::size_t size = expectation.type.size;
  const auto input = first_reduced_input(expectation);
  if (!input || !may_round(expectation))
    return {count_differences(found, expected, count, size), 0};
  Agreement agreement;
  for (std::size_t done = 0; done < count; done += kReductionBlock) {
    const Block block{expectation, *input + first + done, std::min(count - done, kReductionBlock),
                      static_cast<const std::byte*>(found) + done * size,
                      static_cast<const std::byte*>(expected) + done * size};
    if (std::memcmp(block.found, block.expected, block.count * size) == 0) continue;
    agreement.add(look_again_at(block));
  }
  return agreement;
}

}  // namespace hccl_perf
