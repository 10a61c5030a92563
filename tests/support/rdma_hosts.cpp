// SPDX-License-Identifier: Apache-2.0
#include "rdma_hosts.h"

#include "check.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace hccl::test {
namespace {

// A file with the commands that undo all changes, one per line. The file survives a killed test.
constexpr const char* kJournal = "/run/hccl-rdma-hosts.undo";

std::string keeper(int host) { return join("/run/rxe-nodes/", host, ".pid"); }

std::string port(int host) { return join('p', host); }

std::string folder_of_device(int host) {
  return join("/sys/class/infiniband/", RdmaHosts::device(host));
}

// Returns the beginning of a tc command and its device argument for each end of a host's cable: the
// switch's port and the host's interface. The qdisc of an end applies to the packets that this end
// sends.
using CableEnd = std::pair<std::string, std::string>;
std::array<CableEnd, 2> ends_of_cable(int host) {
  return {CableEnd{"tc", join(" dev ", port(host), " root")},
          CableEnd{join("on-node ", host, " tc"), " dev roce0 root"}};
}

// Runs the command. Returns what the command writes, and sets `status` to 0 if and only if the
// command succeeds. Throws Failure if no shell can be started.
std::string output_of(const std::string& command, int& status) {
  FILE* const shell = popen(join("{ ", command, "; } 2>&1 </dev/null").c_str(), "r");
  if (shell == nullptr) throw Failure("cannot start a shell");
  std::string text;
  std::array<char, 4096> chunk{};
  while (const std::size_t length = std::fread(chunk.data(), 1, chunk.size(), shell))
    text.append(chunk.data(), length);
  status = pclose(shell);
  return text;
}

std::string run(const std::string& command) {
  int status = 0;
  const std::string text = output_of(command, status);
  if (status != 0) throw Failure(join(command, ": ", text));
  return text;
}

// Undoes all changes, the latest first.
void undo_all() {
  std::ifstream journal(kJournal);
  std::vector<std::string> commands;
  for (std::string line; std::getline(journal, line);) commands.push_back(line);
  std::filesystem::remove(kJournal);
  for (; !commands.empty(); commands.pop_back()) {
    int status = 0;
    const std::string text = output_of(commands.back(), status);
    if (status != 0) std::fprintf(stderr, "%s: %s\n", commands.back().c_str(), text.c_str());
  }
}

// Returns whether a resource belongs to the process. `line` is the resource's line in the output of
// `rdma resource show`, which names the thread that created the resource. Once this thread has
// ended, the line names no thread; the resource then counts as the process's own, unless the kernel
// created it.
bool is_of(const std::string& line, pid_t process) {
  const std::string before = " pid ";
  const std::size_t at = line.find(before);
  if (at == std::string::npos)
    return !contains(line, " comm [");  // resources of the kernel have a comm
  const int thread = std::stoi(line.substr(at + before.size()));
  return std::filesystem::exists(join("/proc/", process, "/task/", thread));
}

}  // namespace

std::string RdmaHosts::why_not(int hosts) {
  const char* const nodes = std::getenv("RXE_NODES");
  if (nodes == nullptr) return "not in a virtual machine with nodes (RXE_NODES is not set)";
  if (std::atoi(nodes) < hosts) return join("RXE_NODES is ", nodes, ", not at least ", hosts);
  return std::filesystem::exists(keeper(hosts - 1)) ? "" : join("there is no ", keeper(hosts - 1));
}

RdmaHosts::RdmaHosts() { undo_all(); }

RdmaHosts::~RdmaHosts() { undo_all(); }

std::string RdmaHosts::address(int host) { return join("10.77.0.", host + 1); }

std::string RdmaHosts::device(int host) { return join("rxe", host); }

void RdmaHosts::enter(int host) {
  const std::string folder = std::filesystem::current_path();
  pid_t process = 0;
  std::ifstream(keeper(host)) >> process;
  const std::array<std::pair<const char*, int>, 4> kinds{
      {{"net", CLONE_NEWNET}, {"uts", CLONE_NEWUTS}, {"ipc", CLONE_NEWIPC}, {"mnt", CLONE_NEWNS}}};
  std::array<int, kinds.size()> namespaces{};  // opened before the mount namespace changes /proc
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string path = join("/proc/", process, "/ns/", kinds.at(i).first);
    namespaces.at(i) = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  unshare(CLONE_FS);  // setns() fails if a thread of a sanitizer shares the root directory
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    require(setns(namespaces.at(i), kinds.at(i).second) == 0,
            join("cannot enter the ", kinds.at(i).first, " namespace of host ", host));
    close(namespaces.at(i));
  }
  std::filesystem::current_path(folder);
}

