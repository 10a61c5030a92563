// SPDX-License-Identifier: Apache-2.0
// Random numbers of the device. The device's generators work as the CPU's do, but have their own
// states.
#pragma once

#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

namespace hccl_torch_hpu {

// Returns the generator from which operations without a generator argument draw.
[[nodiscard]] const at::Generator& default_generator();
// Returns a new generator with the default seed.
[[nodiscard]] at::Generator make_generator();
// Returns the CPU generator from which an HPU generator draws. Throws c10::Error for a generator of
// another device.
[[nodiscard]] at::Generator host_generator(const at::Generator& generator);

// While the object lives, the CPU's default generator, from which some kernels draw implicitly, has
// the state of the device's generator. The object holds the lock of the device's generator, so only
// one thread at a time can have such an object.
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
