// SPDX-License-Identifier: Apache-2.0
// Checks for code that runs inside a rank, where GoogleTest's assertions are not available. A
// failed check throws Failure, whose text is sent to the test program.
#pragma once

#include "text_parts.h"

#include <hccl.h>
#include <synapse_api.h>

#include <sstream>
#include <stdexcept>
#include <string>

namespace hccl::test {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class... Parts>
[[nodiscard]] std::string join(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Throws Failure with the result and the library's last error text unless the call succeeded.
void succeed(hcclResult_t result, const char* file = __builtin_FILE(), int line = __builtin_LINE());
void succeed(synStatus status, const char* file = __builtin_FILE(), int line = __builtin_LINE());

// Throws Failure unless the call returned `expected` and the library's last error text contains
// `part`.
void expect_code(hcclResult_t result, hcclResult_t expected, const std::string& part = "",
                 const char* file = __builtin_FILE(), int line = __builtin_LINE());
void expect_code(synStatus status, synStatus expected, const std::string& part = "",
                 const char* file = __builtin_FILE(), int line = __builtin_LINE());

// Throws Failure with `what` unless the condition holds.
void require(bool condition, const std::string& what, const char* file = __builtin_FILE(),
             int line = __builtin_LINE());

template <class Actual, class Expected>
void require_equal(const Actual& actual, const Expected& expected, const std::string& what,
                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!(actual == expected)) {
    require(false, join(what, " is ", actual, ", expected ", expected), file, line);
  }
}

// Return the library's last error text of this thread or communicator, or "(no text)" if there is
// none.
[[nodiscard]] std::string last_hccl_message();
[[nodiscard]] std::string last_syn_message();
[[nodiscard]] std::string async_message(hcclComm_t communicator);

// Returns whether a message names `rank`, as "rank 3" or within a list such as "ranks 0-2,4".
[[nodiscard]] bool names_rank(const std::string& message, int rank);

}  // namespace hccl::test
