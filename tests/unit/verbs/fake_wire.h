// SPDX-License-Identifier: Apache-2.0
// A fake network that connects queue pairs in memory. Each step delivers or completes one posted
// write, chosen at random. Misuse of queue pairs and memory is recorded as a violation. At most one
// FakeWire may exist at a time, as with FakeVerbs.
#pragma once

#include "fake_memory.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace hccl::verbs::test {

// Thread safety: any thread, except for the public variables and violations().
class FakeWire {
 public:
  // Operations that the device refuses, and its limit for inline data.
  struct Faults {
    bool no_channel = false;
    bool no_completion_queue = false;
    bool no_queue_pair = false;
    std::uint32_t most_inline = 512;
    std::optional<ibv_qp_state> no_change_to;
    int post_send = 0;
    int post_receive = 0;
    bool poll = false;
    bool notify = false;
  };

  explicit FakeWire(std::uint64_t seed = 1);
  ~FakeWire();
  FakeWire(const FakeWire&) = delete;
  FakeWire& operator=(const FakeWire&) = delete;

  [[nodiscard]] FakeMemory& memory() { return memory_; }
  Faults faults;
  bool prompt = false;         // delivers and completes each write when it is posted
  bool random_delays = false;  // delays a pair's writes or completions at random

  // Delivers or completes one write, chosen at random. If all writes and completions are delayed,
  // only shortens the delays. Returns false if nothing is left to do.
  bool step();
  void run();
  // Delivers all writes that the pair has posted, but does not complete them.
  void deliver(std::uint32_t pair);
  // Returns the numbers of all queue pairs.
  [[nodiscard]] std::vector<std::uint32_t> pairs();
  // Puts the pair into the error state. Completes its oldest write with `status`, and all its other
  // requests as flushed.
  void fail(std::uint32_t pair, ibv_wc_status status, std::uint32_t vendor_error = 0);

  // Replaces the immediate of the next posted write that has an immediate.
  void distort(std::uint32_t immediate);

  // Returns how many of the pair's send requests are in use. Polling a completion frees the
  // requests of its write and of the unsignaled writes before it.
  [[nodiscard]] std::uint32_t outstanding_writes(std::uint32_t pair);
  [[nodiscard]] ibv_qp_state state(std::uint32_t pair);
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  // Returns the number of existing completion channels, completion queues and queue pairs.
  [[nodiscard]] std::size_t objects();
  // Expects that there are no violations, no objects, no windows and no registrations.
  void expect_clean();

 private:
  friend struct FakeWireFunctions;

  // A write, or a request to open or close a window.
  struct Write {
    std::uint64_t id = 0;
    ibv_wr_opcode kind = IBV_WR_RDMA_WRITE;
    std::uint32_t window = 0;  // the handle of the window to open
    ibv_mw_bind_info opened{};
    std::vector<std::byte> bytes;
    const std::byte* source = nullptr;  // null for an inline write
    std::uint32_t local_key = 0;
    std::uint64_t address = 0;
    std::uint32_t remote_key = 0;  // or the key of a window to open or close
    std::optional<std::uint32_t> immediate;
    bool signaled = false;
  };
  struct Channel {
    ibv_comp_channel channel{};
    ibv_cq* queue = nullptr;
  };
  struct Entry {
    ibv_wc completion{};
    std::uint32_t sends = 0;  // send requests that polling the completion frees
    std::uint32_t receives = 0;
  };
  struct Queue {
    ibv_cq queue{};
    std::deque<Entry> entries;
    bool armed = false;
    int unacknowledged = 0;
  };
  struct Pair {
    ibv_qp pair{};
    ibv_qp_cap most{};
    Pair* peer = nullptr;
    std::uint32_t first_sent = 0;
    std::uint32_t first_expected = 0;
    std::deque<Write> writes;  // incomplete writes, of which the first `arrived` have arrived
    std::size_t arrived = 0;
    std::deque<std::uint64_t> receives;
    std::uint32_t sends_in_use = 0;
    std::uint32_t receives_in_use = 0;
    std::uint32_t unreported = 0;  // completed writes for which no completion has been generated
    // How many more steps the pair's next arrival and next completion are delayed.
    std::uint32_t late_arrivals = 0;
    std::uint32_t late_completions = 0;
  };

  // The caller of the functions below must hold mutex_.
  int post(Pair& pair, const ibv_send_wr& request);
  int change(Pair& pair, const ibv_qp_attr& attributes, int mask);
  bool advance();
  [[nodiscard]] std::vector<Pair*> ready_pairs(bool (*can)(const Pair&), std::uint32_t Pair::*late);
  [[nodiscard]] static bool can_deliver(const Pair& pair);
  [[nodiscard]] static bool can_complete(const Pair& pair) { return pair.arrived > 0; }
  void deliver_one(Pair& pair);
  void change_window(Pair& pair, const Write& request);
  void complete_one(Pair& pair);
  [[nodiscard]] bool is_unchanged(const Write& write);
  void end(Pair& pair, ibv_wc_status status, std::uint32_t vendor_error);
  void push_completion(Pair& pair, const ibv_wc& completion, bool send);
  void forget(const Pair& pair);
  void record_violation(const Pair& pair, const std::string& what);
  [[nodiscard]] Pair& pair_of(const ibv_qp* pair);
  [[nodiscard]] Queue& queue_of(const ibv_cq* queue);

  FakeMemory memory_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::map<const ibv_comp_channel*, std::unique_ptr<Channel>> channels_;
  std::map<const ibv_cq*, std::unique_ptr<Queue>> queues_;
  std::map<std::uint32_t, std::unique_ptr<Pair>> pairs_;  // by number
  std::uint32_t last_number_ = 0x1000;
  std::optional<std::uint32_t> distorted_;
  std::vector<std::string> violations_;
};

}  // namespace hccl::verbs::test
