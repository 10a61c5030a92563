// SPDX-License-Identifier: Apache-2.0
// How a communicator's calls run, for those that ask.
#pragma once

#include <cstdint>
#include <string>

namespace hccl::comm {

struct TrafficReport {
  std::string algorithm;  // of the last call
  std::string transport;  // by which ways, as "shm+tcp"
  // Totals over all completed calls that used transports.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t sends = 0;
  std::uint64_t receives = 0;
};

}  // namespace hccl::comm
