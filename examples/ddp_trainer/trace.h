// SPDX-License-Identifier: Apache-2.0
// Records the times of kernels and collectives for Perfetto and chrome://tracing. The times come
// from the machine's monotonic clock, so those of ranks on different machines cannot be compared.
#pragma once

#include "device.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace ddp_trainer {

[[nodiscard]] std::int64_t now_ns();

enum class Lane : std::uint32_t { compute = 0, network = 1 };

struct Span {
  char name[24] = {};
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint64_t bytes = 0;  // bytes of a collective
  Lane lane = Lane::compute;
  std::uint32_t step = 0;
};

// The spans of one rank. If tracing is disabled, no spans are stored, and begin() and end() queue
// nothing.
class Trace {
 public:
  explicit Trace(bool enabled) : enabled_(enabled) {}

  void set_step(std::uint32_t step) { step_ = step; }
  // Record the span of the work that the caller queues between begin() and end(). The caller passes
  // the result of begin() to end().
  [[nodiscard]] Span* begin(Stream& stream, Lane lane, const char* name, std::size_t bytes = 0);
  static void end(Stream& stream, Span* span);
  // Queues a kernel and records its span.
  template <class Kernel>
  void launch(Stream& stream, const char* name, Kernel kernel) {
    Span* const span = begin_here(name);
    stream.launch([kernel = std::move(kernel), span]() mutable {
      if (span != nullptr) span->begin = now_ns();
      kernel();
      if (span != nullptr) span->end = now_ns();
    });
  }
  // Returns the spans. The caller must have waited for all queued work.
  [[nodiscard]] std::vector<Span> spans() const { return {spans_.begin(), spans_.end()}; }

 private:
  [[nodiscard]] Span* begin_here(const char* name);

  bool enabled_;
  std::uint32_t step_ = 0;
  std::deque<Span> spans_;  // a deque, because pointers to its elements must stay valid
};

// Returns JSON for trace viewers. `ranks` has the spans of each rank.
[[nodiscard]] std::string trace_text(const std::vector<std::vector<Span>>& ranks);

}  // namespace ddp_trainer
