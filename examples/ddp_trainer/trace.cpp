// SPDX-License-Identifier: Apache-2.0
// Records spans and writes them in the trace event format.
#include "trace.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include <nlohmann/json.hpp>
#include <time.h>

namespace ddp_trainer {

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Span* Trace::begin_here(const char* name) {
  if (!enabled_) return nullptr;
  Span& span = spans_.emplace_back();
  std::snprintf(span.name, sizeof span.name, "%s", name);
  span.step = step_;
  return &span;
}

Span* Trace::begin(Stream& stream, Lane lane, const char* name, std::size_t bytes) {
  Span* const span = begin_here(name);
  if (span == nullptr) return nullptr;
  span->lane = lane;
  span->bytes = bytes;
  stream.launch([span] { span->begin = now_ns(); });
  return span;
}

void Trace::end(Stream& stream, Span* span) {
  if (span != nullptr) stream.launch([span] { span->end = now_ns(); });
}

std::string trace_text(const std::vector<std::vector<Span>>& ranks) {
  using nlohmann::ordered_json;
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  for (const auto& spans : ranks) {
    for (const Span& span : spans) start = std::min(start, span.begin);
  }
  ordered_json events = ordered_json::array();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto name = [&](const char* kind, int lane, const std::string& text) {
      events.push_back(
          {{"ph", "M"}, {"name", kind}, {"pid", rank}, {"tid", lane}, {"args", {{"name", text}}}});
    };
    name("process_name", 0, "rank " + std::to_string(rank));
    name("thread_name", 0, "compute");
    name("thread_name", 1, "network");
    for (const Span& span : ranks[rank]) {
      ordered_json arguments{{"step", span.step}};
      if (span.bytes != 0) arguments["bytes"] = span.bytes;
      events.push_back({{"ph", "X"},
                        {"name", span.name},
                        {"cat", span.lane == Lane::network ? "collective" : "kernel"},
                        {"pid", rank},
                        {"tid", static_cast<int>(span.lane)},
                        {"ts", static_cast<double>(span.begin - start) / 1000},
                        {"dur", static_cast<double>(span.end - span.begin) / 1000},
                        {"args", arguments}});
    }
  }
  return ordered_json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() + "\n";
}

}  // namespace ddp_trainer
