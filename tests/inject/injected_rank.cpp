// SPDX-License-Identifier: Apache-2.0
// The program of one of two ranks, which uses only the public API. It makes calls and checks their
// data. After a failure, it still cleans up, as a careful program does. It exits with the most
// severe status that occurred.
//
//   injected_rank <rank> <fd>   rank 0 writes the unique id to the descriptor, rank 1 reads it
#include "exit_status.h"

#include <hccl.h>
#include <synapse_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

namespace hccl::test {
namespace {

constexpr int kRanks = 2;

void enter_phase(const char* name) {
  using EnterPhase = void(const char*);
  auto* const enter = reinterpret_cast<EnterPhase*>(dlsym(RTLD_DEFAULT, "inject_enter_phase"));
  if (enter != nullptr) enter(name);
}

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
std::uint64_t address(const void* data) { return reinterpret_cast<std::uint64_t>(data); }

class Rank {
 public:
  explicit Rank(int rank) : rank_(rank) {}

  [[nodiscard]] bool start(int id_fd) {
    if (!check("synInitialize", synInitialize())) return false;
    initialised_ = true;
    if (!check("synDeviceAcquire", synDeviceAcquire(&device_, nullptr))) return false;
    acquired_ = true;
    hcclUniqueId id{};
    if (rank_ == 0) {
      if (!check("hcclGetUniqueId", hcclGetUniqueId(&id))) return false;
      if (write(id_fd, &id, sizeof id) != static_cast<ssize_t>(sizeof id)) return false;
    } else if (read(id_fd, &id, sizeof id) != static_cast<ssize_t>(sizeof id)) {
      note(ExitStatus::error);  // rank 0 has exited without an id
      return false;
    }
    if (!check("hcclCommInitRank", hcclCommInitRank(&comm_, kRanks, id, rank_))) return false;
    joined_ = true;
    return true;
  }

  // Makes calls of each kind until one fails.
  void call() {
    if (!check("synStreamCreateGeneric", synStreamCreateGeneric(&stream_, device_, 0))) return;
    has_stream_ = true;
    for (const std::size_t count : {std::size_t{3}, std::size_t{200'000}}) {
      if (!all_reduce(count) || !all_reduce_on_host(count) || !exchange(count)) return;
    }
  }

  void end() {
    if (memory_ != 0) check("synDeviceFree", synDeviceFree(device_, memory_, 0));
    if (has_stream_) check("synStreamDestroy", synStreamDestroy(stream_));
    if (joined_) check("hcclCommDestroy", hcclCommDestroy(comm_));
    if (acquired_) check("synDeviceRelease", synDeviceRelease(device_));
    if (initialised_) check("synDestroy", synDestroy());
  }

  [[nodiscard]] int status() const { return static_cast<int>(status_); }

 private:
  [[nodiscard]] bool all_reduce(std::size_t count) {
    std::vector<float> data(count);
    std::iota(data.begin(), data.end(), static_cast<float>(rank_));
    const std::size_t bytes = count * sizeof(float);
    void* const buffer = device_buffer(bytes);
    const bool done =
        buffer != nullptr && copy(address(data.data()), address(buffer), bytes, HOST_TO_DRAM) &&
        check("hcclAllReduce",
              hcclAllReduce(buffer, buffer, count, hcclFloat32, hcclSum, comm_, stream_)) &&
        copy(address(buffer), address(data.data()), bytes, DRAM_TO_HOST) && synchronize();
    return done && judge(data, 2, 1);
  }

  [[nodiscard]] bool all_reduce_on_host(std::size_t count) {
    std::vector<float> data(count);
    std::iota(data.begin(), data.end(), static_cast<float>(rank_));
    const bool done = check("hcclAllReduce", hcclAllReduce(data.data(), data.data(), count,
                                                           hcclFloat32, hcclSum, comm_, stream_)) &&
                      synchronize();
    return done && judge(data, 2, 1);
  }

  // Exchanges `count` elements with the other rank in both directions. Returns whether the received
  // elements are right.
  [[nodiscard]] bool exchange(std::size_t count) {
    std::vector<float> sent(count);
    std::iota(sent.begin(), sent.end(), static_cast<float>(rank_));
    std::vector<float> received(count, -1);
    const int peer = 1 - rank_;
    bool done = check("hcclGroupStart", hcclGroupStart());
    done =
        done && check("hcclSend", hcclSend(sent.data(), count, hcclFloat32, peer, comm_, stream_));
    done = done &&
           check("hcclRecv", hcclRecv(received.data(), count, hcclFloat32, peer, comm_, stream_));
    done = check("hcclGroupEnd", hcclGroupEnd()) && done;
    done = synchronize() && done;
    return done && judge(received, 1, static_cast<float>(peer));
  }

  // Returns whether every element i equals factor * i + first.
  [[nodiscard]] bool judge(const std::vector<float>& data, float factor, float first) {
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (data[i] == factor * static_cast<float>(i) + first) continue;
      std::fprintf(stderr, "element %zu of %zu is wrong\n", i, data.size());
      note(ExitStatus::wrong_data);
      return false;
    }
    return true;
  }

  void* device_buffer(std::size_t bytes) {
    if (memory_ != 0) check("synDeviceFree", synDeviceFree(device_, memory_, 0));
    memory_ = 0;
    if (!check("synDeviceMalloc", synDeviceMalloc(device_, bytes, 0, 0, &memory_))) memory_ = 0;
    return pointer(memory_);
  }

  [[nodiscard]] bool copy(std::uint64_t from, std::uint64_t to, std::size_t bytes, synDmaDir way) {
    return check("synMemCopyAsync", synMemCopyAsync(stream_, from, bytes, to, way));
  }
  [[nodiscard]] bool synchronize() {
    return check("synStreamSynchronize", synStreamSynchronize(stream_));
  }

  bool check(const char* what, synStatus status) {
    return status == synSuccess || failed(what, status, synGetLastErrorMessage());
  }
  bool check(const char* what, hcclResult_t result) {
    return result == hcclSuccess || failed(what, result, hcclGetLastErrorMessage());
  }
  bool failed(const char* what, int code, const char* why) {
    const bool has_text = why != nullptr && *why != '\0';
    std::fprintf(stderr, "rank %d: %s returned %d: %s\n", rank_, what, code, has_text ? why : "");
    note(has_text ? ExitStatus::error : ExitStatus::no_text);
    return false;
  }
  void note(ExitStatus status) {
    if (status_ < status) status_ = status;
  }

  int rank_;
  ExitStatus status_ = ExitStatus::success;
  bool initialised_ = false;
  bool acquired_ = false;
  bool joined_ = false;
  bool has_stream_ = false;
  synDeviceId device_ = 0;
  synStreamHandle stream_ = nullptr;
  hcclComm_t comm_ = nullptr;
  std::uint64_t memory_ = 0;
};

}  // namespace
}  // namespace hccl::test

int main(int count, char** arguments) {
  if (count != 3) return 100;
  hccl::test::Rank rank(std::atoi(arguments[1]));
  const int id_fd = std::atoi(arguments[2]);
  hccl::test::enter_phase("start");
  const bool started = rank.start(id_fd);
  close(id_fd);  // so that a rank that waits for the id stops waiting
  hccl::test::enter_phase("call");
  if (started) rank.call();
  hccl::test::enter_phase("end");
  rank.end();
  return rank.status();
}
