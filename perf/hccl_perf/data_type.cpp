// SPDX-License-Identifier: Apache-2.0
// Names of data types and reductions.
#include "data_type.h"

#include "text.h"

namespace hccl_perf {
namespace {

template <class Table>
auto parse_names(const Table& table, const std::string& name, const char* what) {
  std::vector<typename Table::value_type> chosen;
  std::string accepted;
  for (const auto& entry : table) {
    if (name == entry.name || name == "all") chosen.push_back(entry);
    accepted += text(entry.name, ", ");
  }
  if (chosen.empty()) {
    throw UsageError(
        text("'", name, "' is not a ", what, " of hccl-perf; use ", accepted, "or all"));
  }
  return chosen;
}

}  // namespace

std::vector<DataType> parse_data_types(const std::string& name) {
  return parse_names(kDataTypes, name, "data type");
}

std::vector<Reduction> parse_reductions(const std::string& name) {
  return parse_names(kReductions, name, "reduction");
}

}  // namespace hccl_perf
