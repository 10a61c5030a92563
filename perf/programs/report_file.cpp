// SPDX-License-Identifier: Apache-2.0
// Writes a result file.
#include "report_file.h"

#include "text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace hccl_perf {
namespace {

bool is_special(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

// Returns the path with symbolic links followed, so that a result file replaces the target and not
// the link. The target need not exist.
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

// Returns a path in the target's directory, so that the file can be renamed to the target.
std::string temporary_for(const std::string& target) { return text(target, ".tmp.", getpid()); }

// A file that is being written. On file systems that support O_TMPFILE, the file has no name until
// all contents are written, so that nothing remains if the writer is killed.
struct Output {
  int descriptor = -1;
  std::string name;  // empty if the file has no name yet
};

Output beside(const std::string& target) {
  constexpr mode_t kMode = 0666;
  const std::filesystem::path parent = std::filesystem::path(target).parent_path();
  const int unnamed =
      open(parent.empty() ? "." : parent.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode);
  if (unnamed >= 0) return {unnamed, ""};
  const std::string name = temporary_for(target);
  return {open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode), name};
}

bool write_all(int descriptor, std::string_view left) {
  while (!left.empty()) {
    const ssize_t put = write(descriptor, left.data(), left.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    left.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

// Replaces the target with the file. After a system crash, the target has either the old contents
// or all of the new contents.
bool take_name(Output& output, const std::string& target) {
  if (fsync(output.descriptor) != 0) return false;
  if (output.name.empty()) {
    const std::string name = temporary_for(target);
    const std::string link = text("/proc/self/fd/", output.descriptor);
    unlink(name.c_str());
    if (linkat(AT_FDCWD, link.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return false;
    output.name = name;
  }
  return std::rename(output.name.c_str(), target.c_str()) == 0;
}

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
    throw UsageError(text(other.option, " and ", report.option, " both name ", other.path,
                          "; give different files"));
  }
}

void write_report(const std::string& option, const std::string& path, const std::string& contents) {
  const bool direct = is_special(path);
  const std::string target = direct ? path : target_of(path);
  Output output = direct ? Output{open(path.c_str(), O_WRONLY | O_CLOEXEC), ""} : beside(target);
  if (output.descriptor >= 0 && write_all(output.descriptor, contents) &&
      (direct || take_name(output, target))) {
    close(output.descriptor);
    return;
  }
  const std::string why = std::strerror(errno);
  if (output.descriptor >= 0) close(output.descriptor);
  if (!output.name.empty()) unlink(output.name.c_str());
  throw RunError(text(option, ": cannot write ", target, ": ", why));
}

}  // namespace hccl_perf
