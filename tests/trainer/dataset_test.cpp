// SPDX-License-Identifier: Apache-2.0
// Tests the trainer's data, and the choice of samples for each rank.

#include "dataset.h"

#include "errors.h"
#include "sampling.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace ddp_trainer {
namespace {

// A temporary data file. The destructor removes it.
class File {
 public:
  explicit File(const std::string& contents)
      : path_(testing::TempDir() + "digits." + text(getpid())) {
    std::ofstream(path_, std::ios::binary) << contents;
  }
  ~File() { std::remove(path_.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string line(int pixel, int kind) {
  std::string all;
  for (int i = 0; i < 64; ++i) all += text(pixel, ',');
  return text(all, kind, '\n');
}

std::string complaint(const std::string& contents) {
  const File file(contents);
  try {
    static_cast<void>(read_digits(file.path()));
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

TEST(Digits, AreComplete) {
  const Dataset all = read_digits(TRAINER_DATA);
  EXPECT_EQ(all.size(), 1797U);
  std::array<int, 10> of_class{};
  for (const std::uint8_t kind : all.classes) ++of_class.at(kind);
  EXPECT_EQ(of_class, (std::array<int, 10>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}));
  EXPECT_EQ(all.sample(0)[2], 5.0F / 16);
  const Split parts = split(all);
  EXPECT_EQ(parts.test.size(), 359U);
  EXPECT_EQ(parts.training.size() + parts.test.size(), all.size());
}

TEST(Digits, ChecksumDetectsAChange) {
  const Dataset all = read_digits(TRAINER_DATA);
  Dataset other = all;
  other.classes.back() = static_cast<std::uint8_t>(9 - other.classes.back());
  EXPECT_EQ(split(all).check_sum, split(all).check_sum);
  EXPECT_NE(split(all).check_sum, split(other).check_sum);
}

TEST(Digits, TooFewForATestAreRefused) {
  const File file(line(1, 1) + line(1, 2) + line(1, 3) + line(1, 4));
  EXPECT_THROW(static_cast<void>(split(read_digits(file.path()))), RunError);
}

TEST(Digits, MayBeUncompressed) {
  const File file(line(16, 3) + line(0, 9));
  const Dataset data = read_digits(file.path());
  ASSERT_EQ(data.size(), 2U);
  EXPECT_EQ(data.sample(0)[63], 1.0F);
  EXPECT_EQ(data.classes[1], 9);
}

TEST(Digits, ErrorsNameTheLine) {
  EXPECT_NE(complaint(line(0, 1) + "1,2,3\n").find("line 2: has 3 columns"), std::string::npos);
  EXPECT_NE(complaint(line(17, 1)).find("line 1: column 1 is 17, not from 0 to 16"),
            std::string::npos);
  EXPECT_NE(complaint(line(1, 10)).find("column 65 is 10, not from 0 to 9"), std::string::npos);
  EXPECT_NE(complaint(line(-1, 1)).find("column 1 is -1"), std::string::npos);
  EXPECT_NE(complaint("99999999999\n").find("column 1 is too large"), std::string::npos);
  EXPECT_NE(complaint("a\n").find("line 1: column 1 is not a number"), std::string::npos);
  EXPECT_NE(complaint("\n").find("line 1: column 1 is not a number"), std::string::npos);
  EXPECT_NE(complaint(line(1, 1) + "1,2").find("line 2: ends without a line feed"),
            std::string::npos);
  EXPECT_NE(complaint("").find("is empty"), std::string::npos);
}

TEST(Digits, ATruncatedArchiveIsRefused) {
  std::ostringstream all;
  all << std::ifstream(TRAINER_DATA, std::ios::binary).rdbuf();
  EXPECT_NE(complaint(all.str().substr(0, all.str().size() / 2)).find("damaged or truncated"),
            std::string::npos);
  EXPECT_EQ(complaint(all.str()), "");
}

TEST(Sampling, EachEpochShufflesAllSamples) {
  std::vector<std::uint32_t> order = shuffled(1000, 7, 1);
  EXPECT_EQ(order, shuffled(1000, 7, 1));
  EXPECT_NE(order, shuffled(1000, 7, 2));
  EXPECT_NE(order, shuffled(1000, 8, 1));
  std::sort(order.begin(), order.end());
  std::vector<std::uint32_t> all(1000);
  std::iota(all.begin(), all.end(), 0U);
  EXPECT_EQ(order, all);
}

// Each sample of a step must go to exactly one rank, and micro-batches must not depend on the
// number of ranks.
TEST(Sampling, EachStepIsDividedBetweenRanks) {
  for (const int ranks : {1, 2, 4, 8}) {
    const Sampling sampling{128, 16, ranks};
    std::vector<int> taken(1437);
    for (std::size_t step = 0; step < sampling.steps(taken.size()); ++step) {
      for (int rank = 0; rank < ranks; ++rank) {
        const std::size_t first = sampling.first(step, rank);
        EXPECT_EQ(first % sampling.micro_batch, 0U);
        for (std::size_t i = 0; i < sampling.own_samples(); ++i) ++taken.at(first + i);
      }
    }
    EXPECT_EQ(std::count(taken.begin(), taken.end(), 1), 11 * 128) << ranks;
    EXPECT_EQ(std::count(taken.begin(), taken.end(), 0), 1437 - 11 * 128) << ranks;
  }
}

TEST(Shifts, AreSmallAndVaryByEpoch) {
  int moved = 0;
  int others = 0;
  for (std::uint32_t sample = 0; sample < 1000; ++sample) {
    const auto [right, down] = shift_of(sample, 1, 1);
    EXPECT_LE(std::abs(right), 1);
    EXPECT_LE(std::abs(down), 1);
    moved += right != 0 || down != 0 ? 1 : 0;
    const Shift next = shift_of(sample, 1, 2);
    others += next.right != right || next.down != down ? 1 : 0;
  }
  EXPECT_NEAR(moved, 1000 * 0.3 * 8 / 9, 60);
  EXPECT_GT(others, 300);
}

}  // namespace
}  // namespace ddp_trainer
