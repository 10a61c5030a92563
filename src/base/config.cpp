// SPDX-License-Identifier: Apache-2.0
// The table of environment variables: how each is read, what it accepts and what it is when unset.
// A variable set to the empty text counts as unset.
#include "base/config.h"

#include "base/device_list.h"
#include "base/error.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>

#include <sys/auxv.h>
#include <unistd.h>

namespace hccl {

constinit std::atomic<bool> blocking_calls{false};

namespace {

bool read_comm_id(Config& config, const std::string& value) {
  if (!parse_host_and_port(value)) return false;
  config.comm_id = value;
  return true;
}

bool read_interfaces(Config& config, const std::string& value) {
  constexpr std::size_t kLongestName = 15;
  for (std::size_t start = 0; start <= value.size();) {
    const std::size_t end = std::min(value.find(',', start), value.size());
    const std::string_view prefix = std::string_view(value).substr(start, end - start);
    if (prefix.empty() || prefix.size() > kLongestName || !printable(prefix)) return false;
    if (prefix.find_first_of(" /") != std::string_view::npos) return false;
    start = end + 1;
  }
  config.socket_interfaces = value;
  return true;
}

bool read_ib_devices(Config& config, const std::string& value) {
  config.ib_devices = value;
  return parse_device_list(value).has_value();
}

bool read_ib_gid_index(Config& config, const std::string& value) {
  constexpr std::uint64_t kMost = 255;  // a queue pair's address vector has a byte for it
  const auto index = parse_number(value);
  if (!index || *index > kMost) return false;
  config.ib_gid_index = static_cast<int>(*index);
  return true;
}

bool read_node_id(Config& config, const std::string& value) {
  if (value.size() > 64 || !printable(value)) return false;
  config.node_id = value;
  return true;
}

template <std::string Config::*Text>
bool read_text(Config& config, const std::string& value) {
  config.*Text = value;
  return true;
}

template <std::chrono::milliseconds Config::*Time>
bool read_seconds(Config& config, const std::string& value) {
  const auto seconds = parse_seconds(value);
  if (seconds) config.*Time = *seconds;
  return seconds.has_value();
}

// Which names there are is known where they are used.
bool read_algorithm(Config& config, const std::string& value) {
  config.algorithm = lower(value);
  return true;
}

bool read_transport(Config& config, const std::string& value) {
  config.transport = lower(value);
  return true;
}

bool read_log_level(Config& config, const std::string& value) {
  const auto level = parse_number(value);
  if (!level || *level > 6) return false;
  config.log_level = static_cast<LogLevel>(*level);
  return true;
}

bool read_debug(Config& config, const std::string& value) {
  const std::string word = lower(value);
  if (word == "version" || word == "warn") {
    config.log_level = LogLevel::warning;
  } else if (word == "info") {
    config.log_level = LogLevel::info;
  } else if (word == "debug") {
    config.log_level = LogLevel::debug;
  } else if (word == "trace") {
    config.log_level = LogLevel::trace;
  } else if (word == "none") {
    config.log_level = LogLevel::off;
  } else {
    return false;
  }
  config.log_version = word != "none";
  return true;
}

bool read_device_type(Config& config, const std::string& value) {
  const std::string word = lower(value);
  if (word != "gaudi2" && word != "gaudi3") return false;
  config.device_type = word == "gaudi2" ? EmulatedDevice::gaudi2 : EmulatedDevice::gaudi3;
  return true;
}

bool read_device_memory(Config& config, const std::string& value) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;
  constexpr std::uint64_t kMost = std::uint64_t{16} << 40;
  const auto bytes = parse_bytes(value);
  if (!bytes || *bytes < kLeast || *bytes > kMost) return false;
  config.device_memory = *bytes;
  return true;
}

bool read_device_count(Config& config, const std::string& value) {
  const auto count = parse_number(value);
  if (!count || *count < 1 || *count > 64) return false;
  config.device_count = static_cast<int>(*count);
  return true;
}

template <bool Config::*Flag>
bool read_flag(Config& config, const std::string& value) {
  const auto flag = parse_flag(value);
  if (flag) config.*Flag = *flag;
  return flag.has_value();
}

struct Variable {
  const char* name;
  const char* unset;     // what synConfigurationGet shows when it is not set
  const char* accepted;  // completes "...: set it to"
  bool (*read)(Config&, const std::string&);
};

// In order of precedence: a later one overrides an earlier one.
constexpr std::array kVariables{
    Variable{"HCCL_COMM_ID", "", "address:port, e.g. 127.0.0.1:5555 or [::1]:5555", read_comm_id},
    Variable{"HCCL_SOCKET_IFNAME", "", "prefixes of interface names, comma separated, e.g. eth,ib0",
             read_interfaces},
    Variable{"HCCL_IB_HCA", "",
             "prefixes of RDMA devices, each with :port or without, comma separated; after = whole "
             "names, after ^ all but these, e.g. mlx5 or =rxe0:1 or ^mlx5_1",
             read_ib_devices},
    Variable{"HCCL_IB_GID_INDEX", "", "a number from 0 to 255", read_ib_gid_index},
    Variable{"HCCL_IB_DISABLE", "0", "0, 1, true or false", read_flag<&Config::ib_disable>},
    Variable{"HCCL_NODE_ID", "", "a name of at most 64 printable characters", read_node_id},
    Variable{"HCCL_ALGO", "", "the name of an algorithm, e.g. ring or tree", read_algorithm},
    Variable{"HCCL_TRANSPORT", "", "the name of a transport, e.g. tcp or shm", read_transport},
    Variable{"HCCL_EXPLAIN", "0", "0, 1, true or false", read_flag<&Config::explain>},
    Variable{"HCCL_BLOCKING", "0", "0, 1, true or false", read_flag<&Config::blocking>},
    Variable{"HCCL_SECRET", "", "any text", read_text<&Config::secret>},
    Variable{"HCCL_SECRET_FILE", "", "the path of a file that only its owner may read",
             read_text<&Config::secret_file>},
    Variable{"HCCL_REQUIRE_SECRET", "0", "0, 1, true or false", read_flag<&Config::require_secret>},
    Variable{"HCCL_INIT_TIMEOUT", "120", "seconds, e.g. 120 or 0.5 (0: never)",
             read_seconds<&Config::init_timeout>},
    Variable{"HCCL_TIMEOUT", "1800", "seconds, e.g. 1800 or 0.5 (0: never)",
             read_seconds<&Config::operation_timeout>},
    Variable{"HCCL_HANG_REPORT", "30", "seconds, e.g. 30 or 0.5 (0: never)",
             read_seconds<&Config::hang_report>},
    Variable{"LOG_LEVEL_ALL", "3", "a level from 0 (trace) to 6 (off)", read_log_level},
    Variable{"LOG_LEVEL_HCL", "3", "a level from 0 (trace) to 6 (off)", read_log_level},
    Variable{"HCCL_DEBUG", "WARN", "NONE, VERSION, WARN, INFO, DEBUG or TRACE", read_debug},
    Variable{"HCCL_DEBUG_FILE", "", "the path of a file (%h: host, %p: process id)",
             read_text<&Config::log_file>},
    Variable{"HCCL_DEVICE_TYPE", "gaudi2", "gaudi2 or gaudi3", read_device_type},
    Variable{"HCCL_DEVICE_MEMORY", "", "bytes from 1M to 16T, with K, M, G or T, e.g. 32G",
             read_device_memory},
    Variable{"HCCL_DEVICE_COUNT", "8", "a number from 1 to 64", read_device_count},
    Variable{"HCCL_STRICT", "0", "0, 1, true or false", read_flag<&Config::strict>},
    Variable{"HABANA_DISABLE_DOUBLE_SYN_INITIALIZE", "0", "0, 1, true or false",
             read_flag<&Config::refuse_double_initialize>},
};

// Keys of other stacks that programs ask for through synConfigurationGet, with their values when
// unset.
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

// HCCL_* names that belong to others: hccl_demo, PyTorch's backend, and names of old programs that
// have had no effect for long.
constexpr std::array<std::string_view, 16> kOthersVariables{"HCCL_RANK",
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
                                                            "HCCL_BASE_PORT"};
constexpr std::string_view kDemoPrefix = "HCCL_DEMO_";
constexpr std::string_view kTorchPrefix = "HCCL_TORCH_";
constexpr std::string_view kEmulatedDevicePrefix = "HCCL_EMU_HPU";

struct Store {
  std::mutex mutex;
  std::map<std::string, std::string> stored;  // by synConfigurationSet; wins over the environment
  std::shared_ptr<const Config> current;
};

std::atomic<bool> strict{false};

// Never destroyed: calls from static destructors of the application must still find it.
Store& store() {
  static Store* const instance = new Store;
  return *instance;
}

std::optional<std::string> raw_value(const std::map<std::string, std::string>& stored,
                                     const char* name) {
  const auto found = stored.find(name);
  if (found != stored.end()) return found->second;
  if (const char* value = secure_getenv(name)) return value;
  return std::nullopt;
}

// Reads every valid variable into `result`. Returns the error for the first one that is not valid.
std::optional<Error> parse_into(Config& result, const std::map<std::string, std::string>& stored) {
  std::optional<Error> refusal;
  for (const Variable& variable : kVariables) {
    const std::optional<std::string> value = raw_value(stored, variable.name);
    if (!value || value->empty() || variable.read(result, *value) || refusal) continue;
    refusal.emplace(hcclInvalidArgument, text(variable.name, '=', quoted(*value),
                                              " is not valid: set it to ", variable.accepted));
  }
  return refusal;
}

Config parse(const std::map<std::string, std::string>& stored) {
  Config result;
  if (const auto refusal = parse_into(result, stored)) throw Error(*refusal);
  return result;
}

void put_in_force(Store& all, const std::map<std::string, std::string>& stored) {
  auto fresh = std::make_shared<const Config>(parse(stored));
  configure_log(*fresh);
  strict.store(fresh->strict, std::memory_order_relaxed);
  blocking_calls.store(fresh->blocking, std::memory_order_relaxed);
  all.current = std::move(fresh);
}

// The value of a key when nobody set it; nothing for a key we do not know.
std::optional<std::string> unset_value(const std::string& key) {
  for (const Variable& variable : kVariables) {
    if (key == variable.name) return variable.unset;
  }
  for (const ForeignKey& foreign : kForeignKeys) {
    if (key == foreign.name) return foreign.unset;
  }
  return std::nullopt;
}

bool is_known(std::string_view name) {
  const auto named = [name](const auto& entry) { return name == entry.name; };
  return std::any_of(kVariables.begin(), kVariables.end(), named) ||
         std::any_of(kForeignKeys.begin(), kForeignKeys.end(), named) ||
         name.starts_with(kDemoPrefix) || name.starts_with(kTorchPrefix) ||
         name.starts_with(kEmulatedDevicePrefix) ||
         std::find(kOthersVariables.begin(), kOthersVariables.end(), name) !=
             kOthersVariables.end();
}

}  // namespace

