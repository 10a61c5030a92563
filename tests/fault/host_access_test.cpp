// SPDX-License-Identifier: Apache-2.0
// Tests host memory that a call cannot read or write. In every arrangement, the communicator must
// fail on all ranks with an error that names the rank at fault. On that rank, the error must also
// name the address.
#include "arrangements.h"
#include "faults.h"
#include "rank_test.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <hccl_emulation.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hccl::test {
namespace {

constexpr std::size_t kProbedBytes = std::size_t{1} << 20;
constexpr std::size_t kPage = 4096;

enum class Flaw { read_only, no_access, hole, past_the_end };

// Maps `kProbedBytes` bytes with a flaw in the middle page. The memory is anonymous, except for
// Flaw::past_the_end, which maps a file that ends before that page.
class FlawedMemory {
 public:
  explicit FlawedMemory(Flaw flaw) : has_hole_(flaw == Flaw::hole), memory_(map(flaw)) {
    if (flaw == Flaw::read_only) require(protect(PROT_READ) == 0, "protecting a page");
    if (flaw == Flaw::no_access) require(protect(PROT_NONE) == 0, "protecting a page");
    if (flaw == Flaw::hole) require(munmap(flawed_page(), kPage) == 0, "unmapping a page");
  }
  // Leaves a hole alone: by now, another thread or a sanitizer may have mapped memory there.
  ~FlawedMemory() {
    munmap(memory_, kProbedBytes / 2);
    if (!has_hole_) munmap(flawed_page(), kPage);
    munmap(flawed_page() + kPage, kProbedBytes / 2 - kPage);
  }
  FlawedMemory(const FlawedMemory&) = delete;
  FlawedMemory& operator=(const FlawedMemory&) = delete;

  [[nodiscard]] void* get() const { return memory_; }
  [[nodiscard]] std::byte* flawed_page() const { return memory_ + kProbedBytes / 2; }

