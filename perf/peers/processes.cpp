// SPDX-License-Identifier: Apache-2.0
// Forks the ranks and watches over them.
#include "processes.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace peers {
namespace {

int run_rank(const std::string& program, int rank,
             const std::function<std::uint64_t(int rank)>& serve_rank) {
  try {
    return serve_rank(rank) == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: rank %d: %s\n", program.c_str(), rank, error.what());
    return 1;
  }
}

int watch(const std::vector<pid_t>& children) {
  int failed = 0;
  for (std::size_t left = children.size(); left > 0; --left) {
    int status = 0;
    wait(&status);
    if (status != 0 && failed == 0) {
      failed = 1;
      for (const pid_t child : children) {
        kill(child, SIGKILL);
      }
    }
  }
  return failed;
}

}  // namespace

void* shared_memory(std::size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  return memory;
}

int run_processes(const std::string& program, int ranks,
                  const std::function<std::uint64_t(int rank)>& serve_rank) {
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::_Exit(getppid() == parent ? run_rank(program, rank, serve_rank) : 1);
    }
    if (child < 0) {
      std::perror((program + ": fork").c_str());
      return 1;  // the children end with this process
    }
    children.push_back(child);
  }
  return watch(children);
}

}  // namespace peers
