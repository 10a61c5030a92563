// SPDX-License-Identifier: Apache-2.0
// Starts the ranks as separate programs, because a library can only be preloaded into a new
// program.
#include "experiment.h"

#include "check.h"
#include "exit_status.h"
#include "ranks.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl::test {
namespace {

// Much longer than the ranks' own deadlines.
constexpr std::chrono::seconds kPatience{sanitized() ? 100 : 20};
constexpr const char* kRankLimit = sanitized() ? "15" : "4";  // seconds
constexpr int kIdDescriptor = 10;                             // the same in each rank

class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(int fd) : fd_(fd) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedDescriptor& operator=(OwnedDescriptor&&) = delete;
  ~OwnedDescriptor() { reset(); }
  [[nodiscard]] int get() const { return fd_; }
  void reset() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

std::vector<std::string> environment(const Pairing& pairing, int rank, int serial,
                                     const std::string& for_victim) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view assignment(*entry);
    if (!assignment.starts_with("HCCL_") && !assignment.starts_with("LOG_LEVEL"))
      all.emplace_back(assignment);
  }
  const char* const node = pairing.layout == Layout::two_nodes && rank == 1 ? "-b" : "-a";
  all.push_back(join("HCCL_NODE_ID=inject-", getpid(), '-', serial, node));
  all.emplace_back("HCCL_SOCKET_IFNAME=lo");
  all.push_back(join("HCCL_INIT_TIMEOUT=", kRankLimit));
  all.push_back(join("HCCL_TIMEOUT=", kRankLimit));
  if (pairing.layout == Layout::rings) all.emplace_back("HCCL_TRANSPORT=shm");
  if (rank != pairing.victim) return all;
  all.emplace_back("LD_PRELOAD=" HCCL_INTERPOSER);
  all.push_back(for_victim);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t start(int rank, std::vector<std::string> environment_texts, int id_end, int errors) {
  std::vector<std::string> words{HCCL_INJECTED_RANK, join(rank), join(kIdDescriptor)};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, id_end, kIdDescriptor);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, HCCL_INJECTED_RANK, &actions, nullptr,
                                pointers_to(words).data(), pointers_to(environment_texts).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw Failure(join("cannot start a rank: ", std::strerror(error)));
  return pid;
}

// Blocks until both ranks have exited. Kills the ranks that are still running after kPatience, and
// then returns false.
bool await_all(const std::array<pid_t, 2>& pids, std::array<int, 2>& statuses) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  std::array<bool, 2> ended{};
  bool in_time = true;
  while (!ended[0] || !ended[1]) {
    for (std::size_t rank = 0; rank < pids.size(); ++rank) {
      if (!ended[rank] && waitpid(pids[rank], &statuses[rank], WNOHANG) == pids[rank])
        ended[rank] = true;
    }
    if (in_time && std::chrono::steady_clock::now() > end) {
      in_time = false;
      for (std::size_t rank = 0; rank < pids.size(); ++rank) {
        if (!ended[rank]) kill(pids[rank], SIGKILL);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return in_time;
}

std::string contents(int fd) {
  std::string all;
  std::array<char, 4096> chunk{};
  off_t at = 0;
  for (ssize_t count = 0; (count = pread(fd, chunk.data(), chunk.size(), at)) > 0; at += count)
    all.append(chunk.data(), static_cast<std::size_t>(count));
  return all;
}

Result run_ranks_with(const Pairing& pairing, const std::string& for_victim) {
  static std::atomic<int> serials{0};
  const int serial = ++serials;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Failure("no pipe");
  OwnedDescriptor read_end(ends[0]);
  OwnedDescriptor write_end(ends[1]);
  const OwnedDescriptor errors(memfd_create("stderr", MFD_CLOEXEC));
  fcntl(errors.get(), F_SETFL, O_APPEND);
  Result result;
  std::array<pid_t, 2> pids{};
  for (int rank = 0; rank < 2; ++rank) {
    pids[static_cast<std::size_t>(rank)] =
        start(rank, environment(pairing, rank, serial, for_victim),
              rank == 0 ? write_end.get() : read_end.get(), errors.get());
  }
  // Close this process's write end, so that rank 1 reads end of file if rank 0 exits without
  // writing the id.
  write_end.reset();
  result.hung = !await_all(pids, result.statuses);
  result.output = contents(errors.get());
  return result;
}

}  // namespace

const char* name_of(Layout layout) {
  constexpr std::array kNames{"OneNode", "TwoNodes", "Rings"};
  return kNames.at(static_cast<std::size_t>(layout));
}

bool Result::succeeded(int rank) const { return statuses[static_cast<std::size_t>(rank)] == 0; }

std::string Result::defect() const {
  if (hung) return "a rank hangs";
  for (std::size_t rank = 0; rank < statuses.size(); ++rank) {
    const int status = statuses[rank];
    if (WIFSIGNALED(status)) return join("rank ", rank, " is ended by signal ", WTERMSIG(status));
    switch (static_cast<ExitStatus>(WEXITSTATUS(status))) {
      case ExitStatus::success:
      case ExitStatus::error:
        break;
      case ExitStatus::no_text:
        return join("rank ", rank, " gets an error without a text");
      case ExitStatus::wrong_data:
        return join("rank ", rank, " gets wrong data");
      default:
        return join("rank ", rank, " exits with status ", WEXITSTATUS(status));
    }
  }
  return {};
}

Result run(const Pairing& pairing, const Injection& injection) {
  return run_ranks_with(pairing, join("INJECT=", injection.to_text()));
}

std::vector<CallCount> count_calls(const Pairing& pairing) {
  const std::string path = join("/tmp/hccl-inject-", getpid());
  const Result result = run_ranks_with(pairing, join("INJECT_COUNTS=", path));
  if (!result.succeeded(0) || !result.succeeded(1))
    throw Failure(join("the ranks fail without an injection: ", result.output));
  std::vector<CallCount> counts;
  std::ifstream file(path);
  for (CallCount count; file >> count.phase >> count.function >> count.calls;)
    counts.push_back(count);
  unlink(path.c_str());
  if (counts.empty()) throw Failure("the interposer has counted no calls");
  return counts;
}

}  // namespace hccl::test
