// SPDX-License-Identifier: Apache-2.0
// The table of environment variables, and the parsers of their values.
#include "base/variables.h"

#include "base/device_list.h"
#include "base/parse.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hccl {
namespace {

// ---- validators

std::optional<std::string> lower_case(const std::string& value) { return lower(value); }

bool is_any_text(const std::string& /*value*/) { return true; }

bool is_node_id(const std::string& value) { return value.size() <= 64 && printable(value); }

bool is_interface_list(const std::string& value) {
  constexpr std::size_t kLongestName = 15;
  for (std::size_t start = 0; start <= value.size();) {
    const std::size_t end = std::min(value.find(',', start), value.size());
    const std::string_view prefix = std::string_view(value).substr(start, end - start);
    if (prefix.empty() || prefix.size() > kLongestName || !printable(prefix)) return false;
    if (prefix.find_first_of(" /") != std::string_view::npos) return false;
    start = end + 1;
  }
  return true;
}

template <int Least, int Most>
std::optional<int> number_within(const std::string& value) {
  const auto number = parse_number(value);
  if (!number || *number > static_cast<std::uint64_t>(Most)) return std::nullopt;
  const auto result = static_cast<int>(*number);
  return result < Least ? std::nullopt : std::optional(result);
}

template <std::uint64_t kLeast>
std::optional<std::uint64_t> memory_size(const std::string& value) {
  constexpr std::uint64_t kMost = std::uint64_t{16} << 40;
  const auto bytes = parse_bytes(value);
  return bytes && *bytes >= kLeast && *bytes <= kMost ? bytes : std::nullopt;
}

std::optional<LogLevel> numbered_level(const std::string& value) {
  const auto level = number_within<0, 6>(value);
  return level ? std::optional(static_cast<LogLevel>(*level)) : std::nullopt;
}

template <class Value>
using Words = std::initializer_list<std::pair<std::string_view, Value>>;

template <class Value>
std::optional<Value> one_of(Words<Value> words, const std::string& value) {
  const std::string wanted = lower(value);
  for (const auto& [word, meaning] : words) {
    if (word == wanted) return meaning;
  }
  return std::nullopt;
}

std::optional<EmulatedDevice> device_type(const std::string& value) {
  return one_of<EmulatedDevice>(
      {{"gaudi2", EmulatedDevice::gaudi2}, {"gaudi3", EmulatedDevice::gaudi3}}, value);
}

std::optional<Protection> encryption(const std::string& value) {
  return one_of<Protection>(
      {{"off", Protection::off}, {"integrity", Protection::integrity}, {"full", Protection::full}},
      value);
}

// ---- readers

// Assigns the result of `Parse`.
template <auto Member, auto Parse>
bool assign(Config& config, const std::string& value) {
  const auto parsed = Parse(value);
  if (parsed) config.*Member = *parsed;
  return parsed.has_value();
}

// Assigns the text if `IsValid` accepts it.
template <auto Member, auto IsValid>
bool keep(Config& config, const std::string& value) {
  if (!IsValid(value)) return false;
  config.*Member = value;
  return true;
}

bool read_debug(Config& config, const std::string& value) {
  const auto level = one_of<LogLevel>({{"none", LogLevel::off},
                                       {"version", LogLevel::warning},
                                       {"warn", LogLevel::warning},
                                       {"info", LogLevel::info},
                                       {"debug", LogLevel::debug},
                                       {"trace", LogLevel::trace}},
                                      value);
  if (!level) return false;
  config.log_level = *level;
  config.log_version = *level != LogLevel::off;
  return true;
}

template <bool Config::*Member>
constexpr Reader flag() {
  return {assign<Member, parse_flag>, "0, 1, true or false"};
}

template <std::chrono::milliseconds Config::*Member>
constexpr Reader seconds() {
  return {assign<Member, parse_seconds>, "a number of seconds, e.g. 30 or 0.5 (0: never)"};
}

template <auto Member, auto IsValid = is_any_text>
constexpr Reader text_of(const char* accepted) {
  return {keep<Member, IsValid>, accepted};
}

// Accepts any name and converts it to lower case. The function that set_config_check() has set
// checks the name.
template <std::string Config::*Member>
constexpr Reader name(const char* accepted) {
  return {assign<Member, lower_case>, accepted};
}

constexpr Reader kLogLevel{assign<&Config::log_level, numbered_level>,
                           "a level from 0 (trace) to 6 (off)"};

// ---- tables

// The variables, in the order in which they are read. Each row overrides the rows above it that set
// the same member.
constexpr std::array kVariables{
    Variable{"HCCL_COMM_ID", "",
             text_of<&Config::comm_id, parse_host_and_port>(
                 "host:port, e.g. 127.0.0.1:5555, [::1]:5555 or localhost:5555")},
    Variable{"HCCL_SOCKET_IFNAME", "",
             text_of<&Config::socket_interfaces, is_interface_list>(
                 "prefixes of interface names, comma separated, e.g. eth,ib0")},
    Variable{"HCCL_IB_HCA", "",
             text_of<&Config::ib_devices, parse_device_list>(
                 "prefixes of RDMA device names, each optionally with :port, comma separated; "
                 "a leading = requires exact names, a leading ^ excludes the devices, e.g. mlx5 or "
                 "=rxe0:1 or ^mlx5_1")},
    // At most 255, because a queue pair stores the index of its GID in one byte.
    Variable{"HCCL_IB_GID_INDEX",
             "",
             {assign<&Config::ib_gid_index, number_within<0, 255>>, "a number from 0 to 255"}},
    Variable{"HCCL_IB_DISABLE", "0", flag<&Config::ib_disable>()},
    Variable{"HCCL_NODE_ID", "",
             text_of<&Config::node_id, is_node_id>("a name of at most 64 printable characters")},
    Variable{"HCCL_ALGO", "",
             name<&Config::algorithm>("the name of an algorithm, e.g. ring or tree")},
    Variable{"HCCL_TRANSPORT", "",
             name<&Config::transport>("the name of a transport, e.g. tcp or shm")},
    Variable{"HCCL_CMA_DISABLE", "0", flag<&Config::cma_disable>()},
    Variable{"HCCL_EXPLAIN", "0", flag<&Config::explain>()},
    Variable{"HCCL_BLOCKING", "0", flag<&Config::blocking>()},
    Variable{"HCCL_SECRET", "", text_of<&Config::secret>("any text")},
    Variable{"HCCL_SECRET_FILE", "",
             text_of<&Config::secret_file>("the path of a file that only its owner may read")},
    Variable{"HCCL_REQUIRE_SECRET", "0", flag<&Config::require_secret>()},
    Variable{
        "HCCL_ENCRYPT", "", {assign<&Config::encryption, encryption>, "off, integrity or full"}},
    Variable{"HCCL_INIT_TIMEOUT", "120", seconds<&Config::init_timeout>()},
    Variable{"HCCL_TIMEOUT", "1800", seconds<&Config::operation_timeout>()},
    Variable{"HCCL_HANG_REPORT", "30", seconds<&Config::hang_report>()},
    Variable{"LOG_LEVEL_ALL", "3", kLogLevel},
    Variable{"LOG_LEVEL_HCL", "3", kLogLevel},
    Variable{"HCCL_DEBUG", "WARN", {read_debug, "NONE, VERSION, WARN, INFO, DEBUG or TRACE"}},
    Variable{"HCCL_DEBUG_FILE", "",
             text_of<&Config::log_file>("the path of a file (%h: host, %p: process id)")},
    Variable{"HCCL_DEVICE_TYPE",
             "gaudi2",
             {assign<&Config::device_type, device_type>, "gaudi2 or gaudi3"}},
    Variable{"HCCL_DEVICE_MEMORY",
             "",
             {assign<&Config::device_memory, memory_size<1 << 20>>,
              "a number of bytes from 1M to 16T, which may end in K, M, G or T, e.g. 32G"}},
    Variable{"HCCL_KEEP_FREED_MEMORY",
             "64M",
             {assign<&Config::keep_freed_memory, memory_size<0>>,
              "a number of bytes from 0 to 16T, which may end in K, M, G or T, e.g. 64M"}},
    Variable{"HCCL_DEVICE_COUNT",
             "8",
             {assign<&Config::device_count, number_within<1, 64>>, "a number from 1 to 64"}},
    Variable{"HCCL_STRICT", "0", flag<&Config::strict>()},
    Variable{"HABANA_DISABLE_DOUBLE_SYN_INITIALIZE", "0",
             flag<&Config::refuse_double_initialize>()},
};

// Configuration keys of Gaudi's software, which programs query with synConfigurationGet.
struct ForeignKey {
  const char* name;
  const char* unset;
};
constexpr std::array kForeignKeys{
    ForeignKey{"HCCL_GAUDI_DIRECT", "0"},
    ForeignKey{"HCCL_PEER_DIRECT", "0"},
    ForeignKey{"HCCL_OVER_OFI", "0"},
    ForeignKey{"HCCL_PRIM_COLLECTIVE_MASK", "0"},
    ForeignKey{"HCCL_TRIALS", "120"},
    ForeignKey{"HCCL_ASYNC_EXCHANGE", "1"},
    ForeignKey{"INIT_HCCL_ON_ACQUIRE", "1"},
    ForeignKey{"HABANA_PROFILE", "0"},
    ForeignKey{"HCL_COLLECTIVE_LOG", "0"},
    ForeignKey{"HCL_FAULT_TOLERANCE_ENABLE", "0"},
    ForeignKey{"USE_CPU_AFFINITY", "0"},
    ForeignKey{"HABANA_WEAK_ORDER", "0"},
    ForeignKey{"HCL_LOG_CONTEXT", "1"},
    ForeignKey{"HCL_FAIL_ON_CHECK_SIGNALS", "0"},
    ForeignKey{"HCL_HNIC_IPV6", "0"},
    ForeignKey{"HCL_NULL_SUBMIT", "0"},
    ForeignKey{"HCL_ALIVE_ON_FAILURE", "0"},
    ForeignKey{"HCL_MAX_RANKS", "8192"},
    ForeignKey{"HCL_USE_SINGLE_PEER_BROADCAST", "1"},
    ForeignKey{"ENABLE_EXPERIMENTAL_FLAGS", "0"},
    ForeignKey{"ENABLE_CONSOLE", "0"},
    ForeignKey{"HCL_FABRIC_FLUSH", "1"},
};

// HCCL_* variables of hccl_demo and of this project's Python packages, and obsolete ones that old
// programs still set. A trailing * matches any suffix.
constexpr std::array<std::string_view, 19> kOthersVariables{
    "HCCL_RANK",
    "HCCL_NRANKS",
    "HCCL_RANKS_PER_NODE",
    "HCCL_SCALEUP_GROUP_SIZE",
    "HCCL_DATA_TYPE",
    "HCCL_REDUCTION_OP",
    "HCCL_SIZE_RANGE_MIN",
    "HCCL_SIZE_RANGE_MAX",
    "HCCL_SIZE_RANGE_INC",
    "HCCL_RANKS_LIST",
    "HCCL_EXPECTED_SCALEOUT_BW",
    "HCCL_OVER_TCP",
    "HCCL_DEFAULT_NIC_COUNT",
    "HCCL_SOCKET_NTHREADS",
    "HCCL_NSOCKS_PERTHREAD",
    "HCCL_BASE_PORT",
    "HCCL_DEMO_*",
    "HCCL_TORCH_*",
    "HCCL_EMU_HPU*",
};

bool stands_for(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

std::span<const Variable> variables() { return kVariables; }

std::optional<std::string> unset_value(const std::string& key) {
  for (const Variable& variable : kVariables) {
    if (key == variable.name) return variable.unset;
  }
  for (const ForeignKey& foreign : kForeignKeys) {
    if (key == foreign.name) return foreign.unset;
  }
  return std::nullopt;
}

bool is_known_variable(const std::string& name) {
  return unset_value(name) || std::ranges::any_of(kOthersVariables, [&](std::string_view pattern) {
           return stands_for(pattern, name);
         });
}

}  // namespace hccl
