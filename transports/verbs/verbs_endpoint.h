// SPDX-License-Identifier: Apache-2.0
// An endpoint of a stream over a queue pair. Establishes the queue pair, waits for events and ends
// the stream. Sender and Receiver move the data. Both ends keep open the TCP connection over which
// they set up the queue pairs. The connection closes when the peer's process ends, and TCP
// keep-alive detects a cut link while no data is sent.
#pragma once

#include "base/file_descriptor.h"
#include "transport/connection_attempt.h"
#include "transport/endpoint.h"
#include "transport/transport.h"
#include "verbs/device.h"
#include "verbs/final_ack.h"
#include "verbs/qp_exchange.h"
#include "verbs/queue_pair.h"
#include "verbs/receiver.h"
#include "verbs/registration_cache.h"
#include "verbs/sender.h"
#include "verbs/stream_memory.h"
#include "verbs/stream_windows.h"

#include <memory>
#include <optional>
#include <string>

namespace hccl::verbs {

class VerbsEndpoint final : public transport::Endpoint {
 public:
  // `own` is this rank.
  VerbsEndpoint(int own, int peer, std::unique_ptr<transport::ConnectionAttempt> connecting,
                std::shared_ptr<RdmaDevice> device, std::shared_ptr<RegistrationCache> cache,
                const transport::ConnectionLimits& limits);
  // Calls finish() with a deadline of kLongestDrain.
  ~VerbsEndpoint() override;

  [[nodiscard]] std::size_t try_send_parts(
      std::span<const std::span<const std::byte>> parts) override;
  [[nodiscard]] bool flushed() override;
  [[nodiscard]] std::span<const std::byte> try_receive(std::size_t most) override;
  void release(std::size_t count) override;
  [[nodiscard]] std::size_t view_limit() const override { return kViewBytes; }
  [[nodiscard]] std::size_t try_receive_into(std::span<std::byte> destination) override;
  [[nodiscard]] bool begin_sleep(transport::Interest interest, transport::SleepPlan& plan) override;
  void end_sleep() noexcept override;
  void finish(Deadline deadline) noexcept override;
  void cut() noexcept override;
  [[nodiscard]] bool connected() const override { return state_ == State::streaming; }

 private:
  enum class State : std::uint8_t { connecting, exchanging, opening, readying, streaming };

  [[nodiscard]] bool establish();
  void start_exchange();
  void connect_to(const QpInfo& peer);
  [[nodiscard]] bool has_opened_memory();
  void progress();
  void take_failure();
  void handle(std::uint32_t immediate);
  void poll_for_data();
  void check_peer() noexcept;
  void check_idle_peer();
  void mark_lost(const std::string& what) noexcept;
  void throw_if_lost() const;
  [[nodiscard]] bool is_flushed() const {
    return !send_ || (send_->flushed() && receive_->closed());
  }

  int own_;
  transport::ConnectionLimits limits_;
  // Kept after it has succeeded: an InboundConnection reserves its stream in the listener.
  std::unique_ptr<transport::ConnectionAttempt> attempt_;
  std::shared_ptr<RdmaDevice> device_;
  std::shared_ptr<RegistrationCache> cache_;
  FileDescriptor socket_;                   // the TCP connection
  std::string path_ = "not connected yet";  // for error texts: NIC, port and addresses
  State state_ = State::connecting;
  bool finished_ = false;
  QpExchange exchange_;
  std::uint64_t opening_ = 0;  // the last request that opens memory to the peer
  std::unique_ptr<StreamMemory> memory_;
  std::unique_ptr<QueuePair> pair_;  // destroyed before the memory
  std::optional<Sender> send_;       // set by connect_to()
  std::optional<Receiver> receive_;
  std::optional<StreamWindows> windows_;  // destroyed before the queue pair and the receiver
  FinalAck final_ack_;                    // received from the peer
  std::uint32_t idle_ = 0;                // calls that moved no data
  std::uint32_t unseen_sends_ = 0;        // short sends since the last progress()
  std::string lost_;                      // the reason why the peer is lost; empty if it is not
};

}  // namespace hccl::verbs
