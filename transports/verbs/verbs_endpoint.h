// SPDX-License-Identifier: Apache-2.0
// A stream through a queue pair: how it begins, sleeps and ends. Sending and receiving
// are in send_side.h and receive_side.h. The TCP connection over which the two ends have met stays
// open: its end is the peer's, and its keep-alive notices a link that is cut while nothing is sent.
#pragma once

#include "base/file_descriptor.h"
#include "transport/connecting.h"
#include "transport/endpoint.h"
#include "transport/transport.h"
#include "verbs/device.h"
#include "verbs/farewell.h"
#include "verbs/introduction.h"
#include "verbs/queue_pair.h"
#include "verbs/receive_side.h"
#include "verbs/registration_cache.h"
#include "verbs/send_side.h"
#include "verbs/stream_memory.h"

#include <memory>
#include <optional>
#include <string>

namespace hccl::verbs {

class VerbsEndpoint final : public transport::Endpoint {
 public:
  // `own`: this rank.
  VerbsEndpoint(int own, int peer, std::unique_ptr<transport::Connecting> connecting,
                std::shared_ptr<Device> device, std::shared_ptr<RegistrationCache> cache,
                const transport::Limits& limits);
  // Finishes, within a short time.
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
  [[nodiscard]] bool connected() const override { return stage_ == Stage::streaming; }

 private:
  enum class Stage : std::uint8_t { connecting, introducing, readying, streaming };

  [[nodiscard]] bool establish();
  void introduce();
  void meet(const Facts& peer);
  void progress();
  void take(std::uint32_t immediate);
  void listen();
  void look_after_peer() noexcept;
  void look_after_idle_peer();
  void lose(const std::string& what) noexcept;
  void throw_if_lost() const;

  int own_;
  transport::Limits limits_;
  std::unique_ptr<transport::Connecting> connecting_;  // holds the stream's place, too
  std::shared_ptr<Device> device_;
  std::shared_ptr<RegistrationCache> cache_;
  FileDescriptor socket_;
  std::string way_ = "not connected yet";  // for texts: port, interface and addresses
  Stage stage_ = Stage::connecting;
  bool finished_ = false;
  Introduction introduction_;
  std::unique_ptr<StreamMemory> memory_;
  std::unique_ptr<QueuePair> pair_;  // ends before the memory
  std::optional<SendSide> send_;     // from when the peer is known
  std::optional<ReceiveSide> receive_;
  Farewell farewell_;               // the peer's
  std::uint32_t idle_ = 0;          // calls that moved nothing
  std::uint32_t unseen_sends_ = 0;  // since the last progress()
  std::string lost_;                // what has happened; empty while all is well
};

}  // namespace hccl::verbs
