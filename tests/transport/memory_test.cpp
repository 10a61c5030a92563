// SPDX-License-Identifier: Apache-2.0
// Tests streams from and to memory that a transport may access in place, and calls with memory that
// the kernel cannot access.
#include "base/shared_memory.h"
#include "harness.h"

#include <random>

#include <sys/mman.h>

namespace hccl::test {
namespace {

// Memory that a transport may access directly. Messages begin and end anywhere in it.
class SharedBuffer {
 public:
  explicit SharedBuffer(transport::Transport& transport)
      : file_(create_memory_file("hccl-test", kBytes)), mapping_(SharedSegment::map(file_)) {
    if (transport.registers_memory())
      transport.register_memory({mapping_->data(), kBytes, file_.get(), 0});
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return {mapping_->data(), kBytes}; }
  [[nodiscard]] transport::Region region(std::size_t offset, std::size_t bytes) const {
    return {mapping_->data() + offset, bytes, file_.get(), offset};
  }

  static constexpr std::size_t kBytes = std::size_t{9} << 20;  // not a multiple of a granule

 private:
  FileDescriptor file_;
  std::shared_ptr<SharedSegment> mapping_;
};

void send_all(Endpoint& endpoint, std::span<const std::byte> bytes, WaitSet& wait_set) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(30));
  while (!bytes.empty() || !endpoint.flushed()) {
    const std::size_t sent = bytes.empty() ? 0 : endpoint.try_send(bytes);
    bytes = bytes.subspan(sent);
    if (sent > 0) continue;
    const WaitSet::Entry entry{&endpoint, {false, !bytes.empty(), bytes.empty()}};
    require(wait_set.wait({&entry, 1}, deadline) == WaitSet::WakeReason::ready, "bytes are sent");
  }
}

void receive_all(Endpoint& endpoint, std::span<std::byte> bytes, WaitSet& wait_set) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(30));
  while (!bytes.empty()) {
    const std::size_t got = endpoint.try_receive_into(bytes);
    bytes = bytes.subspan(got);
    if (got > 0) continue;
    const WaitSet::Entry entry{&endpoint, {true, false}};
    require(wait_set.wait({&entry, 1}, deadline) == WaitSet::WakeReason::ready, "bytes arrive");
  }
}

class Memory : public EveryWay {};

INSTANTIATE_TEST_SUITE_P(All, Memory, testing::ValuesIn(all_ways()), name_of);

TEST_P(Memory, RegisteredMemoryIsSentFromAndReceivedInto) {
  run(2, [](World& world) {
    Member member(world, GetParam());
    const SharedBuffer buffer(member.transport());
    const auto endpoint = member.open(1 - world.rank);
    WaitSet wait_set;
    std::mt19937_64 random(11);  // the same on both ranks
    std::vector<std::byte> elsewhere(SharedBuffer::kBytes);
    for (std::uint64_t round = 0; round < 40; ++round) {
      const std::size_t size = 1 + random() % (round % 4 == 0 ? 100 : 3'000'000);
      const std::size_t from = random() % (SharedBuffer::kBytes - size);
      const std::size_t to = random() % (SharedBuffer::kBytes - size);
      // The memory on either side may be unregistered.
      const bool sender_registered = random() % 4 != 0;
      const bool receiver_registered = random() % 4 != 0;
      if (random() % 4 == 0) world.board->barrier(0, 2);
      if (static_cast<std::uint64_t>(world.rank) == round % 2) {
        const auto all = sender_registered ? buffer.bytes() : std::span(elsewhere);
        const auto bytes = all.subspan(from, size);
        fill(bytes, round, 0);
        send_all(*endpoint, bytes, wait_set);
        std::ranges::fill(bytes, std::byte{0xee});
        continue;
      }
      const auto all = receiver_registered ? buffer.bytes() : std::span(elsewhere);
      const auto bytes = all.subspan(to, size);
      std::ranges::fill(all, std::byte{0xdd});
      receive_all(*endpoint, bytes, wait_set);
      check_pattern(bytes, round, 0);
      const auto untouched = [](std::byte byte) { return byte == std::byte{0xdd}; };
      require(std::ranges::all_of(all.first(to), untouched) &&
                  std::ranges::all_of(all.subspan(to + size), untouched),
              "no other byte is written");
    }
  });
}

