// SPDX-License-Identifier: Apache-2.0
// Outsiders connect to the Unix socket of a node's leader, as the same user or as a different user.
// The exchange must continue regardless of the bytes that an outsider sends, and the leader must
// close an outsider's descriptors.
#include "base/passed_descriptors.h"
#include "base/secret.h"
#include "bootstrap/join.h"
#include "bootstrap/node_exchange.h"
#include "bootstrap/node_socket.h"
#include "bootstrap/server_registry.h"
#include "bootstrap/shared_secret.h"
#include "children.h"
#include "connections.h"
#include "loopback_test.h"
#include "processes.h"

#include <future>

#include <sys/wait.h>

namespace hccl::bootstrap::test {
namespace {

constexpr uid_t kNobody = 65534;

// Sends the bytes and `count` descriptors in one message.
void send_with_descriptors(const FileDescriptor& socket, std::span<const std::byte> bytes,
                           std::size_t count) {
  const FileDescriptor memory = memory_with(1);
  const std::vector<int> all(count, memory.get());
  std::vector<std::byte> control(CMSG_SPACE(count * sizeof(int)));
  std::vector<std::byte> payload(bytes.begin(), bytes.end());
  iovec part{payload.data(), payload.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  attach_descriptors(message, control, all);
  EXPECT_EQ(sendmsg(socket.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(payload.size()));
}

// Two ranks on one node. start() joins both, and runs the exchange of rank 0, the leader. finish()
// runs the exchange of rank 1.
class UnauthenticatedOnNode : public ServerTest {
 protected:
  UnauthenticatedOnNode() {
    leader_ = hello_of(0, 2);
    member_ = hello_of(1, 2);
    leader_listener_ = listen_on_node(leader_.node_socket);
    member_listener_ = listen_on_node(member_.node_socket);
  }
  // Joins both ranks.
  void join_both() {
    const auto join = [this](const Hello& own) {
      auto client = std::make_unique<RendezvousClient>(server(), JoinKey(server()), own,
                                                       Deadline::after(kPatience));
      client->join([] { return std::string(); });
      return client;
    };
    leader_client_ = join(leader_);
    member_client_ = join(member_);
    table_ = leader_client_->wait_for_table();
    EXPECT_EQ(member_client_->wait_for_table().secret, table_.secret);
  }
  void start(Deadline::Duration limit = std::chrono::hours(1)) {
    join_both();
    leading_ = std::async(std::launch::async, [this, limit] {
      NodeExchange exchange(*leader_client_, table_, 0, std::move(leader_listener_), limit);
      return exchange.run(contribution_of(0), [](int) { return memory_with(-2); });
    });
  }

  // Runs the exchange of rank 1.
  RankTable follow() {
    NodeExchange exchange(*member_client_, table_, 1, std::move(member_listener_));
    return exchange.run(contribution_of(1), [](int) { return FileDescriptor(); });
  }
  void finish() {
    EXPECT_EQ(table_error(follow(), 2, 1), "");
    EXPECT_EQ(table_error(leading_.get(), 2, 0), "");
  }

  void close_leader_socket() { leader_listener_.reset(); }
  [[nodiscard]] FileDescriptor connect_to_leader() const {
    return connect_to_node(leader_.node_socket);
  }
  // Returns an encoded contribution of rank `rank` that announces `announced` descriptors.
  [[nodiscard]] Bytes contribution(std::size_t announced, bool has_memory = true,
                                   int rank = 1) const {
    return encode_frame(FrameType::contribution,
                        serialize(ContributionMessage{table_.secret, rank, has_memory, {}}),
                        announced);
  }
  [[nodiscard]] const Hello& leader() const { return leader_; }
  [[nodiscard]] const SecretBytes& secret() const { return table_.secret; }

 private:
  Hello leader_;
  Hello member_;
  FileDescriptor leader_listener_;
  FileDescriptor member_listener_;
  std::unique_ptr<RendezvousClient> leader_client_;
  std::unique_ptr<RendezvousClient> member_client_;
  Table table_;
  std::future<RankTable> leading_;
};

// After the leader has exited, another process, perhaps in another container, could take the name
// of its socket.
TEST_F(UnauthenticatedOnNode, LeaderNameTakenByOtherProcessIsRefused) {
  join_both();
  close_leader_socket();
  Processes processes;
  processes.start(0, {}, [this](Report& report) {
    const FileDescriptor impostor = listen_on_node(leader().node_socket);
    report.stage = impostor.valid() ? 1 : 2;
    pause();
  });
  ASSERT_TRUE(wait_until([&] { return processes.report(0).stage == 1; }));
  try {
    static_cast<void>(follow());
    ADD_FAILURE() << "rank 1 gave the impostor its memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), hcclSocketError);
    const std::string taken = text(" belongs to another process ", processes.pid(0), ";");
    EXPECT_NE(std::string(error.what()).find(taken), std::string::npos) << error.what();
  }
}

TEST_F(UnauthenticatedOnNode, MalformedContributionIsCutOff) {
  start();
  const Bytes truncated_blob = encode_frame(FrameType::contribution, Bytes(20));
  const ContributionMessage other_secret{SecretBytes(kSecretSize), 1, false, {}};
  Bytes huge = encode_frame(FrameType::contribution, {});
  huge[10] = std::byte{0x20};  // a payload of 2 MiB
  for (const Bytes& payload :
       {Bytes(500, std::byte{0xAB}), encode_frame(FrameType::go, {}), truncated_blob, huge,
        encode_frame(FrameType::contribution, serialize(other_secret)), contribution(0, false, 2),
        contribution(0, false, kMostRanks - 1), contribution(0, false, -1),
        contribution(0, false, 0)}) {
    const FileDescriptor socket = connect_to_leader();
    send_all(socket, payload);
    EXPECT_TRUE(is_cut_off(socket));
  }
  finish();
}

TEST_F(UnauthenticatedOnNode, UnexpectedDescriptorsAreClosed) {
  start();
  {
    const FileDescriptor first = connect_to_leader();
    send_all(first, Bytes(20));
    EXPECT_TRUE(is_cut_off(first));  // by now the leader has opened all descriptors that it needs
  }
  const std::ptrdiff_t before = open_descriptors();
  struct Case {
    Bytes payload;
    std::size_t sent;
  };
  for (const auto& [payload, sent] :
       {Case{contribution(1), 4}, Case{contribution(1), 200}, Case{contribution(2), 1},
        Case{contribution(4), 4}, Case{contribution(2, false), 2}, Case{contribution(5), 5},
        Case{Bytes(1), 253}, Case{Bytes(2000, std::byte{1}), 100}}) {
    const FileDescriptor socket = connect_to_leader();
    send_with_descriptors(socket, payload, sent);
    EXPECT_TRUE(is_cut_off(socket)) << sent;
  }
  // Each of the first three bytes comes with a descriptor.
  const FileDescriptor socket = connect_to_leader();
  const Bytes valid = contribution(1);
  send_with_descriptors(socket, std::span(valid).first(1), 1);
  send_with_descriptors(socket, std::span(valid).subspan(1, 1), 1);
  send_with_descriptors(socket, std::span(valid).subspan(2, 1), 1);
  EXPECT_TRUE(is_cut_off(socket));
  const FileDescriptor without = connect_to_leader();
  send_all(without, valid);
  EXPECT_TRUE(is_cut_off(without));
  // The leader may still be closing descriptors.
  const Deadline deadline = Deadline::after(kPatience);
  while (open_descriptors() - 2 != before && !deadline.expired()) std::this_thread::yield();
  EXPECT_EQ(open_descriptors() - 2, before);
  finish();
}

TEST_F(UnauthenticatedOnNode, SilentPeerIsCutOffAndDelaysNobody) {
  start(std::chrono::milliseconds(50));
  const FileDescriptor silent = connect_to_leader();
  const FileDescriptor halfway = connect_to_leader();
  const Bytes valid = contribution(0);
  send_all(halfway, std::span(valid).first(20));
  EXPECT_TRUE(is_cut_off(silent));
  EXPECT_TRUE(is_cut_off(halfway));
  finish();
}

TEST_F(UnauthenticatedOnNode, ManySilentPeersDelayNobody) {
  std::vector<FileDescriptor> silent;
  silent.reserve(300);
  for (int i = 0; i < 300; ++i) silent.push_back(connect_to_leader());
  start();
  finish();
}

TEST_F(UnauthenticatedOnNode, PeerOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  start();
  // The message is a valid contribution of rank 1, so that only the user is wrong.
  const Bytes valid =
      encode_frame(FrameType::contribution, serialize(ContributionMessage{secret(), 1, false, {}}));
  const int status = hccl::test::status_in_child([&] {
    if (setresuid(kNobody, kNobody, kNobody) != 0) return false;
    const FileDescriptor socket = connect_to_leader();
    static_cast<void>(send(socket.get(), valid.data(), valid.size(), MSG_NOSIGNAL));
    return is_cut_off(socket);
  });
  EXPECT_EQ(status, 0);
  finish();
}

TEST_F(UnauthenticatedOnNode, NameInUseCannotBeTaken) {
  EXPECT_THROW(static_cast<void>(listen_on_node(leader().node_socket)), Error);
}

}  // namespace
}  // namespace hccl::bootstrap::test
