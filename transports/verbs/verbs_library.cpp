// SPDX-License-Identifier: Apache-2.0
// Loads libibverbs and resolves its symbols.
#include "verbs/verbs_library.h"

#include "base/text.h"

#include <cstddef>

#include <dlfcn.h>

namespace hccl::verbs {
namespace {

constexpr const char* kFile = "libibverbs.so.1";

// libibverbs also exports its first ABI, from 2006, under the same names but with other structs.
constexpr const char* kCurrentAbi = "IBVERBS_1.1";

class Finder {
 public:
  explicit Finder(void* handle) : handle_(handle) {}

  template <class Function>
  void required(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlvsym(handle_, name, kCurrentAbi));
    note(name, function != nullptr);
  }
  // Finds a symbol that has only one version, which is not kCurrentAbi.
  template <class Function>
  void unversioned(const char* name, Function& function) {
    optional(name, function);
    note(name, function != nullptr);
  }
  template <class Function>
  void optional(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  void note(const char* name, bool found) {
    if (!found && missing_.empty()) missing_ = name;
  }

  void* handle_;
  std::string missing_;
};

void find_device_functions(Finder& find, VerbsLibrary& functions) {
  find.required("ibv_get_device_list", functions.get_device_list);
  find.required("ibv_free_device_list", functions.free_device_list);
  find.required("ibv_get_device_name", functions.get_device_name);
  find.required("ibv_open_device", functions.open_device);
  find.required("ibv_close_device", functions.close_device);
  find.required("ibv_query_device", functions.query_device);
  find.required("ibv_query_port", functions.query_port);
  find.required("ibv_query_gid", functions.query_gid);
  find.optional("_ibv_query_gid_ex", functions.query_gid_ex);
  find.required("ibv_get_async_event", functions.get_async_event);
  find.required("ibv_ack_async_event", functions.ack_async_event);
  find.required("ibv_fork_init", functions.fork_init);
  find.required("ibv_wc_status_str", functions.wc_status_str);
  find.required("ibv_event_type_str", functions.event_type_str);
}

void find_queue_functions(Finder& find, VerbsLibrary& functions) {
  find.required("ibv_alloc_pd", functions.alloc_pd);
  find.required("ibv_dealloc_pd", functions.dealloc_pd);
  find.required("ibv_reg_mr", functions.reg_mr);
  find.required("ibv_dereg_mr", functions.dereg_mr);
  find.unversioned("ibv_create_comp_channel", functions.create_comp_channel);
  find.unversioned("ibv_destroy_comp_channel", functions.destroy_comp_channel);
  find.required("ibv_create_cq", functions.create_cq);
  find.required("ibv_destroy_cq", functions.destroy_cq);
  find.required("ibv_get_cq_event", functions.get_cq_event);
  find.required("ibv_ack_cq_events", functions.ack_cq_events);
  find.required("ibv_create_qp", functions.create_qp);
  find.required("ibv_modify_qp", functions.modify_qp);
  find.required("ibv_query_qp", functions.query_qp);
  find.required("ibv_destroy_qp", functions.destroy_qp);
}

// The text of dlerror() begins with the name of the missing file: `file` itself, or a library on
// which it depends.
std::string why_not_loaded(const std::string& file, const char* error) {
  const std::string reason = error == nullptr ? "no reason given" : error;
  if (!reason.starts_with(file + ": cannot open shared object file: No such file"))
    return text(file, " cannot be loaded: ", reason);
  return text(file, " is not installed: on Debian, install libibverbs1 and, for the drivers, ",
              "ibverbs-providers");
}

std::string fork_remark_of(const LoadedLibrary& library) {
  if (!library.usable || library.fork_error == 0) return "";
  return text("a fork of this process may corrupt messages in flight: ibv_fork_init ", "reports ",
              quoted(system_error_text(library.fork_error)), "; set IBV_FORK_SAFE=1");
}

struct Process {
  LoadedLibrary library = load_verbs_library(kFile);
  std::string fork_remark = fork_remark_of(library);
};

// Never destroyed, because static destructors of the application may still call the library.
const Process& process() {
  static const Process* const instance = new Process;
  return *instance;
}

}  // namespace

LoadedLibrary load_verbs_library(const char* file) {
  LoadedLibrary result;
  void* const handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    result.why_not = why_not_loaded(file, dlerror());
    return result;
  }
  Finder find(handle);
  find_device_functions(find, result.functions);
  find_queue_functions(find, result.functions);
  result.usable = find.missing().empty();
  if (result.usable) {
    // ibv_fork_init() fails after memory has been registered, so call it now.
    result.fork_error = result.functions.fork_init();
  } else {
    result.why_not = text(file, " is too old: it lacks ", find.missing());
  }
  return result;
}

const VerbsLibrary* verbs_library() {
  const LoadedLibrary& library = process().library;
  return library.usable ? &library.functions : nullptr;
}

const std::string& why_no_verbs_library() { return process().library.why_not; }

const std::string& fork_remark() { return process().fork_remark; }

int query_port(const VerbsLibrary& library, ibv_context* context, std::uint8_t number,
               ibv_port_attr* attributes) {
  *attributes = {};
  // Newer versions of libibverbs add fields at the front of verbs_context; `sz` is the size of this
  // context's version.
  constexpr std::size_t kReach = sizeof(verbs_context) - offsetof(verbs_context, query_port);
  const verbs_context* const extended = verbs_get_ctx(context);
  if (extended != nullptr && extended->sz >= kReach && extended->query_port != nullptr)
    return extended->query_port(context, number, attributes, sizeof(*attributes));
  return library.query_port(context, number, reinterpret_cast<_compat_ibv_port_attr*>(attributes));
}

}  // namespace hccl::verbs
