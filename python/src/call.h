// SPDX-License-Identifier: Apache-2.0
// Converts result codes of the C API to c10d's exceptions.
#pragma once

#include <hccl.h>
#include <synapse_api.h>

#include <string>

namespace hccl_torch {

// Returns the text of the library's last error on this thread, reworded for PyTorch.
[[nodiscard]] std::string last_reason();

// Throw c10::DistBackendError with the library's error text if `result` or `status` is a failure.
void check(hcclResult_t result, const char* function);
void check(synStatus status, const char* function);

// Opens a group when constructed. end() closes the group, and the library then issues the group's
// calls together.
class CallGroup {
 public:
  CallGroup() { check(hcclGroupStart(), "hcclGroupStart"); }
  // Closes the group if an exception has skipped end().
  ~CallGroup() {
    if (is_open_) hcclGroupEnd();
  }
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;

  // Closes the group. Throws c10::DistBackendError.
  void end() {
    is_open_ = false;
    check(hcclGroupEnd(), "hcclGroupEnd");
  }

 private:
  bool is_open_ = true;
};

}  // namespace hccl_torch
