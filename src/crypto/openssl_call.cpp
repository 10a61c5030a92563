// SPDX-License-Identifier: Apache-2.0
// OpenSSL frees its memory in a handler that runs at exit. If the program has initialised OpenSSL,
// this cannot be prevented, so a handler of this file, which runs earlier, ends all use by the
// library. The control thread may otherwise still use a session at that time.
#include "crypto/openssl_call.h"

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"

#include <cstdlib>
#include <mutex>
#include <new>

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace hccl::crypto {
namespace {

struct OpensslUse {
  std::shared_mutex mutex;  // held shared by every OpensslCall
  bool is_possible = true;
};

// Never freed, because threads use it until the process has ended.
OpensslUse& openssl_use() {
  static auto* const all = new OpensslUse;
  return *all;
}

void end_openssl_use() {
  // A forked child inherits the mutex, but not the threads that hold it.
  if (is_forked_child()) return;
  const std::unique_lock lock(openssl_use().mutex);
  openssl_use().is_possible = false;
}

void initialise() {
  // If the library is the first to use OpenSSL, OpenSSL installs no handler at all.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  std::atexit(end_openssl_use);
}

}  // namespace

OpensslCall::OpensslCall() : lock_(openssl_use().mutex), is_possible_(openssl_use().is_possible) {
  static std::once_flag is_initialised;
  if (!is_possible_) return;
  std::call_once(is_initialised, initialise);
  ERR_clear_error();
}

OpensslCall::~OpensslCall() {
  if (is_possible_) ERR_clear_error();
}

void OpensslCall::require() const {
  if (!is_possible_) {
    throw Error(hcclInvalidUsage,
                "the process is exiting, and can no longer use OpenSSL; destroy communicators "
                "before main() returns");
  }
}

int OpensslCall::latest_reason() noexcept { return ERR_GET_REASON(ERR_peek_last_error()); }

std::string OpensslCall::latest_text() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "unknown error" : reason;
}

void OpensslCall::throw_latest(const std::string& what) {
  if (latest_reason() == ERR_R_MALLOC_FAILURE) throw std::bad_alloc();
  throw Error(hcclSystemError, text(what, " (OpenSSL: ", latest_text(),
                                    "); check OpenSSL's configuration file (openssl.cnf)"));
}

}  // namespace hccl::crypto
