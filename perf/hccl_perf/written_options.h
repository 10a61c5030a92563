// SPDX-License-Identifier: Apache-2.0
// The command line's options as CLI11 parses them. Options whose meaning depends on other options
// are first stored in Written as the user gave them.
#pragma once

#include "options.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace hccl_perf {

struct Written {
  std::string collective;
  std::string root = "0";
  bool min_given = false;
  bool max_given = false;
  bool step_given = false;
  int averaging = 1;
  int blocking = 0;
  int parallel_init = 0;
  int latency = 0;
  std::uint64_t repeats = 0;  // 0 if not given
  std::string timeout = "0";
  // Options of hccl_demo:
  std::string test;
  std::uint64_t size = 0;
  std::vector<std::string> size_range;
  int size_range_increment = 1;  // in powers of two
  bool no_correctness = false;
  std::string measure;
  int ranks = 0;
  int node = 0;
  int ranks_per_node = 0;
};

// Adds the options of nccl-tests, and the additional options of hccl-perf.
void add_options(CLI::App& app, Options& options, Written& written);

// Adds the supported options that only hccl_demo has. add_options() adds hccl_demo's other options,
// as aliases of other options.
void add_demo_options(CLI::App& app, Written& written);

// Throws a UsageError that names an alternative if `words` contain an unsupported hccl_demo option.
void refuse_demo_options(const std::vector<std::string>& words);

// Converts hccl_demo's options to those of hccl-perf. Throws UsageError if that is impossible.
void apply_demo_options(const CLI::App& app, Options& options, Written& written);

// Returns CLI11's range check without the text that CLI11 adds to the help. Unlike that check, the
// result also rejects NaN.
template <class Number>
CLI::Validator range(Number least, Number most) {
  const CLI::Range within(least, most);
  const auto check = [within](std::string& written) {
    if constexpr (std::is_floating_point_v<Number>) {
      Number value{};
      if (CLI::detail::lexical_cast(written, value) && std::isnan(value))
        return written + " is not a number";
    }
    return within(written);
  };
  return {check, ""};
}

// Adds an option whose value is a number in a closed range.
template <class Number>
CLI::Option* add_number(CLI::App& app, const char* names, Number& value,
                        std::type_identity_t<std::pair<Number, Number>> within,
                        const char* description, const char* type = "N") {
  return app.add_option(names, value, description)
      ->type_name(type)
      ->check(range(within.first, within.second));
}

// Adds an option whose value is a size such as 64M.
CLI::Option* add_size(CLI::App& app, const std::string& names, std::uint64_t& value,
                      const std::string& description);

}  // namespace hccl_perf
