// SPDX-License-Identifier: Apache-2.0
// Connects to one of a rank's addresses, and authenticates to the rank.
#pragma once

#include "base/address.h"
#include "base/file_descriptor.h"
#include "transport/connection_attempt.h"
#include "transport/handshake.h"

#include <optional>
#include <string>
#include <vector>

namespace hccl::transport {

struct DialTarget {
  SocketAddress address;
  std::string name;  // for error texts
};

// Sets the socket options that a socket family needs before the handshake.
using TuneSocket = void (*)(int socket, const ConnectionLimits& limits);

// Tries the targets in turn until one accepts. Throws PeerLost if no target answers within
// limits.connect. Also throws PeerLost after kMaxRefusalsPerTarget consecutive refusals per target:
// the rank listened before it published its addresses, so waiting would not help. Waits without a
// time limit for a rank that has accepted the connection but not opened this stream yet.
class Dialer final : public ConnectionAttempt {
 public:
  // `targets` must not be empty.
  Dialer(std::vector<DialTarget> targets, const Membership& own, const StreamKey& key,
         const ConnectionLimits& limits, TuneSocket tune = nullptr,
         LeastProtection least_protection = nullptr);

  [[nodiscard]] std::optional<Connected> poll() override;
  void plan_sleep(SleepPlan& plan) override;

 private:
  enum class State : std::uint8_t { pausing, connecting, handshaking, connected };

  void start_attempt();
  [[nodiscard]] bool is_connected();
  [[nodiscard]] bool send_now(const Bytes& bytes) const noexcept;
  void continue_handshake();
  void fail_attempt(const std::string& why, bool refused);
  void give_up_if_due();
  [[nodiscard]] const DialTarget& target() const { return targets_[at_]; }

  std::vector<DialTarget> targets_;
  Membership own_;
  StreamKey key_;
  ConnectionLimits limits_;
  TuneSocket tune_;
  LeastProtection least_protection_;
  Deadline deadline_;
  State state_ = State::pausing;
  std::size_t at_ = 0;  // index of the current target
  FileDescriptor socket_;
  std::optional<ConnectorHandshake> handshake_;
  Deadline attempt_;  // end of the current pause or attempt
  Deadline::Duration attempt_limit_;
  Deadline::Duration pause_;
  int refusals_ = 0;                   // consecutive refusals
  std::string given_up_;               // the error text; empty until the dialer gives up
  std::vector<std::string> failures_;  // per target: the reason for the last failure
};

}  // namespace hccl::transport
