// SPDX-License-Identifier: Apache-2.0
// The one exception of the library: a public result code and a text that names the culprit.
#pragma once

#include <hccl_types.h>

#include <stdexcept>
#include <string>

namespace hccl {

// Thrown anywhere below the C API, where a guard turns it into its code. The text names rank, peer
// and host where there are any, and one thing to do.
class Error : public std::runtime_error {
 public:
  Error(hcclResult_t code, const std::string& message) : std::runtime_error(message), code_(code) {}

  [[nodiscard]] hcclResult_t code() const noexcept { return code_; }

 private:
  hcclResult_t code_;
};

}  // namespace hccl
