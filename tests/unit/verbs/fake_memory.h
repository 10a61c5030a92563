// SPDX-License-Identifier: Apache-2.0
// A fake device that registers memory and opens windows to it. It records which memory is
// registered or open under which key, and refuses registrations on request. At most one FakeMemory
// may exist at a time, as with FakeVerbs.
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

// Thread safety: any thread, except for open().
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
  // Opens the device. The GID of its port is `gid`.
  [[nodiscard]] std::shared_ptr<RdmaDevice> open(const GidBytes& gid) const;

  // Return the memory that is registered under the key, if any. Keys are never reused.
  [[nodiscard]] std::optional<Range> with_local_key(std::uint32_t key) const;
  [[nodiscard]] std::optional<Range> with_remote_key(std::uint32_t key) const;
  // Returns the memory that the peer of the queue pair with this number may write with the key: by
  // an open window, or by a registration for writes by any peer.
  [[nodiscard]] std::optional<Range> writable_for(std::uint32_t pair, std::uint32_t key) const;
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::size_t windows() const;
  [[nodiscard]] std::uint64_t bytes() const;
  // Returns the number of registrations made so far, including removed ones.
  [[nodiscard]] int made() const;

  // Limits the total of registered bytes. A registration that exceeds the limit fails with ENOMEM.
  void limit(std::uint64_t bytes);
  // Makes the next `times` registrations fail with `error`.
  void refuse(int times, int error);
  [[nodiscard]] int refused() const;
  // Returns the number of open protection domains.
  [[nodiscard]] int domains() const;

  // Called by the fake library's functions.
  [[nodiscard]] ibv_mr* add(ibv_pd* domain, void* address, std::size_t bytes, int access);
  // Fails with EBUSY if a window is open to the region.
  [[nodiscard]] int remove(ibv_mr* region);
  [[nodiscard]] ibv_mw* add_window(ibv_pd* domain);
  void remove_window(ibv_mw* window);
  // Carry out requests of the queue pair with this number. Return false for an invalid request.
  [[nodiscard]] bool open_window(std::uint32_t pair, std::uint32_t window, std::uint32_t key,
                                 const ibv_mw_bind_info& info);
  [[nodiscard]] bool close_window(std::uint32_t pair, std::uint32_t key);
  [[nodiscard]] bool has_open_window(std::uint32_t pair) const;
  void count_domains(int change);

 private:
  struct Window {
    std::uint32_t key = 0;
    std::uint32_t pair = 0;    // 0 if the window is closed
    std::uint32_t region = 0;  // the number of the registration
    Range range;
  };

  [[nodiscard]] std::optional<Range> with_number(std::uint32_t number) const;

  FakeVerbs verbs_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, Range> ranges_;    // by the number from which both keys are computed
  std::map<std::uint32_t, Window> windows_;  // by handle
  std::uint32_t last_ = 0;
  std::uint32_t last_window_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t limit_ = std::numeric_limits<std::uint64_t>::max();
  int to_refuse_ = 0;
  int refusal_ = 0;
  int refused_ = 0;
  int domains_ = 0;
};

}  // namespace hccl::verbs::test
