// SPDX-License-Identifier: Apache-2.0
// Gathers the ranks' failures, and compares their settings, data and initial parameters.
#include "agreement.h"

#include "errors.h"

#include <array>

#include <unistd.h>

namespace ddp_trainer {
namespace {

// A string of limited length that ranks can exchange as plain bytes.
template <std::size_t Capacity>
struct Text {
  std::array<char, Capacity> bytes{};

  explicit Text(const std::string& text) { text.copy(bytes.data(), Capacity - 1); }
  [[nodiscard]] std::string string() const { return bytes.data(); }
};

struct Failure {
  Text<64> host;
  Text<1024> why;
};

struct Facts {
  Text<64> host;
  Text<1024> training;
  std::uint32_t data;
  std::uint32_t parameters;
  std::uint64_t steps;
};

std::string host_name() {
  std::array<char, 64> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string name_of(std::size_t rank, const Text<64>& host) {
  return text("rank ", rank, " on ", host.string());
}

// Describes the first difference between a rank's facts and rank 0's. Ignores the host. Returns an
// empty string if there is no difference.
std::string difference(const Facts& one, const Facts& first) {
  if (one.training.string() != first.training.string()) {
    return text("has different settings from rank 0: ", one.training.string(), "; rank 0 has ",
                first.training.string(), "; start all ranks with the same options");
  }
  if (one.data != first.data)
    return "reads different data from rank 0; give all ranks the same --data";
  if (one.steps != first.steps || one.parameters != first.parameters) {
    return text("starts after step ", one.steps, ", but rank 0 starts after step ", first.steps,
                one.steps == first.steps ? " with different weights" : "",
                "; give all ranks the same --checkpoint file, or none");
  }
  return "";
}

}  // namespace

void require_no_failure(const std::string& failure, const Rank& rank) {
  const auto failures = gather(Failure{Text<64>(host_name()), Text<1024>(failure)}, rank);
  const auto failed = [](const Failure& one) { return !one.why.string().empty(); };
  const auto first = std::ranges::find_if(failures, failed);
  if (first == failures.end()) return;
  const std::string why = first->why.string();
  const bool all_alike =
      std::ranges::all_of(failures, [&](const Failure& one) { return one.why.string() == why; });
  const auto number = static_cast<std::size_t>(first - failures.begin());
  throw SharedError(all_alike ? why : text(name_of(number, first->host), ": ", why));
}

void require_same_start(const Start& mine, const Rank& rank) {
  const auto all = gather(Facts{Text<64>(host_name()), Text<1024>(mine.training), mine.data,
                                mine.parameters, mine.steps},
                          rank);
  for (std::size_t number = 1; number < all.size(); ++number) {
    const std::string what = difference(all[number], all.front());
    if (!what.empty()) throw SharedError(text(name_of(number, all[number].host), " ", what));
  }
}

}  // namespace ddp_trainer
