// SPDX-License-Identifier: Apache-2.0
// Turns failed checks into exceptions that name the check's line.
#include "check.h"

#include <cstdlib>

namespace hccl::test {
namespace {

[[noreturn]] void fail(const std::string& what, const char* file, int line) {
  const std::string path(file);
  throw Failure(join(path.substr(path.rfind('/') + 1), ":", line, ": ", what));
}

std::string or_nothing(const char* text) { return text != nullptr ? text : "(no text)"; }

// Returns whether the list at `at`, such as "0-2,4 and 6", contains `rank`.
bool list_holds(const char* at, int rank) {
  for (;;) {
    char* end = nullptr;
    const long first = std::strtol(at, &end, 10);
    if (end == at) return false;
    long last = first;
    if (*end == '-') {
      at = end + 1;
      last = std::strtol(at, &end, 10);
      if (end == at) return false;
    }
    if (first <= rank && rank <= last) return true;
    const std::string rest(end);
    if (rest.rfind(", ", 0) == 0) {
      at = end + 2;
    } else if (rest.rfind(',', 0) == 0) {
      at = end + 1;
    } else if (rest.rfind(" and ", 0) == 0) {
      at = end + 5;
    } else {
      return false;
    }
  }
}

}  // namespace

void succeed(hcclResult_t result, const char* file, int line) {
  if (result == hcclSuccess) return;
  fail(join("hccl result ", static_cast<int>(result), " (", hcclGetErrorString(result),
            "): ", last_hccl_message()),
       file, line);
}

void succeed(synStatus status, const char* file, int line) {
  if (status == synSuccess) return;
  fail(join("syn status ", static_cast<int>(status), ": ", last_syn_message()), file, line);
}

void expect_code(hcclResult_t result, hcclResult_t expected, const std::string& part,
                 const char* file, int line) {
  const std::string text = last_hccl_message();
  require_equal(static_cast<int>(result), static_cast<int>(expected),
                join("after '", text, "' the hccl result"), file, line);
  require(contains(text, part), join("'", text, "' lacks '", part, "'"), file, line);
}

void expect_code(synStatus status, synStatus expected, const std::string& part, const char* file,
                 int line) {
  const std::string text = last_syn_message();
  require_equal(static_cast<int>(status), static_cast<int>(expected),
                join("after '", text, "' the syn status"), file, line);
  require(contains(text, part), join("'", text, "' lacks '", part, "'"), file, line);
}

void require(bool condition, const std::string& what, const char* file, int line) {
  if (!condition) fail(what, file, line);
}

std::string last_hccl_message() { return or_nothing(hcclGetLastErrorMessage()); }

std::string last_syn_message() { return or_nothing(synGetLastErrorMessage()); }

std::string async_message(hcclComm_t communicator) {
  return or_nothing(hcclCommGetAsyncErrorMessage(communicator));
}

bool names_rank(const std::string& message, int rank) {
  for (std::size_t at = message.find("rank"); at != std::string::npos;
       at = message.find("rank", at + 1)) {
    std::size_t number = at + 4;
    if (number < message.size() && message[number] == 's') ++number;
    if (number < message.size() && message[number] == ' ') {
      if (list_holds(message.c_str() + number + 1, rank)) return true;
    }
  }
  return false;
}

}  // namespace hccl::test
