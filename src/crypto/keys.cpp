// SPDX-License-Identifier: Apache-2.0
#include "crypto/keys.h"

#include "crypto/openssl_call.h"

#include <array>
#include <memory>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

namespace hccl::crypto {
namespace {

// The cost is twice that of the scrypt paper's parameters for interactive use, so a guess takes
// 32 MiB. kScryptMemory is only OpenSSL's limit.
constexpr std::uint64_t kScryptCost = 1 << 15;
constexpr std::uint64_t kScryptBlock = 8;
constexpr std::uint64_t kScryptLanes = 1;
constexpr std::uint64_t kScryptMemory = std::uint64_t{64} << 20;

struct FreeKdf {
  void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

unsigned char* chars_of(SecretBytes& bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

// OpenSSL takes pointers to non-constant memory, and only reads it.
OSSL_PARAM octets(const char* name, std::span<const std::byte> bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<std::byte*>(bytes.data()),
                                           bytes.size());
}

}  // namespace

SecretBytes derive_key(std::span<const std::byte> secret, std::string_view purpose) {
  const OpensslCall call;
  call.require();
  const std::unique_ptr<EVP_KDF, FreeKdf> hkdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const std::unique_ptr<EVP_KDF_CTX, FreeKdf> context(hkdf ? EVP_KDF_CTX_new(hkdf.get()) : nullptr);
  std::array<char, 7> hash{"SHA256"};
  const std::array<OSSL_PARAM, 4> parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, hash.data(), 0),
      octets(OSSL_KDF_PARAM_KEY, secret),
      octets(OSSL_KDF_PARAM_INFO, std::as_bytes(std::span(purpose))), OSSL_PARAM_construct_end()};
  SecretBytes key(kKeySize);
  if (!context ||
      EVP_KDF_derive(context.get(), chars_of(key), key.size(), parameters.data()) != 1) {
    OpensslCall::throw_latest("cannot derive a key with HKDF");
  }
  return key;
}

SecretBytes stretch_key(std::span<const std::byte> secret, std::string_view purpose) {
  const OpensslCall call;
  call.require();
  SecretBytes key(kKeySize);
  const auto salt = std::as_bytes(std::span(purpose));
  if (EVP_PBE_scrypt(reinterpret_cast<const char*>(secret.data()), secret.size(), octets_of(salt),
                     salt.size(), kScryptCost, kScryptBlock, kScryptLanes, kScryptMemory,
                     chars_of(key), key.size()) != 1) {
    OpensslCall::throw_latest("cannot derive a key with scrypt");
  }
  return key;
}

}  // namespace hccl::crypto
