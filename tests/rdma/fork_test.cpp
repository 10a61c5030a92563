// SPDX-License-Identifier: Apache-2.0
// Tests forks of a rank with open endpoints. A child that stores to all of its private memory must
// not corrupt the data that the devices read and write, neither while it runs nor afterwards.
#include "children.h"
#include "operation.h"
#include "rdma_test.h"

#include <cstdio>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace hccl::test {
namespace {

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// Returns the ranges of private writable memory, which a fork copies.
std::vector<Range> private_memory() {
  std::vector<Range> ranges;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Range range;
    std::array<char, 5> rights{};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &range.begin, &range.end, rights.data()) == 3 &&
        std::string(rights.data()).starts_with("rw") && rights[3] == 'p')
      ranges.push_back(range);
  }
  return ranges;
}

// Stores to each page, which gives the child its own copy of the page. Keeps the contents, because
// the child uses them.
void store_to_all(const std::vector<Range>& ranges) {
  constexpr std::uintptr_t kPage = 4096;
  for (const Range& range : ranges) {
    for (std::uintptr_t page = range.begin; page < range.end; page += kPage) {
      auto* const byte = reinterpret_cast<volatile char*>(page);
      *byte = *byte;
    }
  }
}

// A child process that stores to all of its private memory, and exits on request or when its parent
// exits.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    for (const int end : ends_) close(end);
  }

  void end() {
    close(std::exchange(ends_[1], -1));
    require_equal(status_of(process_), 0, "the child's status");
  }

 private:
  [[nodiscard]] pid_t begin() {
    require(pipe2(ends_.data(), O_CLOEXEC) == 0, "pipe");
    const std::vector<Range> ranges = private_memory();
    return start_child([&] {
      close(ends_[1]);
      store_to_all(ranges);
      char byte = 0;
      return read(ends_[0], &byte, 1) == 0;
    });
  }

  std::array<int, 2> ends_{};
  pid_t process_ = begin();
};

// Runs and verifies all-reduces in device memory and on the heap: small ones, which go through the
// rings, and large ones, which access registered memory directly.
void exchange(const Session& session, const Group& group, synStreamHandle stream,
              std::uint64_t seed) {
  for (const std::size_t count : {100U, 5'000U, 400'000U}) {
    for (const Placement placement : {Placement::device, Placement::host}) {
      const Operation operation{
          .count = count, .seed = seed, .placement = placement, .nodes = {"a", "b"}};
      run_and_verify(session, group, stream, operation);
    }
  }
}

class RdmaForks : public OnRdmaHosts {};

TEST_F(RdmaForks, AChildDoesNotCorruptMessages) {
  if (sanitized()) GTEST_SKIP() << "needs another build: a sanitizer's shadow cannot be stored to";
  SCOPED_TRACE(random_seed_text());
  run_pair([](Session& session, const Group& group, synStreamHandle stream) {
    std::uint64_t seed = test_seed();
    exchange(session, group, stream, ++seed);
    Child().end();
    exchange(session, group, stream, ++seed);
    Child child;
    for (int round = 0; round < 3; ++round) exchange(session, group, stream, ++seed);
    child.end();
    exchange(session, group, stream, ++seed);
  });
}

}  // namespace
}  // namespace hccl::test
