// SPDX-License-Identifier: Apache-2.0
// Pins the value of every enumerator of the graph API.
#include "abi_values.h"

#include <synapse_api.h>

namespace hccl::test {
namespace {

constexpr Value kGraphValues[] = {
    // synDataType
    {"syn_type_na", syn_type_na, 0},
    {"syn_type_fixed", syn_type_fixed, 1},
    {"syn_type_int8", syn_type_int8, 1},
    {"syn_type_bf16", syn_type_bf16, 2},
    {"syn_type_single", syn_type_single, 4},
    {"syn_type_float", syn_type_float, 4},
    {"syn_type_int16", syn_type_int16, 8},
    {"syn_type_int32", syn_type_int32, 16},
    {"syn_type_uint8", syn_type_uint8, 32},
    {"syn_type_int4", syn_type_int4, 64},
    {"syn_type_uint4", syn_type_uint4, 128},
    {"syn_type_fp16", syn_type_fp16, 256},
    {"syn_type_uint16", syn_type_uint16, 512},
    {"syn_type_uint32", syn_type_uint32, 1024},
    {"syn_type_tf32", syn_type_tf32, 2048},
    {"syn_type_hb_float", syn_type_hb_float, 4096},
    {"syn_type_fp8_143", syn_type_fp8_143, 8192},
    {"syn_type_fp8_152", syn_type_fp8_152, 16384},
    {"syn_type_int64", syn_type_int64, 32768},
    {"syn_type_uint64", syn_type_uint64, 65536},
    {"syn_type_ufp16", syn_type_ufp16, 131072},
    {"syn_type_packed_nf4", syn_type_packed_nf4, 262144},
    {"syn_type_max", syn_type_max, 262145},
    // synTensorType
    {"DATA_TENSOR", DATA_TENSOR, 0},
    {"SHAPE_TENSOR", SHAPE_TENSOR, 1},
    {"OUTPUT_DESCRIBING_SHAPE_TENSOR", OUTPUT_DESCRIBING_SHAPE_TENSOR, 1},
    {"INPUT_DESCRIBING_SHAPE_TENSOR_DEPRECATED", INPUT_DESCRIBING_SHAPE_TENSOR_DEPRECATED, 2},
    {"DATA_TENSOR_DYNAMIC", DATA_TENSOR_DYNAMIC, 3},
    {"DEVICE_SHAPE_TENSOR", DEVICE_SHAPE_TENSOR, 4},
    {"HOST_SHAPE_TENSOR", HOST_SHAPE_TENSOR, 5},
    {"HOST_TO_DEVICE_TENSOR", HOST_TO_DEVICE_TENSOR, 6},
    {"TENSOR_TYPE_MAX", TENSOR_TYPE_MAX, 7},
    {"TENSOR_TYPE_INVALID", TENSOR_TYPE_INVALID, 7},
    // synSectionProp
    {"SECTION_SIZE", SECTION_SIZE, 0},
    {"SECTION_DATA", SECTION_DATA, 1},
    {"IS_CONST", IS_CONST, 2},
    // synRecipeAttribute
    {"RECIPE_ATTRIBUTE_WORKSPACE_SIZE", RECIPE_ATTRIBUTE_WORKSPACE_SIZE, 0},
    {"RECIPE_ATTRIBUTE_NUM_PERSISTENT_TENSORS", RECIPE_ATTRIBUTE_NUM_PERSISTENT_TENSORS, 1},
    {"RECIPE_ATTRIBUTE_HOST_MEM_SIZE", RECIPE_ATTRIBUTE_HOST_MEM_SIZE, 2},
    {"RECIPE_ATTRIBUTE_NUM_EXTERNAL_TENSORS", RECIPE_ATTRIBUTE_NUM_EXTERNAL_TENSORS, 3},
    {"RECIPE_ATTRIBUTE_PERSISTENT_TENSORS_SIZE", RECIPE_ATTRIBUTE_PERSISTENT_TENSORS_SIZE, 4},
    {"RECIPE_ATTRIBUTE_CONST_SECTIONS_SIZE", RECIPE_ATTRIBUTE_CONST_SECTIONS_SIZE, 5},
    {"RECIPE_ATTRIBUTE_DEVICE_MEMORY_SIZE", RECIPE_ATTRIBUTE_DEVICE_MEMORY_SIZE, 6},
    {"RECIPE_ATTRIBUTE_MAX", RECIPE_ATTRIBUTE_MAX, 7},
    // synGraphAttribute
    {"GRAPH_ATTRIBUTE_INFERENCE", GRAPH_ATTRIBUTE_INFERENCE, 0},
    {"GRAPH_ATTRIBUTE_QUANTIZATION", GRAPH_ATTRIBUTE_QUANTIZATION, 1},
    {"GRAPH_ATTRIBUTE_BACKOFF_FACTOR", GRAPH_ATTRIBUTE_BACKOFF_FACTOR, 2},
    {"GRAPH_ATTRIBUTE_IS_HW_ALIGNED_SCALE", GRAPH_ATTRIBUTE_IS_HW_ALIGNED_SCALE, 3},
    {"GRAPH_ATTRIBUTE_SCALE_METHOD_HASH_ID", GRAPH_ATTRIBUTE_SCALE_METHOD_HASH_ID, 4},
    {"GRAPH_ATTRIBUTE_MAX", GRAPH_ATTRIBUTE_MAX, 5},
    // synGeometryType
    {"synGeometryMinSizes", synGeometryMinSizes, 0},
    {"synGeometryMaxSizes", synGeometryMaxSizes, 1},
    {"synGeometrySizes", synGeometrySizes, 1},
    {"synGeometryDims", synGeometryDims, 2},
    // synQuantizationProperty
    {"SYN_QUANT_DYNAMIC_RANGE", SYN_QUANT_DYNAMIC_RANGE, 0},
    {"SYN_QUANT_METADATA", SYN_QUANT_METADATA, 1},
    {"SYN_FP_QUANT_METADATA", SYN_FP_QUANT_METADATA, 2},
    {"SYN_QUANT_FLAGS", SYN_QUANT_FLAGS, 3},
    {"SYN_QUANT_PC_DYNAMIC_RANGE", SYN_QUANT_PC_DYNAMIC_RANGE, 4},
    // synRoundingMode
    {"synRoundToNearest", synRoundToNearest, 0},
    {"synRoundToZero", synRoundToZero, 1},
    {"synRoundUp", synRoundUp, 2},
    {"synRoundDown", synRoundDown, 3},
    {"synStochasticRounding", synStochasticRounding, 4},
    {"synRoundAwayFromZero", synRoundAwayFromZero, 5},
    {"synStochasticRoundingAndNearest", synStochasticRoundingAndNearest, 6},
};

}  // namespace

TEST(GraphValues, MatchTheAbi) {
  for (const Value& value : kGraphValues) EXPECT_EQ(value.actual, value.expected) << value.name;
}

}  // namespace hccl::test
