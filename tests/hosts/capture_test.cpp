// SPDX-License-Identifier: Apache-2.0
// Captures all traffic between two hosts while a job runs, and searches it for the job's data and
// secrets.
#include "base/file_descriptor.h"
#include "host_test.h"
#include "rank_test.h"
#include "session.h"

#include <atomic>
#include <iterator>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <vector>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace hccl::test {
namespace {

constexpr std::string_view kSecret = "a secret for the capture of traffic";
constexpr std::size_t kDataBytes = 256 << 10;
constexpr std::size_t kRun = 16;  // bytes in a row that must not appear in the traffic

// All runs of kRun bytes in `bytes`, except those that repeat few values, such as zeros.
class Runs {
 public:
  explicit Runs(std::string_view bytes) {
    for (std::size_t at = 0; at + kRun <= bytes.size(); ++at) {
      const std::string_view run = bytes.substr(at, kRun);
      if (std::set(run.begin(), run.end()).size() >= kRun / 2) runs_.emplace(run);
    }
    require(!runs_.empty(), "there is something to search for");
  }

  // Returns whether one of them is in `text`.
  [[nodiscard]] bool any_in(std::string_view text) const {
    for (std::size_t at = 0; at + kRun <= text.size(); ++at) {
      if (runs_.contains(text.substr(at, kRun))) return true;
    }
    return false;
  }

 private:
  std::unordered_set<std::string_view> runs_;
};

std::string random_data() {
  std::mt19937 random(static_cast<unsigned>(test_seed()));
  std::string data(kDataBytes, ' ');
  for (char& letter : data) letter = static_cast<char>(random());
  return data;
}

// Records every packet of this network namespace while it exists.
class Capture {
 public:
  Capture() : socket_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL))) {
    require(socket_.valid(), "packets can be captured");
    const int room = 32 << 20;
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
    const timeval patience{0, 10'000};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    thread_ = std::thread([this] { record(); });
  }
  ~Capture() { stop(); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Returns the bytes of all packets. Call it after stop().
  [[nodiscard]] std::string_view packets() const { return {packets_.data(), packets_.size()}; }

 private:
  void record() {
    std::vector<char> packet(1 << 17);
    while (true) {
      const ssize_t count = recv(socket_.get(), packet.data(), packet.size(), 0);
      if (count > 0) {
        packets_.insert(packets_.end(), packet.begin(), packet.begin() + count);
      } else if (stopping_) {
        return;  // all packets that arrived before stop() have been read
      }
    }
  }

  FileDescriptor socket_;
  std::vector<char> packets_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

struct CaptureCase {
  const char* name;
  const char* setting;  // of HCCL_ENCRYPT; empty: not set
  bool has_id;          // whether the ranks share an id instead of HCCL_SECRET
  bool shows_data;
};

void PrintTo(const CaptureCase& value, std::ostream* out) { *out << value.name; }

class CapturedTraffic : public Hosts, public testing::WithParamInterface<CaptureCase> {
 protected:
  [[nodiscard]] static RankOptions options() {
    RankOptions options = on_hosts(0);
    if (GetParam().has_id) {
      std::erase_if(options.environment,
                    [](const auto& one) { return one.first == "HCCL_COMM_ID"; });
    } else {
      options.environment.emplace_back("HCCL_SECRET", kSecret);
    }
    options.environment.emplace_back("HCCL_ENCRYPT", GetParam().setting);
    return options;
  }
  // Returns what the traffic must not contain.
  [[nodiscard]] static std::string secret_of(World& world) {
    if (!GetParam().has_id) return std::string(kSecret);
    const hcclUniqueId id = world.board->await_id(0);
    return {std::begin(id.internal), std::begin(id.internal) + id.length};
  }
};

TEST_P(CapturedTraffic, ContainsDataOnlyIfItIsNotEncrypted) {
  const HostNetwork network(2);
  const std::string data = random_data();
  std::optional<Capture> capture;  // in rank 1's process
  const auto enter = [&](const World& world) {
    move_to(network, world.rank);
    if (world.rank == 1) capture.emplace();
  };
  const auto broadcast = [&](RANK_PARAMETERS) {
    std::string received(data.size(), ' ');
    succeed(hcclBroadcast(data.data(), received.data(), data.size(), hcclInt8, 0, group.handle,
                          stream));
    succeed(synStreamSynchronize(stream));
    world.board->barrier(1, world.size);
    if (!capture) return;
    capture->stop();
    require(received == data, "the data has arrived");
    require(capture->packets().size() > kDataBytes, "the traffic was captured");
    require_equal(Runs(data).any_in(capture->packets()), GetParam().shows_data,
                  "the traffic shows the data");
    require(!Runs(secret_of(world)).any_in(capture->packets()),
            "the traffic does not show the secret");
  };
  EXPECT_EQ(failures(run_ranks(2, in_session(broadcast, enter), options())), "");
}

INSTANTIATE_TEST_SUITE_P(Settings, CapturedTraffic,
                         testing::Values(CaptureCase{"Unset", "", false, false},
                                         CaptureCase{"UnsetWithId", "", true, false},
                                         CaptureCase{"Full", "full", false, false},
                                         CaptureCase{"FullWithId", "full", true, false},
                                         CaptureCase{"Integrity", "integrity", true, true},
                                         CaptureCase{"Off", "off", false, true}),
                         [](const auto& setting) { return setting.param.name; });

}  // namespace
}  // namespace hccl::test
