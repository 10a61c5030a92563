// SPDX-License-Identifier: Apache-2.0
// Sets the floating-point mode of the kernels. Threads of the program also run reductions, and the
// program may have changed the mode of some of them, for example to flush denormals or to trap. The
// result must not depend on the thread.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace hccl::reduce {

// Selects rounding to nearest, enables denormals, disables traps, and restores the previous mode on
// destruction. Does nothing on processors other than x86-64 and AArch64.
class FloatEnvironment {
 public:
  FloatEnvironment() noexcept : saved_(read()) {
    if ((saved_ & kControlBits) != kDefault) {
      write((saved_ & ~kControlBits) | kDefault);
    }
  }
  ~FloatEnvironment() {
    if ((saved_ & kControlBits) != kDefault) {
      write(saved_);
    }
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  using Register = unsigned int;
  // MXCSR: flush-to-zero, rounding, exception masks, denormals-are-zero. The low six bits are
  // status flags.
  static constexpr Register kControlBits = 0xFFC0;
  static constexpr Register kDefault = 0x1F80;
  static Register read() noexcept { return _mm_getcsr(); }
  static void write(Register value) noexcept { _mm_setcsr(value); }
#elif defined(__aarch64__)
  using Register = unsigned long;
  // FPCR: half format, default NaN, flush-to-zero, rounding, traps. All are zero by default.
  static constexpr Register kControlBits = 0x07C09F00;
  static constexpr Register kDefault = 0;
  static Register read() noexcept {
    Register value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void write(Register value) noexcept { asm volatile("msr fpcr, %0" : : "r"(value)); }
#else
  using Register = unsigned int;
  static constexpr Register kControlBits = 0;
  static constexpr Register kDefault = 0;
  static Register read() noexcept { return 0; }
  static void write(Register) noexcept {}
#endif

  Register saved_;
};

}  // namespace hccl::reduce
