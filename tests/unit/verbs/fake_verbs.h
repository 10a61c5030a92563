// SPDX-License-Identifier: Apache-2.0
// A fake libibverbs whose devices a test describes. At most one FakeVerbs may exist at a time,
// because the functions of libibverbs have no argument that could select one.
#pragma once

#include "verbs/verbs_library.h"

#include <map>
#include <string>
#include <vector>

namespace hccl::verbs::test {

struct FakePort {
  ibv_port_attr attributes{};
  std::map<int, ibv_gid_entry> gids;  // a missing index is an empty entry
  int error = 0;                      // returned by ibv_query_port()
};

struct FakeDevice : ibv_device {
  FakeDevice(const char* called, std::vector<FakePort> with);

  std::string device_name;
  std::vector<FakePort> ports;
  bool has_windows = true;
  bool confines_windows = true;
  int open_error = 0;
  int query_error = 0;
};

class FakeVerbs {
 public:
  FakeVerbs();
  ~FakeVerbs();
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;

  VerbsLibrary library;
  std::vector<FakeDevice> devices;
  ibv_context_ops operations{};  // copied to each context when it is opened
  int list_error = 0;
  int gid_error = 0;  // returned by _ibv_query_gid_ex()
  // Numbers of contexts and device lists that have not been released.
  int open_devices = 0;
  int open_lists = 0;
};

// Returns an active Ethernet port with a GID table of this length.
FakePort ethernet_port(int gid_table_length);

}  // namespace hccl::verbs::test
