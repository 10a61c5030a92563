// SPDX-License-Identifier: Apache-2.0
// Cuts a stream into protected records. A record consists of a header with the number of bytes, the
// bytes, and a tag that authenticates both.
#pragma once

#include "base/fields.h"
#include "crypto/record_cipher.h"
#include "transport/connection_attempt.h"

#include <cstddef>
#include <memory>
#include <span>

namespace hccl::tcp {

// Thread safety: one thread at a time. No member blocks.
class RecordLayer {
 public:
  // The maximum number of bytes in a record. Each end buffers a whole record, and records of this
  // size stay in the second-level cache.
  static constexpr std::size_t kMostBytes = std::size_t{64} << 10;

  RecordLayer(Protection protection, const transport::StreamKeys& keys);

  // The maximum number of parts that one call of seal() reads.
  static constexpr std::size_t kMostParts = 16;

  // Seals a prefix of the parts, at most kMostParts and kMostBytes, as the next record, and returns
  // its size. Call it only if outgoing() is empty.
  [[nodiscard]] std::size_t seal(crypto::RecordCipher::Parts parts);
  // Returns the sealed bytes that were not sent yet.
  [[nodiscard]] std::span<const std::byte> outgoing() const {
    return {outgoing_.get() + out_begin_, out_end_ - out_begin_};
  }
  void note_sent(std::size_t count) { out_begin_ += count; }

  // Returns memory for bytes that arrive. After reading into it, call note_arrived().
  [[nodiscard]] std::span<std::byte> room();
  void note_arrived(std::size_t count) { in_end_ += count; }

  enum class Taken { nothing, moved, forged };

  // Moves bytes of records that have arrived to the destination, and sets `moved` to their number.
  // Returns `forged` from the first record on that has an impossible length or does not
  // authenticate; the bytes of earlier records are moved even then.
  [[nodiscard]] Taken take(std::span<std::byte> destination, std::size_t& moved);

 private:
  [[nodiscard]] std::size_t take_opened(std::span<std::byte> destination);

  static constexpr std::size_t kHeaderSize = 4;
  static constexpr std::size_t kMostRecord =
      kHeaderSize + kMostBytes + crypto::RecordCipher::kTagSize;
  static constexpr std::size_t kInCapacity = 4 * kMostRecord;

  crypto::RecordCipher sealing_;
  crypto::RecordCipher opening_;
  std::unique_ptr<std::byte[]> outgoing_;
  std::size_t out_begin_ = 0;
  std::size_t out_end_ = 0;
  std::unique_ptr<std::byte[]> arrived_;
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  bool forged_ = false;
  Bytes opened_;  // the bytes of a record that was larger than its destination
  std::size_t opened_begin_ = 0;
};

}  // namespace hccl::tcp
