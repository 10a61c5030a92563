// SPDX-License-Identifier: Apache-2.0
// Loading libibverbs where it is, and saying why where it is not.
#include "verbs/verbs_library.h"

#include <cstring>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace hccl::verbs {
namespace {

TEST(VerbsLibrary, AnAbsentFileIsNotInstalled) {
  const LoadedLibrary library = load_verbs_library("libhccl-no-such-verbs.so.1");
  EXPECT_FALSE(library.usable);
  EXPECT_EQ(library.functions.get_device_list, nullptr);
  EXPECT_EQ(library.why_not,
            "libhccl-no-such-verbs.so.1 is not installed: Debian has it in libibverbs1, its "
            "drivers in ibverbs-providers");
}

TEST(VerbsLibrary, AnotherLibraryIsNoVerbs) {
  const LoadedLibrary library = load_verbs_library("libc.so.6");
  EXPECT_FALSE(library.usable);
  EXPECT_EQ(library.why_not, "libc.so.6 is too old: it lacks ibv_get_device_list");
}

TEST(VerbsLibrary, WhatIsNoLibraryCannotBeLoaded) {
  const LoadedLibrary library = load_verbs_library("/proc/self/cmdline");
  EXPECT_FALSE(library.usable);
  EXPECT_EQ(library.why_not.rfind("/proc/self/cmdline cannot be loaded: ", 0), 0U)
      << library.why_not;
}

TEST(VerbsLibrary, ItIsThereOrTheReasonIs) {
  const VerbsLibrary* const library = verbs_library();
  EXPECT_EQ(library, verbs_library()) << "loaded once";
  EXPECT_EQ(library == nullptr, !why_no_verbs_library().empty()) << why_no_verbs_library();
  if (library == nullptr) GTEST_SKIP() << why_no_verbs_library();
  EXPECT_STREQ(library->wc_status_str(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded");
  EXPECT_STREQ(library->event_type_str(IBV_EVENT_PORT_ERR), "port error");
  EXPECT_EQ(fork_remark(), "") << "nothing was registered before";
}

// Where a name has several versions the present one is found, not that of 2006.
TEST(VerbsLibrary, ThePresentAbiIsFound) {
  const VerbsLibrary* const library = verbs_library();
  if (library == nullptr) GTEST_SKIP() << why_no_verbs_library();
  void* const handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(handle, nullptr);
  void* const old = dlvsym(handle, "ibv_create_qp", "IBVERBS_1.0");
  void* const present = dlvsym(handle, "ibv_create_qp", "IBVERBS_1.1");
  EXPECT_NE(present, nullptr);
  EXPECT_NE(old, present);
  EXPECT_EQ(reinterpret_cast<void*>(library->create_qp), present);
  dlclose(handle);
}

std::uint8_t port_asked = 0;

int fill_exported(ibv_context* /*context*/, std::uint8_t number,
                  _compat_ibv_port_attr* attributes) {
  port_asked = number;
  reinterpret_cast<ibv_port_attr*>(attributes)->lid = 7;
  return 0;
}

int fill_extended(ibv_context* /*context*/, std::uint8_t number, ibv_port_attr* attributes,
                  std::size_t size) {
  port_asked = number;
  attributes->lid = 8;
  attributes->port_cap_flags2 = 1;
  return static_cast<int>(size);
}

TEST(VerbsLibrary, APortIsAskedThroughTheContextsOwnTable) {
  VerbsLibrary library;
  library.query_port = fill_exported;
  verbs_context extended{};
  extended.query_port = fill_extended;
  ibv_port_attr attributes{};
  std::memset(&attributes, 0xff, sizeof(attributes));

  EXPECT_EQ(query_port(library, &extended.context, 2, &attributes), 0) << "no extended context";
  EXPECT_EQ(port_asked, 2);
  EXPECT_EQ(attributes.lid, 7);
  EXPECT_EQ(attributes.port_cap_flags2, 0) << "what the exported function leaves is zero";

  extended.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  extended.sz = offsetof(verbs_context, context) - offsetof(verbs_context, advise_mr);
  EXPECT_EQ(query_port(library, &extended.context, 3, &attributes), 0) << "an older table";
  EXPECT_EQ(attributes.lid, 7);

  extended.sz = sizeof(verbs_context);
  EXPECT_EQ(query_port(library, &extended.context, 1, &attributes),
            static_cast<int>(sizeof(attributes)));
  EXPECT_EQ(attributes.lid, 8);
  EXPECT_EQ(attributes.port_cap_flags2, 1);

  extended.query_port = nullptr;
  EXPECT_EQ(query_port(library, &extended.context, 1, &attributes), 0);
  EXPECT_EQ(attributes.lid, 7);
}

}  // namespace
}  // namespace hccl::verbs
