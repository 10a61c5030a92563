// SPDX-License-Identifier: Apache-2.0
// Tests frames, messages and the hash function. Malformed input must be refused.
#include "bootstrap/wire.h"

#include "base/secret.h"
#include "base/sha256.h"
#include "bootstrap/messages.h"
#include "hex.h"

#include <random>
#include <string_view>

#include <gtest/gtest.h>

namespace hccl::bootstrap {
namespace {

using hccl::test::bytes_of;
using hccl::test::hex;

// The digests of the empty message and of the examples in FIPS 180-2.
TEST(Sha256, MatchesStandardVectors) {
  EXPECT_EQ(hex(sha256(bytes_of(""))),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256(bytes_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(bytes_of(std::string(1'000'000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Secret, ComparesEveryByte) {
  const Secret one = random_secret();
  EXPECT_NE(one, random_secret());
  for (std::size_t i = 0; i < one.size(); ++i) {
    Secret other = one;
    other[i] ^= std::byte{1};
    EXPECT_FALSE(equal_in_constant_time(one, other));
  }
  EXPECT_TRUE(equal_in_constant_time(one, Secret(one)));
  EXPECT_FALSE(equal_in_constant_time(one, std::span(one).first<8>()));
}

TEST(Frame, RejectsInvalidHeaders) {
  const Bytes frame = encode_frame(FrameType::hello, bytes_of("12345"), 2);
  ASSERT_EQ(frame.size(), kFrameHeaderSize + 5);
  const auto header = std::span(frame).first<kFrameHeaderSize>();
  const auto parsed = parse_header(header, 5);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->type, FrameType::hello);
  EXPECT_EQ(parsed->descriptors, 2);
  EXPECT_EQ(parsed->length, 5U);
  EXPECT_FALSE(parse_header(header, 4));
  for (std::size_t i = 0; i < 8; ++i) {
    Bytes damaged = frame;
    damaged[i] ^= std::byte{0x40};
    EXPECT_FALSE(parse_header(std::span(damaged).first<kFrameHeaderSize>(), 5)) << i;
  }
}

TEST(WireReader, NeverReadsPastTheEnd) {
  WireWriter writer;
  writer.put_u16(0x1234);
  writer.put_text("text\n");
  writer.put_u64(1ULL << 63);
  WireReader reader(writer.bytes());
  EXPECT_EQ(reader.u16(), 0x1234);
  EXPECT_EQ(reader.text(10), "text?");
  EXPECT_EQ(reader.u64(), 1ULL << 63);
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(reader.u32(), 0U);
  EXPECT_FALSE(reader.ok());
  WireReader strict(writer.bytes());
  static_cast<void>(strict.u16());
  EXPECT_EQ(strict.text(4), "");
  EXPECT_FALSE(strict.ok());
}

const ProcessIdentity kProcess{4242, 77, "host a", "uid 0 node b"};

Hello hello_of(int rank, int size) {
  return {.rank = rank, .size = size, .process = kProcess, .node_socket = random_secret()};
}

TEST(Messages, SurviveEncoding) {
  const Address here{.v6 = true, .bytes = {0xfe, 0x80, 1}, .scope = 3, .port = 7};
  const auto refusal = parse<Refusal>(serialize(Refusal{Refusal::other_user}));
  EXPECT_EQ(refusal, Refusal{Refusal::other_user});
  Hello hello = hello_of(3, 8);
  hello.here = here;
  const auto parsed = parse<Hello>(serialize(hello));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->rank, 3);
  EXPECT_EQ(parsed->size, 8);
  EXPECT_EQ(parsed->process, kProcess);
  EXPECT_EQ(parsed->node_socket, hello.node_socket);
  EXPECT_EQ(parsed->here, here);
  EXPECT_EQ(parsed->there, Address{});
  const auto failure = parse<Failure>(serialize(Failure{hcclSystemError, "rank 3 exited"}));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, hcclSystemError);
  EXPECT_EQ(failure->text, "rank 3 exited");
  Table table{.ranks = {{kProcess, random_secret()}, {kProcess, random_secret()}}};
  fill_random(table.secret);
  const auto same = parse<Table>(serialize(table));
  ASSERT_TRUE(same);
  EXPECT_EQ(same->secret, table.secret);
  ASSERT_EQ(same->ranks.size(), 2U);
  EXPECT_EQ(same->ranks[1].node_socket, table.ranks[1].node_socket);
  const auto entry = parse<EntryMessage>(serialize(EntryMessage{5, true, false, Bytes(100)}));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->blob.size(), 100U);
  EXPECT_TRUE(entry->has_memory);
}

// The parser must read only the version from a hello of another version.
TEST(Messages, HelloOfOtherVersionRevealsVersion) {
  Hello hello = hello_of(3, 8);
  hello.version = kProtocolVersion + 1;
  Bytes later = serialize(hello);
  later.resize(later.size() + 40);
  const auto parsed = parse<Hello>(later);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->version, kProtocolVersion + 1);
  later[0] = std::byte{kProtocolVersion};
  EXPECT_FALSE(parse<Hello>(later));
}

TEST(Messages, RefuseFieldsOutOfRange) {
  const auto with = [](int rank, int size, int pid) {
    Hello hello = hello_of(rank, size);
    hello.process.pid = pid;
    return parse<Hello>(serialize(hello)).has_value();
  };
  EXPECT_TRUE(with(0, 1, 1));
  EXPECT_FALSE(with(-1, 4, 1));
  EXPECT_FALSE(with(kMostRanks, 4, 1));
  EXPECT_FALSE(with(0, 0, 1));
  EXPECT_FALSE(with(0, kMostRanks + 1, 1));
  EXPECT_FALSE(with(0, 4, 0));
  EXPECT_FALSE(parse<Failure>(serialize(Failure{hcclSuccess, "no failure"})));
  Bytes unknown = serialize(Failure{hcclSystemError, "why"});
  unknown[0] = std::byte{99};
  EXPECT_FALSE(parse<Failure>(unknown));
  EXPECT_FALSE(parse<RankMessage>(serialize(RankMessage{-1})));
  EXPECT_FALSE(parse<RankMessage>(serialize(RankMessage{kMostRanks})));
}

template <class... Messages>
void parse_as(const Bytes& bytes) {
  (static_cast<void>(parse<Messages>(bytes)), ...);
}

TEST(Messages, CorruptBytesNeverCrash) {
  std::mt19937 random(20260105);
  Table table;
  for (int i = 0; i < 5; ++i) table.ranks.push_back({kProcess, random_secret()});
  const Hello hello = hello_of(3, 8);
  const std::vector<Bytes> samples{
      serialize(hello),
      serialize(table),
      serialize(Welcome{kProcess, 2}),
      serialize(Failure{hcclSystemError, "why"}),
      serialize(EntryMessage{1, true, true, Bytes(30)}),
      serialize(ContributionMessage{SecretBytes(kSecretSize), 1, true, Bytes(30)})};
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = samples[static_cast<std::size_t>(round) % samples.size()];
    for (int i = 0; i < 1 + round % 3; ++i) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    if (round % 2 == 0) bytes.resize(random() % bytes.size());
    parse_as<Refusal, Hello, Welcome, Failure, GaveUp, Table, ContributionMessage, EntryMessage,
             RankMessage>(bytes);
  }
}

}  // namespace
}  // namespace hccl::bootstrap
