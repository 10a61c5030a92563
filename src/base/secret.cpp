// SPDX-License-Identifier: Apache-2.0
// Gets secrets from getrandom(2), which needs no descriptor.
#include "base/secret.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/text.h"

#include <cerrno>

#include <sys/random.h>

namespace hccl {

void fill_random(std::span<std::byte> bytes) {
  ssize_t count = 0;
  do {
    count = getrandom(bytes.data(), bytes.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count != static_cast<ssize_t>(bytes.size())) {
    throw Error(hcclSystemError, text("cannot get random bytes from the kernel (getrandom): ",
                                      system_error_text(errno), "; ",
                                      advice_on(errno, "report this as a bug in hccl")));
  }
}

Secret random_secret() {
  Secret secret{};
  fill_random(secret);
  return secret;
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return false;
  std::byte difference{0};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

}  // namespace hccl
