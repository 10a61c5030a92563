// SPDX-License-Identifier: Apache-2.0
// An attacker on the path between hosts, who runs as another user. The host's outgoing TCP
// connections pass through the relay (HostNetwork::intercept()), which can tamper with one record
// of one connection.
#pragma once

#include "host_network.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/types.h>

namespace hccl::test {

enum class Tampering : std::uint8_t {
  none,
  change,   // one byte differs
  drop,     // the record is missing
  repeat,   // the record arrives twice
  swap,     // the record arrives after its successor
  delay,    // the record arrives late
  shorten,  // the record's last bytes are missing
  insert,   // random bytes precede the record
  reflect,  // the record also returns to its sender
  replay,   // an earlier record, perhaps of another connection or run, precedes the record
  cut,      // the connection ends in the middle of the record
};
constexpr int kTamperings = 11;

// The attack of one run.
struct Attack {
  Tampering kind = Tampering::none;
  int host = 0;            // whose outgoing connections are attacked
  int connection = 0;      // in the order in which the host opens them
  bool backward = false;   // whether the record travels to the end that opened the connection
  int record = 0;          // in its direction of its connection
  std::uint64_t seed = 0;  // of random bytes and positions

  [[nodiscard]] static Attack random(std::uint64_t seed);
  [[nodiscard]] std::string text() const;
};

// Records that the attacker has seen. Lies in shared memory, so that it outlives relays.
struct Recording {
  static constexpr std::size_t kRecords = 64;
  static constexpr std::size_t kMostBytes = 2048;
  struct Record {
    std::atomic<std::uint32_t> size{0};
    std::array<std::byte, kMostBytes> bytes{};
  };
  std::atomic<std::uint32_t> next{0};
  std::atomic<bool> has_tampered{false};
  std::array<Record, kRecords> records{};
};

// A process that relays the connections that `host` opens. The process ends with the object.
class OnPathRelay {
 public:
  static constexpr int kPort = 7;
  static constexpr uid_t kUser = 65534;

  // `delay`: how long each record takes, like a long path.
  OnPathRelay(const HostNetwork& network, int host, const Attack& attack, Recording& recording,
              std::chrono::milliseconds delay = {});
  ~OnPathRelay();
  OnPathRelay(const OnPathRelay&) = delete;
  OnPathRelay& operator=(const OnPathRelay&) = delete;

 private:
  pid_t process_;
};

}  // namespace hccl::test
