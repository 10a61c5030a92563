// SPDX-License-Identifier: Apache-2.0
// Starts hccl-perf, or a program that starts hccl-perf, and captures the output.
#pragma once

#include "support/text_parts.h"

#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include <sys/types.h>

namespace hccl_perf {

using hccl::test::expect_line;
using hccl::test::expect_parts;

// The words of a command line. A line is split at spaces.
class CommandLine : public std::vector<std::string> {
 public:
  CommandLine(std::initializer_list<std::string> words) : std::vector<std::string>(words) {}
  CommandLine(const char* line) : CommandLine(std::string(line)) {}
  CommandLine(const std::string& line) {
    std::istringstream words(line);
    for (std::string word; words >> word;) push_back(word);
  }

  void append(const CommandLine& more) { insert(end(), more.begin(), more.end()); }
};

struct Outcome {
  int status = -1;  // exit status, or 128 + signal
  std::string out;
  std::string err;
};

class Program {
 public:
  using Variables = std::vector<std::string>;  // "NAME=value", or "NAME" to unset it

  // Starts `words[0]`, searched for in PATH, in the test's environment with the changes in
  // `variables`. If the test dies, the kernel kills the program.
  explicit Program(const std::vector<std::string>& words, const Variables& variables = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Blocks until stdout contains `text` or ends. Returns whether stdout contains `text`.
  bool wait_for_output(const std::string& text);
  // Blocks until the program and the last process that holds its streams open have ended. Reads
  // both streams to the end.
  [[nodiscard]] Outcome wait();

 private:
  bool read_some();

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  Outcome outcome_;
};

// Returns the path of hccl-perf or of one of its links.
[[nodiscard]] std::string program_path(const std::string& name = "hccl-perf");

// Runs hccl-perf with `arguments`. Blocks until it has ended.
[[nodiscard]] Outcome run_hccl_perf(const CommandLine& arguments,
                                    const Program::Variables& variables = {});

// Returns the words of each table line that is not a comment.
[[nodiscard]] std::vector<std::vector<std::string>> table_rows(const std::string& out);

// Returns whether a program of that name is in PATH.
[[nodiscard]] bool installed(const std::string& name);

}  // namespace hccl_perf
