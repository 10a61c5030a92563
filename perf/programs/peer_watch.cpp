// SPDX-License-Identifier: Apache-2.0
// Watches the siblings and the time limit of a process.
#include "peer_watch.h"

#include "report_error.h"
#include "text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace hccl_perf {
namespace {

// The maximum wait for the library to report a peer's death. After that, this process repeats the
// parent's less precise message.
constexpr int kLibraryGraceMs = 400;
// The maximum time that fail_rank() waits for the parent to name a sibling that has failed.
constexpr auto kNoticeGrace = std::chrono::milliseconds(250);

// A thread that ends the process locks this mutex before it claims a report (RankRecord::reported),
// and never unlocks it. Otherwise, its std::_Exit() could end the process while another thread that
// has claimed a report is about to write it.
std::mutex last_report;

// Polls up to two descriptors, ignoring those that are -1. Returns 1 if `first` is ready, 2 if only
// `second` is ready, and 0 on a time-out or an error.
int poll_two(int first, int second, int timeout_ms) {
  std::array<pollfd, 2> watched{{{first, POLLIN, 0}, {second, POLLIN, 0}}};
  int ready = poll(watched.data(), watched.size(), timeout_ms);
  while (ready < 0 && errno == EINTR) ready = poll(watched.data(), watched.size(), timeout_ms);
  if (ready <= 0) return 0;
  return watched[0].revents != 0 ? 1 : 2;
}

// Returns the part of a failure message before " (", which names ranks, for example "rank 3".
std::string culprit(const std::string& failure) {
  const std::size_t pid = failure.find(" (");
  return pid == std::string::npos ? failure : failure.substr(0, pid);
}

}  // namespace

PeerWatch::PeerWatch(Board& board, int first, int count, int notice, double timeout)
    : board_(board),
      first_(first),
      count_(count),
      notice_(notice),
      timeout_(timeout),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  if (notice >= 0 || timeout > 0) thread_ = std::thread([this] { run(); });
}

PeerWatch::~PeerWatch() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(stop_, &one, sizeof one);
    thread_.join();
  }
  close(stop_);
}

void PeerWatch::run() {
  const int limit = timeout_ > 0 ? static_cast<int>(std::min(timeout_ * 1000.0, 2.0e9)) : -1;
  const int event = poll_two(stop_, notice_, limit);
  if (event == 0) timed_out();
  if (event == 2) sibling_failed();
}

void PeerWatch::sibling_failed() {
  if (poll_two(stop_, -1, kLibraryGraceMs) != 0) return;
  const std::string failure = board_.failure();
  const std::lock_guard lock(last_report);
  for (int rank = first_; rank < first_ + count_; ++rank) {
    if (board_.record(rank).reported.exchange(true)) continue;
    report_error(text("rank ", rank,
                      ": gives up: ", failure.empty() ? "the parent process has exited" : failure));
  }
  std::_Exit(1);
}

void PeerWatch::timed_out() {
  const std::lock_guard lock(last_report);
  for (int rank = first_; rank < first_ + count_; ++rank) {
    if (board_.record(rank).finished) continue;
    report_error(text("not finished after ", timeout_, " s (-T): ", board_.describe(rank)));
  }
  std::_Exit(1);
}

void fail_rank(Board& board, int rank, bool supervised, const std::string& message) {
  std::string failure;
  const auto until = std::chrono::steady_clock::now() + kNoticeGrace;
  while (supervised && failure.empty() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    failure = board.failure();
  }
  const bool told = failure.empty() || message.find(culprit(failure)) != std::string::npos;
  const std::lock_guard lock(last_report);
  if (!board.record(rank).reported.exchange(true)) {
    report_error(text("rank ", rank, ": ", message, told ? "" : text(" (", failure, ")")));
  }
  std::_Exit(1);
}

}  // namespace hccl_perf