Config parse_environment() {
  Store& all = store();
  const std::lock_guard lock(all.mutex);
  return parse(all.stored);
}

void load_config() {
  Store& all = store();
  const std::lock_guard lock(all.mutex);
  put_in_force(all, all.stored);
}

std::shared_ptr<const Config> config() {
  Store& all = store();
  const std::lock_guard lock(all.mutex);
  if (!all.current) put_in_force(all, all.stored);
  return all.current;
}

void load_log_settings() {
  Store& all = store();
  const std::lock_guard lock(all.mutex);
  if (all.current) return;
  Config settings;
  static_cast<void>(parse_into(settings, all.stored));
  configure_log(settings);
}

bool strict_mode() noexcept { return strict.load(std::memory_order_relaxed); }

std::optional<std::string> configuration_value(const std::string& key) {
  Store& all = store();
  const std::lock_guard lock(all.mutex);
  auto value = raw_value(all.stored, key.c_str());
  if (!value && key == "HCCL_GAUDI_DIRECT") value = raw_value(all.stored, "HCCL_PEER_DIRECT");
  const auto unset = unset_value(key);
  if (!value) return unset;
  const bool is_flag = unset == "0" || unset == "1";
  const auto flag = is_flag ? parse_flag(*value) : std::nullopt;  // flags are shown as 0 and 1
  return flag ? (*flag ? "1" : "0") : *value;
}

void set_configuration_value(const std::string& key, const std::string& value) {
  Store& all = store();
  const std::lock_guard lock(all.mutex);
  auto changed = all.stored;
  if (value.empty()) {
    changed.erase(key);  // the environment's value holds again
  } else {
    changed[key] = value;
  }
  if (all.current) {
    put_in_force(all, changed);
  } else {
    static_cast<void>(parse(changed));
  }
  all.stored.swap(changed);
}

std::string unknown_variables() {
  std::string names;
  if (getauxval(AT_SECURE) != 0) return names;  // none is read
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view assignment(*entry);
    const std::string_view name = assignment.substr(0, assignment.find('='));
    if (!name.starts_with("HCCL_") || is_known(name)) continue;
    if (!names.empty()) names += ", ";
    names += quoted(name);
  }
  return names;
}

}  // namespace hccl
