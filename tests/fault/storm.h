// SPDX-License-Identifier: Apache-2.0
// Unknown peers on the port of a root server: connections that say nothing or the wrong thing, as
// many as it takes to be noticed.
#pragma once

#include "base/file_descriptor.h"
#include "bootstrap/unique_id.h"
#include "bootstrap/wire.h"

#include <cstddef>
#include <deque>
#include <random>
#include <vector>

namespace hccl::test {

class Storm {
 public:
  // Against the server of this id; `ranks` is the size of its communicator.
  Storm(const hcclUniqueId& id, int ranks, unsigned long long seed);

  // Connects and says nothing, `count` times; the connections stay open.
  void add_silent(int count);
  // Connects and says something malformed, `count` times, each time of the next kind. Some of the
  // connections are closed at once, the others stay open until newer ones take their place.
  void attack(int count);
  // Waits until the server has closed all that are still open; false after half a minute.
  [[nodiscard]] bool all_cut_off();

  // The failures on this side: connections that the kernel refused.
  [[nodiscard]] int failed() const { return failed_; }

 private:
  [[nodiscard]] FileDescriptor connect_once();
  [[nodiscard]] Bytes next_bytes();
  [[nodiscard]] Bytes hello(int rank, int size);
  [[nodiscard]] Bytes garbage();

  bootstrap::UniqueId id_;
  Bytes key_;
  int ranks_;
  std::mt19937_64 random_;
  unsigned made_ = 0;
  unsigned kind_ = 0;
  int failed_ = 0;
  std::vector<FileDescriptor> silent_;
  std::deque<FileDescriptor> open_;
};

}  // namespace hccl::test
