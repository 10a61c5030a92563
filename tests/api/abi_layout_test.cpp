// SPDX-License-Identifier: Apache-2.0
// Pins the sizes and alignments of structures and enumerations, the offsets of many fields, and the
// types of handles and ids.
#include <hccl.h>
#include <synapse_api.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

struct Layout {
  const char* name;
  std::size_t size, alignment;
  std::size_t expected_size, expected_alignment;
};

constexpr Layout kLayouts[] = {
    {"hcclUniqueId", sizeof(hcclUniqueId), alignof(hcclUniqueId), 1032, 8},
    {"synDeviceInfo", sizeof(synDeviceInfo), alignof(synDeviceInfo), 56, 8},
    {"synDeviceInfoV2", sizeof(synDeviceInfoV2), alignof(synDeviceInfoV2), 72, 8},
    {"synTraceEvent", sizeof(synTraceEvent), alignof(synTraceEvent), 208, 16},
    {"synLaunchTensorInfo", sizeof(synLaunchTensorInfo), alignof(synLaunchTensorInfo), 232, 8},
    {"synLaunchTensorInfoExt", sizeof(synLaunchTensorInfoExt), alignof(synLaunchTensorInfoExt), 232,
     8},
    {"synRetrievedLaunchTensorInfo", sizeof(synRetrievedLaunchTensorInfo),
     alignof(synRetrievedLaunchTensorInfo), 1536, 8},
    {"synTensorGeometry", sizeof(synTensorGeometry), alignof(synTensorGeometry), 208, 8},
    {"TensorMetadataInfo", sizeof(TensorMetadataInfo), alignof(TensorMetadataInfo), 288, 8},
    {"synTensorPermutation", sizeof(synTensorPermutation), alignof(synTensorPermutation), 26, 1},
    {"synTensorDeviceLayout", sizeof(synTensorDeviceLayout), alignof(synTensorDeviceLayout), 100,
     4},
    {"synTensorDeviceFullLayout", sizeof(synTensorDeviceFullLayout),
     alignof(synTensorDeviceFullLayout), 104, 4},
    {"synTensorHandleMap", sizeof(synTensorHandleMap), alignof(synTensorHandleMap), 16, 8},
    {"synNodeHandleMap", sizeof(synNodeHandleMap), alignof(synNodeHandleMap), 16, 8},
    {"synUserExecOrder", sizeof(synUserExecOrder), alignof(synUserExecOrder), 8, 4},
    {"synUserProgrammability", sizeof(synUserProgrammability), alignof(synUserProgrammability), 8,
     8},
    {"synGraphAttributeVal", sizeof(synGraphAttributeVal), alignof(synGraphAttributeVal), 8, 8},
    {"hcclResult_t", sizeof(hcclResult_t), alignof(hcclResult_t), 4, 4},
    {"hcclRedOp_t", sizeof(hcclRedOp_t), alignof(hcclRedOp_t), 4, 4},
    {"hcclDataType_t", sizeof(hcclDataType_t), alignof(hcclDataType_t), 4, 4},
    {"synStatus", sizeof(synStatus), alignof(synStatus), 4, 4},
    {"synDeviceType", sizeof(synDeviceType), alignof(synDeviceType), 4, 4},
    {"synDmaDir", sizeof(synDmaDir), alignof(synDmaDir), 4, 4},
    {"synDataType", sizeof(synDataType), alignof(synDataType), 4, 4},
};

struct Offset {
  const char* field;
  std::size_t actual, expected;
};

