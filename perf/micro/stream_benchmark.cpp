// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a stream's queue in nanoseconds of CPU time per command, for several kinds
// of commands. Other programs on the machine disturb CPU time less than elapsed time.
#include "device/copy.h"
#include "device/device.h"
#include "device/event.h"
#include "device/stream.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

#include <benchmark/benchmark.h>
#include <time.h>

namespace hccl::device {
namespace {

// The number of commands queued before each synchronisation, as in the side-by-side benchmark.
constexpr std::int64_t kBatch = 1000;
// The number of commands in a batch that the worker runs. In the first batch, enqueue() blocks
// briefly several times until the queue has grown to this length.
constexpr std::int64_t kWorkerBatch = 50'000;

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

class Fixture {
 public:
  [[nodiscard]] Device& device() { return device_; }
  [[nodiscard]] std::shared_ptr<Stream> stream() { return device_.create_stream(); }

 private:
  Device device_{0, 0, FileDescriptor{}, 16 << 20};
};

Outcome nothing() { return Outcome::success; }

void check(benchmark::State& state, Outcome outcome) {
  if (outcome != Outcome::success) state.SkipWithError("a command failed");
}

// Measures commands that the waiting thread runs itself.
void run_by_synchronising(benchmark::State& state) {
  Fixture fixture;
  const auto stream = fixture.stream();
  while (state.KeepRunningBatch(kBatch)) {
    for (std::int64_t i = 0; i < kBatch; ++i) stream->enqueue(nothing);
    check(state, stream->synchronize());
  }
}

// Measures commands that the stream's worker runs because no thread waits. The first command blocks
// the worker until the others are queued.
void run_by_worker(benchmark::State& state) {
  Fixture fixture;
  const auto stream = fixture.stream();
  while (state.KeepRunningBatch(kWorkerBatch)) {
    std::atomic<bool> queued{false}, done{false};
    double begin = 0, end = 0;
    stream->enqueue([&] {
      while (!queued.load(std::memory_order_acquire)) std::this_thread::yield();
      begin = thread_seconds();
      return Outcome::success;
    });
    for (std::int64_t i = 0; i < kWorkerBatch; ++i) stream->enqueue(nothing);
    stream->enqueue([&] {
      end = thread_seconds();
      done.store(true, std::memory_order_release);
      return Outcome::success;
    });
    queued.store(true, std::memory_order_release);
    while (!done.load(std::memory_order_acquire)) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    check(state, stream->synchronize());
    state.SetIterationTime(end - begin);
  }
}

// Measures a command, an event recorded after the command, and another stream's wait for the event
// (synStreamWaitEvent).
void wait_for_event(benchmark::State& state) {
  Fixture fixture;
  const auto producer = fixture.stream();
  const auto consumer = fixture.stream();
  Event event(false);
  while (state.KeepRunningBatch(kBatch)) {
    for (std::int64_t i = 0; i < kBatch; ++i) {
      producer->enqueue(nothing);
      event.record(*producer);
      consumer->enqueue([capture = event.capture(), own = consumer->progress()] {
        Stream::wait_for(capture);
        return own->take_over_failure(capture);
      });
    }
    check(state, consumer->synchronize());
  }
}

void copy_8_bytes(benchmark::State& state) {
  Fixture fixture;
  const auto stream = fixture.stream();
  Arena& arena = fixture.device().arena();
  const std::array<std::byte, 8> source{};
  const DeviceAddress destination = arena.allocate(source.size());
  while (state.KeepRunningBatch(kBatch)) {
    for (std::int64_t i = 0; i < kBatch; ++i) {
      benchmark::DoNotOptimize(arena.resolve(destination, source.size(), "dst"));
      stream->enqueue([&arena, &source, destination] {
        copy_to_device(arena, destination, source.data(), source.size());
        return Outcome::success;
      });
    }
    check(state, stream->synchronize());
  }
}

void queue_one_and_synchronise(benchmark::State& state) {
  Fixture fixture;
  const auto stream = fixture.stream();
  while (state.KeepRunning()) {
    stream->enqueue(nothing);
    check(state, stream->synchronize());
  }
}

BENCHMARK(run_by_synchronising)->MeasureProcessCPUTime();
BENCHMARK(run_by_worker)->UseManualTime();
BENCHMARK(wait_for_event)->MeasureProcessCPUTime();
BENCHMARK(copy_8_bytes)->MeasureProcessCPUTime();
BENCHMARK(queue_one_and_synchronise)->MeasureProcessCPUTime();

}  // namespace
}  // namespace hccl::device

BENCHMARK_MAIN();
