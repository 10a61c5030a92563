// SPDX-License-Identifier: Apache-2.0
// A libibverbs whose devices a test describes. One at a time: the library's functions take nothing
// that could tell whose they are.
#pragma once

#include "verbs/verbs_library.h"

#include <map>
#include <string>
#include <vector>

namespace hccl::verbs::test {

struct FakePort {
  ibv_port_attr attributes{};
  std::map<int, ibv_gid_entry> gids;  // what is not here is an empty entry
  int error = 0;                      // of ibv_query_port
};

struct FakeDevice : ibv_device {
  FakeDevice(const char* called, std::vector<FakePort> with);

  std::string device_name;
  std::vector<FakePort> ports;
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
  ibv_context_ops operations{};  // of contexts opened from now on
  int list_error = 0;
  int gid_error = 0;  // of _ibv_query_gid_ex
  // Returns the objects that have not been released.
  int open_devices = 0;
  int open_lists = 0;
};

// A port of Ethernet that is active and has a table of that length.
FakePort ethernet_port(int gid_table_length);

}  // namespace hccl::verbs::test
