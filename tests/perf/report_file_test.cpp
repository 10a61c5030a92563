// SPDX-License-Identifier: Apache-2.0
// Tests that result files are replaced as a whole or not at all, and which paths are refused.
#include "report_file.h"

#include "sample_results.h"
#include "text.h"

#include <fstream>
#include <sstream>

namespace hccl_perf {
namespace {

namespace fs = std::filesystem;

class ReportFile : public TemporaryDirectory {};

std::string contents(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

TEST_F(ReportFile, ReplacesTheOldFileAndLeavesNoOther) {
  write_report("--csv", path("out"), "first, and longer\n");
  write_report("--csv", path("out"), "second\n");
  EXPECT_EQ(contents(path("out")), "second\n");
  EXPECT_EQ(files(), 1U);
}

TEST_F(ReportFile, KeepsTheOldFileIfTheNewOneCannotBeCreated) {
  write_report("--csv", path("out"), "old\n");
  fs::create_directory(path(text("out.tmp.", getpid())));  // blocks the name of the temporary file
  try {
    write_report("--csv", path("out"), "new\n");
    ADD_FAILURE() << "written";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("--csv: cannot write " + path("out")),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(contents(path("out")), "old\n");
}

TEST_F(ReportFile, IsWrittenThroughASymlink) {
  fs::create_symlink(path("target"), path("link"));
  write_report("--json", path("link"), "{}\n");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_TRUE(fs::is_regular_file(path("target")));
}

bool same_report(const std::string& one, const std::string& other) {
  try {
    require_distinct({{"--json", one}, {"--csv", ""}, {"--raw", other}});
    return false;
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), text("--json and --raw both name ", one, "; give different files"));
    return true;
  }
}

TEST_F(ReportFile, IsRecognisedUnderEverySpellingOfItsName) {
  EXPECT_TRUE(same_report(path("new"), path("./new")));
  EXPECT_TRUE(same_report("new", "./new"));
  EXPECT_FALSE(same_report(path("new"), path("other")));
  EXPECT_FALSE(same_report("", ""));
  EXPECT_FALSE(same_report("/dev/null", "/dev/null"));
  std::filesystem::create_symlink("new", path("link"));
  EXPECT_TRUE(same_report(path("link"), path("new"))) << "the link's target does not exist yet";
  write_report("--csv", path("new"), "contents");
  EXPECT_TRUE(same_report(path("link"), path("new")));
}

TEST_F(ReportFile, DoesNotReplaceADevice) {
  fs::create_symlink("/dev/null", path("null"));
  require_writable("--json", path("null"));
  write_report("--json", path("null"), "{}\n");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(ReportFile, IsRefusedBeforeTheRunIfUnwritable) {
  EXPECT_THROW(require_writable("--json", directory_.string()), UsageError);
  EXPECT_THROW(require_writable("--json", path("missing/out.json")), UsageError);
  EXPECT_THROW(require_writable("--json", "/proc/out.json"), UsageError);
  require_writable("--json", path("out.json"));
  EXPECT_EQ(files(), 0U);
}

}  // namespace
}  // namespace hccl_perf
