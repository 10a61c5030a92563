// SPDX-License-Identifier: Apache-2.0
// Floods a root server's port with connections from unknown peers that send nothing, malformed data
// or forged messages.
#pragma once

#include "base/file_descriptor.h"
#include "bootstrap/shared_secret.h"
#include "bootstrap/unique_id.h"
#include "bootstrap/wire.h"

#include <cstddef>
#include <deque>
#include <random>
#include <vector>

namespace hccl::test {

class Storm {
 public:
  // `id` contains the root server's address; `ranks` is the size of the communicator.
  Storm(const hcclUniqueId& id, int ranks, unsigned long long seed);

  // Opens `count` connections that send nothing and stay open.
  void add_silent(int count);
  // Opens `count` connections and cycles through the kinds of bad input: malformed data, forged
  // messages, or nothing. Closes about half of the connections immediately. The newest 300 of the
  // other connections stay open.
  void attack(int count);
  // Blocks until the server has closed all connections, for at most 30 seconds. Returns false if a
  // connection is still open.
  [[nodiscard]] bool all_cut_off();

  // Returns how many connections failed on this side, for example because the kernel refused them.
  [[nodiscard]] int failed() const { return failed_; }

 private:
  [[nodiscard]] FileDescriptor connect_once();
  [[nodiscard]] Bytes next_bytes();
  [[nodiscard]] Bytes hello(int rank, int size);
  [[nodiscard]] Bytes garbage();

  bootstrap::UniqueId id_;
  bootstrap::JoinKey key_;
  int ranks_;
  std::mt19937_64 random_;
  unsigned made_ = 0;
  unsigned kind_ = 0;
  int failed_ = 0;
  std::vector<FileDescriptor> silent_;
  std::deque<FileDescriptor> open_;
};

}  // namespace hccl::test
