// SPDX-License-Identifier: Apache-2.0
// Probes the port where ranks meet.
#include "bootstrap/root_server.h"
#include "bootstrap/server_registry.h"
#include "bootstrap/shared_secret.h"
#include "hex.h"
#include "joining_ranks.h"
#include "openssl_client.h"

#include <optional>

#include <gtest/gtest.h>

namespace hccl::bootstrap::test {
namespace {

class OpensslProbe : public testing::Test {
 protected:
  void SetUp() override {
    if (!hccl::test::OpensslClient::is_installed())
      GTEST_SKIP() << "needs openssl: apt install openssl";
  }
  [[nodiscard]] const hccl::test::OpensslClient& client() const { return client_; }
  void expect_ranks_join() const { expect_all_joined(join_as_threads(encode(id_), 2)); }

 private:
  const UniqueId id_ = decode(create_unique_id());
  const hccl::test::OpensslClient client_{id_.addresses.front().to_text(),
                                          hccl::test::hex(JoinKey(id_).session_key())};
};

TEST_F(OpensslProbe, WithKeyGetsSessionWithoutCertificate) {
  EXPECT_EQ(client().problem_with_key(), "");
}

TEST_F(OpensslProbe, IsRefusedOtherwise) { EXPECT_EQ(client().problem_otherwise(), ""); }

TEST_F(OpensslProbe, DisturbsNoRank) {
  for (const char* const options : {"-tls1_3", "-tls1_2"})
    static_cast<void>(client().connect(options));
  expect_ranks_join();
}

}  // namespace
}  // namespace hccl::bootstrap::test
