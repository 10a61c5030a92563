// SPDX-License-Identifier: Apache-2.0
#include "crypto/tls_context.h"

#include "crypto/openssl_call.h"

#include <memory>

#include <openssl/ssl.h>

namespace hccl::crypto {
namespace {

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;

// A pre-shared key belongs to one hash function, so every cipher must use SHA-256.
constexpr const char* kCiphers = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
// The key exchanges. Others that OpenSSL offers cost a server up to a tenth of a second for each
// client that has not proved anything.
constexpr const char* kGroups = "X25519:P-256";

Context make_context() {
  Context context(SSL_CTX_new(TLS_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context.get(), kCiphers) != 1 ||
      SSL_CTX_set1_groups_list(context.get(), kGroups) != 1 ||
      SSL_CTX_set_num_tickets(context.get(), 0) != 1) {
    OpensslCall::throw_latest("cannot use TLS 1.3");
  }
  // The communicator's secret travels in a session.
  SSL_CTX_set_options(context.get(), SSL_OP_CLEANSE_PLAINTEXT);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  // OpenSSL's configuration file may have allowed a handshake without key exchange.
  SSL_CTX_clear_options(context.get(), SSL_OP_ENABLE_MIDDLEBOX_COMPAT | SSL_OP_ALLOW_NO_DHE_KEX);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  return context;
}

}  // namespace

SSL_CTX* tls_context() {
  // Never freed, because other threads may still use it when the process exits.
  static SSL_CTX* const context = make_context().release();
  return context;
}

}  // namespace hccl::crypto