 private:
  [[nodiscard]] int protect(int protection) const {
    return mprotect(flawed_page(), kPage, protection);
  }
  static std::byte* map(Flaw flaw) {
    constexpr int kProtection = PROT_READ | PROT_WRITE;
    void* mapped = MAP_FAILED;
    if (flaw == Flaw::past_the_end) {
      const int file = memfd_create("short", MFD_CLOEXEC);
      require(ftruncate(file, kProbedBytes / 2) == 0, "setting the file's size");
      mapped = mmap(nullptr, kProbedBytes, kProtection, MAP_SHARED, file, 0);
      close(file);
    } else {
      mapped = mmap(nullptr, kProbedBytes, kProtection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    require(mapped != MAP_FAILED, "mapping memory");
    return static_cast<std::byte*>(mapped);
  }

  bool has_hole_;
  std::byte* memory_;
};

class HostAccess : public EveryArrangement {};

// Makes rank 1 call last. Otherwise, rank 1's failure could reach rank 0 before rank 0 calls, and
// the library would refuse that call.
void in_order(World& world, const std::function<void()>& call) {
  if (world.rank == 1) world.board->barrier(0, 2);
  call();
  if (world.rank == 0) world.board->barrier(0, 2);
}

void expect_bad_memory(Session& session, const Group& group, synStreamHandle stream,
                       const FlawedMemory& flawed) {
  const synStatus status = synStreamSynchronize(stream);
  if (group.rank == 1) require_equal(status, synFailHccl, "synchronising");
  await_async_error(group);  // rank 0's send or receive may have succeeded
  expect_failed(group, hcclInvalidArgument, 1);
  const std::string text = async_message(group.handle);
  require(contains(text, "it is unmapped, protected or past the end of its file"), text);
  if (group.rank == 1) require(contains(text, join(flawed.flawed_page())), text);
  expect_usable_remains(session, group, stream, hcclInvalidArgument);
}

// Returns an all-reduce in which a buffer of rank 1 has the flaw: the receive buffer if `receives`,
// otherwise the send buffer. The buffer is the whole memory or, if `is_small`, 16 floats of the
// flawed page.
RankFunction all_reduce(Flaw flaw, bool receives, bool is_small = false) {
  return in_session([=](RANK_PARAMETERS) {
    const FlawedMemory flawed(flaw);
    std::vector<std::byte> good(kProbedBytes);
    void* const bad = is_small ? flawed.flawed_page() : flawed.get();
    void* const send = group.rank == 1 && !receives ? bad : good.data();
    void* const receive = group.rank == 1 && receives ? bad : good.data();
    in_order(world, [&] {
      succeed(hcclAllReduce(send, receive, is_small ? 16 : kProbedBytes / 4, hcclFloat32, hcclSum,
                            group.handle, stream));
    });
    expect_bad_memory(session, group, stream, flawed);
  });
}

RankFunction message(Flaw flaw, bool receives) {
  return in_session([=](RANK_PARAMETERS) {
    const FlawedMemory flawed(flaw);
    std::vector<std::byte> good(kProbedBytes);
    void* const buffer = group.rank == 1 ? flawed.get() : good.data();
    const int peer = 1 - group.rank;
    in_order(world, [&] {
      succeed((group.rank == 1) == receives
                  ? hcclRecv(buffer, kProbedBytes, hcclInt8, peer, group.handle, stream)
                  : hcclSend(buffer, kProbedBytes, hcclInt8, peer, group.handle, stream));
    });
    expect_bad_memory(session, group, stream, flawed);
  });
}

TEST_P(HostAccess, OfASmallCallIsAnError) {
  for (const Flaw flaw : {Flaw::read_only, Flaw::no_access, Flaw::past_the_end})
    run(all_reduce(flaw, true, true));
  for (const Flaw flaw : {Flaw::no_access, Flaw::past_the_end}) run(all_reduce(flaw, false, true));
}

TEST_P(HostAccess, ToUnwritableOutputIsAnError) {
  for (const Flaw flaw : {Flaw::read_only, Flaw::no_access, Flaw::hole, Flaw::past_the_end}) {
    run(all_reduce(flaw, true));
    run(message(flaw, true));
  }
}

TEST_P(HostAccess, ToUnreadableInputIsAnError) {
  for (const Flaw flaw : {Flaw::no_access, Flaw::hole, Flaw::past_the_end}) {
    run(all_reduce(flaw, false));
    run(message(flaw, false));
  }
}

TEST_P(HostAccess, ReadOnlyInputIsAccepted) {
  run(in_session([](RANK_PARAMETERS) {
    const FlawedMemory flawed(Flaw::read_only);
    std::vector<float> sum(kProbedBytes / 4, -1.0F);
    succeed(hcclAllReduce(flawed.get(), sum.data(), sum.size(), hcclFloat32, hcclSum, group.handle,
                          stream));
    succeed(synStreamSynchronize(stream));
    require(sum == std::vector<float>(sum.size(), 0.0F), "the sum");
  }));
}

TEST(CheckMemory, FindsInaccessiblePages) {
  const auto check = [](const void* memory, std::size_t bytes, bool writable) {
    return hcclEmulationCheckMemory(memory, bytes, writable ? 1 : 0);
  };
  // All mappings exist at once, so that no two share an address. Once the library has found an
  // address range accessible, it does not check every page of that range again.
  std::vector<std::pair<Flaw, std::unique_ptr<FlawedMemory>>> all;
  for (const Flaw flaw : {Flaw::read_only, Flaw::no_access, Flaw::hole, Flaw::past_the_end})
    all.emplace_back(flaw, std::make_unique<FlawedMemory>(flaw));
  for (const auto& [flaw, memory] : all) {
    const FlawedMemory& flawed = *memory;
    EXPECT_EQ(check(flawed.get(), kProbedBytes, true), hcclInvalidArgument);
    EXPECT_TRUE(contains(last_hccl_message(), join(static_cast<void*>(flawed.flawed_page()))))
        << last_hccl_message();
    EXPECT_TRUE(contains(last_hccl_message(), "cannot be written")) << last_hccl_message();
    EXPECT_EQ(check(flawed.get(), kProbedBytes, false),
              flaw == Flaw::read_only ? hcclSuccess : hcclInvalidArgument);
    EXPECT_EQ(check(flawed.get(), kProbedBytes / 2, true), hcclSuccess);
  }
  EXPECT_EQ(check(nullptr, 1, false), hcclInvalidArgument);
  EXPECT_EQ(check(nullptr, 0, false), hcclSuccess);
  EXPECT_EQ(check(reinterpret_cast<const void*>(~std::uintptr_t{0}), 2, false),
            hcclInvalidArgument);
}

// If a range has a read-only page, the check probes every page of the range. Probing a writable
// page must not lose increments that another thread makes at the same time.
TEST(CheckMemory, LosesNoConcurrentStore) {
  const FlawedMemory flawed(Flaw::read_only);
  std::byte* const page = flawed.flawed_page() - kPage;
  const std::span words(reinterpret_cast<std::uint32_t*>(page), kPage / sizeof(std::uint32_t));
  std::atomic<bool> done{false};
  std::uint32_t rounds = 0;
  std::thread counter([&] {
    for (; !done || rounds < 1000; ++rounds) {
      for (std::uint32_t& word : words) std::atomic_ref(word).fetch_add(1);
    }
  });
  for (int i = 0; i < 20'000; ++i)
    EXPECT_EQ(hcclEmulationCheckMemory(page, 2 * kPage, 1), hcclInvalidArgument);
  done = true;
  counter.join();
  EXPECT_TRUE(std::ranges::all_of(words, [&](std::uint32_t word) { return word == rounds; }));
}

// The root of an in-place broadcast must not write to its buffer, which may be read-only.
TEST_P(HostAccess, ReadOnlyRootBroadcastsInPlace) {
  run(in_session([](RANK_PARAMETERS) {
    const FlawedMemory flawed(Flaw::read_only);
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{8192}, kProbedBytes}) {
      std::vector<std::byte> received(bytes, std::byte{1});
      void* const sent = bytes < kProbedBytes ? flawed.flawed_page() : flawed.get();
      void* const buffer = group.rank == 0 ? sent : received.data();
      succeed(hcclBroadcast(buffer, buffer, bytes, hcclInt8, 0, group.handle, stream));
      succeed(synStreamSynchronize(stream));
      require(group.rank == 0 || received == std::vector<std::byte>(bytes), "the data");
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Arrangements, HostAccess, testing::ValuesIn(every_arrangement()),
                         arrangement_name);

}  // namespace
}  // namespace hccl::test
