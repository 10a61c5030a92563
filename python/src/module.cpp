// SPDX-License-Identifier: Apache-2.0
// The module hccl_torch._C.
#include "process_group.h"

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;

PYBIND11_MODULE(_C, module) {
  using hccl_torch::ProcessGroupHccl;
  module.doc() = "The C++ side of hccl_torch; not for programs.";
  py::module_::import("torch.distributed");  // for the base class
  py::class_<ProcessGroupHccl, c10::intrusive_ptr<ProcessGroupHccl>, c10d::Backend>(
      module, "ProcessGroupHccl")
      .def(py::init([](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                       std::chrono::milliseconds timeout, std::string group,
                       std::vector<std::int64_t> global_ranks) {
             const py::gil_scoped_release released;
             return c10::make_intrusive<ProcessGroupHccl>(
                 store, rank, size, timeout, std::move(group), std::move(global_ranks));
           }),
           py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"), py::arg("group"),
           py::arg("global_ranks"));
}
