// SPDX-License-Identifier: Apache-2.0
// Manages a rank's device, stream, communicator and memory.
#include "session.h"

#include "quantities.h"
#include "text.h"

#include <array>
#include <utility>

#include <dlfcn.h>

namespace hccl_perf {
namespace {

// Returns ": " and the message, or an empty string if the message is empty or null.
std::string reason(const char* message) {
  return message == nullptr || *message == '\0' ? "" : text(": ", message);
}

void check(hcclResult_t result, const char* call) {
  if (result == hcclSuccess) return;
  throw RunError(text(call, " returned ", static_cast<int>(result), " (",
                      hcclGetErrorString(result), ")", reason(hcclGetLastErrorMessage())));
}

std::string describe(synStatus status) {
  std::array<char, STATUS_DESCRIPTION_MAX_SIZE> brief{};
  const bool known = synStatusGetBriefDescription(status, brief.data(), brief.size()) == synSuccess;
  return text(static_cast<int>(status), known ? text(" (", brief.data(), ")") : "");
}

void check(synStatus status, const char* call) {
  if (status == synSuccess) return;
  throw RunError(text(call, " returned ", describe(status), reason(synGetLastErrorMessage())));
}

}  // namespace

Runtime::Runtime() { check(synInitialize(), "synInitialize"); }

Runtime::~Runtime() {
  if (running_) synDestroy();
}

void Runtime::finish() {
  running_ = false;
  check(synDestroy(), "synDestroy");
}

Session::Session(int rank, int ranks, int local_rank, const GetId& get_id,
                 std::atomic<std::uint64_t>& calls)
    : rank_(rank), ranks_(ranks), calls_(calls) {
  acquire_device(local_rank);
  check(hcclCommInitRank(&communicator_, ranks, get_id(), rank), "hcclCommInitRank");
  check(synStreamCreateGeneric(&stream_, device_, 0), "synStreamCreateGeneric");
}

Session::~Session() {
  if (stream_ != nullptr) synStreamDestroy(stream_);
  if (communicator_ != nullptr) hcclCommDestroy(communicator_);
  if (device_ != SYN_INVALID_DEVICE_ID) synDeviceRelease(device_);
}

void Session::acquire_device(int local_rank) {
  const auto module = static_cast<synModuleId>(local_rank);
  std::uint32_t modules = 0;
  check(synDeviceGetCount(&modules), "synDeviceGetCount");
  if (local_rank >= 0 && module < modules &&
      synDeviceAcquireByModuleId(&device_, module) == synSuccess)
    return;
  device_ = SYN_INVALID_DEVICE_ID;
  check(synDeviceAcquire(&device_, nullptr), "synDeviceAcquire");
}

synDeviceInfoV2 Session::info() const {
  synDeviceInfoV2 info{};
  check(synDeviceGetInfoV2(device_, &info), "synDeviceGetInfoV2");
  return info;
}

int Session::module_id() const { return info().deviceIndex; }

std::string Session::device_name() const {
  const synDeviceType type = info().deviceType;
  if (type == synDeviceGaudi2) return "GAUDI2";
  if (type == synDeviceGaudi3) return "GAUDI3";
  return text("device type ", static_cast<int>(type));
}

std::uint64_t Session::free_device_memory() const {
  std::uint64_t free_bytes = 0;
  std::uint64_t total = 0;
  check(synDeviceGetMemoryInfo(device_, &free_bytes, &total), "synDeviceGetMemoryInfo");
  return free_bytes;
}

void Session::enqueue(const Call& call) {
  const hcclResult_t result = call.enqueue(communicator_, stream_);
  if (result != hcclSuccess) check(result, call.collective->function);
  // This rank is the only writer of the counter.
  calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Session::synchronize() {
  const synStatus status = synStreamSynchronize(stream_);
  if (status == synSuccess) return;
  hcclResult_t failure = hcclSuccess;
  if (hcclCommGetAsyncError(communicator_, &failure) == hcclSuccess && failure != hcclSuccess) {
    const char* message = hcclCommGetAsyncErrorMessage(communicator_);
    throw RunError(text("communication failed with ", static_cast<int>(failure), " (",
                        hcclGetErrorString(failure), ")",
                        message == nullptr ? "" : text(": ", message)));
  }
  check(status, "synStreamSynchronize");
}

void Session::copy_to_device(const void* host, std::uint64_t device_address, std::size_t bytes) {
  check(synMemCopyAsync(stream_, reinterpret_cast<std::uint64_t>(host), bytes, device_address,
                        HOST_TO_DRAM),
        "synMemCopyAsync to the device");
}

void Session::copy_to_host(std::uint64_t device_address, void* host, std::size_t bytes) {
  check(synMemCopyAsync(stream_, device_address, bytes, reinterpret_cast<std::uint64_t>(host),
                        DRAM_TO_HOST),
        "synMemCopyAsync to the host");
}

synEventHandle Session::make_event() const {
  synEventHandle event = nullptr;
  check(synEventCreate(&event, device_, EVENT_COLLECT_TIME), "synEventCreate");
  return event;
}

void Session::record(synEventHandle event) {
  check(synEventRecord(event, stream_), "synEventRecord");
}

double Session::nanoseconds_between(synEventHandle start, synEventHandle end) {
  std::uint64_t nanoseconds = 0;
  check(synEventElapsedTime(&nanoseconds, start, end), "synEventElapsedTime");
  return static_cast<double>(nanoseconds);
}

void Session::finish() {
  check(synStreamDestroy(std::exchange(stream_, nullptr)), "synStreamDestroy");
  check(hcclCommDestroy(std::exchange(communicator_, nullptr)), "hcclCommDestroy");
  check(synDeviceRelease(std::exchange(device_, SYN_INVALID_DEVICE_ID)), "synDeviceRelease");
}

hcclUniqueId make_unique_id() {
  hcclUniqueId id{};
  check(hcclGetUniqueId(&id), "hcclGetUniqueId");
  return id;
}

int library_version() {
  int version = 0;
  check(hcclGetVersion(&version), "hcclGetVersion");
  return version;
}

std::string library_release() {
  std::array<char, 256> release{};
  check(synDriverGetVersion(release.data(), static_cast<int>(release.size())),
        "synDriverGetVersion");
  return release.data();
}

std::string library_path() {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(&hcclGetVersion), &info) != 0 &&
                 info.dli_fname != nullptr
             ? info.dli_fname
             : "";
}

DeviceBuffer::DeviceBuffer(Session& session, std::uint64_t bytes)
    : session_(session), bytes_(bytes) {
  const std::uint64_t free_bytes = session.free_device_memory();
  if (bytes > free_bytes) {
    throw RunError(text("a buffer of ", format_bytes(bytes),
                        " does not fit into the device, which has only ", format_bytes(free_bytes),
                        " free; use a smaller -e"));
  }
  check(synDeviceMalloc(session.device(), bytes, 0, 0, &address_), "synDeviceMalloc");
}

DeviceBuffer::~DeviceBuffer() { synDeviceFree(session_.device(), address_, 0); }

HostBuffer::HostBuffer(Session& session, std::size_t bytes) : session_(session), storage_(bytes) {
  check(synHostMap(session.device(), bytes, storage_.data()), "synHostMap");
}

HostBuffer::~HostBuffer() { synHostUnmap(session_.device(), storage_.data()); }

}  // namespace hccl_perf
