// SPDX-License-Identifier: Apache-2.0
// Tests the derivation of keys against vectors that Python's hashlib and hmac modules computed.
#include "crypto/keys.h"

#include "hex.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace hccl::crypto {
namespace {

using hccl::test::bytes_of;
using hccl::test::hex;

// prk = hmac(salt of 32 zeros, secret); key = hmac(prk, purpose + b"\1")
TEST(Keys, AreDerivedByHkdf) {
  EXPECT_EQ(hex(derive_key(bytes_of("a secret of sufficient length"), "purpose")),
            "ad8f1e0047263b32c4d1b650fdb93f1490529ea9d550bd877c8c64e9b9ff37e2");
}

// hashlib.scrypt(b"guess", salt=b"purpose", n=1 << 15, r=8, p=1, maxmem=1 << 26, dklen=32)
TEST(Keys, AreStretchedByScrypt) {
  EXPECT_EQ(hex(stretch_key(bytes_of("guess"), "purpose")),
            "e9d181fad119b035e5feaa70e6b4ea7f1a091f08dc942af389fbccaa410a5ec8");
}

TEST(Keys, DependOnSecretAndPurpose) {
  const SecretBytes key = derive_key(bytes_of("one"), "purpose");
  EXPECT_EQ(key.size(), kKeySize);
  EXPECT_NE(key, derive_key(bytes_of("two"), "purpose"));
  EXPECT_NE(key, derive_key(bytes_of("one"), "other"));
}

}  // namespace
}  // namespace hccl::crypto
