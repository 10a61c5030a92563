// SPDX-License-Identifier: Apache-2.0
// The environment variables that the library reads, as a table.
#pragma once

#include "base/config.h"

#include <optional>
#include <span>
#include <string>

namespace hccl {

struct Reader {
  // Stores the value in the configuration. Returns false if the value is not valid.
  bool (*read)(Config&, const std::string&);
  const char* accepted;  // the accepted values; follows "set it to" in the error text
};

struct Variable {
  const char* name;
  const char* unset;  // the value that synConfigurationGet reports if the variable is not set
  Reader reader;
};

// Returns all variables, in the order in which they are read. A later variable overrides an earlier
// one that sets the same member of Config.
[[nodiscard]] std::span<const Variable> variables();

// Returns the value of a configuration key that is not set, or nothing for an unknown key.
[[nodiscard]] std::optional<std::string> unset_value(const std::string& key);

// Returns whether the name belongs to a variable of the library, or of other software that uses
// HCCL_* names.
[[nodiscard]] bool is_known_variable(const std::string& name);

}  // namespace hccl
