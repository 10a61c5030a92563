// SPDX-License-Identifier: Apache-2.0
// Tests messages that the library starts before earlier calls have completed. The results must be
// as if all calls ran in order.
#include "operation.h"
#include "rank_test.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

void barriers(const Group& group, synStreamHandle stream, int count) {
  for (int call = 0; call < count; ++call) succeed(hcclBarrier(group.handle, stream));
}

// If a faulty library started a message too early, it would do so within this time. Nothing signals
// the start, so the test sleeps.
constexpr std::chrono::milliseconds kLate{3};

enum class Gate { receive, send };

// Returns a rank function in which a send is queued behind another message, the gate. Before the
// gate opens, another stream writes the send's buffer, and the send must read the new data.
RankFunction gated_send(Gate gate_is, std::size_t bytes, int calls_around) {
  return in_session([=](RANK_PARAMETERS) {
    const std::array streams{stream, session.make_stream()};
    const DeviceMemory gate(session.device(), bytes);
    const DeviceMemory data(session.device(), bytes);
    void* const to_gate = gate.pointer();
    void* const to_data = data.pointer();
    const auto pass_gate = [&](int rank, bool sends) {
      const int peer = 1 - rank;
      succeed(sends ? hcclSend(to_gate, bytes, hcclInt8, peer, group.handle, streams[0])
                    : hcclRecv(to_gate, bytes, hcclInt8, peer, group.handle, streams[0]));
    };
    std::vector<std::byte> got(bytes);
    const std::vector old(bytes, std::byte{1});
    upload(streams[0], old, gate.address());
    upload(streams[0], old, data.address());
    succeed(synStreamSynchronize(streams[0]));
    for (int round = 2; round < 16; ++round) {
      const auto value = static_cast<std::byte>(round);
      barriers(group, streams[0], calls_around);
      if (group.rank == 0) {
        pass_gate(group.rank, gate_is == Gate::send);
        succeed(hcclSend(to_data, bytes, hcclInt8, 1, group.handle, streams[0]));
        barriers(group, streams[0], calls_around);
        std::this_thread::sleep_for(kLate);
        const std::vector<std::byte> fresh(bytes, value);
        upload(streams[1], fresh, data.address());
        succeed(synStreamSynchronize(streams[1]));
        world.board->barrier(round, 2);
      } else {
        world.board->barrier(round, 2);
        pass_gate(group.rank, gate_is == Gate::receive);
        succeed(hcclRecv(to_data, bytes, hcclInt8, 0, group.handle, streams[0]));
        barriers(group, streams[0], calls_around);
        download(streams[0], data.address(), got);
      }
      succeed(synStreamSynchronize(streams[0]));
      require(group.rank == 0 || got == std::vector(bytes, value), "sent too early");
    }
  });
}

void pass_gates(int calls_around) {
  for (const Gate gate : {Gate::receive, Gate::send}) {
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{1'024}}) {
      EXPECT_EQ(failures(run_ranks(2, gated_send(gate, bytes, calls_around))), "")
          << bytes << (gate == Gate::send ? " bytes behind a send" : " bytes behind a receive");
    }
  }
}

