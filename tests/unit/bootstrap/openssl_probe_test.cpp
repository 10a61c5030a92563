// SPDX-License-Identifier: Apache-2.0
// Probes the port where ranks meet with `openssl s_client`, as a scanner of TLS servers would.
#include "base/text.h"
#include "bootstrap/root_server.h"
#include "bootstrap/server_registry.h"
#include "bootstrap/shared_secret.h"
#include "hex.h"
#include "joining_ranks.h"

#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace hccl::bootstrap::test {
namespace {

struct Finished {
  int status = -1;
  std::string output;
};

// Runs a command of the shell and returns its exit status and its output.
Finished run(const std::string& command) {
  Finished result;
  FILE* const pipe = popen(text("{ ", command, "; } </dev/null 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

class OpensslProbe : public testing::Test {
 protected:
  void SetUp() override {
    if (run("openssl version").status != 0) GTEST_SKIP() << "needs openssl: apt install openssl";
  }
  // Connects with these options of `openssl s_client`.
  [[nodiscard]] Finished connect(const std::string& options) const {
    return run(text("timeout 20 openssl s_client -connect ", id_.addresses.front().to_text(), ' ',
                    options));
  }
  [[nodiscard]] static std::string key_options(const std::string& key,
                                               const char* identity = "hccl") {
    return text(" -psk_identity ", identity, " -psk ", key);
  }
  [[nodiscard]] std::string key() const { return hccl::test::hex(JoinKey(id_).session_key()); }

  const UniqueId id_ = decode(create_unique_id());
};

TEST_F(OpensslProbe, WithKeyGetsSessionWithoutCertificate) {
  const Finished probe = connect(text("-tls1_3", key_options(key())));
  EXPECT_NE(probe.output.find("Reused, TLSv1.3, Cipher is TLS_"), std::string::npos)
      << probe.output;
  EXPECT_NE(probe.output.find("no peer certificate available"), std::string::npos) << probe.output;
  EXPECT_EQ(probe.output.find("New Session Ticket"), std::string::npos)
      << "a ticket would allow a session without the pre-shared key: " << probe.output;
}

TEST_F(OpensslProbe, IsRefusedOtherwise) {
  const std::string right = key();
  std::string wrong = right;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  for (const std::string& options : {
           std::string("-tls1_3"),
           text("-tls1_3", key_options(wrong)),
           text("-tls1_3", key_options(right, "Client_identity")),
           text("-tls1_3 -ciphersuites TLS_AES_256_GCM_SHA384", key_options(right)),
           text("-tls1_3 -groups ffdhe2048", key_options(right)),
           text("-tls1_2 -cipher PSK@SECLEVEL=0", key_options(right)),
           text("-tls1_1 -cipher ALL@SECLEVEL=0", key_options(right)),
           text("-tls1 -cipher ALL@SECLEVEL=0", key_options(right)),
       }) {
    const Finished probe = connect(options);
    EXPECT_NE(probe.status, 0) << options << '\n' << probe.output;
    EXPECT_NE(probe.output.find("CONNECTED"), std::string::npos) << options << '\n' << probe.output;
    EXPECT_NE(probe.output.find("Cipher is (NONE)"), std::string::npos) << options << '\n'
                                                                        << probe.output;
    EXPECT_EQ(probe.output.find("BEGIN CERTIFICATE"), std::string::npos) << options;
  }
}

TEST_F(OpensslProbe, DisturbsNoRank) {
  for (const char* const options : {"-tls1_3", "-tls1_2"}) static_cast<void>(connect(options));
  expect_all_joined(join_as_threads(encode(id_), 2));
}

}  // namespace
}  // namespace hccl::bootstrap::test
