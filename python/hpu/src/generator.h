// SPDX-License-Identifier: Apache-2.0
// Random numbers of the device: its generators draw as the CPU's do, from states of their own.
#pragma once

#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

namespace hccl_torch_hpu {

// Returns the generator that operations without one draw from.
[[nodiscard]] const at::Generator& default_generator();
// Returns a new generator with the default seed.
[[nodiscard]] at::Generator make_generator();
// Returns the CPU generator that an HPU generator draws from. Throws c10::Error for a generator of
// another device.
[[nodiscard]] at::Generator host_generator(const at::Generator& generator);

// While it lives, the CPU's default generator, of which some kernels draw unasked, has the state of
// the device's. Holds its lock: one thread at a time.
class DefaultDraws {
 public:
  DefaultDraws();
  ~DefaultDraws();
  DefaultDraws(const DefaultDraws&) = delete;
  DefaultDraws& operator=(const DefaultDraws&) = delete;

 private:
  void exchange();

  const std::unique_lock<std::mutex> lock_;
};

}  // namespace hccl_torch_hpu
