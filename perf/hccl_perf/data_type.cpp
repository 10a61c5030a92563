// SPDX-License-Identifier: Apache-2.0
// Parses the names of data types and reductions.
#include "data_type.h"

#include "text.h"

#include <algorithm>

namespace hccl_perf {
namespace {

struct Synonym {
  const char* name;
  const char* ours;
};

// Other common names of the types, for example those of NumPy and PyTorch.
constexpr Synonym kTypeSynonyms[] = {
    {"i8", "int8"},        {"char", "int8"},    {"u8", "uint8"},   {"byte", "uint8"},
    {"i32", "int32"},      {"int", "int32"},    {"u32", "uint32"}, {"i64", "int64"},
    {"u64", "uint64"},     {"float16", "half"}, {"fp16", "half"},  {"f16", "half"},
    {"float32", "float"},  {"fp32", "float"},   {"f32", "float"},  {"single", "float"},
    {"float64", "double"}, {"fp64", "double"},  {"f64", "double"}, {"bf16", "bfloat16"},
};

template <class Table>
auto parse_names(const Table& table, const std::string& name, const char* what,
                 const char* also = "") {
  std::vector<typename Table::value_type> chosen;
  std::string accepted;
  for (const auto& entry : table) {
    if (name == entry.name || name == "all") chosen.push_back(entry);
    accepted += text(entry.name, ", ");
  }
  if (chosen.empty()) {
    throw UsageError(
        text("'", name, "' is not a ", what, " of hccl-perf; use ", accepted, "or all", also));
  }
  return chosen;
}

}  // namespace

std::string accepted_data_types() {
  std::string names;
  for (const DataType& type : kDataTypes) names += text(names.empty() ? "" : ", ", type.name);
  return names;
}

std::vector<DataType> parse_data_types(const std::string& name) {
  for (const Synonym& synonym : kTypeSynonyms) {
    if (name == synonym.name) return parse_names(kDataTypes, synonym.ours, "data type");
  }
  return parse_names(kDataTypes, name, "data type");
}

std::vector<Reduction> parse_reductions(const std::string& name) {
  const auto named = [&](const Reduction& reduction) { return name == reduction.name; };
  if (const auto found = std::ranges::find_if(kBitReductions, named); found != kBitReductions.end())
    return {*found};
  return parse_names(kReductions, name, "reduction", ", or for integers bitand, bitor or bitxor");
}

void check_types(const std::vector<Reduction>& reductions, const std::vector<DataType>& types) {
  for (const Reduction& reduction : reductions) {
    if (reduction.code < hcclEmulationBitAnd) continue;
    for (const DataType& type : types) {
      if (type.code > hcclUint64)
        throw UsageError(text("-o ", reduction.name, " reduces integers only, not ", type.name,
                              "; choose an integer type, such as -d uint8"));
    }
  }
}

}  // namespace hccl_perf