TEST_P(Memory, NewPagesOfRegisteredMemoryAreUsed) {
  run(2, [](World& world) {
    Member member(world, GetParam());
    const SharedBuffer buffer(member.transport());
    const auto endpoint = member.open(1 - world.rank);
    WaitSet wait_set;
    constexpr std::size_t kSize = std::size_t{1} << 20;
    for (std::uint64_t round = 0; round < 50; ++round) {
      const std::size_t at = round % 3 * 700'000 / 4096 * 4096;
      const auto bytes = buffer.bytes().subspan(at, kSize);
      if (world.rank == 0) {
        fill(bytes, round, 0);
        send_all(*endpoint, bytes, wait_set);
      } else {
        receive_all(*endpoint, bytes, wait_set);
        check_pattern(bytes, round, 0);
      }
      // Return the pages to the system, as freeing device memory does.
      member.transport().invalidate(buffer.region(at, kSize));
      require(madvise(bytes.data(), kSize, MADV_REMOVE) == 0, "the pages are returned");
    }
  });
}

TEST_P(Memory, NothingIsWrittenAfterACut) {
  run(2, [](World& world) {
    Member member(world, GetParam());
    const SharedBuffer buffer(member.transport());
    if (!member.transport().registers_memory())
      return;  // only the receiver's own calls store to the buffer
    const auto endpoint = member.open(1 - world.rank);
    connect(*endpoint);
    if (world.rank == 0) {
      std::size_t sent = 0;
      while (sent < (std::size_t{64} << 10))
        sent += endpoint->try_send(buffer.bytes().first((std::size_t{64} << 10) - sent));
      world.board->barrier(0, 2);  // rank 1 has started to receive
      world.board->barrier(0, 2);
      static_cast<void>(loss_in([&] {
        static_cast<void>(endpoint->try_send(buffer.bytes().subspan(sent, std::size_t{4} << 20)));
      }));
      world.board->barrier(0, 2);
      return;
    }
    std::span<std::byte> rest = buffer.bytes().first(std::size_t{8} << 20);
    while (rest.size() > (std::size_t{8} << 20) - (std::size_t{64} << 10))
      rest = rest.subspan(endpoint->try_receive_into(rest));
    static_cast<void>(endpoint->try_receive_into(rest));
    world.board->barrier(0, 2);
    endpoint->cut();
    std::ranges::fill(buffer.bytes(), std::byte{0x77});
    world.board->barrier(0, 2);
    world.board->barrier(0, 2);
    const auto untouched = [](std::byte byte) { return byte == std::byte{0x77}; };
    require(std::ranges::all_of(buffer.bytes(), untouched), "nothing is written to the buffer");
    static_cast<void>(loss_of(*endpoint));
  });
}

// Over TCP without encryption, the kernel copies the bytes. If the kernel cannot access a buffer,
// the call must fail, but the connection must remain usable.
TEST(TcpMemory, AProtectedBufferDoesNotBreakTheConnection) {
  const auto exchange = [](World& world) {
    constexpr std::size_t kSize = 4096;
    Member member(world, {"tcp", "tcp"});
    const auto endpoint = member.open(1 - world.rank);
    connect(*endpoint);
    void* const nowhere = mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const std::span<std::byte> bad(static_cast<std::byte*>(nowhere), kSize);
    WaitSet wait_set;
    std::vector<std::byte> bytes = pattern(kSize, 3);
    const auto expect_refused = [](const std::function<void()>& call) {
      try {
        for (;;) call();  // the first calls may find no bytes yet
      } catch (const Error& error) {
        require_equal(error.code(), hcclInvalidArgument, error.what());
      }
    };
    if (world.rank == 0) {
      expect_refused([&] { static_cast<void>(endpoint->try_send(bad)); });
      send_all(*endpoint, bytes, wait_set);
    } else {
      expect_refused([&] { static_cast<void>(endpoint->try_receive_into(bad)); });
      receive_all(*endpoint, bytes, wait_set);
      check_pattern(bytes, 3, 0);
    }
    world.board->barrier(0, 2);
  };
  EXPECT_EQ(failures(run_ranks(2, exchange)), "");
}

}  // namespace
}  // namespace hccl::test
