// SPDX-License-Identifier: Apache-2.0
// Starts programs and reads their output.
#include "run_program.h"

#include "child.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl_perf {
namespace {

void change_environment(const Program::Variables& variables) {
  for (const std::string& variable : variables) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos) {
      unsetenv(variable.c_str());
    } else {
      setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
    }
  }
}

// Appends the available bytes to `text`. At the end of the stream or on an error, closes the
// descriptor and returns false.
bool drain(int& descriptor, std::string& text) {
  std::array<char, 4096> piece;
  const ssize_t got = read(descriptor, piece.data(), piece.size());
  if (got > 0) {
    text.append(piece.data(), static_cast<std::size_t>(got));
    return true;
  }
  if (got < 0 && errno == EINTR) return true;
  close(descriptor);
  descriptor = -1;
  return false;
}

}  // namespace

Program::Program(const std::vector<std::string>& words, const Variables& variables) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
    throw std::runtime_error("pipe2 failed");
  pid_ = hccl_perf::fork_child();
  if (pid_ == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    change_environment(variables);
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Program::~Program() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
}

void Program::signal(int number) const { kill(pid_, number); }

bool Program::read_some() {
  std::array<pollfd, 2> streams{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
  if (poll(streams.data(), streams.size(), -1) < 0) return errno == EINTR;
  if (streams[0].revents != 0) drain(out_, outcome_.out);
  if (streams[1].revents != 0) drain(err_, outcome_.err);
  return out_ >= 0 || err_ >= 0;
}

bool Program::wait_for_output(const std::string& text) {
  while (outcome_.out.find(text) == std::string::npos) {
    if (!read_some() || out_ < 0) return false;
  }
  return true;
}

Outcome Program::wait() {
  while (read_some()) {
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  outcome_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome_;
}

std::string program_path(const std::string& name) {
  return std::string(HCCL_PERF_BIN) + '/' + name;
}

Outcome run_hccl_perf(const CommandLine& arguments, const Program::Variables& variables) {
  CommandLine words{program_path()};
  words.append(arguments);
  return Program(words, variables).wait();
}

std::vector<std::vector<std::string>> table_rows(const std::string& out) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream in(line);
    rows.emplace_back();
    for (std::string word; in >> word;) rows.back().push_back(word);
  }
  return rows;
}

bool installed(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace hccl_perf
