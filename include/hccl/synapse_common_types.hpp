// SPDX-License-Identifier: Apache-2.0
// The C++ part of synapse_common_types.h. Emulated devices run no compute kernels and therefore
// need no parameter structures for them, so this header only includes the standard headers that
// programs expect from it.
#ifndef HCCL_SYNAPSE_COMMON_TYPES_HPP_
#define HCCL_SYNAPSE_COMMON_TYPES_HPP_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#endif  // HCCL_SYNAPSE_COMMON_TYPES_HPP_
