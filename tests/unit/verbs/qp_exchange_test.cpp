// SPDX-License-Identifier: Apache-2.0
// Tests the exchange of queue pair parameters over a connection that may deliver them byte by byte.
#include "verbs/qp_exchange.h"

#include "base/file_descriptor.h"
#include "ranks.h"
#include "samples.h"

#include <functional>
#include <random>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::verbs {
namespace {

using hccl::test::test_seed;
using Status = QpExchange::Status;

QpInfo info() {
  return {.queue_pair = 0x00abcd,
          .first_packet = 0x654321,
          .gid = test::v4(10, 77, 0, 2),
          .mtu = 1024,
          .ring_address = 0x7f0123456000,
          .ring_key = 0x89abcdef,
          .adverts_address = 0x7fabcdef8000,
          .adverts_key = 0xfedcba98};
}

QpInfo with(const std::function<void(QpInfo&)>& change) {
  QpInfo changed = info();
  change(changed);
  return changed;
}

TEST(QpInfo, SurvivesEncoding) {
  EXPECT_EQ(serialize(info()).size(), kQpInfoBytes);
  EXPECT_EQ(parse_qp_info(serialize(info())), info());
  const QpInfo largest{0xffffff,    0xffffff, test::v6(0xfd, 0x00, 1), 4096, ~0ULL, ~0U,
                       ~0ULL - 100, ~0U - 1};
  EXPECT_EQ(parse_qp_info(serialize(largest)), largest);
}

TEST(QpInfo, RefusesNumbersBeyondPacketFields) {
  EXPECT_TRUE(parse_qp_info(serialize(with([](QpInfo& f) { f.queue_pair = (1U << 24) - 1; }))));
  EXPECT_FALSE(parse_qp_info(serialize(with([](QpInfo& f) { f.queue_pair = 1U << 24; }))));
  EXPECT_FALSE(parse_qp_info(serialize(with([](QpInfo& f) { f.queue_pair = ~0U; }))));
  EXPECT_TRUE(parse_qp_info(serialize(with([](QpInfo& f) { f.first_packet = (1U << 24) - 1; }))));
  EXPECT_FALSE(parse_qp_info(serialize(with([](QpInfo& f) { f.first_packet = 1U << 24; }))));
  for (const std::uint32_t mtu : {256U, 1024U, 4096U})
    EXPECT_TRUE(parse_qp_info(serialize(with([=](QpInfo& f) { f.mtu = mtu; })))) << mtu;
  for (const std::uint32_t mtu : {0U, 255U, 4097U, ~0U})
    EXPECT_FALSE(parse_qp_info(serialize(with([=](QpInfo& f) { f.mtu = mtu; })))) << mtu;
}

TEST(QpInfo, RefusesWrongLength) {
  const Bytes whole = serialize(info());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_qp_info(std::span(whole).first(size))) << size;
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(parse_qp_info(longer));
}

TEST(QpInfo, RefusesOtherFormats) {
  for (std::size_t at = 0; at < 4; ++at) {
    Bytes other = serialize(info());
    other[at] ^= std::byte{2};
    EXPECT_FALSE(parse_qp_info(other)) << at;
  }
}

TEST(QpInfo, ParsesGarbageExactlyOrNotAtAll) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "HCCL_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const Bytes known = serialize(info());
  for (int i = 0; i < 20'000; ++i) {
    Bytes bytes = known;
    for (std::size_t left = 1 + random() % 6; left > 0; --left)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    const auto read = parse_qp_info(bytes);
    EXPECT_TRUE(!read || serialize(*read) == bytes);
  }
}

class QpExchangeTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    near_ = FileDescriptor(ends[0]);
    far_ = FileDescriptor(ends[1]);
  }
  void write_far(std::span<const std::byte> bytes) const {
    ASSERT_EQ(write(far_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  // Returns the bytes that have arrived at the far end since the last call.
  [[nodiscard]] Bytes read_far() const {
    Bytes received;
    std::array<std::byte, 4096> buffer{};
    ssize_t got = 0;
    while ((got = recv(far_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0)
      received.insert(received.end(), buffer.begin(), buffer.begin() + got);
    return received;
  }
  [[nodiscard]] Status poll(std::size_t count = kQpInfoBytes) {
    return exchange_.poll(near_.get(), count);
  }
  [[nodiscard]] Bytes received() const {
    return {exchange_.received().begin(), exchange_.received().end()};
  }

  FileDescriptor near_;
  FileDescriptor far_;
  QpExchange exchange_;
};

TEST_F(QpExchangeTest, IsDoneWhenBothSidesHaveSent) {
  const Bytes own = serialize(info());
  exchange_.send(own);
  EXPECT_TRUE(exchange_.has_unsent());
  EXPECT_EQ(poll(), Status::waiting);
  EXPECT_FALSE(exchange_.has_unsent());
  EXPECT_EQ(read_far(), own);
  const Bytes theirs = serialize(with([](QpInfo& f) { f.queue_pair = 3; }));
  write_far(theirs);
  EXPECT_EQ(poll(), Status::done);
  EXPECT_EQ(received(), theirs);
  EXPECT_EQ(poll(), Status::done) << "the exchange stays done";
}

TEST_F(QpExchangeTest, WaitsForEachByte) {
  const Bytes theirs = serialize(info());
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    EXPECT_EQ(poll(), Status::waiting) << i;
    EXPECT_EQ(exchange_.received().size(), i);
    write_far(std::span(theirs).subspan(i, 1));
  }
  EXPECT_EQ(poll(), Status::done);
  EXPECT_EQ(parse_qp_info(exchange_.received()), info());
}

TEST_F(QpExchangeTest, LeavesLaterBytesForNextStep) {
  Bytes sent = serialize(info());
  sent.push_back(std::byte{0x52});
  write_far(sent);
  EXPECT_EQ(poll(), Status::done);
  EXPECT_EQ(exchange_.received().size(), kQpInfoBytes);
  exchange_.clear_received();
  EXPECT_TRUE(exchange_.received().empty());
  EXPECT_EQ(poll(1), Status::done);
  EXPECT_EQ(received(), Bytes{std::byte{0x52}});
  exchange_.clear_received();
  EXPECT_EQ(poll(1), Status::waiting);
}

TEST_F(QpExchangeTest, ReportsCloseBeforeLastByte) {
  const Bytes all = serialize(info());
  write_far(std::span(all).first(kQpInfoBytes - 1));
  far_.reset();
  EXPECT_EQ(poll(), Status::closed);
}

TEST_F(QpExchangeTest, ReportsCloseBeforeFirstByte) {
  exchange_.send(serialize(info()));
  far_.reset();
  EXPECT_EQ(poll(), Status::closed) << "SIGPIPE must not end the process";
}

TEST_F(QpExchangeTest, ReceivesBytesSentBeforeClose) {
  EXPECT_EQ(poll(), Status::waiting);
  write_far(serialize(info()));
  far_.reset();
  EXPECT_EQ(poll(), Status::done);
  exchange_.clear_received();
  EXPECT_EQ(poll(1), Status::closed);
}

TEST_F(QpExchangeTest, SendsRestWhenBufferHasRoom) {
  const int small = 4096;
  ASSERT_EQ(setsockopt(near_.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
  Bytes own(std::size_t{1} << 20);
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<std::byte>(i * 31 >> 3);
  exchange_.send(own);
  write_far(serialize(info()));
  EXPECT_EQ(poll(), Status::waiting) << "everything is received, but not everything is sent";
  EXPECT_TRUE(exchange_.has_unsent());
  EXPECT_EQ(exchange_.received().size(), kQpInfoBytes);
  Bytes got;
  while (got.size() < own.size()) {
    const Bytes more = read_far();
    ASSERT_FALSE(more.empty()) << "a socket pair delivers sent bytes at once";
    got.insert(got.end(), more.begin(), more.end());
    static_cast<void>(poll());
  }
  EXPECT_EQ(got, own);
  EXPECT_EQ(poll(), Status::done);
  EXPECT_EQ(parse_qp_info(exchange_.received()), info());
}

}  // namespace
}  // namespace hccl::verbs
