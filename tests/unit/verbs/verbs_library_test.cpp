// SPDX-License-Identifier: Apache-2.0
// Tests how libibverbs is loaded, and the texts and severities of verbs errors and events.

#include "verbs/verbs_library.h"

#include "text_parts.h"
#include "verbs/verbs_errors.h"

#include <cerrno>
#include <cstring>
#include <set>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace hccl::verbs {
namespace {

using hccl::test::contains;

// Tests error texts. Every code that a device can report must have a text with cause and advice.

ConnectionEnds ends_of_ranks() {
  return {0, 3, "node-b", "rxe0", 1, "10.77.0.1", "10.77.0.2", 1024};
}

// Returns the text after the last semicolon.
std::string advice_of(const std::string& text) {
  const std::size_t semicolon = text.rfind("; ");
  return semicolon == std::string::npos ? "" : text.substr(semicolon + 2);
}

TEST(VerbsErrors, DescribeExceededRetries) {
  EXPECT_EQ(
      describe_completion(IBV_WC_RETRY_EXC_ERR, 129, ends_of_ranks()),
      "completion error 12 (transport retry counter exceeded), vendor error 129, between rank 0 "
      "(rxe0 port 1, GID 10.77.0.1) and rank 3 (host node-b, GID 10.77.0.2) with an MTU of 1024: "
      "the peer's process or host has stopped answering, or packets are lost on the way: a wrong "
      "GID index, a missing route, an MTU that a switch does not carry, a firewall that drops UDP "
      "port 4791, or congestion without flow control (PFC); check whether rank 3 is still running "
      "and, if so, whether `ping -M do -s 1060 10.77.0.2` gets through");
}

TEST(VerbsErrors, ExplainEveryCompletion) {
  const VerbsLibrary* const library = verbs_library();
  for (int number = IBV_WC_SUCCESS; number <= IBV_WC_TM_RNDV_INCOMPLETE; ++number) {
    const auto status = static_cast<ibv_wc_status>(number);
    const std::string text = describe_completion(status, 5, ends_of_ranks());
    EXPECT_EQ(text.find("completion error " + std::to_string(number) + " ("), 0U) << text;
    EXPECT_TRUE(contains(text, "vendor error 5,") && contains(text, "node-b")) << text;
    EXPECT_GT(advice_of(text).size(), 10U) << text;
    EXPECT_FALSE(contains(text, "unknown")) << text;
    const bool named = library != nullptr && number <= IBV_WC_GENERAL_ERR;
    if (named) {
      EXPECT_TRUE(contains(text, library->wc_status_str(status))) << text;
    }
  }
}

TEST(VerbsErrors, ExplainEveryEvent) {
  const VerbsLibrary* const library = verbs_library();
  for (int number = IBV_EVENT_CQ_ERR; number <= IBV_EVENT_WQ_FATAL; ++number) {
    const auto event = static_cast<ibv_event_type>(number);
    const std::string text = describe_event(event, "rxe0", 1);
    EXPECT_EQ(text.find("event " + std::to_string(number) + " ("), 0U) << text;
    EXPECT_TRUE(contains(text, "RDMA device rxe0 port 1: ")) << text;
    EXPECT_GT(advice_of(text).size(), 10U) << text;
    EXPECT_FALSE(contains(text, "unknown")) << text;
    const bool named = library != nullptr && number <= IBV_EVENT_GID_CHANGE;
    if (named) {
      EXPECT_TRUE(contains(text, library->event_type_str(event))) << text;
    }
  }
  EXPECT_EQ(describe_event(IBV_EVENT_DEVICE_FATAL, "rxe0", 0).find(" port "), std::string::npos);
}

TEST(VerbsErrors, ReportUnknownNumbers) {
  const auto status = static_cast<ibv_wc_status>(31);
  const std::string text = describe_completion(status, 0, ends_of_ranks());
  EXPECT_TRUE(contains(text, "completion error 31 (unknown)")) << text;
  EXPECT_EQ(severity_of(status), Severity::device_gone);
  const auto event = static_cast<ibv_event_type>(31);
  EXPECT_TRUE(contains(describe_event(event, "rxe0", 0), "event 31 (unknown)"));
  EXPECT_EQ(severity_of(event), Severity::device_gone);
}

TEST(VerbsErrors, HaveSeverityForEveryCompletion) {
  const std::set<int> lost{IBV_WC_WR_FLUSH_ERR,      IBV_WC_BAD_RESP_ERR,    IBV_WC_REM_ACCESS_ERR,
                           IBV_WC_REM_OP_ERR,        IBV_WC_RETRY_EXC_ERR,   IBV_WC_REM_ABORT_ERR,
                           IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_RESP_TIMEOUT_ERR};
  const std::set<int> gone{IBV_WC_FATAL_ERR, IBV_WC_GENERAL_ERR};
  for (int number = IBV_WC_SUCCESS; number <= IBV_WC_TM_RNDV_INCOMPLETE; ++number) {
    const Severity expected = lost.contains(number)      ? Severity::peer_lost
                              : number == IBV_WC_SUCCESS ? Severity::ignorable
                              : gone.contains(number)    ? Severity::device_gone
                                                         : Severity::own_fault;
    EXPECT_EQ(severity_of(static_cast<ibv_wc_status>(number)), expected) << number;
  }
}

TEST(VerbsErrors, HaveSeverityForEveryEvent) {
  const std::set<int> own{IBV_EVENT_CQ_ERR, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
                          IBV_EVENT_SRQ_ERR, IBV_EVENT_WQ_FATAL};
  const std::set<int> gone{IBV_EVENT_QP_FATAL, IBV_EVENT_DEVICE_FATAL};
  for (int number = IBV_EVENT_CQ_ERR; number <= IBV_EVENT_WQ_FATAL; ++number) {
    const Severity expected = number == IBV_EVENT_PORT_ERR ? Severity::port_down
                              : own.contains(number)       ? Severity::own_fault
                              : gone.contains(number)      ? Severity::device_gone
                                                           : Severity::ignorable;
    EXPECT_EQ(severity_of(static_cast<ibv_event_type>(number)), expected) << number;
  }
}

TEST(VerbsErrors, NameMemlockLimit) {
  EXPECT_EQ(memlock_advice(1 << 20, ENOMEM, "rxe0", 64 << 10),
            "cannot register 1048576 bytes with rxe0: Cannot allocate memory; the limit on locked "
            "memory is 64 KiB: raise `ulimit -l` (for a container: --ulimit memlock=-1), or "
            "run without RoCE: HCCL_IB_DISABLE=1");
  EXPECT_TRUE(contains(memlock_advice(1, ENOMEM, "rxe0", 8 << 20), "is 8 MiB:"));
  EXPECT_TRUE(contains(memlock_advice(1, ENOMEM, "rxe0", 65537), "is 65537 bytes:"));
  EXPECT_TRUE(contains(memlock_advice(1, ENOMEM, "rxe0", 0), "is 0 bytes:"));
}

TEST(VerbsErrors, SuggestOtherCausesWithoutMemlockLimit) {
  const std::string unlimited = memlock_advice(4096, ENOMEM, "rxe0", RLIM_INFINITY);
  EXPECT_FALSE(contains(unlimited, "ulimit")) << unlimited;
  EXPECT_TRUE(contains(unlimited, "; free memory")) << unlimited;
  EXPECT_EQ(memlock_advice(4096, EFAULT, "rxe0", 0),
            "cannot register 4096 bytes with rxe0: Bad address; look for the "
            "device in the output of `dmesg`");
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  EXPECT_EQ(locked_memory_limit(), limit.rlim_cur);
}

// Tests how libibverbs is loaded. If it cannot be loaded, a text must say why.

TEST(VerbsLibrary, ReportsMissingLibrary) {
  const LoadedLibrary library = load_verbs_library("libhccl-no-such-verbs.so.1");
  EXPECT_FALSE(library.usable);
  EXPECT_EQ(library.functions.get_device_list, nullptr);
  EXPECT_EQ(library.why_not,
            "libhccl-no-such-verbs.so.1 is not installed: on Debian, install libibverbs1 and, for "
            "the drivers, ibverbs-providers");
}

TEST(VerbsLibrary, RefusesOtherLibrary) {
  const LoadedLibrary library = load_verbs_library("libc.so.6");
  EXPECT_FALSE(library.usable);
  EXPECT_EQ(library.why_not, "libc.so.6 is too old: it lacks ibv_get_device_list");
}

TEST(VerbsLibrary, ReportsUnloadableFile) {
  const LoadedLibrary library = load_verbs_library("/proc/self/cmdline");
  EXPECT_FALSE(library.usable);
  EXPECT_EQ(library.why_not.rfind("/proc/self/cmdline cannot be loaded: ", 0), 0U)
      << library.why_not;
}

TEST(VerbsLibrary, IsLoadedOrExplained) {
  const VerbsLibrary* const library = verbs_library();
  EXPECT_EQ(library, verbs_library()) << "loaded once";
  EXPECT_EQ(library == nullptr, !why_no_verbs_library().empty()) << why_no_verbs_library();
  if (library == nullptr) GTEST_SKIP() << "needs libibverbs: " << why_no_verbs_library();
  EXPECT_STREQ(library->wc_status_str(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded");
  EXPECT_STREQ(library->event_type_str(IBV_EVENT_PORT_ERR), "port error");
  EXPECT_EQ(fork_remark(), "") << "nothing was registered before";
}

// A symbol with several versions must resolve to the current version, not to IBVERBS_1.0.
TEST(VerbsLibrary, UsesCurrentAbi) {
  const VerbsLibrary* const library = verbs_library();
  if (library == nullptr) GTEST_SKIP() << "needs libibverbs: " << why_no_verbs_library();
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

TEST(VerbsLibrary, QueriesPortThroughContextOperations) {
  VerbsLibrary library;
  library.query_port = fill_exported;
  verbs_context extended{};
  extended.query_port = fill_extended;
  ibv_port_attr attributes{};
  std::memset(&attributes, 0xff, sizeof(attributes));

  EXPECT_EQ(query_port(library, &extended.context, 2, &attributes), 0) << "no extended context";
  EXPECT_EQ(port_asked, 2);
  EXPECT_EQ(attributes.lid, 7);
  EXPECT_EQ(attributes.port_cap_flags2, 0)
      << "fields that the exported function does not set are zero";

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
