// SPDX-License-Identifier: Apache-2.0
// Tests the environment variables: accepted values, refused values, and the texts of refusals.
#include "base/config.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "base/variables.h"
#include "scoped_environment.h"
#include "thrown.h"

#include <cstdlib>
#include <filesystem>
#include <ostream>

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hccl {
namespace {

using std::chrono::milliseconds;
using test::ScopedEnvironment;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// Returns the error text that `value` causes, or an empty string if the value is accepted.
std::string refusal(const std::string& name, const std::string& value) {
  const ScopedEnvironment environment(name, value);
  return test::error_of(hcclInvalidArgument, parse_environment);
}

Config with(const std::string& name, const std::string& value) {
  const ScopedEnvironment environment(name, value);
  return parse_environment();
}

class Environment : public testing::Test {
 protected:
  Environment() {
    for (const Variable& variable : variables()) clean_.remove(variable.name);
    for (const char* foreign : {"HCCL_GAUDI_DIRECT", "HCCL_PEER_DIRECT"}) clean_.remove(foreign);
  }
  ScopedEnvironment clean_;
};

TEST_F(Environment, UnsetVariablesHaveDefaults) {
  const Config config = parse_environment();
  EXPECT_EQ(config.comm_id, "");
  EXPECT_FALSE(config.node_id.has_value());
  EXPECT_EQ(config.init_timeout, milliseconds(120'000));
  EXPECT_EQ(config.operation_timeout, milliseconds(1'800'000));
  EXPECT_EQ(config.hang_report, milliseconds(30'000));
  EXPECT_EQ(config.log_level, LogLevel::warning);
  EXPECT_FALSE(config.log_version);
  EXPECT_FALSE(config.blocking);
  EXPECT_EQ(config.device_type, EmulatedDevice::gaudi2);
  EXPECT_EQ(config.device_memory, 0U);
  EXPECT_EQ(config.device_count, 8);
  EXPECT_FALSE(config.refuse_double_initialize);
}

TEST_F(Environment, AcceptsEachDefault) {
  for (const Variable& variable : variables())
    EXPECT_EQ(refusal(variable.name, variable.unset), "");
}

TEST_F(Environment, TreatsEmptyAsUnset) {
  EXPECT_EQ(with("HCCL_TIMEOUT", "").operation_timeout, milliseconds(1'800'000));
  EXPECT_FALSE(with("HCCL_NODE_ID", "").node_id.has_value());
  EXPECT_EQ(with("HCCL_COMM_ID", "").comm_id, "");
}

TEST_F(Environment, AcceptsFractionalSecondsAndRoundsThemUp) {
  EXPECT_EQ(with("HCCL_TIMEOUT", "2").operation_timeout, milliseconds(2'000));
  EXPECT_EQ(with("HCCL_TIMEOUT", "0").operation_timeout, milliseconds(0));
  EXPECT_EQ(with("HCCL_INIT_TIMEOUT", "0.25").init_timeout, milliseconds(250));
  EXPECT_EQ(with("HCCL_HANG_REPORT", "1.0001").hang_report, milliseconds(1'001));
  EXPECT_EQ(with("HCCL_TIMEOUT", "0.000000001").operation_timeout, milliseconds(1));
}

TEST_F(Environment, AcceptsBinarySuffixesOfMemory) {
  EXPECT_EQ(with("HCCL_DEVICE_MEMORY", "1073741824").device_memory, kGiB);
  EXPECT_EQ(with("HCCL_DEVICE_MEMORY", "1024K").device_memory, kGiB / 1024);
  EXPECT_EQ(with("HCCL_DEVICE_MEMORY", "64m").device_memory, kGiB / 16);
  EXPECT_EQ(with("HCCL_DEVICE_MEMORY", "32GB").device_memory, 32 * kGiB);
  EXPECT_EQ(with("HCCL_DEVICE_MEMORY", "2TiB").device_memory, 2048 * kGiB);
  EXPECT_TRUE(with("HCCL_CMA_DISABLE", "1").cma_disable);
  EXPECT_EQ(with("HCCL_KEEP_FREED_MEMORY", "0").keep_freed_memory, 0);
  EXPECT_EQ(with("HCCL_KEEP_FREED_MEMORY", "1G").keep_freed_memory, kGiB);
}

TEST_F(Environment, MoreSpecificLogLevelWins) {
  ScopedEnvironment environment("LOG_LEVEL_ALL", "6");
  EXPECT_EQ(parse_environment().log_level, LogLevel::off);
  environment.set("LOG_LEVEL_HCL", "1");
  EXPECT_EQ(parse_environment().log_level, LogLevel::debug);
  environment.set("HCCL_DEBUG", "Info");
  EXPECT_EQ(parse_environment().log_level, LogLevel::info);
  EXPECT_TRUE(parse_environment().log_version);
  environment.set("HCCL_DEBUG", "VERSION");
  EXPECT_EQ(parse_environment().log_level, LogLevel::warning);
  environment.set("HCCL_DEBUG", "debug");
  EXPECT_EQ(parse_environment().log_level, LogLevel::debug);
  environment.set("HCCL_DEBUG", "TRACE");
  EXPECT_EQ(parse_environment().log_level, LogLevel::trace);
}

TEST_F(Environment, NoneSilencesTheLogAndTheVersion) {
  const Config config = with("HCCL_DEBUG", "None");
  EXPECT_EQ(config.log_level, LogLevel::off);
  EXPECT_FALSE(config.log_version);
}

TEST_F(Environment, LogSettingsApplyDespiteAnotherMalformedVariable) {
  ScopedEnvironment environment("HCCL_DEBUG", "NONE");
  environment.set("HCCL_TIMEOUT", "soon");
  load_log_settings();
  EXPECT_FALSE(log_enabled(LogLevel::critical));
  environment.remove("HCCL_DEBUG");
  load_log_settings();
  EXPECT_TRUE(log_enabled(LogLevel::warning));
}

TEST_F(Environment, AcceptsAddressesWithHostAndPort) {
  for (const char* value : {"127.0.0.1:5555", "localhost:1", "[::1]:65535", "fe80::1:80"}) {
    EXPECT_EQ(with("HCCL_COMM_ID", value).comm_id, value);
  }
}

TEST_F(Environment, KeepsRoceDevicesAsWritten) {
  EXPECT_EQ(parse_environment().ib_devices, "");
  EXPECT_EQ(parse_environment().ib_gid_index, std::nullopt);
  EXPECT_EQ(with("HCCL_IB_HCA", "^=mlx5_0:1,rxe0").ib_devices, "^=mlx5_0:1,rxe0");
  EXPECT_EQ(with("HCCL_IB_GID_INDEX", "0").ib_gid_index, 0);
  EXPECT_EQ(with("HCCL_IB_GID_INDEX", "255").ib_gid_index, 255);
}

TEST_F(Environment, ErrorsNameVariableValueAndFormat) {
  const std::string message = refusal("HCCL_TIMEOUT", "soon");
  EXPECT_NE(message.find("HCCL_TIMEOUT"), std::string::npos) << message;
  EXPECT_NE(message.find("\"soon\""), std::string::npos) << message;
  EXPECT_NE(message.find("seconds"), std::string::npos) << message;
}

struct Malformed {
  const char* name;
  const char* value;
};

// Prints only the name, because ctest makes this text part of the test's name, and a value may
// contain a line break.
void PrintTo(const Malformed& malformed, std::ostream* out) { *out << malformed.name; }

class MalformedValue : public Environment, public testing::WithParamInterface<Malformed> {};

TEST_P(MalformedValue, IsRefusedByName) {
  const auto& [name, value] = GetParam();
  const std::string message = refusal(name, value);
  EXPECT_EQ(message.find(name), 0U) << name << "=" << value << ": " << message;
  EXPECT_NE(message.find("set it to"), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Values, MalformedValue,
    testing::Values(
        Malformed{"HCCL_TIMEOUT", "-1"}, Malformed{"HCCL_TIMEOUT", "1s"},
        Malformed{"HCCL_TIMEOUT", " 1"}, Malformed{"HCCL_TIMEOUT", "1."},
        Malformed{"HCCL_TIMEOUT", ".5"}, Malformed{"HCCL_TIMEOUT", "1.-5"},
        Malformed{"HCCL_TIMEOUT", "0x10"}, Malformed{"HCCL_TIMEOUT", "1e3"},
        Malformed{"HCCL_TIMEOUT", "inf"}, Malformed{"HCCL_TIMEOUT", "99999999999999999999"},
        Malformed{"HCCL_INIT_TIMEOUT", "nan"}, Malformed{"HCCL_HANG_REPORT", "1,5"},
        Malformed{"HCCL_COMM_ID", "127.0.0.1"}, Malformed{"HCCL_COMM_ID", ":5555"},
        Malformed{"HCCL_COMM_ID", "127.0.0.1:"}, Malformed{"HCCL_COMM_ID", "127.0.0.1:0"},
        Malformed{"HCCL_COMM_ID", "127.0.0.1:65536"}, Malformed{"HCCL_COMM_ID", "127.0.0.1:80x"},
        Malformed{"HCCL_COMM_ID", "[::1:80"}, Malformed{"HCCL_COMM_ID", "[]:80"},
        Malformed{"HCCL_COMM_ID", "a b:80"}, Malformed{"HCCL_SOCKET_IFNAME", "eth0,,eth1"},
        Malformed{"HCCL_SOCKET_IFNAME", "eth0,"}, Malformed{"HCCL_SOCKET_IFNAME", "eth0, eth1"},
        Malformed{"HCCL_SOCKET_IFNAME", "a-name-that-is-too-long"},
        Malformed{"HCCL_IB_HCA", "mlx5_0,,mlx5_1"}, Malformed{"HCCL_IB_HCA", "mlx5_0:0"},
        Malformed{"HCCL_IB_HCA", "=^mlx5_0"}, Malformed{"HCCL_IB_GID_INDEX", "-1"},
        Malformed{"HCCL_IB_GID_INDEX", "256"}, Malformed{"HCCL_IB_GID_INDEX", "three"},
        Malformed{"HCCL_NODE_ID", "a\nb"}, Malformed{"LOG_LEVEL_ALL", "7"},
        Malformed{"LOG_LEVEL_HCL", "-1"}, Malformed{"LOG_LEVEL_HCL", "info"},
        Malformed{"HCCL_BLOCKING", "sometimes"}, Malformed{"HCCL_DEBUG", "LOUD"},
        Malformed{"HCCL_DEBUG", "3"}, Malformed{"HCCL_DEVICE_TYPE", "gaudi"},
        Malformed{"HCCL_DEVICE_MEMORY", "lots"}, Malformed{"HCCL_DEVICE_MEMORY", "0"},
        Malformed{"HCCL_DEVICE_MEMORY", "1.5G"}, Malformed{"HCCL_DEVICE_MEMORY", "1GG"},
        Malformed{"HCCL_DEVICE_MEMORY", "1P"}, Malformed{"HCCL_DEVICE_MEMORY", "17T"},
        Malformed{"HCCL_DEVICE_MEMORY", "18446744073709551615T"},
        Malformed{"HCCL_CMA_DISABLE", "maybe"}, Malformed{"HCCL_KEEP_FREED_MEMORY", "all"},
        Malformed{"HCCL_KEEP_FREED_MEMORY", "17T"}, Malformed{"HCCL_DEVICE_COUNT", "0"},
        Malformed{"HCCL_DEVICE_COUNT", "65"}, Malformed{"HCCL_DEVICE_COUNT", "eight"},
        Malformed{"HABANA_DISABLE_DOUBLE_SYN_INITIALIZE", "yes"}));

TEST_F(Environment, ReloadingSeesChanges) {
  ScopedEnvironment environment("HCCL_DEVICE_COUNT", "2");
  load_config();
  const auto before = config();
  EXPECT_EQ(before->device_count, 2);
  environment.set("HCCL_DEVICE_COUNT", "3");
  EXPECT_EQ(config()->device_count, 2);
  load_config();
  EXPECT_EQ(config()->device_count, 3);
  EXPECT_EQ(before->device_count, 2);
  environment.set("HCCL_DEVICE_COUNT", "none");
  EXPECT_THROW(load_config(), Error);
  EXPECT_EQ(config()->device_count, 3) << "a refused environment must change nothing";
}

TEST_F(Environment, ConfigurationKeysHaveDefaults) {
  EXPECT_EQ(configuration_value("HCCL_GAUDI_DIRECT"), "0");
  EXPECT_EQ(configuration_value("HCCL_OVER_OFI"), "0");
  EXPECT_EQ(configuration_value("HCCL_TIMEOUT"), "1800");
  EXPECT_EQ(configuration_value("NO_SUCH_KEY"), std::nullopt);
}

TEST_F(Environment, ReportsConfigurationFlagsAsZeroOrOne) {
  ScopedEnvironment environment("HCCL_GAUDI_DIRECT", "True");
  EXPECT_EQ(configuration_value("HCCL_GAUDI_DIRECT"), "1");
  environment.remove("HCCL_GAUDI_DIRECT");
  environment.set("HCCL_PEER_DIRECT", "1");
  EXPECT_EQ(configuration_value("HCCL_GAUDI_DIRECT"), "1");
}

TEST_F(Environment, StoredValueOverridesAndIsValidated) {
  const ScopedEnvironment environment("HCCL_TIMEOUT", "7");
  load_config();
  set_configuration_value("HCCL_TIMEOUT", "5");
  EXPECT_EQ(configuration_value("HCCL_TIMEOUT"), "5");
  EXPECT_EQ(config()->operation_timeout, milliseconds(5'000));
  EXPECT_THROW(set_configuration_value("HCCL_TIMEOUT", "never"), Error);
  EXPECT_EQ(config()->operation_timeout, milliseconds(5'000));
  set_configuration_value("HCCL_TIMEOUT", "");
  EXPECT_EQ(config()->operation_timeout, milliseconds(7'000))
      << "the environment's value must apply again";
  set_configuration_value("SOME_KEY", "some value");
  EXPECT_EQ(configuration_value("SOME_KEY"), "some value");
}

TEST_F(Environment, ReportsOnlyUnknownVariables) {
  ScopedEnvironment environment("HCCL_TIMEOUTS", "1");
  const auto known = {"HCCL_DEMO_TEST", "HCCL_RANK",          "HCCL_OVER_TCP", "HCCL_TORCH_DEBUG",
                      "HCCL_EMU_HPU",   "HCCL_EMU_HPU_QUIET", "OTHER_VARIABLE"};
  environment.set("HCCL_TIMEOUT", "1");
  for (const char* name : known) environment.set(name, "1");
  const std::string unknown = unknown_variables();
  EXPECT_NE(unknown.find("HCCL_TIMEOUTS"), std::string::npos);
  for (const char* name : known) EXPECT_EQ(unknown.find(name), std::string::npos) << name;
}

TEST_F(Environment, QuotesUnknownNames) {
  const ScopedEnvironment environment("HCCL_\nhccl ERROR: forged", "1");
  EXPECT_NE(unknown_variables().find("\"HCCL_?hccl ERROR: forged\""), std::string::npos);
}

// A program with more privileges than the user who started it must not trust any variable. The test
// starts a set-group-ID copy of its own program, and that copy performs the check.
TEST(SecureProgram, IgnoresAllVariables) {
  if (getauxval(AT_SECURE) != 0) {
    EXPECT_EQ(parse_environment().operation_timeout, Config{}.operation_timeout);
    EXPECT_EQ(unknown_variables(), "");
    return;
  }
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path copy = text(self.string(), "-setgid-", getpid());
  std::filesystem::copy_file(self, copy);
  constexpr gid_t kNobody = 65534;
  ASSERT_EQ(chown(copy.c_str(), 0, kNobody), 0);
  ASSERT_EQ(chmod(copy.c_str(), S_ISGID | S_IRWXU | S_IRGRP | S_IXGRP), 0);
  const ScopedEnvironment known("HCCL_TIMEOUT", "7");
  const ScopedEnvironment unknown("HCCL_TIMEOUTS", "1");
  const std::string command = text(copy.string(), " --gtest_filter=SecureProgram.*");
  testing::internal::CaptureStdout();
  const int status = std::system(command.c_str());
  const std::string output = testing::internal::GetCapturedStdout();
  std::filesystem::remove(copy);
  EXPECT_EQ(status, 0) << output;
}

}  // namespace
}  // namespace hccl
