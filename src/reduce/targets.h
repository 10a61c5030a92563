// SPDX-License-Identifier: Apache-2.0
// The instruction sets for which the kernels are compiled. Accumulators are arrays of vectors,
// which scalable vector extensions do not support, so AArch64 uses NEON. On x86, only SSE2, AVX2
// and AVX-512 are compiled: other instruction sets would cost compile time without making these
// kernels faster.
#pragma once

#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
