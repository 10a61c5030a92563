// SPDX-License-Identifier: Apache-2.0
// Runs copies on one stream and collectives on another, ordered by events: while one part is
// reduced, the next part is copied. Needs only C++11. The program has only one rank, so that it
// needs no launcher.
#include <hccl.h>
#include <synapse_api.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

const std::size_t kParts = 8;
const std::size_t kCount = 1 << 16;  // elements per part
const std::uint64_t kBytes = kCount * sizeof(float);

void expect(synStatus status, const char* what) {
  if (status == synSuccess) return;
  throw std::runtime_error(std::string(what) + " failed: " + synGetLastErrorMessage());
}

void expect(hcclResult_t result, const char* what) {
  if (result == hcclSuccess) return;
  const char* why = hcclGetLastErrorMessage();
  throw std::runtime_error(std::string(what) +
                           " failed: " + (why != nullptr ? why : "no error message"));
}

std::uint64_t address_of(float* data) { return reinterpret_cast<std::uintptr_t>(data); }
void* pointer_to(std::uint64_t address) { return reinterpret_cast<void*>(address); }

struct Streams {
  explicit Streams(synDeviceId device) : copied(kParts), reduced(kParts) {
    expect(synStreamCreateGeneric(&copy, device, 0), "synStreamCreateGeneric");
    expect(synStreamCreateGeneric(&network, device, 0), "synStreamCreateGeneric");
    for (std::size_t part = 0; part < kParts; ++part) {
      expect(synEventCreate(&copied[part], device, 0), "synEventCreate");
      expect(synEventCreate(&reduced[part], device, 0), "synEventCreate");
    }
  }

  synStreamHandle copy;
  synStreamHandle network;
  std::vector<synEventHandle> copied;
  std::vector<synEventHandle> reduced;
};

// Queues everything and waits once at the end.
void reduce_in_parts(const Streams& streams, hcclComm_t comm, float* host, std::uint64_t buffer) {
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::uint64_t place = buffer + part * kBytes;
    expect(synMemCopyAsync(streams.copy, address_of(host + part * kCount), kBytes, place,
                           HOST_TO_DRAM),
           "copy in");
    expect(synEventRecord(streams.copied[part], streams.copy), "synEventRecord");
    expect(synStreamWaitEvent(streams.network, streams.copied[part], 0), "synStreamWaitEvent");
    expect(hcclAllReduce(pointer_to(place), pointer_to(place), kCount, hcclFloat, hcclSum, comm,
                         streams.network),
           "hcclAllReduce");
    expect(synEventRecord(streams.reduced[part], streams.network), "synEventRecord");
  }
  for (std::size_t part = 0; part < kParts; ++part) {
    expect(synStreamWaitEvent(streams.copy, streams.reduced[part], 0), "synStreamWaitEvent");
    expect(synMemCopyAsync(streams.copy, buffer + part * kBytes, kBytes,
                           address_of(host + part * kCount), DRAM_TO_HOST),
           "copy out");
  }
  expect(synStreamSynchronize(streams.copy), "synStreamSynchronize");
}

int run() {
  synDeviceId device = 0;
  expect(synInitialize(), "synInitialize");
  expect(synDeviceAcquire(&device, nullptr), "synDeviceAcquire");
  hcclUniqueId id;
  hcclComm_t comm = nullptr;
  expect(hcclGetUniqueId(&id), "hcclGetUniqueId");
  expect(hcclCommInitRank(&comm, 1, id, 0), "hcclCommInitRank");

  void* memory = nullptr;
  std::uint64_t buffer = 0;
  expect(synHostMalloc(device, kParts * kBytes, 0, &memory), "synHostMalloc");
  expect(synDeviceMalloc(device, kParts * kBytes, 0, 0, &buffer), "synDeviceMalloc");
  float* host = static_cast<float*>(memory);
  for (std::size_t i = 0; i < kParts * kCount; ++i) host[i] = static_cast<float>(i % 1000);

  reduce_in_parts(Streams(device), comm, host, buffer);

  int wrong = 0;
  for (std::size_t i = 0; i < kParts * kCount; ++i)
    wrong += host[i] != static_cast<float>(i % 1000) ? 1 : 0;
  expect(hcclCommDestroy(comm), "hcclCommDestroy");
  expect(synDeviceRelease(device), "synDeviceRelease");
  expect(synDestroy(), "synDestroy");
  std::printf("%zu parts, %d wrong elements\n", kParts, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
