// SPDX-License-Identifier: Apache-2.0
// The error text of a thread's last call. The hccl functions have one slot and the syn functions
// another, so that clean-up calls of one API do not clear the text of the other. The slots are
// plain storage without constructor or destructor, so they work in static destructors and at exit.
#pragma once

#include <synapse_common_types.h>

#include <cstddef>

namespace hccl::api {

class LastError {
 public:
  // Enough for the text of a fault, which has at most 1024 bytes, and the prefix that syn functions
  // add.
  static constexpr std::size_t kCapacity = 1280;

  void clear() noexcept {
    status_ = synSuccess;
    text_[0] = '\0';
  }
  // Copies as much of `text` as fits.
  void set(synStatus status, const char* text) noexcept;
  void set_status(synStatus status) noexcept { status_ = status; }

  [[nodiscard]] synStatus status() const noexcept { return status_; }
  [[nodiscard]] const char* text() const noexcept { return text_; }

 private:
  synStatus status_ = synSuccess;  // of the last syn call; synSuccess in the slot of hccl functions
  char text_[kCapacity] = {};
};

extern constinit thread_local LastError last_hccl_error;
extern constinit thread_local LastError last_syn_error;

}  // namespace hccl::api
