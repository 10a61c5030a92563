// SPDX-License-Identifier: Apache-2.0
// Which user has bound the name of an abstract unix socket: the kernel knows, whether that user
// listens there or not.
#pragma once

#include <optional>
#include <string_view>

#include <sys/types.h>

namespace hccl {

// `name` is without its leading zero byte. Nothing if no socket of this network namespace has the
// name, or if the kernel does not tell (before Linux 5.3, or without unix_diag).
[[nodiscard]] std::optional<uid_t> user_of_abstract_socket(std::string_view name) noexcept;

}  // namespace hccl
