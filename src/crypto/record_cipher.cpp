// SPDX-License-Identifier: Apache-2.0
#include "crypto/record_cipher.h"

#include "base/scope_exit.h"
#include "crypto/keys.h"
#include "crypto/openssl_call.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace hccl::crypto {
namespace {

constexpr std::size_t kNonceSize = 12;

[[noreturn]] void fail() { OpensslCall::throw_latest("cannot use AES-128-GCM"); }

}  // namespace

bool has_aes_instructions() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes") != 0 && __builtin_cpu_supports("pclmul") != 0;
#elif defined(__aarch64__)
  constexpr unsigned long kBoth = HWCAP_AES | HWCAP_PMULL;
  return (getauxval(AT_HWCAP) & kBoth) == kBoth;
#else
  return false;
#endif
}

struct RecordCipher::Context {
  EVP_CIPHER_CTX* evp = EVP_CIPHER_CTX_new();

  Context() {
    if (evp == nullptr) fail();
  }
  ~Context() { EVP_CIPHER_CTX_free(evp); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Passes bytes to the cipher. `to`: null for bytes that are only authenticated.
  void update(std::span<const std::byte> bytes, std::byte* to) const {
    int written = 0;
    if (EVP_CipherUpdate(evp, reinterpret_cast<unsigned char*>(to), &written, octets_of(bytes),
                         static_cast<int>(bytes.size())) != 1) {
      fail();
    }
  }
};

RecordCipher::RecordCipher(CipherUse use, Protection protection, std::span<const std::byte> key)
    : use_(use), protection_(protection), key_(key.begin(), key.end()) {
  const OpensslCall call;
  call.require();
  ScopeExit unless_usable([this] { context_.reset(); });  // while `call` exists
  context_ = std::make_unique<Context>();
  use_key();
  unless_usable.dismiss();
}

RecordCipher::~RecordCipher() {
  if (!context_) return;
  const OpensslCall call;
  if (!call.is_possible()) static_cast<void>(context_.release());  // the process ends soon
  context_.reset();
}

void RecordCipher::use_key() {
  if (EVP_CipherInit_ex2(context_->evp, EVP_aes_128_gcm(),
                         octets_of(std::span(std::as_const(key_))), nullptr,
                         use_ == CipherUse::sealing ? 1 : 0, nullptr) != 1) {
    fail();
  }
}

void RecordCipher::change_key_if_due() {
  if (record_ == 0 || record_ % kRecordsPerKey != 0) return;
  key_ = derive_key(key_, "hccl-next-key");
  const OpensslCall call;
  call.require();
  use_key();
}

void RecordCipher::begin_record(std::span<const std::byte> header) {
  std::array<unsigned char, kNonceSize> nonce{};
  const std::uint64_t number = record_++ % kRecordsPerKey;
  for (std::size_t i = 0; i < sizeof(number); ++i)
    nonce[i] = static_cast<unsigned char>(number >> (8 * i));
  if (EVP_CipherInit_ex2(context_->evp, nullptr, nullptr, nonce.data(), -1, nullptr) != 1) fail();
  context_->update(header, nullptr);
}

void RecordCipher::seal(std::span<const std::byte> header, Parts parts, std::span<std::byte> body) {
  change_key_if_due();
  const OpensslCall call;
  call.require();
  begin_record(header);
  std::byte* to = body.data();
  for (const std::span<const std::byte> part : parts) {
    if (part.empty()) continue;
    if (protection_ == Protection::integrity) {
      context_->update(part, nullptr);
      std::memcpy(to, part.data(), part.size());
    } else {
      context_->update(part, to);
    }
    to += part.size();
  }
  int written = 0;
  if (EVP_CipherFinal_ex(context_->evp, reinterpret_cast<unsigned char*>(to), &written) != 1 ||
      EVP_CIPHER_CTX_ctrl(context_->evp, EVP_CTRL_AEAD_GET_TAG, kTagSize, to) != 1) {
    fail();
  }
}

bool RecordCipher::open(std::span<const std::byte> header, std::span<const std::byte> body,
                        std::span<std::byte> plaintext) {
  change_key_if_due();
  const OpensslCall call;
  call.require();
  begin_record(header);
  const auto bytes = body.first(plaintext.size());
  const auto tag = body.subspan(plaintext.size());
  if (protection_ == Protection::integrity) {
    context_->update(bytes, nullptr);
  } else if (!bytes.empty()) {
    context_->update(bytes, plaintext.data());
  }
  // OpenSSL does not write to the tag.
  if (EVP_CIPHER_CTX_ctrl(context_->evp, EVP_CTRL_AEAD_SET_TAG, kTagSize,
                          const_cast<std::byte*>(tag.data())) != 1) {
    fail();
  }
  int written = 0;
  unsigned char rest = 0;
  if (EVP_CipherFinal_ex(context_->evp, &rest, &written) != 1) {
    std::ranges::fill(plaintext, std::byte{0});
    return false;
  }
  if (protection_ == Protection::integrity && !bytes.empty())
    std::memcpy(plaintext.data(), bytes.data(), bytes.size());
  return true;
}

}  // namespace hccl::crypto
