// SPDX-License-Identifier: Apache-2.0
// Ranks join over the server's unix socket if they are on its host, and over TCP otherwise.
#include "base/abstract_socket.h"
#include "bootstrap/rendezvous_client.h"
#include "bootstrap/root_server.h"
#include "bootstrap/root_socket.h"
#include "bootstrap/server_registry.h"
#include "connections.h"
#include "processes.h"
#include "ranks.h"

#include <algorithm>
#include <array>
#include <functional>
#include <future>

#include <sched.h>
#include <sys/resource.h>

namespace hccl::bootstrap::test {
namespace {

// Joins as one of two ranks. Returns whether the rank joined over an unencrypted unix socket.
bool joins_over_unix_socket(const UniqueId& id, int rank) {
  RendezvousClient client(id, JoinKey(id), hello_of(rank, 2), Deadline::after(kPatience));
  client.join([] { return std::string(); });
  static_cast<void>(client.wait_for_table());
  static_cast<void>(client.finish({}));
  return client.release().connection.tls == nullptr;
}

FileDescriptor connect_to_name(const std::string& name) {
  FileDescriptor result(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect_to_abstract(result, name), 0);
  return result;
}

TEST(LocalJoin, UsesUnixSocketOfTheSameAddress) {
  SKIP_WITHOUT_PEER_PIDFDS();
  const UniqueId id = decode(create_unique_id());
  auto other = std::async(std::launch::async, [&] { return joins_over_unix_socket(id, 1); });
  EXPECT_TRUE(joins_over_unix_socket(id, 0));
  EXPECT_TRUE(other.get());
}

// A process that knows the address, and not the id's secret, does not find the socket. If it reads
// the name from the kernel's list, the server still asks for the digest of the secret.
TEST(LocalJoin, NeedsTheSecret) {
  SKIP_WITHOUT_PEER_PIDFDS();
  const UniqueId id = decode(create_unique_id());
  UniqueId guessed = id;
  guessed.secret = random_secret();
  EXPECT_FALSE(connect_to_local_server(guessed).valid());
  FarEnd intruder(connect_to_name(root_socket_name(id)));
  Hello hello = hello_of(1, 2);
  hello.secret_check = JoinKey(guessed).check();
  intruder->send(FrameType::hello, serialize(hello));
  const auto frame = intruder.read_until(FrameType::refusal);
  ASSERT_TRUE(frame);
  EXPECT_EQ(parse<Refusal>(frame->payload), (Refusal{Refusal::other_secret}));
  auto other = std::async(std::launch::async, [&] { return joins_over_unix_socket(id, 1); });
  EXPECT_TRUE(joins_over_unix_socket(id, 0));
  EXPECT_TRUE(other.get());
}

// A child that was forked while the server listened must not accept connections in its place.
TEST(LocalJoin, NoProcessKeepsTheSocketListening) {
  SKIP_WITHOUT_PEER_PIDFDS();
  const UniqueId id{.secret = random_secret(), .addresses = {Address{.port = 1}}};
  FileDescriptor listener = listen_for_local_ranks(id);
  const FileDescriptor copy(dup(listener.get()));
  class Nobody final : public PendingConnections::Owner {
    void on_accepted(FileDescriptor, const SocketAddress&) override {}
    void on_pending_frame(PendingConnections::Pending&, Frame&) override {}
    bool on_no_room(int) override { return false; }
  } nobody;
  EventLoop loop;
  loop.open();
  PendingConnections pending(loop, std::move(listener), {}, nobody);
  EXPECT_TRUE(connect_to_local_server(id).valid());
  pending.close_listener();
  const FileDescriptor late(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect_to_abstract(late, root_socket_name(id)), ECONNREFUSED);
}

// Tests with processes of several users, and with HCCL_COMM_ID, whose socket has a known name.
class LocalJoinWithCommId : public testing::Test {
 protected:
  [[nodiscard]] std::map<std::string, std::string> environment(const char* secret = "") const {
    return {{"HCCL_COMM_ID", text("127.0.0.1:", port_)}, {"HCCL_SECRET", secret}};
  }
  [[nodiscard]] UniqueId id() const {
    UniqueId fixed;
    fixed.kind = UniqueId::Kind::fixed_address;
    fixed.addresses = {Address{.bytes = {127, 0, 0, 1}, .port = static_cast<uint16_t>(port_)}};
    return fixed;
  }
  // Starts a rank, which reports how its join has ended.
  void join(int rank, const std::map<std::string, std::string>& variables) {
    processes_.start(rank, variables, [rank](Report& report) {
      const Ending ending = try_join(resolve_unique_id(hcclUniqueId{}), 2, rank);
      write_report(report, ending.code, ending.text);
    });
  }
  void expect_joined() {
    for (const int rank : {0, 1}) processes_.expect_reported(rank, hcclSuccess, "");
  }

  Processes processes_;

