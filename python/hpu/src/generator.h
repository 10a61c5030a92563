// SPDX-License-Identifier: Apache-2.0
// Random numbers of the device: its generators draw like the CPU's, from states of their own.
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

// During its lifetime, the CPU's default generator, from which some kernels draw implicitly, has
// the state of the device's. Holds the generator's lock, so only one thread at a time has one.
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
