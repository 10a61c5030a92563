// SPDX-License-Identifier: Apache-2.0
// A stream over one TCP connection. Sent bytes are copied into the kernel. Received bytes go
// directly to their destination, or into a buffer from which they are lent. If the stream is
// protected, sent bytes are sealed in a record first, and received records are opened.
#pragma once

#include "base/address.h"
#include "base/file_descriptor.h"
#include "tcp/receive_buffer.h"
#include "tcp/record_layer.h"
#include "transport/connection_attempt.h"
#include "transport/endpoint.h"
#include "transport/transport.h"

#include <memory>
#include <string>

namespace hccl::tcp {

class TcpEndpoint final : public transport::Endpoint {
 public:
  // `own` is this rank, for error texts.
  TcpEndpoint(int own, int peer, std::unique_ptr<transport::ConnectionAttempt> connecting,
              const transport::ConnectionLimits& limits);

  [[nodiscard]] std::size_t try_send_parts(
      std::span<const std::span<const std::byte>> parts) override;
  [[nodiscard]] bool flushed() override;
  [[nodiscard]] std::span<const std::byte> try_receive(std::size_t most) override;
  void release(std::size_t count) override {
    buffer_.release(count);
    count_received(count);
  }
  [[nodiscard]] std::size_t view_limit() const override { return ReceiveBuffer::kViewLimit; }
  [[nodiscard]] std::size_t try_receive_into(std::span<std::byte> destination) override;
  [[nodiscard]] bool begin_sleep(transport::Interest interest, transport::SleepPlan& plan) override;
  void end_sleep() noexcept override;
  void finish(Deadline deadline) noexcept override;
  [[nodiscard]] bool connected() const override { return socket_.valid(); }

 private:
  [[nodiscard]] bool establish();
  [[nodiscard]] std::size_t send_parts(std::span<const std::span<const std::byte>> parts);
  [[nodiscard]] std::size_t send_protected(std::span<const std::span<const std::byte>> parts);
  [[nodiscard]] bool send_outgoing();
  [[nodiscard]] std::size_t read_into(std::span<std::byte> destination);
  [[nodiscard]] std::size_t read_protected(std::span<std::byte> destination);
  [[nodiscard]] std::size_t read_socket(std::span<std::byte> destination);
  void mark_lost(const std::string& what) noexcept;
  void throw_if_lost() const;

  int own_;
  transport::ConnectionLimits limits_;
  // Kept after it has succeeded: an InboundConnection reserves its stream in the listener.
  std::unique_ptr<transport::ConnectionAttempt> attempt_;
  std::optional<transport::Connected> authenticated_;  // until establish() has set up the stream
  FileDescriptor socket_;
  std::unique_ptr<RecordLayer> records_;  // null if the stream is not protected
  ReceiveBuffer buffer_;
  Address local_;  // set after the connection has been established
  Address remote_;
  bool send_again_later_ = false;  // kernel memory was short, and poll(2) cannot wait for memory
  std::string lost_;               // the reason why the peer is lost; empty if it is not
};

}  // namespace hccl::tcp
