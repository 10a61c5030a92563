// SPDX-License-Identifier: Apache-2.0
// Tests host memory of several kinds, and host memory that changes between calls: buffers mapped
// again at the same address, pages that the kernel has dropped, and pages shared with a forked
// child.
#include "children.h"
#include "rank_test.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hccl::test {
namespace {

using Word = std::uint32_t;  // all-reduced as hcclUint32, so that sums do not depend on the order

// The element counts of a call that fits into a slot, of one that fits into a host payload, and of
// two longer ones, the last of which needs several slices.
constexpr std::array<std::size_t, 4> kCounts{64, 1500, 20'011, 300'007};
constexpr std::size_t kMaxOnStack = 20'011;

Word mixed(std::size_t at, int round) {
  std::uint64_t word = (at + 1) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(round) * 104729;
  word = (word ^ word >> 31) * 0xbf58476d1ce4e5b9u;
  return static_cast<Word>(word >> 32);
}

// Returns element `at` of the input of `rank` in round `round`. The multipliers of the ranks, 1, 3,
// 5 and so on, add up to the square of the number of ranks.
Word input(int rank, int round, std::size_t at) {
  return mixed(at, round) * static_cast<Word>(2 * rank + 1);
}

void fill(std::span<Word> send, int rank, int round) {
  for (std::size_t at = 0; at < send.size(); ++at) send[at] = input(rank, round, at);
}

// Poisons the output, all-reduces, and requires that every element is right. The inputs are those
// of `round`, or zeros if `zeros`.
void reduce_and_verify(const Group& group, synStreamHandle stream, std::span<const Word> send,
                       std::span<Word> receive, int round, bool zeros = false) {
  std::ranges::fill(receive, Word{0xa5a5a5a5});
  succeed(hcclAllReduce(send.data(), receive.data(), send.size(), hcclUint32, hcclSum, group.handle,
                        stream));
  succeed(synStreamSynchronize(stream));
  for (std::size_t at = 0; at < receive.size(); ++at) {
    const Word sum = zeros ? 0 : mixed(at, round) * static_cast<Word>(group.size() * group.size());
    if (receive[at] == sum) continue;
    require(false, join("round ", round, ": element ", at, " of ", receive.size(), " is ",
                        receive[at], ", expected ", sum));
  }
}

// Returns the size of `count` words, rounded up to whole pages.
std::size_t bytes_of(std::size_t count) { return (count * sizeof(Word) + 4095) / 4096 * 4096; }

// Memory from mmap(), of a whole number of pages.
class Mapping {
 public:
  explicit Mapping(std::size_t count, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int file = -1,
                   void* at = nullptr)
      : count_(count),
        memory_(mmap(at, bytes(), PROT_READ | PROT_WRITE,
                     flags | (at == nullptr ? 0 : MAP_FIXED_NOREPLACE), file, 0)) {
    require(memory_ != MAP_FAILED, "mapping memory");
  }
  ~Mapping() { munmap(memory_, bytes()); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] std::size_t bytes() const { return bytes_of(count_); }
  [[nodiscard]] void* address() const { return memory_; }
  [[nodiscard]] std::span<Word> words() const { return {static_cast<Word*>(memory_), count_}; }

 private:
  std::size_t count_;
  void* memory_;
};

// Maps a file that has no name.
std::unique_ptr<Mapping> map_file(std::size_t count, int flags) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  require(file != nullptr, "creating a file");
  require(ftruncate(fileno(file.get()), static_cast<off_t>(bytes_of(count))) == 0,
          "setting the file's size");
  return std::make_unique<Mapping>(count, flags, fileno(file.get()));
}

