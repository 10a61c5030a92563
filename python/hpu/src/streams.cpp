// SPDX-License-Identifier: Apache-2.0
#include "streams.h"

#include "device_works.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

namespace hccl_torch_hpu {

namespace {

thread_local std::int64_t current_stream = 0;

struct Made {
  std::mutex mutex;
  std::map<std::int64_t, std::unique_ptr<hccl_torch::Stream>> streams;
};

Made& made() {
  static auto* const streams = new Made;
  return *streams;
}

// Returns the stream, or null if handle() has not created it yet.
const hccl_torch::Stream* find(std::int64_t number) {
  const std::lock_guard lock(made().mutex);
  const auto found = made().streams.find(number);
  return found == made().streams.end() ? nullptr : found->second.get();
}

void await(synStreamHandle stream) {
  const synStatus status = synStreamSynchronize(stream);
  TORCH_CHECK(status == synSuccess, "hccl_torch_hpu: synStreamSynchronize returned ", status, ": ",
              synGetLastErrorMessage());
}

}  // namespace

std::int64_t Streams::make() {
  static std::atomic<std::int64_t> made{0};
  return made++ % kPool + 1;
}

synStreamHandle Streams::handle(std::int64_t number) {
  const std::lock_guard lock(made().mutex);
  std::unique_ptr<hccl_torch::Stream>& stream = made().streams[number];
  if (!stream) stream = std::make_unique<hccl_torch::Stream>();
  return stream->get();
}

std::int64_t Streams::current() noexcept { return current_stream; }

std::int64_t Streams::exchange_current(std::int64_t number) noexcept {
  return std::exchange(current_stream, number);
}

void Streams::synchronize(std::int64_t number) {
  hccl_torch::DeviceWorks::instance().complete_all();
  if (const hccl_torch::Stream* const stream = find(number)) await(stream->get());
}

void Streams::synchronize_all() {
  hccl_torch::DeviceWorks::instance().complete_all();
  std::vector<synStreamHandle> handles;
  {
    const std::lock_guard lock(made().mutex);
    for (const auto& [number, stream] : made().streams) handles.push_back(stream->get());
  }
  for (const synStreamHandle stream : handles) await(stream);
}

bool Streams::is_idle(std::int64_t number) {
  const hccl_torch::Stream* const stream = find(number);
  return stream == nullptr || synStreamQuery(stream->get()) == synSuccess;
}

int visible_devices() noexcept {
  if (const char* const modules = std::getenv("HABANA_VISIBLE_MODULES");
      modules != nullptr && *modules >= '0' && *modules <= '9') {
    int count = 1;
    for (const char one : std::string_view(modules)) count += one == ',' ? 1 : 0;
    return count;
  }
  const char* const given = std::getenv("HCCL_DEVICE_COUNT");
  const int count = given != nullptr ? std::atoi(given) : 0;
  return count > 0 ? count : 8;
}

}  // namespace hccl_torch_hpu
