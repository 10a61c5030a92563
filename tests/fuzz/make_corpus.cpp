// SPDX-License-Identifier: Apache-2.0
// Writes the corpora of the fuzz targets with the library's own encoders. Targets must accept the
// files named valid-... and refuse those named invalid-....
#include "bootstrap/messages.h"
#include "bootstrap/unique_id.h"
#include "corpus.h"
#include "fuzz.h"
#include "tcp/addresses.h"

#include <cstdio>

namespace {

using namespace hccl;
using namespace hccl::bootstrap;
namespace fs = std::filesystem;
using fuzz::Corpus;

constexpr std::uint8_t kSync = 8;

std::uint8_t number(FrameType type) { return static_cast<std::uint8_t>(type); }

ProcessIdentity process(int pid, const char* node = "node") { return {pid, 1, "host", node}; }

Bytes blob() { return Bytes(40, std::byte{0x11}); }

Bytes hello_payload(int rank, int size, const char* node = "node") {
  return serialize(Hello{.rank = rank, .size = size, .process = process(100 + rank, node)});
}

Table table() {
  Table table{.ranks = {{process(100), {}}, {process(101), SocketName{std::byte{4}}}}};
  table.secret.front() = std::byte{3};
  return table;
}

void add_ids(const fs::path& root) {
  const Corpus corpus(root, "unique_id");
  const auto add = [&](const std::string& name, const UniqueId& id, std::size_t cut) {
    const hcclUniqueId bytes = encode(id);
    WireWriter writer;
    writer.put_u16(static_cast<std::uint16_t>(bytes.length));
    writer.put_bytes(std::as_bytes(std::span(bytes.internal)).first(bytes.length - cut));
    corpus.add(name, writer.bytes());
  };
  UniqueId id;
  id.secret.fill(std::byte{0xA5});
  id.addresses = {Address{.v6 = false, .bytes = {127, 0, 0, 1}, .scope = 0, .port = 5555}};
  add("valid-one-address", id, 0);
  add("invalid-cut", id, 9);
  const Address six{.v6 = true, .bytes = {0xfe, 0x80, 1}, .scope = 2, .port = 65535};
  id.addresses.resize(8, six);
  add("valid-eight-addresses", id, 0);
  id.kind = UniqueId::Kind::fixed_address;
  id.secret = {};
  add("valid-fixed-address", id, 0);
  corpus.add("invalid-zeros", Bytes(64));
}

void add_texts(const fs::path& root) {
  const Corpus comm_id(root, "comm_id");
  comm_id.add("valid-ipv4", std::string("127.0.0.1:5555"));
  comm_id.add("valid-ipv6", std::string("::1:5555"));
  comm_id.add("valid-ipv6-brackets", std::string("[fe80::1]:65535"));
  comm_id.add("valid-name", std::string("node-7.cluster:1"));
  comm_id.add("invalid-no-port", std::string("127.0.0.1"));
  comm_id.add("invalid-port", std::string("127.0.0.1:65536"));
  comm_id.add("invalid-brackets", std::string("[::1:5555"));
  const Corpus environment(root, "environment");
  // Writes one input for each of these variables.
  for (const char* assignment :
       {"HCCL_COMM_ID=[::1]:5555", "HCCL_SOCKET_IFNAME=eth,ib0", "HCCL_IB_HCA=^=mlx5_0:1,rxe0",
        "HCCL_NODE_ID=a node", "HCCL_INIT_TIMEOUT=0.5", "HCCL_TIMEOUT=1000000000.999999999",
        "LOG_LEVEL_HCL=0", "HCCL_DEBUG=Trace", "HCCL_DEBUG_FILE=/tmp/%h-%p",
        "HCCL_DEVICE_TYPE=gaudi3", "HCCL_DEVICE_MEMORY=16TiB", "HCCL_DEVICE_COUNT=64",
        "HCCL_STRICT=true"}) {
    const std::string setting = assignment;
    environment.add("valid-" + setting.substr(0, setting.find('=')), setting);
  }
  environment.add("invalid-timeout", std::string("HCCL_TIMEOUT=1e9"));
  environment.add("invalid-memory", std::string("HCCL_DEVICE_MEMORY=18446744073709551615T"));
  environment.add("invalid-lines", std::string("HCCL_STRICT=1\n2\x1b[2J"));
}

void add_messages(const fs::path& root) {
  const Corpus corpus(root, "messages");
  const auto add = [&](const std::string& name, std::uint8_t which, const Bytes& message) {
    Bytes input{std::byte{which}};
    input.insert(input.end(), message.begin(), message.end());
    corpus.add("valid-" + name, input);
    input.pop_back();
    corpus.add(name + "-cut", input);
  };
  const Hello hello{
      .rank = 3, .size = 8, .process = process(7), .node_socket = SocketName{std::byte{2}}};
  add("hello", 0, serialize(hello));
  add("welcome", 1, serialize(Welcome{process(9), -1}));
  add("failure", 2, serialize(Failure{hcclInvalidUsage, "rank 3 is already taken"}));
  add("gave-up", 3, serialize(GaveUp{120}));
  add("table", 4, serialize(table()));
  add("contribution", 5, serialize(ContributionMessage{SecretBytes(kSecretSize), 1, true, blob()}));
  add("entry", 6, serialize(EntryMessage{1, true, true, blob()}));
  add("announcements", 7, serialize(Announcements{{blob(), {}, blob()}}));
  add("waiting", 8, serialize(Waiting{"op 1 of stream 0", "barrier()", "", {0, 3, 4095}}));
  add("refusal", 10, serialize(Refusal{Refusal::other_user}));
  add("rank", 9, serialize(RankMessage{4095}));
}

void add_rendezvous(const fs::path& root) {
  const Corpus server(root, "root_server");
  const auto hello = [](int connection, int rank, std::uint8_t cut, const char* node = "node") {
    const auto action = static_cast<std::uint8_t>(connection << 4 | kSync | 2);
    return fuzz::Step{action, cut, hello_payload(rank, 3, node)};
  };
  const auto frame = [](int connection, FrameType type, const Bytes& payload) {
    const auto action = static_cast<std::uint8_t>(connection << 4 | kSync | 1);
    return fuzz::Step{action, number(type), payload};
  };
  const std::vector<fuzz::Step> joined{hello(0, 0, 0), hello(1, 1, 5), hello(2, 2, 40)};
  std::vector<fuzz::Step> complete = joined;
  for (int rank = 0; rank < 3; ++rank) complete.push_back(frame(rank, FrameType::ready, {}));
  server.add("valid-three-ranks", complete);
  std::vector<fuzz::Step> announced{hello(0, 0, 0), hello(1, 1, 5), hello(2, 2, 40, "another")};
  for (int rank = 0; rank < 3; ++rank)
    announced.push_back(frame(rank, FrameType::ready, Bytes(20, std::byte{1})));
  for (const auto type : {FrameType::stuck, FrameType::waiting, FrameType::stuck})
    announced.push_back(
        frame(0, type, serialize(Waiting{"op 1 of stream 0", "barrier()", "", {1, 2}})));
  announced.push_back(frame(1, FrameType::waiting, serialize(Waiting{"", "", "", {4095}})));
  for (const auto type : {FrameType::fault, FrameType::departed})
    announced.push_back(frame(1, type, serialize(Failure{hcclSystemError, "gone"})));
  server.add("several-announce", announced);
  server.add("second-claim", std::vector{hello(0, 2, 0), hello(1, 2, 0)});
  server.add("out-of-range", std::vector{hello(0, 3, 12), hello(1, 4095, 255)});
  std::vector<fuzz::Step> left = joined;
  left.push_back(frame(1, FrameType::leaving, serialize(Failure{hcclOutOfMemory, "no memory"})));
  server.add("a-rank-leaves", left);
  std::vector<fuzz::Step> late = joined;
  late.push_back(frame(0, FrameType::gave_up, serialize(GaveUp{120})));
  server.add("a-rank-gives-up", late);
  std::vector<fuzz::Step> dead = joined;
  dead.push_back({0x13, 0, {}});
  server.add("a-rank-closes", dead);
  const Bytes http(40, std::byte{'G'});
  server.add("bytes", std::vector{fuzz::Step{0x08, 0, http}, fuzz::Step{0x10, 0, {}}});

  const Corpus client(root, "rendezvous_client");
  const Welcome welcome{{1, 2, "host", "node"}, -1};
  const std::vector<fuzz::Step> heard{
      {1, number(FrameType::welcome), serialize(welcome)},
      {1, number(FrameType::server_rank), serialize(RankMessage{0})},
      {1, number(FrameType::table), serialize(table())},
      {1, number(FrameType::go),
       serialize(Announcements{std::vector<Bytes>(2, Bytes(5, std::byte{1}))})}};
  client.add("valid-all", heard);
  const Failure failure{hcclInvalidUsage, "rank 1 is already taken"};
  client.add("refused", std::vector{fuzz::Step{1, number(FrameType::refusal),
                                               serialize(Refusal{Refusal::other_user})}});
  client.add("failed",
             std::vector{heard[0], fuzz::Step{1, number(FrameType::failure), serialize(failure)}});
  client.add("unencrypted",
             std::vector{fuzz::Step{2, number(FrameType::welcome), serialize(welcome)}});
  client.add("endless", std::vector{heard[0], heard[1], heard[1], heard[1]});
}

void add_node(const fs::path& root) {
  const Corpus connection(root, "frame_connection");
  connection.add("valid-frames", std::vector{fuzz::Step{1, 3, blob()}, fuzz::Step{1, 200, {}},
                                             fuzz::Step{1, 12, Bytes(900)}});
  connection.add("valid-descriptors",
                 std::vector{fuzz::Step{0, 2, encode_frame(FrameType::entry, blob(), 2)}});
  connection.add("invalid-without",
                 std::vector{fuzz::Step{0, 0, encode_frame(FrameType::entry, blob(), 2)}});
  const Corpus leader(root, "node_leader");
  const auto contribution = [](bool memory) {
    return serialize(ContributionMessage{SecretBytes(kSecretSize), 1, memory, blob()});
  };
  leader.add("valid-memory", std::vector{fuzz::Step{1, 2, contribution(true)}});
  leader.add("valid-cut", std::vector{fuzz::Step{0x22, 2, contribution(true)}});
  leader.add("valid-without", std::vector{fuzz::Step{0x31, 1, contribution(false)}});
  leader.add("invalid-many", std::vector{fuzz::Step{1, 4, contribution(true)}});
  leader.add("invalid-bytes", std::vector{fuzz::Step{0, 9, blob()}, fuzz::Step{3, 0, {}}});
  const Corpus member(root, "node_member");
  const std::vector<fuzz::Step> heard{{1, 2, serialize(EntryMessage{0, true, true, blob()})},
                                      {1, 1, serialize(EntryMessage{1, false, true, {}})},
                                      {2, 1, {}}};
  member.add("valid-all", heard);
  member.add("invalid-early", std::vector{heard[0], heard[2]});
  member.add("invalid-twice", std::vector{heard[0], heard[0], heard[1], heard[2]});
}

void add_transports(const fs::path& root) {
  const Corpus listener(root, "transport_listener");
  const fuzz::Step connect{0, 0, {}};
  const fuzz::Step hello{2, 0, {}};
  const fuzz::Step answer{3, 0, {}};
  listener.add("valid-alone", std::vector{connect, hello, answer});
  listener.add("valid-after-unknown-peers",
               std::vector{fuzz::Step{0, 1, {}}, fuzz::Step{1, 1, blob()}, fuzz::Step{0, 2, {}},
                           fuzz::Step{0, 3, {}}, connect, hello, answer, answer});
  listener.add("second-claim", std::vector{connect, hello, answer, fuzz::Step{0, 1, {}},
                                           fuzz::Step{2, 1, {}}, fuzz::Step{3, 1, {}}});
  listener.add("invalid-communicator", std::vector{connect, fuzz::Step{2, 0, blob()}, answer});
  listener.add("invalid-silence", std::vector{connect, connect});
  tcp::TcpAddresses offer;
  offer.network = 5;
  for (const bool v6 : {false, true}) {
    tcp::OfferedAddress offered;
    offered.address.v6 = v6;
    offered.address.bytes = {10, 0, 0, 1};
    offered.address.port = 4000;
    offered.prefix_length = 24;
    offer.addresses.push_back(offered);
  }
  const Corpus offers(root, "transport_offer");
  Bytes bytes = tcp::serialize(offer);
  bytes.insert(bytes.begin(), std::byte{0});
  offers.add("valid-two-addresses", bytes);
  bytes.pop_back();
  offers.add("invalid-cut", bytes);
  offers.add("invalid-challenge", Bytes(49, std::byte{1}));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s <folder>\n", argv[0]);
    return 2;
  }
  add_ids(argv[1]);
  add_texts(argv[1]);
  add_messages(argv[1]);
  add_rendezvous(argv[1]);
  add_node(argv[1]);
  add_transports(argv[1]);
  fuzz::add_verbs(argv[1]);
}
