// SPDX-License-Identifier: Apache-2.0
// An open NIC (RDMA device), with the port in use, a protection domain and the asynchronous events.
// Peers write to registered memory through memory windows of type 2: such a window belongs to one
// queue pair, so only the peer of that queue pair can use it, and only for the range to which the
// window was opened.
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

// How peers may write to registered memory.
enum class PeerAccess : std::uint8_t {
  none,
  window,  // through windows or, if the device has none, with the registration's remote key
  key,     // with the registration's remote key
};

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
  [[nodiscard]] ibv_mr* region() const { return region_; }

 private:
  friend class RdmaDevice;
  Registration(std::shared_ptr<RdmaDevice> device, ibv_mr* region)
      : device_(std::move(device)), region_(region) {}

  std::shared_ptr<RdmaDevice> device_;
  ibv_mr* region_ = nullptr;
};

struct FreeWindow {
  std::shared_ptr<RdmaDevice> device;  // kept open while the window exists

  void operator()(ibv_mw* window) const;
};
// A memory window of type 2. To open it is to bind it to a range of a registration
// (IBV_WR_BIND_MW), and to close it is to invalidate its key (IBV_WR_LOCAL_INV). Must be destroyed
// before the registration of the memory to which it is open.
using MemoryWindow = std::unique_ptr<ibv_mw, FreeWindow>;

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

  // Returns whether the device and its driver have memory windows of type 2.
  [[nodiscard]] bool has_windows() const { return has_windows_; }
  // Returns whether the device has windows and confines the peer to the range of a window.
  // Soft-RoCE (rxe) confines it only to the registration.
  [[nodiscard]] bool confines_windows() const { return confines_windows_; }
  // Returns a closed window. Requires has_windows(). Throws Error(hcclSystemError).
  [[nodiscard]] MemoryWindow allocate_window();
  // Registers memory for local access, and for the peers' access. Returns nothing and sets errno on
  // failure.
  [[nodiscard]] std::optional<Registration> try_register(std::span<std::byte> memory,
                                                         PeerAccess peers);

  // Returns the descriptor that becomes readable when an asynchronous event arrives.
  [[nodiscard]] int descriptor() const { return context_->async_fd; }
  // Reads the pending asynchronous events. If the NIC cannot work at present, returns the reason;
  // otherwise returns a Trouble with hcclSuccess. Does not block.
  [[nodiscard]] transport::Trouble check();

 private:
  RdmaDevice(const VerbsLibrary& library, UsablePort port)
      : library_(library), port_(std::move(port)) {}
  void open_context();
  void find_windows();
  void record(const ibv_async_event& event);

  const VerbsLibrary& library_;
  const UsablePort port_;
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  bool has_windows_ = false;
  bool confines_windows_ = false;
  std::mutex mutex_;
  transport::Trouble trouble_;
};

}  // namespace hccl::verbs
