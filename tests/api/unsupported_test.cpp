// SPDX-License-Identifier: Apache-2.0
// Tests the graph functions, which this version does not support: each must return an error whose
// text names the function. Also tests synDumpStateAndTerminate and the TPC library calls.
#include <hccl.h>
#include <synapse_api.h>

#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace {

// Calls `function` with nulls and zeros.
template <class Result, class... Parameters>
Result call(Result (*function)(Parameters...)) {
  return function(Parameters{}...);
}

// A function's name, and a call to the function with zeros.
template <class Result>
struct Function {
  const char* name;
  Result (*call)();
};

template <auto function>
// NOLINTNEXTLINE(readability-identifier-naming): named like a function
constexpr auto with_zeros = [] { return call(function); };

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): definitions and test share one list
#define UNSUPPORTED(function) {#function, with_zeros<function>},
constexpr Function<synStatus> kGraphFunctions[] = {
#include "unsupported_graphs.inc"
};
#undef UNSUPPORTED

bool says_not_available(const char* message, const char* function) {
  const std::string start = std::string(function) + " is not available on emulated devices";
  return message != nullptr && std::string(message).starts_with(start);
}

void expect_unsupported(const Function<synStatus>& function) {
  EXPECT_EQ(function.call(), synUnsupported) << function.name;
  EXPECT_EQ(synGetLastError(), synUnsupported) << function.name;
  EXPECT_TRUE(says_not_available(synGetLastErrorMessage(), function.name))
      << function.name << ": " << synGetLastErrorMessage();
}

}  // namespace

TEST(Unsupported, GraphFunctionErrorsNameTheFunction) {
  EXPECT_EQ(std::size(kGraphFunctions), 89U);
  for (const auto& function : kGraphFunctions) expect_unsupported(function);
}

TEST(DumpStateAndTerminate, PrintsItsMessage) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(static_cast<void>(synDumpStateAndTerminate("no more loss", 0)), "no more loss");
}

TEST(KernelLibraries, NoneAreReported) {
  std::uint32_t libraries = 7;
  EXPECT_EQ(synTPCLibraryGetVersionSize(&libraries), synSuccess);
  EXPECT_EQ(libraries, 0u);
  EXPECT_EQ(synTPCLibraryGetVersionSize(nullptr), synInvalidArgument);
  EXPECT_EQ(synTPCLibraryGetVersions(nullptr, nullptr), synSuccess);
}
