// SPDX-License-Identifier: Apache-2.0
// The C++ part of synapse_common_types.h. The parameter structures of compute kernels would live
// here; emulated devices run no kernels, so it only brings in the standard headers that programs
// expect to come with it.
#ifndef HCCL_SYNAPSE_COMMON_TYPES_HPP_
#define HCCL_SYNAPSE_COMMON_TYPES_HPP_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#endif  // HCCL_SYNAPSE_COMMON_TYPES_HPP_