 private:
  const int port_ = free_port();
};

TEST_F(LocalJoinWithCommId, DifferentSecretIsNamed) {
  join(0, environment("one secret of at least 16 bytes"));
  join(1, environment("another secret of at least 16 bytes"));
  processes_.expect_reported(1, hcclInvalidArgument, "has a different HCCL_SECRET than rank 1");
  join(1, environment("one secret of at least 16 bytes"));
  expect_joined();
}

// Others may have read the id on its way to the ranks.
TEST_F(LocalJoinWithCommId, IdAloneDoesNotSufficeIfThereIsASecret) {
  const auto join_with_id = [&](int rank, const char* secret) {
    processes_.start(rank, {{"HCCL_SECRET", secret}}, [&, rank](Report& report) {
      if (rank == 0) {
        processes_.board().id = create_unique_id();
        processes_.board().has_id = true;
      }
      wait_until([&] { return processes_.board().has_id.load(); });
      const Ending ending = try_join(processes_.board().id, 2, rank);
      write_report(report, ending.code, ending.text);
    });
  };
  join_with_id(0, "known to the ranks alone");
  join_with_id(1, "");
  processes_.expect_reported(1, hcclInvalidArgument, "set the same HCCL_SECRET on every rank");
  join_with_id(1, "known to the ranks alone");
  expect_joined();
}

// Creates an id, and leaves its server few free descriptors.
void serve_with_few_descriptors(Processes& processes) {
  processes.board().id = create_unique_id();
  const int lowest_free = dup(STDIN_FILENO);
  close(lowest_free);
  const auto limit = static_cast<rlim_t>(lowest_free) + 5;
  const rlimit few{limit, limit};
  setrlimit(RLIMIT_NOFILE, &few);
  processes.board().has_id = true;
  pause();
}

TEST_F(LocalJoinWithCommId, SilentTcpPeersKeepNoLocalRankOut) {
  SKIP_WITHOUT_PEER_PIDFDS();
  if (hccl::test::sanitized()) GTEST_SKIP() << "needs another build: without sanitizers";
  Board& board = processes_.board();
  testing::internal::CaptureStderr();
  processes_.start(2, {}, [this](Report&) { serve_with_few_descriptors(processes_); });
  ASSERT_TRUE(wait_until([&] { return board.has_id.load(); }));
  const FileDescriptor early(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ASSERT_EQ(connect_to_abstract(early, root_socket_name(decode(board.id))), 0);
  const Address server = decode(board.id).addresses.front();
  std::array<FileDescriptor, 16> silent;
  std::ranges::generate(silent, [&] { return connect_to(server); });
  for (const int rank : {0, 1}) {
    processes_.start(rank, {}, [&, rank](Report& report) {
      const Ending ending = try_join(board.id, 2, rank);
      write_report(report, ending.code, ending.text);
    });
  }
  expect_joined();
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_EQ(printed.find("cannot accept connections"), std::string::npos) << printed;
  char byte = 0;
  EXPECT_EQ(recv(early.get(), &byte, 1, 0), -1) << "a local peer is dropped before those over TCP";
}

TEST_F(LocalJoinWithCommId, NameTakenByOtherUserIsAvoided) {
  SKIP_WITHOUT_PEER_PIDFDS();
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  processes_.start(2, {}, [this](Report& report) {
    become_another_user();
    const FileDescriptor squatter = listen_for_local_ranks(id());
    report.stage = squatter.valid() ? 1 : 2;
    pause();
  });
  ASSERT_TRUE(wait_until([&] { return processes_.report(2).stage != 0; }));
  ASSERT_EQ(processes_.report(2).stage, 1);
  join(0, environment());
  join(1, environment());
  expect_joined();
}

// Becomes an intruder, who connects to the server's unix socket with a valid hello. Reports whether
// the server welcomes the intruder.
void intrude(const UniqueId& id, Report& report, const std::function<bool()>& become_intruder) {
  if (!become_intruder()) return write_report(report, 1, "cannot become an intruder");
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::string name = root_socket_name(id);
  if (!wait_until([&] { return connect_to_abstract(socket, name) == 0; }))
    return write_report(report, 1, "cannot connect");
  FarEnd intruder(std::move(socket));
  Hello hello = hello_of(1, 2);
  hello.secret_check = JoinKey(id).check();
  intruder->send(FrameType::hello, serialize(hello));
  const bool is_welcome = intruder.read_until(FrameType::welcome).has_value();
  write_report(report, is_welcome ? 2 : 0, is_welcome ? "was welcomed" : "");
}

TEST_F(LocalJoinWithCommId, OtherUserIsRefused) {
  SKIP_WITHOUT_PEER_PIDFDS();
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  join(0, environment());
  processes_.start(2, environment(), [this](Report& report) {
    intrude(id(), report, [] {
      become_another_user();
      return true;
    });
  });
  processes_.expect_reported(2, 0, "");
  join(1, environment());
  expect_joined();
}

// Containers may share a network namespace. In another user namespace, every user may be root.
TEST_F(LocalJoinWithCommId, OtherContainerIsRefused) {
  SKIP_WITHOUT_PEER_PIDFDS();
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "needs another build: with one thread per process, which unshare() requires";
#endif
  join(0, environment());
  processes_.start(2, environment(), [this](Report& report) {
    intrude(id(), report, [] { return unshare(CLONE_NEWUSER) == 0; });
  });
  processes_.expect_reported(2, 0, "");
  join(1, environment());
  expect_joined();
}

}  // namespace
}  // namespace hccl::bootstrap::test