TEST(EarlyMessages, ReadTheirBufferInStreamOrder) { pass_gates(0); }
TEST(EarlyMessages, ReadTheirBufferInStreamOrderInAFullQueue) { pass_gates(3'000); }

// Rank 1's first stream waits at a gate. Before the gate opens, the second send on rank 0's first
// stream must not read its buffer. The 17th message, on another stream, uses the mailbox entry of
// the first message. Rank 1 receives the 17th message early, and the library must not mistake it
// for the first message.
RANK_TEST(EarlyMessages, AreNotMistakenForOthersInTheirSlot, 2) {
  constexpr std::size_t kBytes = 64;
  constexpr int kPlaces = 16;  // entries of a mailbox
  const Group gate = session.join_all(1);
  const std::array streams{stream, session.make_stream(), session.make_stream()};
  const DeviceMemory data(session.device(), kBytes);
  const DeviceMemory other(session.device(), kBytes);
  const DeviceMemory beside(session.device(), kBytes);
  void* const to_data = data.pointer();
  void* const to_other = other.pointer();
  const std::vector old(kBytes, std::byte{0xDD});
  std::vector<std::byte> got(kBytes);
  const auto pass = [](const Group& among, void* buffer, synStreamHandle on) {
    succeed(among.rank == 0 ? hcclSend(buffer, kBytes, hcclInt8, 1, among.handle, on)
                            : hcclRecv(buffer, kBytes, hcclInt8, 0, among.handle, on));
  };
  upload(streams[0], old, other.address());
  upload(streams[0], old, beside.address());
  for (int round = 0; round < 20; ++round) {
    const std::vector fresh(kBytes, static_cast<std::byte>(round));
    upload(streams[0], old, data.address());
    succeed(synStreamSynchronize(streams[0]));
    if (world.rank == 1) pass(gate, to_other, streams[0]);
    pass(group, to_other, streams[0]);
    pass(group, to_data, streams[0]);
    for (int message = 2; message < kPlaces; ++message) pass(group, to_other, streams[0]);
    pass(group, beside.pointer(), streams[1]);
    if (world.rank == 0) {
      std::this_thread::sleep_for(kLate);
      upload(streams[2], fresh, data.address());
      pass(gate, to_other, streams[2]);
    }
    synchronize(streams);
    download(streams[0], data.address(), got);
    succeed(synStreamSynchronize(streams[0]));
    require(got == fresh, "sent too early");
  }
}

// Returns a rank function in which rank 0 sends a buffer and then receives into the same buffer.
// Rank 0's incoming message arrives long before rank 1 receives the outgoing one.
RankFunction receive_over_send(std::size_t bytes) {
  return in_session([=](RANK_PARAMETERS) {
    const std::array streams{stream, session.make_stream()};
    const DeviceMemory sent(session.device(), bytes);
    const DeviceMemory received(session.device(), bytes);
    const std::vector back(bytes, std::byte{0xBA});
    const std::vector poison(bytes, std::byte{0xDD});
    std::vector<std::byte> got(bytes);
    for (int round = 0; round < 20; ++round) {
      const std::vector fresh(bytes, static_cast<std::byte>(round));
      upload(streams[0], group.rank == 0 ? fresh : back, sent.address());
      upload(streams[1], poison, received.address());
      succeed(synStreamSynchronize(streams[1]));
      void* const to_sent = sent.pointer();
      if (group.rank == 0) {
        succeed(hcclSend(to_sent, bytes, hcclInt8, 1, group.handle, streams[0]));
        succeed(hcclRecv(to_sent, bytes, hcclInt8, 1, group.handle, streams[0]));
        download(streams[0], sent.address(), got);
      } else {
        succeed(hcclSend(to_sent, bytes, hcclInt8, 0, group.handle, streams[0]));
        std::this_thread::sleep_for(kLate);
        succeed(hcclRecv(received.pointer(), bytes, hcclInt8, 0, group.handle, streams[1]));
        download(streams[1], received.address(), got);
        succeed(synStreamSynchronize(streams[1]));
      }
      succeed(synStreamSynchronize(streams[0]));
      require(got == (group.rank == 0 ? back : fresh), "not the sent data");
    }
  });
}

TEST(EarlyMessages, AreNotReceivedIntoABufferBeingSent) {
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{1} << 10, std::size_t{100'000}}) {
    EXPECT_EQ(failures(run_ranks(2, receive_over_send(bytes))), "") << bytes << " bytes";
  }
}

// Rank 0 waits for an event recorded after a send and then overwrites the send's buffer, while
// further calls are queued. The event must not complete before the send.
RANK_TEST(EarlyMessages, CompleteInStreamOrder, 2) {
  constexpr std::size_t kBytes = 1'024;
  constexpr int kMessages = 5;
  const std::array streams{stream, session.make_stream()};
  const DeviceMemory first(session.device(), kBytes);
  const DeviceMemory others(session.device(), kBytes);
  const auto buffer = [&](int message) {
    return device_pointer(message == 0 ? first.address() : others.address());
  };
  synEventHandle taken = session.make_event();
  const std::vector poison(kBytes, std::byte{0xDD});
  std::vector<std::byte> got(kBytes);
  for (int round = 0; round < 20; ++round) {
    const std::vector fresh(kBytes, static_cast<std::byte>(round));
    upload(streams[0], fresh, first.address());
    succeed(synStreamSynchronize(streams[0]));
    if (group.rank != 0) std::this_thread::sleep_for(kLate);
    for (int message = 0; message < kMessages; ++message) {
      if (group.rank == 0) {
        succeed(hcclSend(buffer(message), kBytes, hcclInt8, 1, group.handle, streams[0]));
      } else {
        succeed(hcclRecv(buffer(message), kBytes, hcclInt8, 0, group.handle, streams[0]));
      }
      if (message == 0) succeed(synEventRecord(taken, streams[0]));
    }
    if (group.rank == 0) {
      succeed(synEventSynchronize(taken));
      upload(streams[1], poison, first.address());
      succeed(synStreamSynchronize(streams[1]));
    } else {
      download(streams[0], first.address(), got);
    }
    succeed(synStreamSynchronize(streams[0]));
    require(group.rank == 0 || got == fresh, "the event came too early");
  }
}

// This is long enough for rank 0 to begin all its messages. Nothing signals that it has begun them.
constexpr std::chrono::milliseconds kPause{100};
constexpr std::size_t kEntries = 16;  // messages that one rank may have offered to another

// Returns `bytes` bytes that depend on `seed`.
std::vector<std::byte> pattern(std::size_t bytes, std::size_t seed) {
  std::vector<std::byte> result(bytes);
  for (std::size_t at = 0; at < bytes; ++at)
    result[at] = static_cast<std::byte>((at * 31 + seed * 7) % 251);
  return result;
}

// The last message, from host memory, begins ahead of its turn, while an earlier message is in
// device memory and needs no staging buffer.
RANK_TEST(EarlyMessages, FromHostMemoryBeginBehindDeviceMemory, 2) {
  constexpr std::size_t kBytes = 4'000;
  const DeviceMemory memory(session.device(), kBytes);
  const std::vector<std::byte> on_device = pattern(kBytes, 1);
  upload(stream, on_device, memory.address());
  succeed(synStreamSynchronize(stream));
  for (int round = 0; round < 3; ++round) {
    std::vector<std::byte> first = pattern(kBytes, 2 + static_cast<std::size_t>(group.rank));
    std::vector<std::byte> last = pattern(kBytes, 4 + static_cast<std::size_t>(group.rank));
    const auto exchange = [&](void* buffer) {
      succeed(group.rank == 0 ? hcclSend(buffer, kBytes, hcclUint8, 1, group.handle, stream)
                              : hcclRecv(buffer, kBytes, hcclUint8, 0, group.handle, stream));
    };
    if (group.rank == 1) std::this_thread::sleep_for(kPause);
    exchange(first.data());
    for (std::size_t message = 0; message < kEntries; ++message) exchange(memory.pointer());
    exchange(last.data());
    succeed(synStreamSynchronize(stream));
    require(first == pattern(kBytes, 2) && last == pattern(kBytes, 4), "wrong data");
  }
}

}  // namespace
}  // namespace hccl::test
