// SPDX-License-Identifier: Apache-2.0
// Texts of system errors.
#include "base/text.h"

#include <system_error>

namespace hccl {

std::string system_error_text(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace hccl
