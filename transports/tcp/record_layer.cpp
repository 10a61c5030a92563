// SPDX-License-Identifier: Apache-2.0
#include "tcp/record_layer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace hccl::tcp {
namespace {

using crypto::RecordCipher;

void store(std::uint32_t value, std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
}

}  // namespace

RecordLayer::RecordLayer(Protection protection, const transport::StreamKeys& keys)
    : sealing_(crypto::CipherUse::sealing, protection, keys.sending),
      opening_(crypto::CipherUse::opening, protection, keys.receiving),
      outgoing_(new std::byte[kMostRecord]),
      arrived_(new std::byte[kInCapacity]) {}

std::size_t RecordLayer::seal(RecordCipher::Parts parts) {
  std::array<std::span<const std::byte>, kMostParts> taken;
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (const auto& part : parts.first(std::min(parts.size(), kMostParts))) {
    taken[count] = part.first(std::min(part.size(), kMostBytes - bytes));
    bytes += taken[count++].size();
  }
  if (bytes == 0) return 0;
  const std::span<std::byte> record(outgoing_.get(), kHeaderSize + bytes + RecordCipher::kTagSize);
  store(static_cast<std::uint32_t>(bytes), record);
  sealing_.seal(record.first(kHeaderSize), std::span(taken).first(count),
                record.subspan(kHeaderSize));
  out_begin_ = 0;
  out_end_ = record.size();
  return bytes;
}

std::span<std::byte> RecordLayer::room() {
  if (in_begin_ == in_end_) {
    in_begin_ = in_end_ = 0;
  } else if (kInCapacity - in_begin_ < kMostRecord) {
    std::memmove(arrived_.get(), arrived_.get() + in_begin_, in_end_ - in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  return {arrived_.get() + in_end_, kInCapacity - in_end_};
}

RecordLayer::Taken RecordLayer::take(std::span<std::byte> destination, std::size_t& moved) {
  moved = take_opened(destination);
  if (forged_) return Taken::forged;
  while (moved < destination.size()) {
    const std::span<const std::byte> rest(arrived_.get() + in_begin_, in_end_ - in_begin_);
    if (rest.size() < kHeaderSize) break;
    const std::size_t bytes = WireReader(rest.first(kHeaderSize)).u32();
    forged_ = bytes == 0 || bytes > kMostBytes;
    if (forged_) return Taken::forged;
    const std::size_t size = kHeaderSize + bytes + RecordCipher::kTagSize;
    if (rest.size() < size) break;
    const auto body = rest.subspan(kHeaderSize, bytes + RecordCipher::kTagSize);
    const bool fits = bytes <= destination.size() - moved;
    if (!fits) {
      opened_.resize(bytes);
      opened_begin_ = bytes;  // nothing is to be taken before the record has authenticated
    }
    const std::span<std::byte> plaintext = fits ? destination.subspan(moved, bytes) : opened_;
    forged_ = !opening_.open(rest.first(kHeaderSize), body, plaintext);
    if (forged_) {
      opened_.clear();
      opened_begin_ = 0;
      return Taken::forged;
    }
    if (!fits) opened_begin_ = 0;
    in_begin_ += size;
    moved += fits ? bytes : take_opened(destination.subspan(moved));
  }
  return moved > 0 ? Taken::moved : Taken::nothing;
}

std::size_t RecordLayer::take_opened(std::span<std::byte> destination) {
  const std::size_t count = std::min(opened_.size() - opened_begin_, destination.size());
  std::copy_n(opened_.begin() + static_cast<std::ptrdiff_t>(opened_begin_), count,
              destination.begin());
  opened_begin_ += count;
  return count;
}

}  // namespace hccl::tcp
