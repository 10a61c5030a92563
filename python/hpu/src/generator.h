// SPDX-License-Identifier: Apache-2.0
// Random numbers of the device. Its generators use the CPU's algorithm, but each has its own state.
#pragma once

#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

namespace hccl_torch_hpu {

// Returns the generator that operations use if they are not given one.
[[nodiscard]] const at::Generator& default_generator();
// Returns a new generator with the default seed.
[[nodiscard]] at::Generator make_generator();
// Returns the CPU generator from which an HPU generator draws. Throws c10::Error for a generator of
// another device.
[[nodiscard]] at::Generator host_generator(const at::Generator& generator);

// While the object lives, the CPU's default generator has the state of the device's default
// generator, for kernels that draw from the CPU's generator without taking it as an argument. The
// constructor blocks while another DefaultDraws exists.
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
