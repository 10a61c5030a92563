// SPDX-License-Identifier: Apache-2.0
// Reads the environment variables of tests, and describes ranks' failures.
#include "check.h"
#include "ranks.h"

#include <algorithm>
#include <cstdlib>
#include <random>

namespace hccl::test {
namespace {

int rank_of_seed = 0;

}  // namespace

std::string failures(const std::vector<RankOutcome>& outcomes, std::optional<int> except) {
  std::string text;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    const RankOutcome& outcome = outcomes[rank];
    if (except && static_cast<int>(rank) == *except) continue;
    if (outcome.finished && outcome.failure.empty()) continue;
    text += join("rank ", rank, ": ", outcome.failure, "\n");
    if (!outcome.stderr_text.empty()) text += join("  its stderr:\n", outcome.stderr_text, "\n");
  }
  return text;
}

double test_scale() {
  static const double scale = [] {
    const char* text = std::getenv("HCCL_TEST_SCALE");
    const double value = text != nullptr ? std::atof(text) : 1.0;
    return value > 0 ? value : 1.0;
  }();
  return scale;
}

std::string node_of(int rank) {
  static const std::string layout = [] {
    const char* text = std::getenv("HCCL_TEST_LAYOUT");
    return std::string(text != nullptr ? text : "");
  }();
  if (layout.empty()) return {};
  return join("-", layout[static_cast<std::size_t>(rank) % layout.size()]);
}

int scaled(int usual) {
  const double slower = sanitized() ? 0.2 : 1.0;
  return std::max(1, static_cast<int>(usual * test_scale() * slower));
}

unsigned long long test_seed() {
  static const unsigned long long seed = [] {
    const char* text = std::getenv("HCCL_TEST_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device{}();
  }();
  return seed;
}

unsigned long long rank_seed() { return test_seed() + static_cast<unsigned>(rank_of_seed); }

void set_rank_of_seed(int rank) { rank_of_seed = rank; }

}  // namespace hccl::test
