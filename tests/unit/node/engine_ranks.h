// SPDX-License-Identifier: Apache-2.0
// Ranks of one node that are threads of the test. Each rank has an engine and an arena, but no
// streams and no bootstrap.
#pragma once

#include "base/error.h"
#include "base/shared_memory.h"
#include "device/arena.h"
#include "device/copy.h"
#include "node/engine.h"
#include "node/node_segment.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/uio.h>
#include <unistd.h>

namespace hccl::node {

// Returns whether this process may use process_vm_readv(), which a seccomp filter may refuse.
inline bool can_read_processes() {
  std::uint64_t from = 1;
  std::uint64_t to = 0;
  const iovec source{&from, sizeof(from)};
  const iovec destination{&to, sizeof(to)};
  return process_vm_readv(getpid(), &destination, 1, &source, 1, 0) == sizeof(to);
}

class EngineRanks {
 public:
  static constexpr std::uint64_t kAllRanks = ~std::uint64_t{0};

  // `cross_memory_ranks`: bit i is set if rank i uses cross-memory attach, as `reads` says.
  explicit EngineRanks(int ranks, std::uint32_t first_number = 0, EngineOptions options = {},
                       CoreCount cores = {2, false}, std::uint64_t cross_memory_ranks = kAllRanks,
                       DirectReads reads = DirectReads::always)
      : control_(ControlBlock::create(ranks, first_number)) {
    for (int rank = 0; rank < ranks; ++rank) {
      arenas_.push_back(std::make_unique<device::Arena>(
          device::base_address(static_cast<std::uint32_t>(rank)), 256ull << 20));
    }
    std::vector<Peer> peers;
    for (const auto& arena : arenas_)
      peers.push_back({static_cast<int>(peers.size()), arena->view(), getpid(), true, "here"});
    options.cache_bytes =
        256 << 10;  // small, so that tests use both cached and non-temporal stores
    for (int rank = 0; rank < ranks; ++rank) {
      segments_.push_back(std::make_unique<NodeSegment>(
          SharedSegment::map(control_), peers, arena(rank), rank, cores,
          (cross_memory_ranks >> rank & 1) != 0 ? reads : DirectReads::never));
      engines_.push_back(std::make_unique<Engine>(segment(rank), options));
    }
  }

  [[nodiscard]] int size() const { return static_cast<int>(engines_.size()); }
  [[nodiscard]] Engine& engine(int rank) { return *engines_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] NodeSegment& segment(int rank) {
    return *segments_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::unique_ptr<Lane> make_lane(int rank) { return segment(rank).make_lane(0); }
  [[nodiscard]] device::Arena& arena(int rank) { return *arenas_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] ControlBlock control() {
    return ControlBlock(SharedSegment::map(control_)->data());
  }

  // Runs `body(rank)` on one thread per rank, and waits for all threads.
  template <class Body>
  void run(Body body) {
    std::vector<std::thread> threads;
    threads.reserve(engines_.size());
    for (int rank = 0; rank < size(); ++rank) threads.emplace_back([&, rank] { body(rank); });
    for (std::thread& thread : threads) thread.join();
  }

  // Allocates device memory with the given contents. Returns the address.
  [[nodiscard]] std::uint64_t upload(int rank, const std::vector<float>& values) {
    const std::uint64_t address = arena(rank).allocate(values.size() * sizeof(float));
    write(rank, address, values);
    return address;
  }
  void write(int rank, std::uint64_t address, const std::vector<float>& values) {
    device::copy_to_device(arena(rank), address, values.data(), values.size() * sizeof(float));
  }
  // Reads `count` floats of device memory through the mapping that the ranks compute in, so that
  // the race detector sees the reads.
  [[nodiscard]] std::vector<float> read(int rank, std::uint64_t address, std::size_t count) {
    std::vector<float> values(count);
    const std::uint64_t offset = arena(rank).file_offset(address);
    const std::byte* memory = arena(rank).view()->at(offset);
    std::memcpy(values.data(), memory, count * sizeof(float));
    return values;
  }

 private:
  FileDescriptor control_;
  std::vector<std::unique_ptr<device::Arena>> arenas_;
  std::vector<std::unique_ptr<NodeSegment>> segments_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

// Returns values with random mantissas and with exponents from -20 to 20. Their sums depend on the
// order of addition.
inline std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> mantissa(-2.0F, 2.0F);
  std::uniform_int_distribution<int> exponent(-20, 20);
  std::vector<float> values(count);
  for (float& value : values) value = std::ldexp(mantissa(generator), exponent(generator));
  return values;
}

[[nodiscard]] inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): compares bits, as intended
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Stores a pattern into the buffer of a rank whose call has failed. Returns true if no other rank
// overwrites the pattern soon afterwards.
[[nodiscard]] inline bool is_left_alone(EngineRanks& ranks, int rank, std::uint64_t buffer,
                                        std::size_t count) {
  const std::vector<float> pattern(count, 5.0F);
  const std::uint64_t offset = ranks.arena(rank).file_offset(buffer);
  std::memcpy(ranks.arena(rank).view()->at(offset), pattern.data(), count * sizeof(float));
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  return same_bits(ranks.read(rank, buffer, count), pattern);
}

// Runs `calls` until a rank aborts them. Returns true if the calls were aborted and no other rank
// wrote to the buffer afterwards.
template <class Calls>
[[nodiscard]] bool is_consistent_after_abort(EngineRanks& ranks, int rank, std::uint64_t buffer,
                                             std::size_t count, Calls calls) {
  try {
    calls();
  } catch (const Error& error) {
    return error.what() == std::string_view("aborted") && is_left_alone(ranks, rank, buffer, count);
  }
  return false;
}

// Returns the elementwise sum of the inputs, added in rank order.
inline std::vector<float> sum_in_rank_order(const std::vector<std::vector<float>>& inputs) {
  std::vector<float> sum = inputs.front();
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
    for (std::size_t at = 0; at < sum.size(); ++at) sum[at] += inputs[rank][at];
  }
  return sum;
}

inline CollectiveCall all_reduce_call(std::uint64_t count, std::uint64_t send, std::uint64_t recv) {
  return {.collective = Collective::all_reduce,
          .type = hcclFloat32,
          .operation = hcclSum,
          .count = count,
          .send = send,
          .recv = recv};
}

}  // namespace hccl::node
