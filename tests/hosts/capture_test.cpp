// SPDX-License-Identifier: Apache-2.0
// Captures the traffic between two hosts, and tests whether it contains the data of a call.
#include "base/file_descriptor.h"
#include "host_test.h"
#include "rank_test.h"
#include "session.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <ostream>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace hccl::test {
namespace {

constexpr std::string_view kPattern = "sixteen letters!";
constexpr std::string_view kSecret = "a secret for the capture of traffic";
constexpr std::size_t kDataBytes = 1 << 20;

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
  // Returns whether a packet contains the bytes. Call it after stop().
  [[nodiscard]] bool contains(std::string_view bytes) const {
    return std::search(packets_.begin(), packets_.end(), bytes.begin(), bytes.end()) !=
           packets_.end();
  }
  [[nodiscard]] std::size_t size() const { return packets_.size(); }

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
  bool shows_data;
};

void PrintTo(const CaptureCase& value, std::ostream* out) { *out << value.name; }

class CapturedTraffic : public Hosts, public testing::WithParamInterface<CaptureCase> {};

TEST_P(CapturedTraffic, ContainsDataOnlyIfItIsNotEncrypted) {
  const HostNetwork network(2);
  RankOptions options = on_hosts(0);
  options.environment.emplace_back("HCCL_SECRET", kSecret);
  options.environment.emplace_back("HCCL_ENCRYPT", GetParam().setting);
  const auto broadcast = [&](RANK_PARAMETERS) {
    std::optional<Capture> capture;
    if (world.rank == 1) capture.emplace();
    world.board->barrier(0, world.size);
    std::vector<char> data(kDataBytes);
    for (std::size_t i = 0; world.rank == 0 && i < data.size(); ++i)
      data[i] = kPattern[i % kPattern.size()];
    succeed(hcclBroadcast(data.data(), data.data(), kDataBytes, hcclInt8, 0, group.handle, stream));
    succeed(synStreamSynchronize(stream));
    world.board->barrier(1, world.size);
    if (!capture) return;
    capture->stop();
    require_equal(std::string(data.data(), kPattern.size()), std::string(kPattern), "data");
    require(capture->size() > kDataBytes / 2, "the data was captured");
    require_equal(capture->contains(kPattern), GetParam().shows_data, "the traffic shows the data");
    require(!capture->contains(kSecret.substr(0, 16)), "the traffic does not show the secret");
  };
  const auto enter = [&](const World& world) { move_to(network, world.rank); };
  EXPECT_EQ(failures(run_ranks(2, in_session(broadcast, enter), options)), "");
}

INSTANTIATE_TEST_SUITE_P(Settings, CapturedTraffic,
                         testing::Values(CaptureCase{"Unset", "", false},
                                         CaptureCase{"Full", "full", false},
                                         CaptureCase{"Integrity", "integrity", true},
                                         CaptureCase{"Off", "off", true}),
                         [](const auto& setting) { return setting.param.name; });

}  // namespace
}  // namespace hccl::test
