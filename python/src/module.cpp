// SPDX-License-Identifier: Apache-2.0
// Defines the module hccl_torch._C.
#include "allocator.h"
#include "completer.h"
#include "memory_pool.h"
#include "process_group.h"
#include "statistics.h"

#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;

namespace {

// A holder that releases the GIL while it drops its reference, as the holder of the base class
// does: the object's destructor may wait for threads that need the GIL.
template <class T>
class NoGilPointer {
 public:
  NoGilPointer() = default;
  explicit NoGilPointer(T* object)
      : pointer_(c10::intrusive_ptr<T>::unsafe_steal_from_new(object)) {}
  NoGilPointer(c10::intrusive_ptr<T> pointer) : pointer_(std::move(pointer)) {}
  NoGilPointer(const NoGilPointer&) = default;
  NoGilPointer(NoGilPointer&&) noexcept = default;
  NoGilPointer& operator=(const NoGilPointer&) = default;
  NoGilPointer& operator=(NoGilPointer&&) noexcept = default;
  ~NoGilPointer() {
    if (!pointer_) return;
    if (PyGILState_Check() != 0) {
      const py::gil_scoped_release released;
      pointer_.reset();
    } else {
      pointer_.reset();
    }
  }

  [[nodiscard]] T* get() const noexcept { return pointer_.get(); }

 private:
  c10::intrusive_ptr<T> pointer_;
};

bool interpreter_runs() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() == 0;
#else
  return _Py_IsFinalizing() == 0;
#endif
}

}  // namespace

PYBIND11_DECLARE_HOLDER_TYPE(T, NoGilPointer<T>, true)

PYBIND11_MODULE(_C, module) {
  using hccl_torch::ProcessGroupHccl;
  module.doc() = "The C++ part of hccl_torch, for internal use.";
  py::module_::import("torch.distributed");  // defines the base class
  py::class_<ProcessGroupHccl, NoGilPointer<ProcessGroupHccl>, c10d::Backend>(module,
                                                                              "ProcessGroupHccl")
      .def(py::init([](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                       std::chrono::milliseconds timeout, std::string group,
                       std::vector<std::int64_t> global_ranks) {
             const py::gil_scoped_release released;
             return NoGilPointer<ProcessGroupHccl>(c10::make_intrusive<ProcessGroupHccl>(
                 store,
                 hccl_torch::GroupIdentity{std::move(group), rank, size, std::move(global_ranks)},
                 timeout));
           }),
           py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"), py::arg("group"),
           py::arg("global_ranks"));
  module.def(
      "empty",
      [](const std::vector<std::int64_t>& size, const py::object& dtype) {
        return hccl_torch::empty(size,
                                 at::dtype(reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type));
      },
      py::arg("size"), py::arg("dtype"));
  module.def("install_allocator", &hccl_torch::install_allocator, py::arg("least_bytes"));
  module.def("allocator_is_installed", &hccl_torch::allocator_is_installed);
  hccl_torch::Completer::set_condition(interpreter_runs);
  module.def("quiesce", &ProcessGroupHccl::quiesce_all, py::call_guard<py::gil_scoped_release>());
  module.def("trim", [] { hccl_torch::MemoryPool::instance().trim(); });
  module.def("memory", [] {
    const hccl_torch::MemoryPool::Usage usage = hccl_torch::MemoryPool::instance().usage();
    return std::map<std::string, std::uint64_t>{{"used_bytes", usage.used_bytes},
                                                {"cached_bytes", usage.cached_bytes},
                                                {"allocations", usage.allocations},
                                                {"reused", usage.reused}};
  });
  module.def("counts", [] {
    std::map<std::string, std::map<std::string, std::uint64_t>> counts;
    for (const auto& [name, one] : hccl_torch::Statistics::instance().counts()) {
      counts[name] = {{"calls", one.calls},
                      {"bytes", one.bytes},
                      {"zero_copy", one.zero_copy},
                      {"staged", one.staged}};
    }
    return counts;
  });
  module.def("reset_counts", [] { hccl_torch::Statistics::instance().reset(); });
}
