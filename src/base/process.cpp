// SPDX-License-Identifier: Apache-2.0
// Implements the fork guard, and the identities of the host and the node.
#include "base/process.h"

#include "base/config.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/file_descriptor.h"
#include "base/retry.h"
#include "base/sha256.h"
#include "base/text.h"

#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hccl {
namespace {

std::atomic<bool> forked_child{false};
std::atomic<bool> guarded{false};
std::atomic<const ForkHooks*> fork_hooks{nullptr};

// The cancellation state of this thread before its fork. Cancellation is disabled during the fork,
// because it would unwind the stack through the fork handlers.
thread_local int cancellation_before = PTHREAD_CANCEL_ENABLE;
// The hooks of the fork in progress. A concurrent set_fork_hooks() does not change them.
thread_local const ForkHooks* running_hooks = nullptr;

void prepare_fork() {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation_before);
  running_hooks = is_forked_child() ? nullptr : fork_hooks.load(std::memory_order_acquire);
  if (running_hooks != nullptr) running_hooks->before();
}

void resume_parent() {
  if (running_hooks != nullptr) running_hooks->in_parent();
  pthread_setcancelstate(cancellation_before, nullptr);
}

void enter_forked_child() {
  if (running_hooks != nullptr) running_hooks->in_child();
  if (guarded.load(std::memory_order_relaxed)) {
    forked_child.store(true, std::memory_order_relaxed);
    close_remembered_descriptors();
  }
  pthread_setcancelstate(cancellation_before, nullptr);
}

int registration_error = ENOMEM;  // until the registration has succeeded

// Registers the fork handlers when the library is loaded. Prepare handlers run in reverse order of
// registration; parent and child handlers run in order of registration. Therefore handlers that are
// registered later, like those of a program that is linked with hccl, run only while the library is
// not locked, and may call the library.
[[gnu::constructor]] void register_fork_handlers() {
  registration_error = pthread_atfork(prepare_fork, resume_parent, enter_forked_child);
}

// Returns the beginning of a small file without its trailing newline. Returns an empty text if the
// file cannot be read.
std::string first_bytes(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {};
  std::array<char, 512> buffer{};
  const ssize_t length = retried([&] { return read(file.get(), buffer.data(), buffer.size()); });
  if (length <= 0) return {};
  std::string_view content(buffer.data(), static_cast<std::size_t>(length));
  if (content.ends_with('\n')) content.remove_suffix(1);
  return std::string(content);
}

}  // namespace

void install_fork_guard() {
  if (registration_error != 0)
    throw Error(hcclOutOfMemory,
                "cannot install the fork handler: out of memory; free memory on this host");
  guarded.store(true, std::memory_order_relaxed);
}

void set_fork_hooks(const ForkHooks& hooks) noexcept {
  fork_hooks.store(&hooks, std::memory_order_release);
}

bool is_forked_child() noexcept { return forked_child.load(std::memory_order_relaxed); }

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name.front() == '\0') return "unknown-host";
  return name.data();
}

// Two machines never have the same boot id. Containers on one machine do, but cannot reach each
// other's abstract sockets unless they share a network namespace.
std::string network_identity() {
  std::string boot = first_bytes("/proc/sys/kernel/random/boot_id");
  if (boot.empty()) boot = host_name();
  struct stat status {};
  const bool found = stat("/proc/self/ns/net", &status) == 0;
  return text("boot ", boot, " net ", found ? status.st_ino : 0);
}

std::uint64_t network_number() {
  const std::string identity = network_identity();
  const Digest digest = sha256(std::as_bytes(std::span(identity)));
  return WireReader(digest).u64();
}

std::string node_identity() {
  const auto settings = config();
  const std::string where =
      settings->node_id ? text("node ", *settings->node_id) : network_identity();
  return text("uid ", geteuid(), " ", where);
}

std::string process_name(int pid) {
  std::string name = first_bytes(text("/proc/", pid, "/comm"));
  // A program's name may contain any bytes.
  for (char& letter : name) {
    if (std::isprint(static_cast<unsigned char>(letter)) == 0) letter = '?';
  }
  return name;
}

bool is_stopped(int pid) {
  const std::string line = first_bytes(text("/proc/", pid, "/stat"));
  const std::size_t end_of_name = line.rfind(") ");  // the name may contain ')'
  if (end_of_name == std::string::npos || end_of_name + 2 >= line.size()) return false;
  const char state = line[end_of_name + 2];
  return state == 'T' || state == 't';
}

}  // namespace hccl
