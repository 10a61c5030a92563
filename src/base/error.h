// SPDX-License-Identifier: Apache-2.0
// The library's exception: a public result code and a text that names the cause.
#pragma once

#include <hccl_types.h>

#include <stdexcept>
#include <string>

namespace hccl {

// The exception of the C API and of all code below it. A guard in the C API converts the exception
// to its result code. The text names the cause and, where this helps, the rank, the peer, the host
// and a remedy.
class Error : public std::runtime_error {
 public:
  Error(hcclResult_t code, const std::string& message) : std::runtime_error(message), code_(code) {}

  [[nodiscard]] hcclResult_t code() const noexcept { return code_; }

 private:
  hcclResult_t code_;
};

}  // namespace hccl
