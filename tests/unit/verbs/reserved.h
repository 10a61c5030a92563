// SPDX-License-Identifier: Apache-2.0
// Addresses without memory behind them, which is all that registering needs here.
#pragma once

#include <cstddef>
#include <span>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace hccl::verbs::test {

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
