// SPDX-License-Identifier: Apache-2.0
// Runs the function under test in a rank's process.
#include "rank_process.h"

#include "check.h"
#include "synapse_api.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include <unistd.h>

namespace hccl::test {
namespace {

void write_all(int fd, const void* data, std::size_t length) {
  const char* at = static_cast<const char*>(data);
  while (length > 0) {
    const ssize_t written = write(fd, at, length);
    if (written <= 0) return;
    at += written;
    length -= static_cast<std::size_t>(written);
  }
}

}  // namespace

void send_message(int fd, Kind kind, int rank, const std::string& text) {
  const Header header{kind, rank, static_cast<unsigned>(text.size())};
  std::string message(sizeof(header) + text.size(), '\0');
  std::memcpy(message.data(), &header, sizeof(header));
  std::memcpy(message.data() + sizeof(header), text.data(), text.size());
  write_all(fd, message.data(), message.size());
}

void set_environment(const RankOptions& options, int port, int rank) {
  static_cast<void>(test_scale());
  const std::string node = node_of(rank);
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view assignment(*entry);
    const std::string_view name = assignment.substr(0, assignment.find('='));
    if (name.substr(0, 5) == "HCCL_" || name.substr(0, 9) == "LOG_LEVEL") names.emplace_back(name);
  }
  for (const std::string& name : names) unsetenv(name.c_str());
  setenv("HCCL_SOCKET_IFNAME", "lo", 1);
  // The node id keeps the test from sharing modules with other programs on this machine.
  setenv("HCCL_NODE_ID", join("test-", getppid(), node).c_str(), 1);
  if (options.comm_id) setenv("HCCL_COMM_ID", join("127.0.0.1:", port).c_str(), 1);
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
}

bool run_one(World& world, const RankFunction& function) {
  std::string failure;
  try {
    function(world);
    send_message(world.output, Kind::finished, world.rank, "");
    return true;
  } catch (const std::exception& error) {
    failure = error.what();
  } catch (...) {
    failure = "unknown exception";
  }
  send_message(world.output, Kind::failure, world.rank, failure);
  return false;
}

bool run_threads(const World& first, const RankFunction& function) {
  std::vector<World> worlds(static_cast<std::size_t>(first.size), first);
  std::vector<std::thread> threads;
  std::atomic<bool> all{true};
  if (synInitialize() != synSuccess) {
    send_message(first.output, Kind::failure, 0, join("synInitialize: ", last_syn_message()));
    return false;
  }
  for (int rank = 0; rank < first.size; ++rank) {
    World& world = worlds[static_cast<std::size_t>(rank)];
    world.rank = rank;
    threads.emplace_back([&world, &function, &all] {
      if (!run_one(world, function)) all = false;
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (synDestroy() != synSuccess) {
    send_message(first.output, Kind::failure, 0, join("synDestroy: ", last_syn_message()));
    return false;
  }
  return all;
}

void World::report(const std::string& text) const {
  send_message(output, Kind::report, rank, text);
}

}  // namespace hccl::test
