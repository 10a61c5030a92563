// SPDX-License-Identifier: Apache-2.0
// Size units, helpers that make GIDs and interfaces, and address ranges without memory.
#pragma once

#include "base/interfaces.h"
#include "verbs/gid.h"
#include "verbs/registration_cache.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace hccl::verbs {

constexpr std::size_t kKiB = 1024;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGranule = RegistrationCache::kGranuleBytes;
constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

}  // namespace hccl::verbs

namespace hccl::verbs::test {

inline GidBytes v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
}

// Returns the IPv6 address with these first two bytes and this last byte. All other bytes are 0.
inline GidBytes v6(std::uint8_t first, std::uint8_t second, std::uint8_t last) {
  GidBytes bytes{first, second};
  bytes[15] = last;
  return bytes;
}

inline Interface interface_of(const std::string& name, const GidBytes& address,
                              bool loopback = false) {
  return {.name = name, .address = address_of(address), .loopback = loopback};
}

// An address range without memory. Fake registrations do not access memory.
class Reserved {
 public:
  explicit Reserved(std::size_t bytes) : bytes_(bytes) {
    void* const got =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(got, MAP_FAILED);
    data_ = static_cast<std::byte*>(got);
  }
  ~Reserved() { munmap(data_, bytes_); }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;

  [[nodiscard]] std::byte* at(std::size_t offset) const { return data_ + offset; }
  [[nodiscard]] std::span<std::byte> part(std::size_t offset, std::size_t bytes) const {
    return {data_ + offset, bytes};
  }

 private:
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace hccl::verbs::test
