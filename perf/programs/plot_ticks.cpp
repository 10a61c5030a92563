// SPDX-License-Identifier: Apache-2.0
// Where the ticks of an axis go.
#include "plot.h"

#include <algorithm>
#include <cmath>

namespace hccl_perf {
namespace {

constexpr double kMantissas[] = {1, 2, 5};

// The largest of 1, 2 and 5 times a power of ten that is no larger than `value`.
double round_below(double value) {
  constexpr double kTolerance = 1e-9;  // 10^log10(x) is not quite x
  const double decade = std::pow(10.0, std::floor(std::log10(value) + kTolerance));
  double below = decade;
  for (const double mantissa : kMantissas) {
    if (mantissa * decade <= value * (1 + kTolerance)) below = mantissa * decade;
  }
  return below;
}

double round_above(double value) {
  const double below = round_below(value);
  constexpr double kTolerance = 1e-9;
  if (below >= value * (1 - kTolerance)) return below;
  const double decade = std::pow(10.0, std::floor(std::log10(value) + kTolerance));
  for (const double mantissa : kMantissas) {
    if (mantissa * decade >= value) return mantissa * decade;
  }
  return 10 * decade;
}

}  // namespace

Ticks linear_ticks(double most, double least_step) {
  constexpr double kAbout = 6;  // ticks
  Ticks ticks;
  const double top = most > 0 ? most : 1;
  ticks.step = std::max(round_above(top / kAbout), least_step);
  const int steps = static_cast<int>(std::ceil(top / ticks.step * (1 - 1e-9)));
  ticks.last = steps * ticks.step;
  for (int i = 0; i <= steps; ++i) ticks.at.push_back(i * ticks.step);
  return ticks;
}

Ticks decade_ticks(double least, double most) {
  constexpr double kMostUneven = 3.1;  // decades with ticks at 2 and 5
  Ticks ticks;
  ticks.first = round_below(least);
  ticks.last = round_above(most);
  if (ticks.last < ticks.first * 5) {
    ticks.first = round_below(ticks.first / 2);
    ticks.last = round_above(ticks.last * 2);
  }
  const bool uneven = std::log10(ticks.last / ticks.first) <= kMostUneven;
  const int lowest = static_cast<int>(std::floor(std::log10(ticks.first) + 1e-9));
  const int highest = static_cast<int>(std::floor(std::log10(ticks.last) + 1e-9));
  for (int exponent = lowest; exponent <= highest; ++exponent) {
    for (const double mantissa : kMantissas) {
      const double at = mantissa * std::pow(10.0, exponent);
      const bool inside = at >= ticks.first * (1 - 1e-9) && at <= ticks.last * (1 + 1e-9);
      if (inside && (uneven || mantissa == 1)) ticks.at.push_back(at);
    }
  }
  return ticks;
}

Ticks binary_ticks(double least, double most, int count) {
  Ticks ticks;
  ticks.first = least;
  ticks.last = most;
  if (most < least * 2) {  // one size alone stands in the middle
    ticks.first = least / 2;
    ticks.last = most * 2;
  }
  const int lowest = static_cast<int>(std::ceil(std::log2(ticks.first)));
  const int highest = static_cast<int>(std::floor(std::log2(ticks.last)));
  const int stride = std::max(1, (highest - lowest + count - 1) / count);
  for (int exponent = lowest; exponent <= highest; exponent += stride)
    ticks.at.push_back(std::exp2(exponent));
  return ticks;
}

}  // namespace hccl_perf
