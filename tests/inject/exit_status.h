// SPDX-License-Identifier: Apache-2.0
// The exit status of an injected rank.
#pragma once

namespace hccl::test {

// Ordered by severity: a rank exits with the most severe status that occurred.
enum class ExitStatus : int {
  success = 0,
  error = 1,       // a call returned an error with a text, or rank 0 sent no id
  no_text = 2,     // a call returned an error without a text
  wrong_data = 3,  // a call succeeded with wrong data
};

}  // namespace hccl::test
