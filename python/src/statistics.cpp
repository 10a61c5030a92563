// SPDX-License-Identifier: Apache-2.0
#include "statistics.h"

namespace hccl_torch {

Statistics& Statistics::instance() {
  static auto* const statistics =
      new Statistics;  // never destroyed, because exit handlers may use it
  return *statistics;
}

void Statistics::add(const char* operation, std::uint64_t bytes, bool zero_copy) {
  const std::lock_guard lock(mutex_);
  Counts& counts = counts_[operation];
  ++counts.calls;
  counts.bytes += bytes;
  ++(zero_copy ? counts.zero_copy : counts.staged);
}

std::map<std::string, Statistics::Counts> Statistics::counts() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, Counts> by_name;
  for (const auto& [name, counts] : counts_) {
    Counts& sum = by_name[name];
    sum.calls += counts.calls;
    sum.bytes += counts.bytes;
    sum.zero_copy += counts.zero_copy;
    sum.staged += counts.staged;
  }
  return by_name;
}

void Statistics::reset() {
  const std::lock_guard lock(mutex_);
  counts_.clear();
}

}  // namespace hccl_torch
