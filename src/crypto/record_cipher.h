// SPDX-License-Identifier: Apache-2.0
// Protects the records of one direction of a stream with AES-128-GCM. A record authenticates only
// with the same key, at the same place in the stream, and unchanged.
#pragma once

#include "base/fields.h"
#include "base/protection.h"
#include "base/secret_bytes.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace hccl::crypto {

// Returns whether the processor has the instructions with which AES-128-GCM is fast.
[[nodiscard]] bool has_aes_instructions() noexcept;

enum class CipherUse : std::uint8_t { sealing, opening };

// Either seals all records of a direction, or opens them, in the same order. Derives a new key
// after kRecordsPerKey records, because GCM protects only a limited amount of data with one key.
// Thread safety: one thread at a time. Members throw Error(hcclSystemError) if OpenSSL's
// configuration forbids AES-128-GCM, Error(hcclInvalidUsage) while the process exits, or
// std::bad_alloc.
class RecordCipher {
 public:
  static constexpr std::size_t kTagSize = 16;
  static constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 22;
  using Parts = std::span<const std::span<const std::byte>>;

  // `key` has kKeySize bytes. `protection` is not `off`.
  RecordCipher(CipherUse use, Protection protection, std::span<const std::byte> key);
  ~RecordCipher();
  RecordCipher(const RecordCipher&) = delete;
  RecordCipher& operator=(const RecordCipher&) = delete;

  // Writes the protected bytes of all parts to `body`, followed by the tag. Also authenticates the
  // header, which it does not write. The body has as many bytes as the parts together, and the tag.
  void seal(std::span<const std::byte> header, Parts parts, std::span<std::byte> body);
  // Writes the bytes of a record to `plaintext`, which has the size of the body without its tag.
  // Returns false if the record does not authenticate; `plaintext` then contains zeros.
  [[nodiscard]] bool open(std::span<const std::byte> header, std::span<const std::byte> body,
                          std::span<std::byte> plaintext);

 private:
  struct Context;

  void change_key_if_due();
  // Call the following only while an OpensslCall exists.
  void begin_record(std::span<const std::byte> header);
  void use_key();

  std::unique_ptr<Context> context_;
  CipherUse use_;
  Protection protection_;
  SecretBytes key_;
  std::uint64_t record_ = 0;
};

}  // namespace hccl::crypto
