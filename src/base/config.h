// SPDX-License-Identifier: Apache-2.0
// The values of the environment variables that the library reads. No other file calls getenv.
#pragma once

#include "base/protection.h"

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
  bool cma_disable = false;     // HCCL_CMA_DISABLE: do not read other processes' memory
  bool explain = false;         // HCCL_EXPLAIN: log the path that each kind of call takes, and why
  bool blocking = false;        // HCCL_BLOCKING: calls that queue work also wait for it
  std::string secret;           // HCCL_SECRET: the secret that all ranks share
  std::string secret_file;      // HCCL_SECRET_FILE: the path of a file that contains the secret
  bool require_secret = false;  // HCCL_REQUIRE_SECRET
  // HCCL_ENCRYPT=off|integrity|full; none: full between hosts if the ranks share a secret and the
  // processor has instructions for AES, otherwise off
  std::optional<Protection> encryption;
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
  std::uint64_t keep_freed_memory = 64 << 20;  // HCCL_KEEP_FREED_MEMORY bytes (K/M/G/T suffixes)
  int device_count = 8;                        // HCCL_DEVICE_COUNT 1..64: devices per node
  bool strict = false;                         // HCCL_STRICT: refuse what Gaudi's library refuses
  bool refuse_double_initialize = false;       // HABANA_DISABLE_DOUBLE_SYN_INITIALIZE
};

// Parses the environment and the values set with synConfigurationSet, which take precedence. If a
// value is not valid, throws Error(hcclInvalidArgument), which names the variable and what it
// accepts.
[[nodiscard]] Config parse_environment();

// Sets a function that checks the values that only higher layers can check, such as the names of
// algorithms. If a value is not valid, the function must throw an Error like that of
// parse_environment().
void set_config_check(void (*check)(const Config&)) noexcept;

// Parses the environment again and puts the result in force for this process. Called by
// synInitialize. Throws like parse_environment().
void load_config();

// Returns the configuration in force. If there is none, first calls load_config().
[[nodiscard]] std::shared_ptr<const Config> config();

// Configures the log from its environment variables, unless a configuration is in force. No
// configuration is in force until config() or load_config() has succeeded; they may have failed
// because of another variable. Throws Error(hcclInvalidArgument) if HCCL_DEBUG_FILE cannot be
// opened.
void load_log_settings();

// Returns Config::strict of the configuration in force. Takes no lock.
[[nodiscard]] bool strict_mode() noexcept;

// Returns Config::blocking of the configuration in force. Takes no lock, and is inline, because
// every call that queues work calls it.
extern constinit std::atomic<bool> blocking_calls;
[[nodiscard]] inline bool blocking_mode() noexcept {
  return blocking_calls.load(std::memory_order_relaxed);
}

// Returns the value of a configuration key as synConfigurationGet reports it: the value that
// synConfigurationSet stored, else the value in the environment, else the default. Returns nothing
// for an unknown key.
[[nodiscard]] std::optional<std::string> configuration_value(const std::string& key);
// Stores a value that overrides the environment; an empty value removes the stored one. If a
// configuration is in force, puts the changed one in force. Throws like parse_environment() and
// configure_log(), and then stores nothing.
void set_configuration_value(const std::string& key, const std::string& value);

// Returns the names of the unknown HCCL_* environment variables (see is_known_variable()), quoted
// and separated by commas.
[[nodiscard]] std::string unknown_variables();

}  // namespace hccl
