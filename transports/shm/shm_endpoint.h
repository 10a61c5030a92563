// SPDX-License-Identifier: Apache-2.0
// A stream through rings in shared memory. The unix socket over which the memory came stays open:
// it wakes a sleeping end, and its end is the peer's.
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
  // `own`: this rank. The one with the larger number makes the memory.
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
  [[nodiscard]] const std::byte* place_of_arrived(std::size_t count) const;
  void wake_peer(std::uint32_t wanted);
  void look_after_peer() noexcept;
  void look_after_idle_peer();
  void lose(const char* what) noexcept;
  void throw_if_lost() const;

  int own_;
  std::unique_ptr<transport::ConnectionAttempt> attempt_;  // holds the stream's place, too
  FileDescriptor socket_;
  FileDescriptor process_;  // pidfd of the peer's process
  FileDescriptor file_;     // of the end that makes the memory, until it is sent
  std::optional<Segment> segment_;
  std::size_t own_side_;
  // Set with the segment.
  Side* mine_ = nullptr;
  const Side* theirs_ = nullptr;
  Sleeper* my_sleep_ = nullptr;
  Sleeper* their_sleep_ = nullptr;

  std::uint64_t sent_ = 0;            // copied in; published up to mine_->sent
  std::uint64_t known_released_ = 0;  // by the peer, as last looked up
  std::uint64_t position_ = 0;        // released by this end
  std::uint64_t seen_ = 0;            // lent to the owner up to here
  std::uint32_t idle_ = 0;            // calls that moved nothing
  const char* lost_ = nullptr;        // what has happened; null while all is well
};

}  // namespace hccl::shm
