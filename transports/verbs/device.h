// SPDX-License-Identifier: Apache-2.0
// An open NIC (RDMA device), with the port in use, a protection domain and the asynchronous events.
#pragma once

#include "transport/transport.h"
#include "verbs/port_choice.h"
#include "verbs/verbs_library.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace hccl::verbs {

class RdmaDevice;

// Memory that the NIC may access until the registration is destroyed.
class Registration {
 public:
  Registration() = default;
  Registration(Registration&& other) noexcept
      : device_(std::move(other.device_)), region_(std::exchange(other.region_, nullptr)) {}
  Registration& operator=(Registration&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(region_, other.region_);
    return *this;
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration();

  [[nodiscard]] std::uint32_t local_key() const { return region_->lkey; }
  [[nodiscard]] std::uint32_t remote_key() const { return region_->rkey; }

 private:
  friend class RdmaDevice;
  Registration(std::shared_ptr<RdmaDevice> device, ibv_mr* region)
      : device_(std::move(device)), region_(region) {}

  std::shared_ptr<RdmaDevice> device_;
  ibv_mr* region_ = nullptr;
};

// Shared by a transport and its endpoints. Thread safety: any thread.
class RdmaDevice : public std::enable_shared_from_this<RdmaDevice> {
 public:
  // Opens the NIC of `port` and allocates a protection domain. Throws Error(hcclSystemError).
  [[nodiscard]] static std::shared_ptr<RdmaDevice> open(const VerbsLibrary& library,
                                                        const UsablePort& port);
  ~RdmaDevice();
  RdmaDevice(const RdmaDevice&) = delete;
  RdmaDevice& operator=(const RdmaDevice&) = delete;

  [[nodiscard]] const VerbsLibrary& library() const { return library_; }
  [[nodiscard]] ibv_context* context() const { return context_; }
  [[nodiscard]] ibv_pd* domain() const { return domain_; }
  [[nodiscard]] const UsablePort& port() const { return port_; }

  // Registers memory for local access and, if `remote`, for writes by peers. Returns nothing and
  // sets errno on failure.
  [[nodiscard]] std::optional<Registration> try_register(std::span<std::byte> memory, bool remote);

  // Returns the descriptor that becomes readable when an asynchronous event arrives.
  [[nodiscard]] int descriptor() const { return context_->async_fd; }
  // Reads the pending asynchronous events. If the NIC cannot work at present, returns the reason;
  // otherwise returns a Trouble with hcclSuccess. Does not block.
  [[nodiscard]] transport::Trouble check();

 private:
  RdmaDevice(const VerbsLibrary& library, UsablePort port)
      : library_(library), port_(std::move(port)) {}
  void open_context();
  void record(const ibv_async_event& event);

  const VerbsLibrary& library_;
  const UsablePort port_;
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  std::mutex mutex_;
  transport::Trouble trouble_;
};

}  // namespace hccl::verbs
