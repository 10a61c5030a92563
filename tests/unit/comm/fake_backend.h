// SPDX-License-Identifier: Apache-2.0
// A back end that only records a communicator's calls, and a communicator that uses it.
#pragma once

#include "base/config.h"
#include "base/error.h"
#include "base/text.h"
#include "call/backend.h"
#include "comm/communicator.h"
#include "device/device.h"
#include "device/stream.h"
#include "node/host_staging.h"

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hccl::comm {

class FakeBackend final : public Backend {
 public:
  bool stages = false;
  std::optional<std::pair<hcclResult_t, std::string>> fault;
  std::string error_of_next_run;  // error text that the next run throws; empty: none

  // Returns the calls in order, such as "lane 0 of a", "number a send(1, float) to rank 2" and "run
  // a all_reduce(1, float, sum)". The text of a staged call contains "staged". Streams are named a,
  // b, ... in the order in which they were opened.
  [[nodiscard]] std::vector<std::string> log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  // Throws the error that the test has set for the next run, if any.
  void throw_once() {
    const std::lock_guard lock(mutex_);
    if (std::string error = std::exchange(error_of_next_run, ""); !error.empty())
      throw Error(hcclSystemError, error);
  }
  void note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    log_.push_back(what);
  }

  BackendStream& open_stream(std::uint64_t /*stream*/) override {
    return streams_.emplace_back(*this, static_cast<char>('a' + streams_.size()));
  }
  void close_stream(BackendStream& stream) noexcept override {
    note(text("close ", static_cast<Stream&>(stream).name()));
  }
  bool needs_staging(const CollectiveCall& call) const override {
    return stages && node::uses_host_memory(call, 0, 2);
  }
  bool needs_staging(const PointToPoint& call) const override {
    return stages && node::uses_host_memory(call);
  }
  bool ranks_share_cores() const override { return false; }
  bool failed() const override { return fault.has_value(); }
  void throw_if_failed() const override {
    if (fault) throw Error(fault->first, fault->second);
  }
  AsyncError async_error() const override {
    return fault ? AsyncError{fault->first, fault->second} : AsyncError{};
  }
  void fail(hcclResult_t code, const char* why) noexcept override {
    if (!fault) fault = {code, text("rank 0: ", why)};
  }
  void peer_died(int /*peer*/) noexcept override {}
  void depart() override { note("depart"); }
  void set_wait_limit(std::uint64_t /*milliseconds*/) override {}
  std::optional<Offer> probe(int first, bool /*only_looks*/, Deadline /*deadline*/,
                             SpinLock& /*queueing*/) override {
    note(text("probe from ", first));
    return Offer{first == 1 ? 2 : 1, 64};
  }
  TrafficReport traffic(std::optional<int> /*peer*/) const override { return {}; }
  PlanSteps plan_of(const PlanRequest& /*request*/) const override {
    return {"fake", "memory", "a step"};
  }
  CallPath path_of(const CollectiveCall& /*call*/) const override { return {"fake", "it is"}; }
  CallPath path_of(const PointToPoint& /*call*/) const override { return {"fake", "it is"}; }

 private:
  class Stream final : public BackendStream {
   public:
    Stream(FakeBackend& backend, char name) : backend_(backend), name_(name) {}
    [[nodiscard]] char name() const { return name_; }

    void begin_collectives(std::uint32_t ordinal) override {
      backend_.note(text("lane ", ordinal, " of ", name_));
    }
    void number(PointToPoint& call) override {
      backend_.note(text("number ", name_, ' ', describe(call)));
    }
    bool run(const CollectiveCall& call, std::uint64_t staging, CallLookahead& ahead) override {
      backend_.throw_once();
      backend_.note(text("run ", name_, ' ', describe(call), staging != 0 ? " staged" : "",
                         ahead.has_next() ? ", more follow" : ""));
      return true;
    }
    bool exchange(std::span<const PointToPoint> calls, const MessagePlace& place,
                  std::uint64_t staging, GroupLookahead& /*ahead*/) override {
      std::string all;
      for (const PointToPoint& call : calls) all += text(all.empty() ? "" : ", ", describe(call));
      backend_.note(text("exchange ", name_, ' ', all,
                         place.has_collectives ? " after " : " before ", "lane ", place.ordinal,
                         staging != 0 ? " staged" : ""));
      return true;
    }

   private:
    FakeBackend& backend_;
    const char name_;
  };

  mutable std::mutex mutex_;
  std::vector<std::string> log_;
  std::list<Stream> streams_;
};

// Rank 0 of a communicator of four ranks, with a device.
struct FakeCommunicator {
  FakeCommunicator() {
    auto made = std::make_unique<FakeBackend>();
    backend = made.get();
    hcclUniqueId id{};
    communicator = std::make_shared<Communicator>(
        id, 4, 0, device, std::move(made), std::make_unique<OperationLog>(*config(), 0, true));
  }
  // Waits for the stream's work. Returns all calls that the back end has recorded.
  std::vector<std::string> log_after(const std::shared_ptr<device::Stream>& stream) const {
    static_cast<void>(stream->synchronize());
    return backend->log();
  }
  // Waits for the stream's work. Returns only the calls that ran work.
  std::vector<std::string> ran_on(const std::shared_ptr<device::Stream>& stream) const {
    std::vector<std::string> log = log_after(stream);
    std::erase_if(log, [](const std::string& entry) {
      return !entry.starts_with("run") && !entry.starts_with("exchange");
    });
    return log;
  }

  std::shared_ptr<device::Device> device =
      std::make_shared<device::Device>(0, 0, FileDescriptor{}, 64 << 20);
  FakeBackend* backend = nullptr;
  std::shared_ptr<Communicator> communicator;
};

inline CollectiveCall all_reduce(std::uint64_t count, std::uint64_t send, std::uint64_t recv) {
  return {.collective = Collective::all_reduce,
          .type = hcclFloat32,
          .operation = hcclSum,
          .count = count,
          .send = send,
          .recv = recv};
}

inline PointToPoint message(Direction direction, int peer, std::uint64_t address,
                            std::uint64_t count = 1) {
  return {.direction = direction,
          .type = hcclFloat32,
          .peer = peer,
          .count = count,
          .address = address};
}

}  // namespace hccl::comm