// The kinds of the send and receive buffers depend on the rank and on the round.
RANK_TEST(HostBuffers, OfEveryKindCanBeMixed, {2, 8}, {3}) {
  std::array<Word, kMaxOnStack> on_stack;
  const PinnedMemory pinned(session.device(),
                            std::vector<std::byte>(kCounts.back() * sizeof(Word)));
  for (const std::size_t count : kCounts) {
    std::vector<Word> heap(count);
    const auto shared = map_file(count, MAP_SHARED);
    const auto private_copy = map_file(count, MAP_PRIVATE);
    const Mapping shared_anonymous(count, MAP_SHARED | MAP_ANONYMOUS);
    const DeviceMemory device(session.device(), count * sizeof(Word));
    const std::array<std::span<Word>, 7> kinds{
        std::span(heap),
        shared->words(),
        private_copy->words(),
        shared_anonymous.words(),
        std::span(reinterpret_cast<Word*>(pinned.bytes().data()), count),
        std::span(static_cast<Word*>(device.view()), count),
        count <= kMaxOnStack ? std::span(on_stack).first(count) : std::span(heap)};
    for (std::size_t round = 0; round < kinds.size(); ++round) {
      const std::size_t turn = round + static_cast<std::size_t>(group.rank);
      const std::span<Word> send = kinds[turn % kinds.size()];
      const std::span<Word> receive = kinds[(turn + 3) % kinds.size()];
      std::vector<Word> spare(send.data() == receive.data() ? count : 0);
      fill(send, group.rank, static_cast<int>(round));
      reduce_and_verify(group, stream, send, spare.empty() ? receive : std::span(spare),
                        static_cast<int>(round));
    }
  }
}

RANK_TEST(HostBuffers, MayBeMappedAgainAtTheSameAddress, {2, 8}) {
  for (const std::size_t count : kCounts) {
    void* send_at = nullptr;
    void* receive_at = nullptr;
    for (int round = 0; round < 4; ++round) {
      const Mapping send(count, MAP_PRIVATE | MAP_ANONYMOUS, -1, send_at);
      const Mapping receive(count, MAP_PRIVATE | MAP_ANONYMOUS, -1, receive_at);
      send_at = send.address();
      receive_at = receive.address();
      fill(send.words(), group.rank, round);
      reduce_and_verify(group, stream, send.words(), receive.words(), round);
    }
  }
}

RANK_TEST(HostBuffers, WhosePagesWereDroppedReadAsZeros, {2, 8}) {
  for (const std::size_t count : kCounts) {
    const Mapping send(count);
    const Mapping receive(count);
    fill(send.words(), group.rank, 0);
    reduce_and_verify(group, stream, send.words(), receive.words(), 0);
    for (const Mapping* mapping : {&send, &receive})
      require(madvise(mapping->address(), mapping->bytes(), MADV_DONTNEED) == 0, "dropping pages");
    reduce_and_verify(group, stream, send.words(), receive.words(), 0, true);
    fill(send.words(), group.rank, 1);
    reduce_and_verify(group, stream, send.words(), receive.words(), 1);
  }
}

// While the child lives, parent and child share the pages that neither has written since the fork.
RANK_TEST(HostBuffers, MayBeSharedWithAForkedChild, {2, 8}) {
  for (const std::size_t count : kCounts) {
    std::vector<Word> send(count);
    std::vector<Word> receive(count);
    fill(send, group.rank, 0);
    reduce_and_verify(group, stream, send, receive, 0);
    const hccl_perf::Shared<std::atomic<bool>> has_written;
    const pid_t child = start_child([&] {
      std::ranges::fill(std::span(send).first(count / 2), Word{1});
      std::ranges::fill(std::span(receive).first(count / 2), Word{2});
      has_written->store(true);
      pause();
      return 0;
    });
    require(child > 0, "forking");
    while (!has_written->load()) sched_yield();
    reduce_and_verify(group, stream, send, receive, 0);  // the child has not changed this input
    fill(send, group.rank, 1);
    reduce_and_verify(group, stream, send, receive, 1);
    kill(child, SIGKILL);
    require(status_of(child) == -SIGKILL, "ending the child");
    fill(send, group.rank, 2);
    reduce_and_verify(group, stream, send, receive, 2);
  }
}

}  // namespace
}  // namespace hccl::test
