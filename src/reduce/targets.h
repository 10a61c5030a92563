// SPDX-License-Identifier: Apache-2.0
// The instruction sets the kernels are compiled for. Accumulators are arrays of vectors, which the
// scalable vector extensions cannot hold; AArch64 runs NEON. On x86, only targets that make a
// difference for these kernels are compiled, SSE2, AVX2 and AVX-512, because each costs compile
// time.
#pragma once

#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
