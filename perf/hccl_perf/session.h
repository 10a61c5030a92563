// SPDX-License-Identifier: Apache-2.0
// One rank's device, stream and communicator. All functions except destructors throw a RunError
// with the reason if a call to the library fails.
#pragma once

#include "collective.h"
#include "traffic.h"

#include <hccl.h>
#include <synapse_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hccl_perf {

// The Synapse runtime of a process. It must outlive the sessions of all ranks of the process.
class Runtime {
 public:
  Runtime();
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  // Destroys the runtime. Throws RunError if that fails; the destructor ignores errors.
  void finish();

 private:
  bool running_ = true;
};

class Session {
 public:
  // Returns the unique id.
  using GetId = std::function<hcclUniqueId()>;

  // Acquires a device (module number `local_rank` if it is free), gets the id, joins the
  // communicator as `rank` of `ranks`, and creates a stream. `calls` counts the collectives that
  // this session queues.
  Session(int rank, int ranks, int local_rank, const GetId& get_id,
          std::atomic<std::uint64_t>& calls);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] synDeviceId device() const { return device_; }
  [[nodiscard]] hcclComm_t communicator() const { return communicator_; }
  [[nodiscard]] int module_id() const;
  [[nodiscard]] std::string device_name() const;
  [[nodiscard]] std::uint64_t free_device_memory() const;

  // Returns a meter for the traffic of this rank's calls.
  [[nodiscard]] TrafficMeter traffic_meter() const { return {communicator_, rank_, ranks_}; }

  void enqueue(const Call& call);
  // Blocks until everything that is queued has run.
  void synchronize();
  void copy_to_device(const void* host, std::uint64_t device_address, std::size_t bytes);
  void copy_to_host(std::uint64_t device_address, void* host, std::size_t bytes);

  // Creates an event that records the time. The caller must destroy the event.
  [[nodiscard]] synEventHandle make_event() const;
  void record(synEventHandle event);
  [[nodiscard]] static double nanoseconds_between(synEventHandle start, synEventHandle end);

  // Releases all resources. Throws RunError if that fails; the destructor ignores errors.
  void finish();

 private:
  void acquire_device(int local_rank);
  [[nodiscard]] synDeviceInfoV2 info() const;

  int rank_;
  int ranks_;
  synDeviceId device_ = SYN_INVALID_DEVICE_ID;
  hcclComm_t communicator_ = nullptr;
  synStreamHandle stream_ = nullptr;
  std::atomic<std::uint64_t>& calls_;
};

// Creates a unique id. Throws RunError.
[[nodiscard]] hcclUniqueId make_unique_id();

// Return the library's interface version, its release, and the path of its file (empty if unknown).
[[nodiscard]] int library_version();
[[nodiscard]] std::string library_release();
[[nodiscard]] std::string library_path();

// Device memory of a session.
class DeviceBuffer {
 public:
  DeviceBuffer(Session& session, std::uint64_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  Session& session_;
  std::uint64_t bytes_;
  std::uint64_t address_ = 0;
};

// Host memory that a session's device can copy from and to.
class HostBuffer {
 public:
  HostBuffer(Session& session, std::size_t bytes);
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  [[nodiscard]] std::byte* data() { return storage_.data(); }
  [[nodiscard]] std::size_t size() const { return storage_.size(); }

 private:
  Session& session_;
  std::vector<std::byte> storage_;
};

}  // namespace hccl_perf
