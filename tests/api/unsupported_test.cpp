// SPDX-License-Identifier: Apache-2.0
// Functions that are not available in this version: each refuses and says so by name.
#include <hccl.h>
#include <synapse_api.h>

#include <string>

#include <gtest/gtest.h>

namespace {

// Calls `function` with nulls and zeros.
template <class Result, class... Parameters>
Result call(Result (*function)(Parameters...)) {
  return function(Parameters{}...);
}

// A name, and a call of the function it names.
template <class Result>
struct Function {
  const char* name;
  Result (*call)();
};

template <auto function>
// NOLINTNEXTLINE(readability-identifier-naming): used as the function it is
constexpr auto with_zeros = [] { return call(function); };

constexpr Function<synStatus> kRuntimeFunctions[] = {
    {"synErrorDestroy", with_zeros<synErrorDestroy>},
    {"synErrorGetStatus", with_zeros<synErrorGetStatus>},
    {"synErrorGetMessageLength", with_zeros<synErrorGetMessageLength>},
    {"synErrorGetMessage", with_zeros<synErrorGetMessage>},
};

constexpr Function<synStatus> kGraphFunctions[] = {
    {"synEventMapTensor", with_zeros<synEventMapTensor>},
    {"synTensorExtExtractExecutionOrder", with_zeros<synTensorExtExtractExecutionOrder>},
    {"synRecipeDestroy", with_zeros<synRecipeDestroy>},
    {"synRecipeSerialize", with_zeros<synRecipeSerialize>},
    {"synRecipeDeSerialize", with_zeros<synRecipeDeSerialize>},
    {"synRecipeGetAttribute", with_zeros<synRecipeGetAttribute>},
    {"synSectionCreate", with_zeros<synSectionCreate>},
    {"synSectionSetGroup", with_zeros<synSectionSetGroup>},
    {"synSectionGetGroup", with_zeros<synSectionGetGroup>},
    {"synSectionSetPersistent", with_zeros<synSectionSetPersistent>},
    {"synSectionGetPersistent", with_zeros<synSectionGetPersistent>},
    {"synSectionSetConst", with_zeros<synSectionSetConst>},
    {"synSectionGetConst", with_zeros<synSectionGetConst>},
    {"synRecipeSectionGetProp", with_zeros<synRecipeSectionGetProp>},
    {"synSectionSetRMW", with_zeros<synSectionSetRMW>},
    {"synSectionGetRMW", with_zeros<synSectionGetRMW>},
    {"synRecipeSectionHostBuffersClear", with_zeros<synRecipeSectionHostBuffersClear>},
    {"synLaunch", with_zeros<synLaunch>},
    {"synLaunchWithExternalEvents", with_zeros<synLaunchWithExternalEvents>},
    {"synLaunchWithExternalEventsExt", with_zeros<synLaunchWithExternalEventsExt>},
    {"synSectionDestroy", with_zeros<synSectionDestroy>},
    {"synWorkspaceGetSize", with_zeros<synWorkspaceGetSize>},
    {"synTensorCreate", with_zeros<synTensorCreate>},
    {"synConstTensorCreate", with_zeros<synConstTensorCreate>},
    {"synTensorRetrieveLaunchAmount", with_zeros<synTensorRetrieveLaunchAmount>},
    {"synTensorRetrieveLaunchIds", with_zeros<synTensorRetrieveLaunchIds>},
    {"synTensorRetrieveLaunchInfoById", with_zeros<synTensorRetrieveLaunchInfoById>},
    {"synTensorRetrieveLaunchInfoByIdExt", with_zeros<synTensorRetrieveLaunchInfoByIdExt>},
    {"synTensorRetrieveMultiLaunchInfosById", with_zeros<synTensorRetrieveMultiLaunchInfosById>},
    {"synTensorRetrieveInfosByName", with_zeros<synTensorRetrieveInfosByName>},
    {"synTensorRetrieveInfosByNameExt", with_zeros<synTensorRetrieveInfosByNameExt>},
    {"synTensorRetrievePersistentAmount", with_zeros<synTensorRetrievePersistentAmount>},
    {"synTensorRetrieveNames", with_zeros<synTensorRetrieveNames>},
    {"synTensorRetrieveIds", with_zeros<synTensorRetrieveIds>},
    {"synTensorDestroy", with_zeros<synTensorDestroy>},
    {"synNodeCreate", with_zeros<synNodeCreate>},
    {"synNodeCreateWithId", with_zeros<synNodeCreateWithId>},
    {"synNodeTypeSetPrecision", with_zeros<synNodeTypeSetPrecision>},
    {"synNodeDependencySet", with_zeros<synNodeDependencySet>},
    {"synNodeSetDeterministic", with_zeros<synNodeSetDeterministic>},
    {"synNodeGetDeterministic", with_zeros<synNodeGetDeterministic>},
    {"synNodeSetRoundingMode", with_zeros<synNodeSetRoundingMode>},
    {"synNodeSetUserProgrammability", with_zeros<synNodeSetUserProgrammability>},
    {"synNodeGetRoundingMode", with_zeros<synNodeGetRoundingMode>},
    {"synGraphCompile", with_zeros<synGraphCompile>},
    {"synGraphCompileV2", with_zeros<synGraphCompileV2>},
    {"synGraphCreate", with_zeros<synGraphCreate>},
    {"synGraphSetAttribute", with_zeros<synGraphSetAttribute>},
    {"synGraphSetAttributes", with_zeros<synGraphSetAttributes>},
    {"synGraphGetAttribute", with_zeros<synGraphGetAttribute>},
    {"synGraphGetAttributes", with_zeros<synGraphGetAttributes>},
    {"synGraphCreateEager", with_zeros<synGraphCreateEager>},
    {"synGraphDuplicate", with_zeros<synGraphDuplicate>},
    {"synGraphInferShapes", with_zeros<synGraphInferShapes>},
    {"synGraphDestroy", with_zeros<synGraphDestroy>},
    {"synGraphGetDeviceType", with_zeros<synGraphGetDeviceType>},
    {"synTensorHandleCreate", with_zeros<synTensorHandleCreate>},
    {"synTensorAssignToSection", with_zeros<synTensorAssignToSection>},
    {"synTensorSetSectionOffset", with_zeros<synTensorSetSectionOffset>},
    {"synTensorSetHostPtr", with_zeros<synTensorSetHostPtr>},
    {"synTensorSetQuantizationData", with_zeros<synTensorSetQuantizationData>},
    {"synTensorSetExternal", with_zeros<synTensorSetExternal>},
    {"synTensorSetMemoryReuse", with_zeros<synTensorSetMemoryReuse>},
    {"synTensorSetMinimalLatency", with_zeros<synTensorSetMinimalLatency>},
    {"synTensorSetGeometry", with_zeros<synTensorSetGeometry>},
    {"synTensorSetPermutation", with_zeros<synTensorSetPermutation>},
    {"synTensorSetDeviceDataType", with_zeros<synTensorSetDeviceDataType>},
    {"synTensorSetDeviceFullLayout", with_zeros<synTensorSetDeviceFullLayout>},
    {"synTensorSetDeviceLayout", with_zeros<synTensorSetDeviceLayout>},
    {"synTensorSetAllowPermutation", with_zeros<synTensorSetAllowPermutation>},
    {"synTensorGetAllowPermutation", with_zeros<synTensorGetAllowPermutation>},
    {"synTensorGetSection", with_zeros<synTensorGetSection>},
    {"synTensorGetHostPtr", with_zeros<synTensorGetHostPtr>},
    {"synTensorGetQuantizationData", with_zeros<synTensorGetQuantizationData>},
    {"synTensorGetGeometry", with_zeros<synTensorGetGeometry>},
    {"synTensorGetExternal", with_zeros<synTensorGetExternal>},
    {"synTensorGetMinimalLatency", with_zeros<synTensorGetMinimalLatency>},
    {"synTensorGetPermutation", with_zeros<synTensorGetPermutation>},
    {"synTensorGetDeviceDataType", with_zeros<synTensorGetDeviceDataType>},
    {"synTensorGetDeviceLayout", with_zeros<synTensorGetDeviceLayout>},
    {"synTensorGetDeviceFullLayout", with_zeros<synTensorGetDeviceFullLayout>},
    {"synTensorGetName", with_zeros<synTensorGetName>},
    {"synTensorGetType", with_zeros<synTensorGetType>},
    {"synNodeSetUserParams", with_zeros<synNodeSetUserParams>},
    {"synNodeGetUserParams", with_zeros<synNodeGetUserParams>},
};

bool says_not_available(const char* message, const char* function) {
  const std::string start = std::string(function) + " is not available in this version";
  return message != nullptr && std::string(message).starts_with(start);
}

void expect_unsupported(const Function<synStatus>& function) {
  EXPECT_EQ(function.call(), synUnsupported) << function.name;
  EXPECT_EQ(synGetLastError(), synUnsupported) << function.name;
  EXPECT_TRUE(says_not_available(synGetLastErrorMessage(), function.name))
      << function.name << ": " << synGetLastErrorMessage();
}

}  // namespace

TEST(Unsupported, RuntimeFunctionsNameThemselves) {
  for (const auto& function : kRuntimeFunctions) expect_unsupported(function);
}

TEST(Unsupported, GraphFunctionsNameThemselves) {
  for (const auto& function : kGraphFunctions) expect_unsupported(function);
}

TEST(State, IsReportedBeforeTheEnd) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(static_cast<void>(synDumpStateAndTerminate("no more loss", 0)), "no more loss");
}

TEST(KernelLibraries, AreNone) {
  std::uint32_t libraries = 7;
  EXPECT_EQ(synTPCLibraryGetVersionSize(&libraries), synSuccess);
  EXPECT_EQ(libraries, 0u);
  EXPECT_EQ(synTPCLibraryGetVersionSize(nullptr), synInvalidArgument);
  EXPECT_EQ(synTPCLibraryGetVersions(nullptr, nullptr), synSuccess);
}
