// SPDX-License-Identifier: Apache-2.0
// Connects to one of a rank's addresses and proves itself there.
#pragma once

#include "base/address.h"
#include "base/file_descriptor.h"
#include "transport/connecting.h"
#include "transport/handshake.h"

#include <string>
#include <vector>

namespace hccl::transport {

struct Target {
  SocketAddress address;
  std::string name;  // for people
};

// Sets what the family of sockets needs before the handshake.
using TuneSocket = void (*)(int socket, const Limits& limits);

// Tries the targets in their order, again and again: a rank that answers but has not come to this
// stream yet is waited for without a limit, one that cannot be reached for limits.connect, one that
// refuses connections or is a stranger much shorter, for listeners exist before their addresses are
// known.
class Dialer final : public Connecting {
 public:
  // `targets`: at least one.
  Dialer(std::vector<Target> targets, const Membership& own, const StreamKey& key,
         const Limits& limits, TuneSocket tune = nullptr);

  [[nodiscard]] std::optional<FileDescriptor> poll() override;
  void plan_sleep(SleepPlan& plan) override;

 private:
  enum class Stage : std::uint8_t { pausing, connecting, talking };

  void start_attempt();
  [[nodiscard]] bool is_connected();
  [[nodiscard]] bool say(const Bytes& bytes) const noexcept;
  void converse();
  void fail_attempt(const std::string& why, bool refused);
  void give_up_if_hopeless();
  [[nodiscard]] const Target& target() const { return targets_[at_]; }

  std::vector<Target> targets_;
  Membership own_;
  StreamKey key_;
  Limits limits_;
  TuneSocket tune_;
  Deadline deadline_;
  Stage stage_ = Stage::pausing;
  std::size_t at_ = 0;  // of targets_
  FileDescriptor socket_;
  ConnectorHandshake handshake_;
  Deadline attempt_;  // the end of the pause, or of the attempt
  Deadline::Duration patience_;
  Deadline::Duration pause_;
  int refusals_ = 0;                   // since something else happened
  std::string hopeless_;               // what is thrown once it has been given up
  std::vector<std::string> troubles_;  // by target: why its last attempt failed
};

}  // namespace hccl::transport
