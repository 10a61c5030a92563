// SPDX-License-Identifier: Apache-2.0
// Implements the shared board.
#include "board.h"

#include "quantities.h"
#include "text.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>

#include <sys/mman.h>

namespace hccl_perf {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t round_to_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Returns the state letter in /proc/<pid>/stat, or 0 if the file cannot be read.
char process_state(int pid) {
  std::ifstream file(text("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= line.size() ? '\0' : line[name_end + 2];
}

}  // namespace

struct Board::Notice {
  enum State : int { none, writing, written };
  std::atomic<int> state{none};
  std::array<char, 256> text{};
};

// Indexed by phase.
constexpr std::array kPhaseNames{"starting",   "initialising", "filling buffers for",  "checking",
                                 "warming up", "timing",       "measuring latency of", "ending"};

const char* phase_name(Phase phase) { return kPhaseNames.at(static_cast<std::size_t>(phase)); }

Board::Board(int ranks, std::size_t expected_bytes)
    : ranks_(ranks), expected_bytes_(expected_bytes) {
  const std::size_t records_at = round_to_pages(sizeof(Notice));
  const std::size_t expected_at =
      records_at + round_to_pages(sizeof(RankRecord) * static_cast<std::size_t>(ranks));
  mapped_bytes_ = expected_at + round_to_pages(expected_bytes);
  void* mapped = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    throw RunError(text("cannot allocate ", format_bytes(mapped_bytes_), " for expected results: ",
                        std::strerror(errno), "; use a smaller -e, or -c 0 to check nothing"));
  }
  base_ = static_cast<std::byte*>(mapped);
  notice_ = new (base_) Notice;
  records_ = new (base_ + records_at) RankRecord[static_cast<std::size_t>(ranks)];
  expected_ = base_ + expected_at;
}

Board::~Board() { munmap(base_, mapped_bytes_); }

void Board::publish_failure(const std::string& failure) {
  int none = Notice::none;
  if (!notice_->state.compare_exchange_strong(none, Notice::writing)) return;
  std::snprintf(notice_->text.data(), notice_->text.size(), "%s", failure.c_str());
  notice_->state.store(Notice::written, std::memory_order_release);
}

std::string Board::failure() const {
  if (notice_->state.load(std::memory_order_acquire) != Notice::written) return {};
  return notice_->text.data();
}

std::string Board::describe(int rank) const {
  const RankRecord& line = record(rank);
  const int pid = line.pid.load();
  const Phase phase = line.phase.load();
  const bool stopped = pid != 0 && process_state(pid) == 'T';
  const bool in_row =
      phase != Phase::starting && phase != Phase::initialising && phase != Phase::ending;
  return text("rank ", rank, " (pid ", pid, stopped ? ", stopped) " : ") ", phase_name(phase),
              in_row ? text(" ", format_bytes(line.row_bytes.load())) : "", ", ", line.calls.load(),
              " calls queued");
}

}  // namespace hccl_perf
