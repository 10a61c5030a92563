// SPDX-License-Identifier: Apache-2.0
// Checks the built library and a program linked with it: the exported names, the absence of symbol
// versions, and the names under which programs find the library.
#include "expected_symbols.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace hccl::test {
namespace {

// Returns the command's stdout. Fails the test if the command does not succeed.
std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "cannot run " << command;
    return {};
  }
  std::string output;
  std::array<char, 4096> block{};
  while (const std::size_t bytes = std::fread(block.data(), 1, block.size(), pipe)) {
    output.append(block.data(), bytes);
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

// Returns the names that `nm -D` prints, including the '@' suffix of versioned symbols.
std::set<std::string> symbols(const std::string& options, const std::string& file) {
  std::istringstream lines(output_of("nm -D -P " + options + " '" + file + "'"));
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) names.insert(line.substr(0, line.find(' ')));
  return names;
}

std::set<std::string> expected_symbols() {
  return {kExpectedSymbols.begin(), kExpectedSymbols.end()};
}

bool is_api_name(const std::string& name) {
  return name.starts_with("hccl") || name.starts_with("syn");
}

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

Library open_library(const std::string& path) {
  return Library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
}

}  // namespace

TEST(ExportedSymbols, AreExactlyTheExpectedOnesUnversioned) {
  EXPECT_EQ(symbols("--defined-only", HCCL_SHARED_LIBRARY), expected_symbols());
}

TEST(ExportedSymbols, MatchTheVersionScript) {
  std::ifstream map(HCCL_EXPORTS_MAP);
  ASSERT_TRUE(map) << HCCL_EXPORTS_MAP;
  std::set<std::string> names;
  for (std::string line; std::getline(map, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos || line[first] == '#' || !line.starts_with("    ")) continue;
    names.insert(line.substr(first, line.find(';') - first));
  }
  EXPECT_EQ(names, expected_symbols());
}

TEST(SharedLibrary, HasTheSonameOfTheVendorLibrary) {
  const std::string dynamic = output_of("readelf -dW '" HCCL_SHARED_LIBRARY "'");
  EXPECT_NE(dynamic.find("Library soname: [libSynapse.so]"), std::string::npos) << dynamic;
  EXPECT_EQ(dynamic.find("VERDEF"), std::string::npos) << dynamic;
  EXPECT_EQ(dynamic.find("SYMBOLIC"), std::string::npos) << "names must stay interposable";
}

TEST(SharedLibrary, SharesOneStateUnderEveryName) {
  const std::string folder =
      std::string(HCCL_SHARED_LIBRARY).substr(0, std::string(HCCL_SHARED_LIBRARY).rfind('/') + 1);
  const Library first = open_library(HCCL_SHARED_LIBRARY);
  ASSERT_NE(first, nullptr) << dlerror();
  for (const char* name : {"libSynapse.so", "libhccl.so", "libhccl.so.2"}) {
    const Library other = open_library(folder + name);
    ASSERT_NE(other, nullptr) << dlerror();
    EXPECT_EQ(dlsym(other.get(), "hcclAllReduce"), dlsym(first.get(), "hcclAllReduce")) << name;
  }
}

TEST(SharedLibrary, ResolvesEverySymbol) {
  const Library library = open_library(HCCL_SHARED_LIBRARY);
  ASSERT_NE(library, nullptr) << dlerror();
  for (const std::string_view name : kExpectedSymbols) {
    EXPECT_NE(dlsym(library.get(), std::string(name).c_str()), nullptr) << name;
  }
}

TEST(LinkedProgram, NeedsTheSonameWithoutVersions) {
  const std::string dynamic = output_of("readelf -dW '" HCCL_LINKED_PROGRAM "'");
  EXPECT_NE(dynamic.find("Shared library: [libSynapse.so]"), std::string::npos) << dynamic;
  const std::set<std::string> references = symbols("--undefined-only", HCCL_LINKED_PROGRAM);
  EXPECT_TRUE(references.contains("hcclBcast"));
  for (const std::string& name : references) {
    EXPECT_FALSE(is_api_name(name) && name.find('@') != std::string::npos) << name;
  }
}

}  // namespace hccl::test