void RdmaHosts::change(const std::string& command, const std::string& undo) {
  std::ofstream(kJournal, std::ios::app) << undo << '\n';
  run(command);
}

// These functions are not static, so that only the owner of an RdmaHosts can change the hosts.
// NOLINTBEGIN(readability-convert-member-functions-to-static)

void RdmaHosts::cut(int host) const {
  change(join("ip link set ", port(host), " down"), join("ip link set ", port(host), " up"));
}

void RdmaHosts::mend(int host) const { run(join("ip link set ", port(host), " up")); }

void RdmaHosts::shut_interface(int host) const {
  // Taking the interface down removes its IPv6 addresses and the device's GIDs for all addresses.
  const std::string words = join("on-node ", host, " ip ");
  change(join(words, "link set roce0 down"),
         join(words, "link set roce0 up && ", words, "addr add fd77::", host + 1,
              "/64 dev roce0 nodad"));
}

void RdmaHosts::lose(int host, const std::string& share) const {
  for (const auto& [tc, device] : ends_of_cable(host)) {
    change(join(tc, " qdisc replace", device, " netem loss ", share),
           join(tc, " qdisc del", device, " 2>/dev/null || true"));
  }
}

void RdmaHosts::lose_nothing(int host) const {
  for (const auto& [tc, device] : ends_of_cable(host)) run(join(tc, " qdisc del", device));
}

std::uint64_t RdmaHosts::packets_lost(int host) const {
  std::uint64_t lost = 0;
  for (const auto& [tc, device] : ends_of_cable(host)) {
    const std::string text = run(join(tc, " -s qdisc show", device));
    const std::size_t at = text.find("dropped ");
    require(at != std::string::npos, text);
    lost += std::stoull(text.substr(at + std::string("dropped ").size()));
  }
  return lost;
}

void RdmaHosts::delete_device(int host) const {
  const std::string words = join("on-node ", host, " rdma link ");
  change(join(words, "delete ", device(host), " >/dev/null 2>&1 & sleep 0.3"),
         join("for i in $(seq 100); do on-node ", host, " [ -e ", folder_of_device(host),
              " ] || break; sleep 0.1; done; ", words, "add ", device(host),
              " type rxe netdev roce0"));
}

bool RdmaHosts::has_device(int host) {
  int status = 0;
  static_cast<void>(
      output_of(join("on-node ", host, " [ -e ", folder_of_device(host), " ]"), status));
  return status == 0;
}

void RdmaHosts::limit_frames(int host, int bytes) const {
  const std::string words = join("on-node ", host, " ip link set roce0 mtu ");
  change(join(words, bytes), join(words, 9000));
}

// Limits the burst of a token bucket filter, which drops longer frames silently, as a switch does.
// A smaller MTU on the port would not be silent, because a veth reports the drop to the sender at
// its other end.
void RdmaHosts::limit_frames_at_switch(int host, int bytes) const {
  const std::string device = join(" dev ", port(host), " root");
  change(join("tc qdisc replace", device, " tbf rate 1gbit latency 100ms burst ", bytes + 64),
         join("tc qdisc del", device, " 2>/dev/null || true"));
}

// NOLINTEND(readability-convert-member-functions-to-static)

std::string RdmaHosts::resources(int host, const std::string& kind, pid_t process) {
  std::istringstream all(run(join("on-node ", host, " rdma resource show ", kind)));
  std::string own;
  for (std::string line; std::getline(all, line);) {
    if (is_of(line, process)) own += line + '\n';
  }
  return own;
}

std::uint64_t RdmaHosts::packets_sent(int host) {
  const std::string counter = join(folder_of_device(host), "/ports/1/hw_counters/sent_pkts");
  std::uint64_t packets = 0;
  std::ifstream file(counter);
  require(static_cast<bool>(file >> packets), join("cannot read ", counter));
  return packets;
}

}  // namespace hccl::test
