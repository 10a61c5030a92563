// SPDX-License-Identifier: Apache-2.0
// Drives OpenSSL through two memory buffers (BIO), one for each direction.
#include "crypto/tls_session.h"

#include "base/error.h"
#include "base/scope_exit.h"
#include "crypto/openssl_call.h"
#include "crypto/tls_context.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace hccl::crypto {
namespace {

// The public name of the key. The key itself decides, so all sessions use the same name.
constexpr std::string_view kIdentity = "hccl";
constexpr std::size_t kMostPlaintext = SSL3_RT_MAX_PLAIN_LENGTH;  // in a record

// Turns a new session into the form in which OpenSSL takes a pre-shared key of TLS 1.3.
void set_key(SSL_SESSION* session, SSL* ssl, std::span<const std::byte> key) {
  constexpr std::array<unsigned char, 2> kAes128GcmSha256{0x13, 0x01};
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256.data());
  if (session == nullptr || cipher == nullptr ||
      SSL_SESSION_set1_master_key(session, octets_of(key), key.size()) != 1 ||
      SSL_SESSION_set_cipher(session, cipher) != 1 ||
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
    OpensslCall::throw_latest("cannot use a pre-shared key with TLS 1.3");
  }
}

SSL_SESSION* key_of(SSL* ssl) {
  auto* const session = static_cast<SSL_SESSION*>(SSL_get_app_data(ssl));
  return session != nullptr && SSL_SESSION_up_ref(session) == 1 ? session : nullptr;
}

int offer_key(SSL* ssl, const EVP_MD* /*hash*/, const unsigned char** identity, std::size_t* length,
              SSL_SESSION** session) {
  *identity = octets_of(std::as_bytes(std::span(kIdentity)));
  *length = kIdentity.size();
  *session = key_of(ssl);
  return *session == nullptr ? 0 : 1;
}

int find_key(SSL* ssl, const unsigned char* identity, std::size_t length, SSL_SESSION** session) {
  const bool is_ours =
      std::ranges::equal(std::span(identity, length), std::as_bytes(std::span(kIdentity)),
                         [](unsigned char a, std::byte b) { return std::byte(a) == b; });
  *session = is_ours ? key_of(ssl) : nullptr;
  return 1;
}

// Returns the state of a session that has failed for this reason during the handshake. An alert
// means that the peer gives the reason.
TlsState state_for(int reason) {
  switch (reason) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
    case SSL_R_BAD_EXTENSION:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
      return TlsState::other_key;
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
    case SSL_R_DIGEST_CHECK_FAILED:
    case SSL_R_SSLV3_ALERT_BAD_RECORD_MAC:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return TlsState::altered;
    default:
      return TlsState::not_tls;
  }
}

}  // namespace

