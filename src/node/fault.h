// SPDX-License-Identifier: Apache-2.0
// The fault of a communicator: raised once by whoever sees it first, seen by every rank of the
// node.
#pragma once

#include "node/control_block.h"

#include <hccl_types.h>

#include <string>

namespace hccl::node {

class Fault {
 public:
  explicit Fault(ControlBlock control) : control_(control) {}

  [[nodiscard]] bool raised() const {
    return control_.header().fault.state.load(std::memory_order_seq_cst) != FaultRecord::none;
  }
  // Records code and text unless another fault came first; then fails every operation in flight and
  // wakes its waiters.
  void raise(hcclResult_t code, const std::string& text);

  // Of a raised fault.
  [[nodiscard]] hcclResult_t code() const;
  [[nodiscard]] std::string text() const;
  [[noreturn]] void throw_error() const;

 private:
  void wait_readable() const;
  ControlBlock control_;
};

}  // namespace hccl::node
