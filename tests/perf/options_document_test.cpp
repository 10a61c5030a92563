// SPDX-License-Identifier: Apache-2.0
// The options' page and --help name the same options.
#include "parse_words.h"

#include <fstream>
#include <set>
#include <sstream>

namespace hccl_perf {
namespace {

// The words of `written` that begin with a dash, without characters that are not part of a name.
void add_names(std::set<std::string>& names, std::string written) {
  for (char& letter : written) {
    if (letter == ',' || letter == '`' || letter == '|') letter = ' ';
  }
  std::istringstream words(written);
  for (std::string word; words >> word;) {
    if (word.starts_with('-')) names.insert(word);
  }
}

std::set<std::string> names_in_help() {
  const Text help = std::get<Text>(parse_all({"hccl-perf", "--help"}));
  std::set<std::string> names;
  std::istringstream lines(help.text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  -")) add_names(names, line.substr(0, line.find(' ', 2)));
  }
  return names;
}

// The first column of the page's tables of options.
std::set<std::string> names_in_page() {
  std::ifstream page(HCCL_PERF_PAGE);
  EXPECT_TRUE(page) << HCCL_PERF_PAGE;
  std::set<std::string> names;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| `-")) add_names(names, line.substr(1, line.find(" | ", 1)));
  }
  return names;
}

TEST(OptionsDocument, NamesWhatHelpNames) {
  const std::set<std::string> help = names_in_help();
  EXPECT_GT(help.size(), 50U);
  EXPECT_EQ(names_in_page(), help);
}

}  // namespace
}  // namespace hccl_perf
