// SPDX-License-Identifier: Apache-2.0
// Loads libibverbs at run time, so that the same program runs on hosts without it. This layer is
// not linked with libibverbs: call the functions of libibverbs only through a VerbsLibrary, except
// those that verbs.h defines inline on a context's own table (ibv_poll_cq, ibv_post_send,
// ibv_post_recv, ibv_req_notify_cq).
#pragma once

#include <cstdint>
#include <string>

#include <infiniband/verbs.h>

namespace hccl::verbs {

// The exported functions, each with the type that verbs.h declares. Tests substitute other
// functions.
struct VerbsLibrary {
  decltype(&::ibv_get_device_list) get_device_list = nullptr;
  decltype(&::ibv_free_device_list) free_device_list = nullptr;
  decltype(&::ibv_get_device_name) get_device_name = nullptr;
  decltype(&::ibv_open_device) open_device = nullptr;
  decltype(&::ibv_close_device) close_device = nullptr;
  decltype(&::ibv_query_device) query_device = nullptr;
  decltype(&::ibv_query_port) query_port = nullptr;  // call verbs::query_port() below instead
  decltype(&::ibv_query_gid) query_gid = nullptr;
  decltype(&::_ibv_query_gid_ex) query_gid_ex = nullptr;  // null in versions before 32
  decltype(&::ibv_alloc_pd) alloc_pd = nullptr;
  decltype(&::ibv_dealloc_pd) dealloc_pd = nullptr;
  decltype(&::ibv_reg_mr) reg_mr = nullptr;  // accepts no optional access flags
  decltype(&::ibv_dereg_mr) dereg_mr = nullptr;
  decltype(&::ibv_create_comp_channel) create_comp_channel = nullptr;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel = nullptr;
  decltype(&::ibv_create_cq) create_cq = nullptr;
  decltype(&::ibv_destroy_cq) destroy_cq = nullptr;
  decltype(&::ibv_get_cq_event) get_cq_event = nullptr;
  decltype(&::ibv_ack_cq_events) ack_cq_events = nullptr;
  decltype(&::ibv_create_qp) create_qp = nullptr;
  decltype(&::ibv_modify_qp) modify_qp = nullptr;
  decltype(&::ibv_query_qp) query_qp = nullptr;
  decltype(&::ibv_destroy_qp) destroy_qp = nullptr;
  decltype(&::ibv_get_async_event) get_async_event = nullptr;
  decltype(&::ibv_ack_async_event) ack_async_event = nullptr;
  decltype(&::ibv_fork_init) fork_init = nullptr;
  decltype(&::ibv_wc_status_str) wc_status_str = nullptr;
  decltype(&::ibv_event_type_str) event_type_str = nullptr;
};

// The result of loading a library.
struct LoadedLibrary {
  bool usable = false;
  VerbsLibrary functions;
  std::string why_not;  // a clause; set if the library is not usable
  int fork_error = 0;   // the result of ibv_fork_init()
};

// Loads `file`, which is never unloaded, and calls ibv_fork_init(). To be called once per process
// for each file.
[[nodiscard]] LoadedLibrary load_verbs_library(const char* file);

// Returns libibverbs.so.1, loaded at the first call, or null if it is not available. Thread safety:
// any thread.
[[nodiscard]] const VerbsLibrary* verbs_library();
// Returns the reason why verbs_library() is null, as a clause: "libibverbs.so.1 is not installed:
// ...".
[[nodiscard]] const std::string& why_no_verbs_library();

// Returns a warning against forking with registered memory, or an empty string if ibv_fork_init()
// succeeded or libibverbs is not available. After that success, forking is safe: kernels of version
// 5.12 or later copy registered pages at the fork, and on older kernels, ibv_fork_init() withholds
// registered pages from the child.
[[nodiscard]] const std::string& fork_remark();

// Queries a port. Replaces the inline function of verbs.h, which requires linking with libibverbs.
// Calls the function in the context's own table, which fills all fields. If the table has none,
// calls the exported function, which fills only the older fields. Returns 0 or an error number.
[[nodiscard]] int query_port(const VerbsLibrary& library, ibv_context* context, std::uint8_t number,
                             ibv_port_attr* attributes);

}  // namespace hccl::verbs
