// SPDX-License-Identifier: Apache-2.0
// Tests how the guard turns exceptions into codes and last-error texts, and how it refuses calls in
// a forked child.
#include "api/guard.h"

#include "base/error.h"
#include "base/log.h"
#include "base/syn_error.h"
#include "captured_stderr.h"
#include "children.h"

#include <array>
#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>

#include <gtest/gtest.h>
#include <unistd.h>

namespace hccl::api {
namespace {

std::string hccl_text() { return last_hccl_error.text(); }
std::string syn_text() { return last_syn_error.text(); }

TEST(Guard, ReturnsResultOfBodyOrSuccess) {
  EXPECT_EQ(guard(__func__, [] {}), hcclSuccess);
  EXPECT_EQ(guard(__func__, [] { return hcclBusy; }), hcclBusy);
  EXPECT_EQ(hccl_text(), "");
}

TEST(Guard, ReturnsCodeAndSetsTextOfError) {
  EXPECT_EQ(guard(__func__, [] { throw Error(hcclPortDown, "port 3 is down"); }), hcclPortDown);
  EXPECT_EQ(hccl_text(), "port 3 is down");
}

TEST(Guard, LogsFailedCallAndReason) {
  test::CapturedStderr captured;
  (void)guard("hcclAnything", [] { throw Error(hcclPortDown, "port 4 is down"); });
  EXPECT_NE(captured.next_write().find("hcclAnything failed: hcclPortDown (16): port 4 is down"),
            std::string::npos);
  (void)syn_guard("synAnything", [] { throw SynError(synTimeout, "gone"); });
  EXPECT_NE(captured.next_write().find("synAnything failed: synTimeout (42): gone"),
            std::string::npos);
}

TEST(Guard, DoesNotLogAnswersProbesAndForwarders) {
  test::CapturedStderr captured;
  (void)syn_guard("synQuery", [] { return synBusy; });
  (void)syn_guard(probe("synIsThere"), [] { throw SynError(synInvalidArgument, "no"); });
  (void)guard(forwarder("hcclOuter"), [] { throw Error(hcclInvalidArgument, "logged already"); });
  EXPECT_EQ(captured.next_write(), "");
}

TEST(Guard, ClearsLastErrorOfItsApiOnly) {
  (void)guard(__func__, [] { throw Error(hcclPortDown, "hccl"); });
  (void)syn_guard(__func__, [] { throw SynError(synTimeout, "syn"); });
  EXPECT_EQ(hccl_text(), "hccl");
  EXPECT_EQ(guard(__func__, [] {}), hcclSuccess);
  EXPECT_EQ(hccl_text(), "");
  EXPECT_EQ(syn_text(), "syn");
  EXPECT_EQ(last_syn_error.status(), synTimeout);
  EXPECT_EQ(syn_guard(__func__, [] {}), synSuccess);
  EXPECT_EQ(syn_text(), "");
  EXPECT_EQ(last_syn_error.status(), synSuccess);
}

TEST(Guard, MapsForeignExceptionsToNearestCode) {
  EXPECT_EQ(guard(__func__, [] { throw std::bad_alloc(); }), hcclOutOfMemory);
  EXPECT_NE(hccl_text(), "");
  EXPECT_EQ(guard(__func__, [] { throw std::runtime_error("odd"); }), hcclInternalError);
  EXPECT_EQ(hccl_text(), "odd");
  EXPECT_EQ(
      guard(__func__, [] { throw std::system_error(std::make_error_code(std::errc::io_error)); }),
      hcclSystemError);
  EXPECT_NE(hccl_text(), "");
  EXPECT_EQ(guard(__func__, [] { throw 42; }), hcclInternalError);
  EXPECT_NE(hccl_text(), "");
}

TEST(Guard, TruncatesLongText) {
  const std::string text(5 * LastError::kCapacity, 'x');
  EXPECT_EQ(guard(__func__, [&] { throw Error(hcclSystemError, text); }), hcclSystemError);
  EXPECT_EQ(hccl_text(), text.substr(0, LastError::kCapacity - 1));
}

TEST(SynGuard, ReturnsExactStatuses) {
  EXPECT_EQ(syn_guard(__func__, [] { throw SynError(synMappingNotFound, "no such mapping"); }),
            synMappingNotFound);
  EXPECT_EQ(last_syn_error.status(), synMappingNotFound);
  EXPECT_EQ(syn_text(), "no such mapping");
  EXPECT_EQ(syn_guard(__func__, [] { return synBusy; }), synBusy);
  EXPECT_EQ(last_syn_error.status(), synBusy);
  EXPECT_EQ(syn_text(), "");
}

TEST(SynGuard, MapsOtherExceptionsToNearestStatus) {
  EXPECT_EQ(syn_guard(__func__, [] { throw std::bad_alloc(); }), synOutOfHostMemory);
  EXPECT_EQ(syn_guard(__func__, [] { throw std::runtime_error("odd"); }), synFail);
  EXPECT_EQ(syn_guard(__func__, [] { throw 42; }), synFail);
  EXPECT_NE(syn_text(), "");
}

TEST(SynGuard, MapsEveryResultToNearestStatus) {
  struct Row {
    hcclResult_t result;
    synStatus status;
  };
  constexpr Row kRows[] = {
      {hcclUninitialized, synUninitialized},
      {hcclNoDeviceFound, synNoDeviceFound},
      {hcclUnsupported, synUnsupported},
      {hcclOutOfMemory, synOutOfHostMemory},
      {hcclUnhandledSynapseError, synFail},
      {hcclSystemError, synFail},
      {hcclInternalError, synFail},
      {hcclInvalidArgument, synInvalidArgument},
      {hcclInvalidUsage, synResourceBadUsage},
      {hcclSocketError, synFailHccl},
      {hcclLibfabricError, synFailHccl},
      {hcclTryAgainError, synBusy},
      {hcclBusy, synBusy},
      {hcclStreamError, synFail},
      {hcclSynapseTerminated, synSynapseTerminated},
      {hcclPortDown, synFailHccl},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(syn_guard(__func__, [&] { throw Error(row.result, "text"); }), row.status)
        << row.result;
    EXPECT_EQ(syn_text(), "text");
  }
}

TEST(SynError, HasResultOfItsStatus) {
  const std::map<hcclResult_t, std::set<synStatus>> statuses = {
      {hcclSuccess, {synSuccess}},
      {hcclInvalidArgument, {synInvalidArgument, synInvalidTensorDimensions}},
      {hcclOutOfMemory, {synOutOfHostMemory, synOutOfDeviceMemory}},
      {hcclInvalidUsage,
       {synObjectAlreadyInitialized, synObjectNotInitialized, synNoDeviceFound,
        synDeviceTypeMismatch, synFailedNotEnoughDevicesFound, synWrongParamsFile,
        synDeviceAlreadyAcquired}},
      {hcclSystemError, {synNameIsAlreadyUsed, synBusy, synAllResourcesTaken}},
      {hcclUnhandledSynapseError, {synDeviceReset, synUnavailable}},
  };
  std::map<synStatus, hcclResult_t> expected;
  for (const auto& [result, group] : statuses) {
    for (const synStatus status : group) expected[status] = result;
  }
  for (int code = synSuccess; code <= synFailTpcKernels; ++code) {
    const auto status = static_cast<synStatus>(code);
    const auto known = expected.find(status);
    EXPECT_EQ(guard(__func__, [=] { throw SynError(status, "text"); }),
              known == expected.end() ? hcclInternalError : known->second)
        << code;
  }
}

struct Answers {
  hcclResult_t result;
  synStatus status;
  std::array<bool, 4> as_expected;  // that no body ran, and that both texts were set
};

Answers call_in_forked_child() {
  bool ran = false;
  Answers answers{};
  answers.result = guard(__func__, [&] { ran = true; });
  answers.as_expected[0] = !ran;
  answers.status = syn_guard(__func__, [&] { ran = true; });
  answers.as_expected[1] = !ran;
  answers.as_expected[2] = !hccl_text().empty();
  answers.as_expected[3] = !syn_text().empty();
  return answers;
}

TEST(Guard, RefusesInForkedChildButNotInParent) {
  install_fork_guard();
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t child = test::start_child([&] {
    const Answers answers = call_in_forked_child();
    return write(ends[1], &answers, sizeof answers) == sizeof answers;
  });
  close(ends[1]);
  Answers answers{};
  EXPECT_EQ(read(ends[0], &answers, sizeof answers), static_cast<ssize_t>(sizeof answers));
  close(ends[0]);
  EXPECT_EQ(test::status_of(child), 0);
  EXPECT_EQ(answers.result, hcclInvalidUsage);
  EXPECT_EQ(answers.status, synFail);
  for (const bool as_expected : answers.as_expected) EXPECT_TRUE(as_expected);
  EXPECT_EQ(guard(__func__, [] {}), hcclSuccess);
}

// A forked child logs a single line to say that it cannot use the library. A call that is not
// logged must not use up that line.
TEST(Guard, ProbeInForkedChildDoesNotUseUpLogLine) {
  install_fork_guard();
  test::CapturedStderr captured;
  configure_log(Config{});  // logs to the captured stderr
  const int status = test::status_in_child([] {
    (void)syn_guard(probe("synIsThere"), [] {});
    for (int call = 0; call < 2; ++call) (void)syn_guard("synAnything", [] {});
    return true;
  });
  EXPECT_EQ(status, 0);
  EXPECT_NE(captured.next_write().find("synAnything failed: synFail: the library cannot be used"),
            std::string::npos);
  EXPECT_EQ(captured.next_write(), "");
}

}  // namespace
}  // namespace hccl::api