struct TlsSession::Buffers {
  struct Free {
    void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  std::unique_ptr<SSL_SESSION, Free> key;
  std::unique_ptr<SSL, Free> ssl;
  BIO* arrived = nullptr;    // owned by ssl
  BIO* departing = nullptr;  // owned by ssl
};

TlsSession::TlsSession(TlsRole role, std::span<const std::byte> key) {
  const OpensslCall call;
  call.require();
  ScopeExit unless_made([this] { openssl_.reset(); });  // while `call` exists
  openssl_ = std::make_unique<Buffers>();
  openssl_->ssl.reset(SSL_new(tls_context()));
  SSL* const ssl = openssl_->ssl.get();
  if (ssl == nullptr) throw std::bad_alloc();
  openssl_->arrived = BIO_new(BIO_s_mem());
  openssl_->departing = BIO_new(BIO_s_mem());
  if (openssl_->arrived == nullptr || openssl_->departing == nullptr) {
    BIO_free(openssl_->arrived);
    BIO_free(openssl_->departing);
    throw std::bad_alloc();
  }
  SSL_set_bio(ssl, openssl_->arrived, openssl_->departing);
  openssl_->key.reset(SSL_SESSION_new());
  set_key(openssl_->key.get(), ssl, key);
  SSL_set_app_data(ssl, openssl_->key.get());
  if (role == TlsRole::client) {
    // The client trusts no certificate: a server must prove that it knows the key.
    SSL_set_verify(ssl, SSL_VERIFY_PEER, nullptr);
    SSL_set_psk_use_session_callback(ssl, offer_key);
    SSL_set_connect_state(ssl);
  } else {
    SSL_set_psk_find_session_callback(ssl, find_key);
    SSL_set_accept_state(ssl);
  }
  if (role == TlsRole::client) advance_handshake();
  if (has_ended()) OpensslCall::throw_latest("cannot begin a TLS 1.3 session");
  unless_made.dismiss();
}

TlsSession::~TlsSession() {
  if (!openssl_) return;
  const OpensslCall call;
  if (!call.is_possible()) static_cast<void>(openssl_.release());  // the process ends soon
  openssl_.reset();
}

void TlsSession::receive(std::span<const std::byte> encrypted, Bytes& plaintext) {
  const OpensslCall call;
  if (!call.is_possible() || has_ended()) return;
  const bool was_established = phase_ == TlsState::established;
  std::size_t taken = 0;
  if (!encrypted.empty() &&
      BIO_write_ex(openssl_->arrived, encrypted.data(), encrypted.size(), &taken) != 1) {
    throw std::bad_alloc();
  }
  if (phase_ == TlsState::handshake) advance_handshake();
  if (phase_ == TlsState::established) read_records(plaintext);
  // After the handshake, OpenSSL produces output by itself only to answer a KeyUpdate request. The
  // library sends none, and a peer could fill the memory with the answers.
  if (was_established && phase_ == TlsState::established &&
      BIO_ctrl_pending(openssl_->departing) > 0) {
    phase_ = TlsState::failed;
    why_ = "the peer requested a key update (KeyUpdate)";
  }
}

void TlsSession::send(std::span<const std::byte> plaintext) {
  const OpensslCall call;
  if (!call.is_possible() || has_ended() || plaintext.empty()) return;
  if (phase_ == TlsState::handshake) {
    kept_.insert(kept_.end(), plaintext.begin(), plaintext.end());
    return;
  }
  encrypt(plaintext);
}

void TlsSession::encrypt(std::span<const std::byte> plaintext) {
  std::size_t written = 0;
  const int result =
      SSL_write_ex(openssl_->ssl.get(), plaintext.data(), plaintext.size(), &written);
  if (result != 1) note_failure(result);
}

Bytes TlsSession::take_output() {
  const OpensslCall call;
  if (!call.is_possible()) return {};
  Bytes output(BIO_ctrl_pending(openssl_->departing));
  std::size_t count = 0;
  if (!output.empty()) BIO_read_ex(openssl_->departing, output.data(), output.size(), &count);
  output.resize(count);
  return output;
}

void TlsSession::advance_handshake() {
  SSL* const ssl = openssl_->ssl.get();
  const int result = SSL_do_handshake(ssl);
  if (result != 1) return note_failure(result);
  if (SSL_session_reused(ssl) != 1) {
    phase_ = TlsState::other_key;
    why_ = "the peer offered no pre-shared key";
    return;
  }
  phase_ = TlsState::established;
  if (kept_.empty()) return;
  encrypt(kept_);
  kept_ = Bytes();  // frees the memory, unlike an assignment of {}
}

void TlsSession::read_records(Bytes& plaintext) {
  while (true) {
    const std::size_t before = plaintext.size();
    plaintext.resize(before + kMostPlaintext);
    std::size_t count = 0;
    const int result =
        SSL_read_ex(openssl_->ssl.get(), plaintext.data() + before, kMostPlaintext, &count);
    plaintext.resize(before + (result == 1 ? count : 0));
    if (result != 1) return note_failure(result);
  }
}

// Classifies the failure of an OpenSSL call. An incomplete record does not count as a failure.
void TlsSession::note_failure(int result) {
  const int error = SSL_get_error(openssl_->ssl.get(), result);
  if (error == SSL_ERROR_WANT_READ) return;
  why_ = OpensslCall::latest_text();
  if (error == SSL_ERROR_ZERO_RETURN) {
    phase_ = TlsState::closed;
    return;
  }
  const int reason = OpensslCall::latest_reason();
  if (reason == ERR_R_MALLOC_FAILURE) throw std::bad_alloc();
  if (phase_ == TlsState::handshake) {
    phase_ = state_for(reason);
  } else {
    // An alert has authenticated, unlike bytes that OpenSSL does not accept as a record.
    const bool is_alert = reason >= SSL_AD_REASON_OFFSET;
    phase_ = is_alert && reason != SSL_R_SSLV3_ALERT_BAD_RECORD_MAC ? TlsState::failed
                                                                    : TlsState::altered;
  }
}

SecretBytes TlsSession::export_key(std::string_view label, std::size_t bytes) const {
  const OpensslCall call;
  call.require();
  SecretBytes key(bytes);
  if (SSL_export_keying_material(openssl_->ssl.get(), reinterpret_cast<unsigned char*>(key.data()),
                                 key.size(), label.data(), label.size(), nullptr, 0, 0) != 1) {
    OpensslCall::throw_latest("cannot derive a key from a TLS session");
  }
  return key;
}

bool may_become_tls_record(std::span<const std::byte> bytes) {
  constexpr std::byte kFirstType{SSL3_RT_CHANGE_CIPHER_SPEC};
  constexpr std::byte kLastType{SSL3_RT_APPLICATION_DATA};
  constexpr std::byte kMajorVersion{SSL3_VERSION_MAJOR};
  if (!bytes.empty() && (bytes[0] < kFirstType || bytes[0] > kLastType)) return false;
  return bytes.size() < 2 || bytes[1] == kMajorVersion;
}

}  // namespace hccl::crypto
