// SPDX-License-Identifier: Apache-2.0
// Another user of the machine knows the port in HCCL_COMM_ID, and runs a server there or joins
// through it. With and without a secret, the other ranks must refuse that user, and the error must
// name the user.
#include "base/secret.h"
#include "bootstrap/pending_connections.h"
#include "bootstrap/rendezvous_client.h"
#include "bootstrap/root_server.h"
#include "bootstrap/server_registry.h"
#include "bootstrap/shared_secret.h"
#include "joining_ranks.h"
#include "processes.h"

namespace hccl::bootstrap::test {
namespace {

// The parameter is the value of HCCL_SECRET. The other user knows it.
class OtherUser : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
  }

  [[nodiscard]] std::map<std::string, std::string> environment() const {
    return {{"HCCL_COMM_ID", text("127.0.0.1:", port_)}, {"HCCL_SECRET", GetParam()}};
  }
  [[nodiscard]] int port() const { return port_; }

  // Starts a server at `port`. The server accepts any user. If `bound`, its socket is bound to the
  // loopback interface.
  [[nodiscard]] static std::shared_ptr<RootServer> serve_any_user(int port, Report& report,
                                                                  bool bound = false) {
    UniqueId any_user;  // a server of this kind does not check the owners of its connections
    any_user.addresses = {Address{.bytes = {127, 0, 0, 1}, .port = static_cast<uint16_t>(port)}};
    FileDescriptor listener = listen_on(any_user.addresses[0]);
    if (!listener.valid()) _exit(1);
    if (bound && setsockopt(listener.get(), SOL_SOCKET, SO_BINDTODEVICE, "lo", 2) != 0) _exit(1);
    UniqueId fixed = any_user;
    fixed.kind = UniqueId::Kind::fixed_address;
    auto server = std::make_shared<RootServer>(any_user, std::move(listener), JoinKey(fixed));
    server->start();
    report.stage = 1;
    return server;
  }

  // Expects that a rank refuses the server of another user, who has set `other`, and names the
  // user.
  void expect_server_refused(const std::map<std::string, std::string>& other, bool bound = false) {
    Processes processes;
    processes.start(1, other, [&](Report& report) {
      become_another_user();
      const auto server = serve_any_user(port(), report, bound);
      static_cast<void>(try_join(resolve_unique_id(hcclUniqueId{}), 2, 1));
      server->stop();
    });
    ASSERT_TRUE(wait_until([&] { return processes.report(1).stage == 1; }));
    processes.start(0, environment(), [](Report& report) {
      const Ending ending = try_join(resolve_unique_id(hcclUniqueId{}), 2, 0);
      write_report(report, ending.code, ending.text);
    });
    ASSERT_TRUE(processes.finished(0));
    EXPECT_EQ(processes.report(0).code, hcclSocketError);
    EXPECT_EQ(processes.text(0), text("rank 0 runs as user 0, but the server at 127.0.0.1:", port(),
                                      " belongs to user 65534, who has taken port ", port(),
                                      "; choose another port in HCCL_COMM_ID"));
  }

 private:
  const int port_ = free_port();
};

INSTANTIATE_TEST_SUITE_P(Secret, OtherUser, testing::Values("", "known to the other user, too"),
                         [](const auto& secret) {
                           return std::string(*secret.param == '\0' ? "None" : "Known");
                         });

TEST_P(OtherUser, ServerOfOtherUserIsRefused) { expect_server_refused(environment()); }

// The kernel finds such a socket only if it is asked about the loopback interface.
TEST_P(OtherUser, ServerBoundToLoopbackIsRefused) { expect_server_refused(environment(), true); }

TEST_P(OtherUser, WhoHasTakenThePortIsNamedOnRank0) {
  Processes processes;
  processes.start(1, environment(), [&](Report& report) {
    become_another_user();
    const auto server = serve_any_user(port(), report);
    pause();
  });
  ASSERT_TRUE(wait_until([&] { return processes.report(1).stage == 1; }));
  processes.start(0, environment(), [](Report& report) {
    report_error(report, [] { static_cast<void>(create_unique_id()); });
  });
  processes.expect_reported(0, hcclSocketError,
                            text("a process of user 65534 listens on that port; choose a free ",
                                 "port, or end the other process"));
}

// The other user has taken the port for a job of their own.
TEST_P(OtherUser, ServerOfOtherUserWithAnotherSecretIsRefused) {
  auto other = environment();
  other["HCCL_SECRET"] = "a secret of the other user";
  expect_server_refused(other);
}

TEST_P(OtherUser, RankOfOtherUserIsRefusedAndJobContinues) {
  Processes processes;
  const auto join_as = [](int rank) {
    return [rank](Report& report) {
      if (rank == 0) report.stage = 1;
      const Ending ending = try_join(resolve_unique_id(hcclUniqueId{}), 2, rank);
      write_report(report, ending.code, ending.text);
    };
  };
  processes.start(0, environment(), join_as(0));
  // The other user's rank does not check the server's owner, because that check would fail, too.
  processes.start(2, environment(), [&](Report& report) {
    become_another_user();
    UniqueId id;
    id.addresses = {Address{.bytes = {127, 0, 0, 1}, .port = static_cast<uint16_t>(port())}};
    UniqueId fixed = id;
    fixed.kind = UniqueId::Kind::fixed_address;
    const Hello hello = hello_of(1, 2);
    RendezvousClient client(id, JoinKey(fixed), hello, Deadline::after(kPatience));
    report_error(report, [&] { client.join([] { return std::string(); }); });
  });
  processes.expect_reported(2, hcclInvalidArgument,
                            "rank 1 runs as user 65534, but the server at ");
  processes.start(1, environment(), join_as(1));
  for (const int rank : {0, 1}) processes.expect_reported(rank, hcclSuccess, "");
}

}  // namespace
}  // namespace hccl::bootstrap::test
