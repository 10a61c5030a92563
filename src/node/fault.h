// SPDX-License-Identifier: Apache-2.0
// A communicator's fault: the first failure that any rank detects. Every rank of the node sees it.
#pragma once

#include "node/control_block.h"

#include <hccl_types.h>

#include <new>
#include <string>
#include <string_view>

namespace hccl::node {

class Fault {
 public:
  explicit Fault(ControlBlock control) : control_(control) {}

  [[nodiscard]] bool raised() const {
    return control_.header().fault.state.load(std::memory_order_seq_cst) != FaultRecord::none;
  }
  // Records `code` and `text` unless a fault is already recorded. In either case, fails every
  // operation in flight and wakes all waiting ranks.
  void raise(hcclResult_t code, std::string_view text) noexcept;
  // Raises the fault with the text that make_text() returns. If memory is exhausted, uses a fixed
  // text, because other ranks wait for the fault.
  template <class MakeText>
  void raise_with(hcclResult_t code, MakeText make_text) noexcept {
    try {
      raise(code, make_text());
    } catch (const std::bad_alloc&) {
      raise(code, "a rank failed and had no memory to report why; free memory on its host");
    }
  }

  // Return the code and the text of a raised fault. Block for at most 100 ms while another rank
  // writes the record. If it is still incomplete then, return hcclSystemError and a fixed text.
  [[nodiscard]] hcclResult_t code() const;
  [[nodiscard]] std::string text() const;
  [[noreturn]] void throw_error() const;

 private:
  void wait_readable() const;
  ControlBlock control_;
};

}  // namespace hccl::node
