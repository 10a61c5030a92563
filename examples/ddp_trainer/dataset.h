// SPDX-License-Identifier: Apache-2.0
// The handwritten digits: pixels between 0 and 1, and their classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ddp_trainer {

struct Dataset {
  static constexpr int kSide = 8;
  static constexpr std::size_t kPixels = 64;  // in row-major order
  static constexpr std::size_t kClasses = 10;

  std::vector<float> pixels;          // kPixels values for each sample
  std::vector<std::uint8_t> classes;  // one value for each sample

  [[nodiscard]] std::size_t size() const { return classes.size(); }
  [[nodiscard]] const float* sample(std::size_t index) const {
    return pixels.data() + index * kPixels;
  }
};

struct Split {
  Dataset training;
  Dataset test;
  std::uint32_t check_sum = 0;  // checksum of the pixels and classes
};

// Reads a file with lines of 64 comma-separated pixels (0 to 16) and a class (0 to 9). The file may
// be compressed with gzip. Throws RunError, which names the file, the defect and, if the defect is
// in a line, the line.
[[nodiscard]] Dataset read_digits(const std::string& path);

// Splits the data: every fifth sample is a test sample, all others are for training. Throws
// RunError if there are fewer than five samples.
[[nodiscard]] Split split(const Dataset& all);

}  // namespace ddp_trainer
