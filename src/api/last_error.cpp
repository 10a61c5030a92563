// SPDX-License-Identifier: Apache-2.0
// Stores each thread's last errors.
#include "api/last_error.h"

#include "api/copy_text.h"

namespace hccl::api {

constinit thread_local LastError last_hccl_error;
constinit thread_local LastError last_syn_error;

void LastError::set(synStatus status, const char* text) noexcept {
  status_ = status;
  copy_text(text, text_, kCapacity);
}

}  // namespace hccl::api
