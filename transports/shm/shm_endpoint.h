// SPDX-License-Identifier: Apache-2.0
// A stream through ring buffers in shared memory. The unix socket that carried the memory's
// descriptor stays open. A byte on the socket wakes a sleeping end; end of file on it means that
// the peer has closed the stream or exited.
#pragma once

#include "base/file_descriptor.h"
#include "shm/segment.h"
#include "transport/connection_attempt.h"
#include "transport/endpoint.h"

#include <memory>
#include <optional>
#include <string>

namespace hccl::shm {

class ShmEndpoint final : public transport::Endpoint {
 public:
  // `own` is this rank. The end with the larger rank creates the memory.
  ShmEndpoint(int own, int peer, std::unique_ptr<transport::ConnectionAttempt> connecting);

  [[nodiscard]] std::size_t try_send_parts(
      std::span<const std::span<const std::byte>> parts) override;
  [[nodiscard]] bool flushed() override { return true; }
  [[nodiscard]] std::span<const std::byte> try_receive(std::size_t most) override;
  void release(std::size_t count) override;
  [[nodiscard]] std::size_t view_limit() const override { return Segment::kRingBytes / 2; }
  [[nodiscard]] std::size_t try_receive_into(std::span<std::byte> destination) override;
  [[nodiscard]] bool begin_sleep(transport::Interest interest, transport::SleepPlan& plan) override;
  void end_sleep() noexcept override;
  [[nodiscard]] bool connected() const override { return segment_.has_value(); }

 private:
  [[nodiscard]] bool establish();
  void exchange_segment();
  void adopt(const FileDescriptor& file, int maker);

  [[nodiscard]] std::size_t checked(std::uint64_t in_ring) const;
  [[nodiscard]] std::size_t room() const;
  [[nodiscard]] std::size_t copy_in(std::span<const std::byte> bytes);
  void publish();
  [[nodiscard]] std::size_t arrived() const;
  [[nodiscard]] const std::byte* arrived_bytes(std::size_t count) const;
  void wake_peer(std::uint32_t wanted);
  void check_peer() noexcept;
  void check_idle_peer();
  void mark_lost(const char* what) noexcept;
  void throw_if_lost() const;

  int own_;
  // Kept after it has succeeded: an InboundConnection reserves its stream in the listener.
  std::unique_ptr<transport::ConnectionAttempt> attempt_;
  FileDescriptor socket_;
  FileDescriptor process_;  // pidfd of the peer's process
  FileDescriptor file_;     // the memory that this end has created, until it is sent
  std::optional<Segment> segment_;
  std::size_t own_side_;
  // Valid when segment_ is set.
  Side* mine_ = nullptr;
  const Side* theirs_ = nullptr;
  Sleeper* my_sleep_ = nullptr;
  Sleeper* their_sleep_ = nullptr;

  std::uint64_t sent_ = 0;            // bytes copied into the ring; published up to mine_->sent
  std::uint64_t known_released_ = 0;  // bytes released by the peer, as last read
  std::uint64_t position_ = 0;        // bytes released by this end
  std::uint64_t seen_ = 0;            // end of the bytes lent to the owner
  std::uint32_t idle_ = 0;            // calls that moved nothing
  const char* lost_ = nullptr;        // the reason why the peer is lost; null if it is not
};

}  // namespace hccl::shm
