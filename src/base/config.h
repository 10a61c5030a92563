// SPDX-License-Identifier: Apache-2.0
// The values of all environment variables that the library reads. No other file calls getenv.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace hccl {

enum class LogLevel { trace = 0, debug, info, warning, error, critical, off };
enum class EmulatedDevice { gaudi2, gaudi3 };

struct Config {
  std::string comm_id;                 // HCCL_COMM_ID "address:port"; empty: not set
  std::string socket_interfaces;       // HCCL_SOCKET_IFNAME: name prefixes, comma separated
  std::string ib_devices;              // HCCL_IB_HCA (base/device_list.h); empty: all
  std::optional<int> ib_gid_index;     // HCCL_IB_GID_INDEX; none: chosen by the library
  bool ib_disable = false;             // HCCL_IB_DISABLE
  std::optional<std::string> node_id;  // HCCL_NODE_ID: emulates several nodes on one machine
  std::string algorithm;               // HCCL_ALGO: forces an algorithm; empty: the planner chooses
  std::string transport;        // HCCL_TRANSPORT: forces a transport; empty: the best for each peer
  bool explain = false;         // HCCL_EXPLAIN
  bool blocking = false;        // HCCL_BLOCKING: calls that queue work wait for it
  std::string secret;           // HCCL_SECRET: the secret shared by the ranks that use HCCL_COMM_ID
  std::string secret_file;      // HCCL_SECRET_FILE: the path of a file that contains the secret
  bool require_secret = false;  // HCCL_REQUIRE_SECRET
  std::chrono::milliseconds init_timeout{
      120'000};  // HCCL_INIT_TIMEOUT (seconds, fractions allowed; 0: no limit)
  std::chrono::milliseconds operation_timeout{1'800'000};  // HCCL_TIMEOUT (seconds; 0: no limit)
  std::chrono::milliseconds hang_report{30'000};           // HCCL_HANG_REPORT (seconds; 0: never)
  LogLevel log_level =
      LogLevel::warning;  // HCCL_DEBUG=NONE|VERSION|WARN|INFO|DEBUG|TRACE, LOG_LEVEL_HCL/ALL 0..6
  bool log_version = false;  // log the version; true if HCCL_DEBUG is set and is not NONE
  std::string log_file;      // HCCL_DEBUG_FILE; empty: stderr (%h host, %p pid)
  EmulatedDevice device_type = EmulatedDevice::gaudi2;  // HCCL_DEVICE_TYPE=gaudi2|gaudi3
  std::uint64_t device_memory =
      0;  // HCCL_DEVICE_MEMORY bytes (K/M/G/T suffixes); 0: 96 GiB or 128 GiB by type
  int device_count = 8;                   // HCCL_DEVICE_COUNT 1..64: devices per node
  bool strict = false;                    // HCCL_STRICT: reject what the real library rejects
  bool refuse_double_initialize = false;  // HABANA_DISABLE_DOUBLE_SYN_INITIALIZE
};

// Parses the environment. Throws Error(hcclInvalidArgument), which names the variable and the
// accepted form.
[[nodiscard]] Config parse_environment();

// Reads the environment again and makes the result the process's configuration. Called by
// synInitialize. Throws like parse_environment().
void load_config();

// Returns the configuration in force, or loads it if there is none. Throws like
// parse_environment().
[[nodiscard]] std::shared_ptr<const Config> config();

// Configures the log from its own environment variables if no configuration is in force, that is,
// before synInitialize or after synInitialize has failed because of another variable. Throws
// Error(hcclInvalidArgument) if HCCL_DEBUG_FILE cannot be opened.
void load_log_settings();

// Returns Config::strict of the configuration in force, without a lock.
[[nodiscard]] bool strict_mode() noexcept;

// Returns Config::blocking of the configuration in force, without a lock. Inline, because every
// call that queues work reads it.
extern constinit std::atomic<bool> blocking_calls;
[[nodiscard]] inline bool blocking_mode() noexcept {
  return blocking_calls.load(std::memory_order_relaxed);
}

// Returns the value of a configuration key as synConfigurationGet reports it: the one that
// synConfigurationSet stored, else the environment's, else the default. Returns nothing for an
// unknown key.
[[nodiscard]] std::optional<std::string> configuration_value(const std::string& key);
void set_configuration_value(const std::string& key, const std::string& value);

// Returns the HCCL_* variables of the environment that are not known (is_known_variable()), quoted
// and separated by commas.
[[nodiscard]] std::string unknown_variables();

}  // namespace hccl
