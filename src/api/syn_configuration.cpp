// SPDX-License-Identifier: Apache-2.0
// Starts and ends the runtime, and accesses its configuration keys.
#include "api/copy_text.h"
#include "api/guard.h"
#include "api/handles.h"
#include "api/version.h"
#include "base/config.h"
#include "comm/forced_names.h"

#include <synapse_api.h>

#include <string>

using namespace hccl;
using namespace hccl::api;

synStatus SYN_API_CALL synInitialize(void) {
  return syn_guard(__func__, [] {
    set_config_check(&comm::check_forced_names);
    runtime().initialize();
  });
}

synStatus SYN_API_CALL synDestroy(void) {
  return syn_guard(__func__, [] {
    runtime().destroy();
    report_repeated_failures();
  });
}

synStatus SYN_API_CALL synDriverGetVersion(char* pDriverVersion, int len) {
  return syn_guard(__func__,
                   [&] { give_text(kVersionText, pDriverVersion, len, "pDriverVersion"); });
}

synStatus SYN_API_CALL synConfigurationGet(const char* configurationName, char* configValue,
                                           uint64_t size) {
  return syn_guard(probe(__func__), [&] {
    require_pointer(configurationName, "configurationName");
    require_pointer(configValue, "configValue");
    if (size == 0) throw SynError(synInvalidArgument, "valueSize must be at least 1");
    const auto value = configuration_value(configurationName);
    copy_text(value.value_or(""), configValue, size);
    if (!value)
      throw SynError(synInvalidArgument,
                     text("unknown configuration key ", configurationName,
                          "; pass the name of an environment variable of hccl"));
  });
}

synStatus SYN_API_CALL synConfigurationSet(const char* configurationName, const char* configValue) {
  return syn_guard(__func__, [&] {
    require_pointer(configurationName, "configurationName");
    require_pointer(configValue, "configValue");
    set_config_check(&comm::check_forced_names);
    set_configuration_value(configurationName, configValue);
  });
}
