// SPDX-License-Identifier: Apache-2.0
// Fuzzes the values of all the library's environment variables. An input is "NAME=value".
#include "base/config.h"
#include "base/device_list.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/variables.h"
#include "fuzz.h"

#include <algorithm>
#include <cstdlib>

namespace {

using namespace hccl;

void expect_sane(const Config& config) {
  constexpr std::chrono::hours kMost{24 * 366 * 40};
  for (const auto limit : {config.init_timeout, config.operation_timeout, config.hang_report}) {
    fuzz::check(limit.count() >= 0 && limit < kMost, "a time is within bounds");
  }
  fuzz::check(config.device_count >= 1 && config.device_count <= 64, "the device count is valid");
  fuzz::check(config.log_level >= LogLevel::trace && config.log_level <= LogLevel::off, "a level");
  const int gid_index = config.ib_gid_index.value_or(0);
  fuzz::check(gid_index >= 0 && gid_index <= 255, "the GID index is valid");
  fuzz::check(parse_device_list(config.ib_devices).has_value(), "the list of devices is valid");
  fuzz::check(config.device_memory <= std::uint64_t{16} << 40, "the memory is within bounds");
  fuzz::check(config.comm_id.empty() || parse_host_and_port(config.comm_id), "comm_id is valid");
}

// Checks that the error about a refused value begins with the variable's name and is a short text
// without control characters.
void expect_clear(const Error& error, const std::string& name) {
  const std::string_view message = error.what();
  fuzz::check(error.code() == hcclInvalidArgument, "a bad value is an invalid argument");
  fuzz::check(message.starts_with(name), "the variable is named");
  fuzz::check(message.size() < 500, "the text is short");
  fuzz::check(std::ranges::none_of(message, [](unsigned char c) { return c < 0x20 || c == 0x7f; }),
              "the text has no control characters");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string assignment(data, std::find(data, data + size, 0));
  const std::size_t equals = std::min(assignment.find('='), assignment.size());
  std::string name = assignment.substr(0, equals);
  std::string value = assignment.substr(std::min(equals + 1, assignment.size()));
  const std::span<const Variable> all = variables();
  if (std::ranges::find(all, name, &Variable::name) == all.end()) {
    // An unknown variable would test nothing, so set a known variable to the value or, if that is
    // empty, to the whole input.
    name = all[assignment.size() % all.size()].name;
    if (value.empty()) value = assignment;
  }
  for (const Variable& other : all) unsetenv(other.name);
  setenv(name.c_str(), value.c_str(), 1);
  try {
    expect_sane(parse_environment());
    fuzz::accepted = true;
  } catch (const Error& error) {
    expect_clear(error, name);
  }
  unsetenv(name.c_str());
  return 0;
}
