// SPDX-License-Identifier: Apache-2.0
// Fake devices with memory registration. They track which memory is registered under which keys,
// and fail registrations on request. At most one object may exist, as with FakeVerbs.
#pragma once

#include "fake_verbs.h"
#include "verbs/device.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace hccl::verbs::test {

// Thread-safe.
class FakeMemory {
 public:
  struct Range {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    int access = 0;

    [[nodiscard]] bool holds(std::uint64_t from, std::uint64_t count) const {
      return from >= address && count <= bytes && from - address <= bytes - count;
    }
  };

  FakeMemory();
  ~FakeMemory();
  FakeMemory(const FakeMemory&) = delete;
  FakeMemory& operator=(const FakeMemory&) = delete;

  [[nodiscard]] FakeVerbs& verbs() { return verbs_; }
  // Opens the only device, whose port has the address `gid`.
  [[nodiscard]] std::shared_ptr<RdmaDevice> open(const GidBytes& gid) const;

  // Return the memory that is registered under a key. Keys are never reused.
  [[nodiscard]] std::optional<Range> with_local_key(std::uint32_t key) const;
  [[nodiscard]] std::optional<Range> with_remote_key(std::uint32_t key) const;
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] int made() const;  // all registrations so far

  // Makes registrations fail with ENOMEM beyond a total of `bytes`.
  void limit(std::uint64_t bytes);
  // Makes the next `times` registrations fail with `error`.
  void refuse(int times, int error);
  [[nodiscard]] int refused() const;

  // Called by the library's functions.
  [[nodiscard]] ibv_mr* add(ibv_pd* domain, void* address, std::size_t bytes, int access);
  void remove(ibv_mr* region);
  int domains = 0;  // open protection domains

 private:
  [[nodiscard]] std::optional<Range> with_number(std::uint32_t number) const;

  FakeVerbs verbs_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, Range> ranges_;  // by the number from which the keys are made
  std::uint32_t last_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t limit_ = std::numeric_limits<std::uint64_t>::max();
  int to_refuse_ = 0;
  int refusal_ = 0;
  int refused_ = 0;
};

}  // namespace hccl::verbs::test
