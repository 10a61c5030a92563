// SPDX-License-Identifier: Apache-2.0
// Checks inside a rank, which is not a GoogleTest test of its own: a failed one throws, and its
// text travels to the test program.
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

// Throws with the texts of the library's last errors unless `result` is success.
void succeed(hcclResult_t result, const char* file = __builtin_FILE(), int line = __builtin_LINE());
void succeed(synStatus status, const char* file = __builtin_FILE(), int line = __builtin_LINE());

// Throws unless a call returned `expected` and the library's last text contains `part`.
void expect_code(hcclResult_t result, hcclResult_t expected, const std::string& part = "",
                 const char* file = __builtin_FILE(), int line = __builtin_LINE());
void expect_code(synStatus status, synStatus expected, const std::string& part = "",
                 const char* file = __builtin_FILE(), int line = __builtin_LINE());

// Throws unless the condition holds.
void require(bool condition, const std::string& what, const char* file = __builtin_FILE(),
             int line = __builtin_LINE());

template <class Actual, class Expected>
void require_equal(const Actual& actual, const Expected& expected, const std::string& what,
                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!(actual == expected)) {
    require(false, join(what, " is ", actual, ", expected ", expected), file, line);
  }
}

// The library's last texts of this thread; never null.
[[nodiscard]] std::string last_hccl_message();
[[nodiscard]] std::string last_syn_message();
[[nodiscard]] std::string async_message(hcclComm_t communicator);

// Returns whether a message names `rank`: "rank 3", or within a list as in "ranks 0-2,4".
[[nodiscard]] bool names_rank(const std::string& message, int rank);

}  // namespace hccl::test