constexpr Offset kOffsets[] = {
    {"hcclUniqueId::internal", offsetof(hcclUniqueId, internal), 0},
    {"hcclUniqueId::length", offsetof(hcclUniqueId, length), 1024},
    {"synDeviceInfo::sramBaseAddress", offsetof(synDeviceInfo, sramBaseAddress), 0},
    {"synDeviceInfo::dramBaseAddress", offsetof(synDeviceInfo, dramBaseAddress), 8},
    {"synDeviceInfo::sramSize", offsetof(synDeviceInfo, sramSize), 16},
    {"synDeviceInfo::dramSize", offsetof(synDeviceInfo, dramSize), 24},
    {"synDeviceInfo::tpcEnabledMask", offsetof(synDeviceInfo, tpcEnabledMask), 32},
    {"synDeviceInfo::dramEnabled", offsetof(synDeviceInfo, dramEnabled), 40},
    {"synDeviceInfo::deviceId", offsetof(synDeviceInfo, deviceId), 44},
    {"synDeviceInfo::fd", offsetof(synDeviceInfo, fd), 48},
    {"synDeviceInfo::deviceType", offsetof(synDeviceInfo, deviceType), 52},
    {"synDeviceInfoV2::sramBaseAddress", offsetof(synDeviceInfoV2, sramBaseAddress), 0},
    {"synDeviceInfoV2::dramBaseAddress", offsetof(synDeviceInfoV2, dramBaseAddress), 8},
    {"synDeviceInfoV2::sramSize", offsetof(synDeviceInfoV2, sramSize), 16},
    {"synDeviceInfoV2::dramSize", offsetof(synDeviceInfoV2, dramSize), 24},
    {"synDeviceInfoV2::tpcEnabledMask", offsetof(synDeviceInfoV2, tpcEnabledMask), 32},
    {"synDeviceInfoV2::dramEnabled", offsetof(synDeviceInfoV2, dramEnabled), 40},
    {"synDeviceInfoV2::deviceId", offsetof(synDeviceInfoV2, deviceId), 44},
    {"synDeviceInfoV2::fd", offsetof(synDeviceInfoV2, fd), 48},
    {"synDeviceInfoV2::deviceType", offsetof(synDeviceInfoV2, deviceType), 52},
    {"synDeviceInfoV2::deviceIndex", offsetof(synDeviceInfoV2, deviceIndex), 56},
    {"synDeviceInfoV2::globalHbmBaseAddress", offsetof(synDeviceInfoV2, globalHbmBaseAddress), 64},
    {"synLaunchTensorInfo::tensorName", offsetof(synLaunchTensorInfo, tensorName), 0},
    {"synLaunchTensorInfo::pTensorAddress", offsetof(synLaunchTensorInfo, pTensorAddress), 8},
    {"synLaunchTensorInfo::tensorType", offsetof(synLaunchTensorInfo, tensorType), 16},
    {"synLaunchTensorInfo::tensorSize", offsetof(synLaunchTensorInfo, tensorSize), 24},
    {"synLaunchTensorInfo::tensorId", offsetof(synLaunchTensorInfo, tensorId), 224},
    {"synLaunchTensorInfoExt::tensorName", offsetof(synLaunchTensorInfoExt, tensorName), 0},
    {"synLaunchTensorInfoExt::pTensorAddress", offsetof(synLaunchTensorInfoExt, pTensorAddress), 8},
    {"synLaunchTensorInfoExt::tensorType", offsetof(synLaunchTensorInfoExt, tensorType), 16},
    {"synLaunchTensorInfoExt::tensorSize", offsetof(synLaunchTensorInfoExt, tensorSize), 24},
    {"synLaunchTensorInfoExt::tensorId", offsetof(synLaunchTensorInfoExt, tensorId), 224},
    {"synTensorGeometry::sizes", offsetof(synTensorGeometry, sizes), 0},
    {"synTensorGeometry::dims", offsetof(synTensorGeometry, dims), 200},
    {"synTensorPermutation::permutation", offsetof(synTensorPermutation, permutation), 0},
    {"synTensorPermutation::dims", offsetof(synTensorPermutation, dims), 25},
    {"synTensorDeviceLayout::strides", offsetof(synTensorDeviceLayout, strides), 0},
    {"synTensorDeviceLayout::deviceDataType", offsetof(synTensorDeviceLayout, deviceDataType), 96},
    {"synTensorDeviceFullLayout::strides", offsetof(synTensorDeviceFullLayout, strides), 0},
    {"synTensorDeviceFullLayout::deviceDataType",
     offsetof(synTensorDeviceFullLayout, deviceDataType), 100},
    {"synTensorHandleMap::origHandle", offsetof(synTensorHandleMap, origHandle), 0},
    {"synTensorHandleMap::newHandle", offsetof(synTensorHandleMap, newHandle), 8},
    {"synNodeHandleMap::origHandle", offsetof(synNodeHandleMap, origHandle), 0},
    {"synNodeHandleMap::newHandle", offsetof(synNodeHandleMap, newHandle), 8},
    {"synUserExecOrder::groupId", offsetof(synUserExecOrder, groupId), 0},
    {"synUserExecOrder::executionOrderedIndex", offsetof(synUserExecOrder, executionOrderedIndex),
     4},
    {"synGraphAttributeVal::iAttrVal", offsetof(synGraphAttributeVal, iAttrVal), 0},
    {"synGraphAttributeVal::dAttrVal", offsetof(synGraphAttributeVal, dAttrVal), 0},
};

// Programs declare the structures behind the handles under these names.
static_assert(std::is_same_v<synEventHandle, struct ::EventInterfaceExternal*>);
static_assert(std::is_same_v<synStreamHandle, struct ::InternalStreamHandle*>);
static_assert(std::is_same_v<synErrorHandle, struct ::ErrorInterfaceExternal*>);
static_assert(std::is_same_v<synRecipeHandle, struct ::InternalRecipeHandle*>);
static_assert(std::is_same_v<synSectionHandle, struct ::SectionHandleExternal*>);
static_assert(std::is_same_v<synGraphHandle, struct ::InternalGraphHandle*>);
static_assert(std::is_same_v<synTensor, struct ::internalTensor*>);
static_assert(std::is_same_v<synCommandBuffer, struct ::syn_cb_internal*>);
static_assert(std::is_same_v<synWaitHandle, struct ::InternalWaitHandle*>);
static_assert(std::is_same_v<synModuleId, std::uint32_t>);
static_assert(std::is_same_v<synDeviceId, std::uint32_t>);
static_assert(std::is_same_v<synSectionId, std::uint32_t>);
static_assert(std::is_same_v<synNodeId, std::uint64_t>);
static_assert(std::is_same_v<tensor_size_t, std::uint64_t>);
static_assert(std::is_same_v<TSize, std::uint64_t>);
static_assert(std::is_same_v<TStride, std::uint64_t>);
static_assert(std::is_same_v<TOffset, std::int64_t>);

// Programs compare results with -1, and initialise ids as aggregates.
static_assert(std::is_signed_v<std::underlying_type_t<hcclResult_t>>);
static_assert(std::is_aggregate_v<hcclUniqueId> && std::is_trivial_v<hcclUniqueId>);
[[maybe_unused]] constexpr hcclUniqueId kZeroId = {{0}, 0};

}  // namespace

TEST(Layouts, SizesAndAlignmentsMatchTheAbi) {
  for (const Layout& layout : kLayouts) {
    EXPECT_EQ(layout.size, layout.expected_size) << layout.name;
    EXPECT_EQ(layout.alignment, layout.expected_alignment) << layout.name;
  }
}

TEST(Layouts, OffsetsMatchTheAbi) {
  for (const Offset& offset : kOffsets) EXPECT_EQ(offset.actual, offset.expected) << offset.field;
}

}  // namespace hccl::test
