// SPDX-License-Identifier: Apache-2.0
// Exchanges small host data between the ranks of a run through the communicator itself, so that no
// other library is needed. The receiver checks every message, because the library under test
// transports it.
#pragma once

#include "session.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

namespace hccl_perf {

class RankExchange {
 public:
  explicit RankExchange(Session& session);

  // Blocks until every rank has called this function.
  void barrier() { static_cast<void>(all_gather(nullptr, 0)); }

  // Returns the values of all ranks, in rank order.
  template <class Value>
  [[nodiscard]] std::vector<Value> gather(const Value& mine) {
    static_assert(std::is_trivially_copyable_v<Value>);
    const std::vector<std::byte> bytes = all_gather(&mine, sizeof mine);
    std::vector<Value> values(bytes.size() / sizeof mine);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  // Returns the samples of all ranks, in rank order. All ranks must pass the same number of
  // samples.
  [[nodiscard]] std::vector<std::vector<double>> gather_samples(const std::vector<double>& mine);

 private:
  [[nodiscard]] std::vector<std::byte> all_gather(const void* mine, std::size_t bytes);
  void reserve(std::size_t bytes);

  Session& session_;
  std::uint64_t sequence_ = 0;
  std::size_t capacity_ = 0;  // bytes of one rank's message
  std::unique_ptr<HostBuffer> host_;
  std::unique_ptr<DeviceBuffer> send_;
  std::unique_ptr<DeviceBuffer> receive_;
};

}  // namespace hccl_perf
