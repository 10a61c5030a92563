// SPDX-License-Identifier: Apache-2.0
#include "host_network.h"

#include "check.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace hccl::test {
namespace {

// Runs hosts.sh with `words`. Returns what the script writes, and sets `status` to 0 if and only if
// the script succeeds. Throws Failure if no process can be started.
std::string script_output(const std::string& words, int& status) {
  FILE* const script = popen(join(HCCL_HOSTS_SCRIPT, ' ', words, " 2>&1 </dev/null").c_str(), "r");
  if (script == nullptr) throw Failure("cannot start hosts.sh");
  std::string text;
  std::array<char, 512> chunk{};
  while (const std::size_t length = std::fread(chunk.data(), 1, chunk.size(), script))
    text.append(chunk.data(), length);
  status = pclose(script);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Returns what the command prints if it fails.
std::string complaint(const std::string& command) {
  int status = 0;
  const std::string text = script_output(command, status);
  if (status == 0) return "";
  return text.empty() ? "hosts.sh fails" : text;
}

}  // namespace

std::string HostNetwork::why_not() { return complaint("allowed"); }

std::string HostNetwork::why_not_intercept() { return complaint("can-intercept"); }

HostNetwork::HostNetwork(int hosts) {
  static std::atomic<int> made{0};
  tag_ = join(getpid(), '-', made++);
  run("up", std::to_string(hosts));
}

HostNetwork::~HostNetwork() {
  int status = 0;
  const std::string text = script_output(join("down ", tag_), status);
  if (status != 0) std::fprintf(stderr, "hosts.sh down: %s\n", text.c_str());
}

std::string HostNetwork::name(int host) const { return join("hccl-", tag_, '-', host); }

std::string HostNetwork::address(int host) { return join("10.213.0.", host + 1); }

void HostNetwork::enter(int host) const {
  const int descriptor = open(join("/run/netns/", name(host)).c_str(), O_RDONLY | O_CLOEXEC);
  const bool entered = descriptor >= 0 && setns(descriptor, CLONE_NEWNET) == 0;
  if (descriptor >= 0) close(descriptor);
  require(entered, join("cannot enter ", name(host)));
}

void HostNetwork::intercept(int host, int port, unsigned user) const {
  run("intercept", join(host, ' ', port, ' ', user));
}

void HostNetwork::run(const std::string& action, const std::string& argument) const {
  int status = 0;
  const std::string text = script_output(join(action, ' ', tag_, ' ', argument), status);
  if (status != 0) throw Failure(join("hosts.sh ", action, ": ", text));
}

}  // namespace hccl::test
