// SPDX-License-Identifier: Apache-2.0
// Writing a file of results.
#include "report_file.h"

#include "text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <unistd.h>

namespace hccl_perf {
namespace {

bool is_special(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

// The file a link leads to, whether that exists or not, so that the link stays one.
std::string target_of(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::filesystem::path target = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(target, error); ++i) {
    target = target.parent_path() / std::filesystem::read_symlink(target, error);
  }
  return target.string();
}

std::filesystem::path canonical(const std::string& path) {
  const std::filesystem::path target = std::filesystem::absolute(target_of(path));
  std::error_code error;
  const std::filesystem::path found = std::filesystem::weakly_canonical(target, error);
  return error ? target.lexically_normal() : found;
}

// Beside the target, so that a rename is enough.
std::string temporary_for(const std::string& target) { return text(target, ".tmp.", getpid()); }

}  // namespace

void require_writable(const std::string& option, const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return UsageError(text(option, ": cannot write ", path, ": ", why));
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw refuse("it is a directory");
  if (is_special(path)) {
    if (access(path.c_str(), W_OK) != 0) throw refuse(std::strerror(errno));
    return;
  }
  const std::string temporary = temporary_for(target_of(path));
  const std::ofstream file(temporary);
  if (!file) throw refuse(std::strerror(errno));
  unlink(temporary.c_str());
}

void require_distinct(const std::vector<NamedReport>& reports) {
  std::map<std::filesystem::path, const NamedReport*> known;
  for (const NamedReport& report : reports) {
    if (report.path.empty() || is_special(report.path)) continue;
    const auto [entry, is_new] = known.emplace(canonical(report.path), &report);
    if (is_new) continue;
    const NamedReport& other = *entry->second;
    throw UsageError(text(other.option, " and ", report.option, " both name ", other.path));
  }
}

void write_report(const std::string& option, const std::string& path, const std::string& contents) {
  const bool direct = is_special(path);
  const std::string target = direct ? path : target_of(path);
  const std::string written_to = direct ? target : temporary_for(target);
  std::ofstream file(written_to);
  file << contents;
  file.close();
  const bool complete =
      !file.fail() && (direct || std::rename(written_to.c_str(), target.c_str()) == 0);
  if (complete) return;
  const std::string why = std::strerror(errno);
  if (!direct) unlink(written_to.c_str());
  throw RunError(text(option, ": cannot write ", target, ": ", why));
}

}  // namespace hccl_perf
