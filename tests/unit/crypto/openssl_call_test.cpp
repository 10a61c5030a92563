// SPDX-License-Identifier: Apache-2.0
// Tests the use of OpenSSL while a process exits.
#include "crypto/openssl_call.h"

#include "base/peer_process.h"
#include "base/process.h"
#include "crypto/tls_session.h"

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl::crypto {
namespace {

const Bytes kSomeKey(32, std::byte{7});

// Waits for the child, and kills it after ten seconds. Returns its wait status.
int status_of(pid_t child) {
  const FileDescriptor process = open_process(child);
  pollfd wanted{process.get(), POLLIN, 0};
  if (poll(&wanted, 1, 10'000) != 1) kill(child, SIGKILL);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(OpensslCall, ForkedChildExitsAlthoughParentHoldsOne) {
  install_fork_guard();
  const OpensslCall call;
  const pid_t child = fork();
  if (child == 0) std::exit(0);
  EXPECT_EQ(status_of(child), 0);
}

// The static object is constructed before the first use of OpenSSL by the library, and therefore
// destroyed after the library has ended its use. This holds only if no other test has run before in
// the same process.
struct UserAtExit {
  std::unique_ptr<TlsSession> session;
  ~UserAtExit() {
    Bytes plaintext;
    session->receive(Bytes(100, std::byte{22}), plaintext);
    session->send(kSomeKey);
    const bool is_silent = plaintext.empty() && session->take_output().empty();
    session.reset();
    _exit(is_silent ? 0 : 1);
  }
};

void use_at_exit(bool program_was_first) {
  if (program_was_first) OPENSSL_init_ssl(0, nullptr);
  static UserAtExit user;
  user.session = std::make_unique<TlsSession>(TlsRole::client, kSomeKey);
  std::exit(2);
}

TEST(OpensslCall, SessionsMayBeUsedWhileTheProcessExits) {
  for (const bool program_was_first : {false, true}) {
    const pid_t child = fork();
    if (child == 0) use_at_exit(program_was_first);
    EXPECT_EQ(status_of(child), 0) << program_was_first;
  }
}

}  // namespace
}  // namespace hccl::crypto
