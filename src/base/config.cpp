// SPDX-License-Identifier: Apache-2.0
// Reads the environment, and holds the configuration in force. An empty variable counts as unset.
#include "base/config.h"

#include "base/error.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/variables.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>

#include <sys/auxv.h>
#include <unistd.h>

namespace hccl {

constinit std::atomic<bool> blocking_calls{false};

namespace {

struct Store {
  std::mutex mutex;
  std::map<std::string, std::string>
      stored;  // set by synConfigurationSet; overrides the environment
  std::shared_ptr<const Config> current;
};

std::atomic<bool> strict{false};
std::atomic<void (*)(const Config&)> config_check{nullptr};

// The store is never destroyed, because the program's static destructors may call the library.
Store& store() {
  static Store* const instance = new Store;
  return *instance;
}

std::optional<std::string> raw_value(const std::map<std::string, std::string>& stored,
                                     const char* name) {
  const auto found = stored.find(name);
  if (found != stored.end()) return found->second;
  if (const char* value = secure_getenv(name); value != nullptr && *value != '\0') return value;
  return std::nullopt;
}

// Reads all valid variables into `result`. Returns an error for the first invalid one, if any.
std::optional<Error> parse_into(Config& result, const std::map<std::string, std::string>& stored) {
  std::optional<Error> refusal;
  for (const Variable& variable : variables()) {
    const std::optional<std::string> value = raw_value(stored, variable.name);
    if (!value || variable.reader.read(result, *value) || refusal) continue;
    refusal.emplace(hcclInvalidArgument,
                    text(variable.name, '=', quoted(*value), " is not valid; set it to ",
                         variable.reader.accepted));
  }
  return refusal;
}

Config parse(const std::map<std::string, std::string>& stored) {
  Config result;
  if (const auto refusal = parse_into(result, stored)) throw Error(*refusal);
  if (const auto check = config_check.load()) check(result);
  return result;
}

void put_in_force(Store& all, const std::map<std::string, std::string>& stored) {
  auto fresh = std::make_shared<const Config>(parse(stored));
  configure_log(*fresh);
  strict.store(fresh->strict, std::memory_order_relaxed);
  blocking_calls.store(fresh->blocking, std::memory_order_relaxed);
  all.current = std::move(fresh);
}

}  // namespace

void set_config_check(void (*check)(const Config&)) noexcept { config_check.store(check); }

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
  if (!value && key == "HCCL_PEER_DIRECT") value = raw_value(all.stored, "HCCL_GAUDI_DIRECT");
  const auto unset = unset_value(key);
  if (!value) return unset;
  const bool is_flag = unset == "0" || unset == "1";
  const auto flag = is_flag ? parse_flag(*value) : std::nullopt;  // flags are reported as 0 or 1
  return flag ? (*flag ? "1" : "0") : *value;
}

void set_configuration_value(const std::string& key, const std::string& value) {
  Store& all = store();
  const std::lock_guard lock(all.mutex);
  auto changed = all.stored;
  if (value.empty()) {
    changed.erase(key);  // the environment's value applies again
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
  if (getauxval(AT_SECURE) != 0) return names;  // a set-user-ID program reads no variables
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view assignment(*entry);
    const std::string name(assignment.substr(0, assignment.find('=')));
    if (!name.starts_with("HCCL_") || is_known_variable(name)) continue;
    if (!names.empty()) names += ", ";
    names += quoted(name);
  }
  return names;
}

}  // namespace hccl
