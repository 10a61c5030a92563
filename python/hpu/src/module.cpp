// SPDX-License-Identifier: Apache-2.0
// Defines the module hccl_torch_hpu._C. Loading it registers the device "hpu" with PyTorch.
#include "allocator.h"
#include "autograd_thread.h"
#include "block_pool.h"
#include "fallback.h"
#include "generator.h"
#include "host_alias.h"
#include "registration.h"
#include "step_recorder.h"
#include "storage.h"
#include "streams.h"

#include <pybind11/stl.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;

namespace hccl_torch_hpu {

namespace {

std::map<std::string, std::int64_t> memory_statistics() {
  const BlockPool::Statistics statistics = BlockPool::instance().statistics();
  std::map<std::string, std::int64_t> all;
  const auto add = [&](const std::string& name, const auto& stat) {
    all[name + ".current"] = stat[0].current;
    all[name + ".peak"] = stat[0].peak;
    all[name + ".allocated"] = stat[0].allocated;
    all[name + ".freed"] = stat[0].freed;
  };
  add("allocation", statistics.allocation);
  add("allocated_bytes", statistics.allocated_bytes);
  add("reserved_bytes", statistics.reserved_bytes);
  all["num_ooms"] = statistics.num_ooms;
  return all;
}

void load() {
  c10::SetAllocator(c10::kHPU, allocator());
  hccl_torch::set_host_storages(&host_storage);
  hccl_torch::watch_allocations([](void* memory) { return BlockPool::instance().release(memory); });
  register_device();
}

}  // namespace

}  // namespace hccl_torch_hpu

PYBIND11_MODULE(_C, module) {
  using namespace hccl_torch_hpu;
  module.doc() = "The C++ part of hccl_torch_hpu, for internal use.";
  load();
  module.def("device_count", &visible_devices);
  module.def("is_in_forked_process", [] { return BlockPool::instance().is_in_forked_process(); });
  module.def("memory_statistics", &memory_statistics);
  module.def("memory_info", &BlockPool::free_and_total, py::call_guard<py::gil_scoped_release>());
  module.def("empty_cache", [] { BlockPool::instance().trim(); });
  module.def("reset_peaks", [] { BlockPool::instance().reset_peaks(); });
  module.def("reset_accumulated", [] { BlockPool::instance().reset_accumulated(); });
  module.def("synchronize", &Streams::synchronize_all, py::call_guard<py::gil_scoped_release>());
  module.def("settle_autograd", &AutogradThread::settle, py::call_guard<py::gil_scoped_release>());
  module.def("operation_counts", &operation_counts);
  module.def("reset_operation_counts", &reset_operation_counts);
  module.def("record_steps", [](bool enabled) { StepRecorder::instance().enable(enabled); });
  module.def("end_step", [] {
    const StepRecorder::Step step = StepRecorder::instance().end_step();
    return std::pair(step.operations, step.is_new);
  });
  module.def("default_generator", [] {
    return py::reinterpret_steal<py::object>(THPGenerator_Wrap(default_generator()));
  });
}
