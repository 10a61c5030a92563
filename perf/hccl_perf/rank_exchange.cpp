// SPDX-License-Identifier: Apache-2.0
// Gathers small host data from all ranks.
#include "rank_exchange.h"

#include "text.h"

#include <algorithm>

namespace hccl_perf {
namespace {

struct Header {
  std::uint64_t sequence;
  std::uint64_t rank;
  std::uint64_t checksum;
};

constexpr std::size_t kFirstCapacity = 1024;
constexpr DataType kWord{"int32", hcclInt32, 4};  // words are moved unchanged

// Returns the FNV-1a hash of the payload, seeded with the sequence number and the sender's rank.
std::uint64_t checksum(std::uint64_t sequence, std::uint64_t rank, const std::byte* payload,
                       std::size_t bytes) {
  std::uint64_t sum = 0xCBF29CE484222325ULL ^ (sequence * 0x9E3779B97F4A7C15ULL) ^ rank;
  for (std::size_t i = 0; i < bytes; ++i) {
    sum = (sum ^ static_cast<std::uint64_t>(payload[i])) * 0x100000001B3ULL;
  }
  return sum;
}

}  // namespace

RankExchange::RankExchange(Session& session) : session_(session) { reserve(kFirstCapacity); }

void RankExchange::reserve(std::size_t bytes) {
  if (bytes <= capacity_) return;
  capacity_ = std::max(bytes, 2 * capacity_);
  const std::size_t total = capacity_ * static_cast<std::size_t>(session_.ranks());
  host_.reset();
  send_.reset();
  receive_.reset();
  host_ = std::make_unique<HostBuffer>(session_, total);
  send_ = std::make_unique<DeviceBuffer>(session_, capacity_);
  receive_ = std::make_unique<DeviceBuffer>(session_, total);
}

std::vector<std::byte> RankExchange::all_gather(const void* mine, std::size_t bytes) {
  static const Collective* const gathering = find_collective("all_gather");
  const std::size_t message = (sizeof(Header) + bytes + 7) / 8 * 8;
  const auto ranks = static_cast<std::uint64_t>(session_.ranks());
  reserve(message);
  ++sequence_;

  std::byte* host = host_->data();
  if (bytes > 0) std::memcpy(host + sizeof(Header), mine, bytes);
  const auto own_rank = static_cast<std::uint64_t>(session_.rank());
  const Header header{sequence_, own_rank,
                      checksum(sequence_, own_rank, host + sizeof(Header), bytes)};
  std::memcpy(host, &header, sizeof header);
  session_.copy_to_device(host, send_->address(), message);
  session_.enqueue({gathering, kWord, kNoReduction, -1, session_.rank(), session_.ranks(),
                    send_->address(), receive_->address(), message / kWord.size});
  session_.copy_to_host(receive_->address(), host, message * ranks);
  session_.synchronize();

  std::vector<std::byte> payloads(bytes * ranks);
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    const std::byte* arrived = host + rank * message;
    Header found{};
    std::memcpy(&found, arrived, sizeof found);
    const std::byte* payload = arrived + sizeof(Header);
    if (found.sequence != sequence_ || found.rank != rank ||
        found.checksum != checksum(sequence_, rank, payload, bytes)) {
      throw RunError(text("an all-gather of ", message, " bytes delivered corrupt data from rank ",
                          rank, " (exchange ", sequence_, " among the ranks of hccl-perf)"));
    }
    if (bytes > 0) std::memcpy(payloads.data() + rank * bytes, payload, bytes);
  }
  return payloads;
}

std::vector<std::vector<double>> RankExchange::gather_samples(const std::vector<double>& mine) {
  const std::size_t bytes = mine.size() * sizeof(double);
  const std::vector<std::byte> all = all_gather(mine.data(), bytes);
  std::vector<std::vector<double>> by_rank(static_cast<std::size_t>(session_.ranks()), mine);
  for (std::size_t rank = 0; rank < by_rank.size() && bytes > 0; ++rank) {
    std::memcpy(by_rank[rank].data(), all.data() + rank * bytes, bytes);
  }
  return by_rank;
}

}  // namespace hccl_perf
