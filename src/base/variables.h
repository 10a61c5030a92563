// SPDX-License-Identifier: Apache-2.0
// The environment variables that the library reads, as the rows of a table.
#pragma once

#include "base/config.h"

#include <optional>
#include <span>
#include <string>

namespace hccl {

struct Reader {
  // Stores the value in its member of the configuration. Returns false if the value is not valid.
  bool (*read)(Config&, const std::string&);
  const char* accepted;  // completes "...: set it to"
};

struct Variable {
  const char* name;
  const char* unset;  // synConfigurationGet's result while the variable is not set
  Reader reader;
};

// Returns all variables in the order in which they are read; each overrides the ones before it.
[[nodiscard]] std::span<const Variable> variables();

// Returns the value of a configuration key that has not been set, or nothing for an unknown key.
[[nodiscard]] std::optional<std::string> unset_value(const std::string& key);

// Returns whether the library or another program known to it reads the variable.
[[nodiscard]] bool is_known_variable(const std::string& name);

}  // namespace hccl
