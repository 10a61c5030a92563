// SPDX-License-Identifier: Apache-2.0
// The words of a command line.
#pragma once

#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

namespace hccl_perf {

// Given one by one, or as a line that is cut at its spaces.
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

}  // namespace hccl_perf
