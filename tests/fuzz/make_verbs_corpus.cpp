// SPDX-License-Identifier: Apache-2.0
// Writes the corpora of the targets that fuzz data received over RDMA.
#include "corpus.h"
#include "verbs/advert.h"
#include "verbs/immediate.h"
#include "verbs/qp_exchange.h"
#include "verbs/verbs_address.h"

namespace hccl::fuzz {
namespace {

Bytes after(std::uint8_t which, const Bytes& rest) {
  WireWriter writer;
  writer.put_u8(which);
  writer.put_bytes(rest);
  return writer.take();
}

void add_verbs_connection(const fs::path& root) {
  const Corpus corpus(root, "verbs_connection");
  verbs::VerbsAddress address{5, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 1}, 4000};
  corpus.add("valid-address-ipv4", after(0, verbs::serialize(address)));
  address.gid = {0xfd, 0, 1};
  const Bytes six = after(0, verbs::serialize(address));
  corpus.add("valid-address-ipv6", six);
  corpus.add("invalid-address-cut", std::span(six).first(six.size() - 1));
  address.tcp_port = 0;
  corpus.add("invalid-address-without-port", after(0, verbs::serialize(address)));
  verbs::QpInfo info{.queue_pair = 17,
                     .first_packet = 0xabcdef,
                     .gid = address.gid,
                     .mtu = 1024,
                     .ring_address = 0x7f0000001000,
                     .ring_key = 3,
                     .adverts_address = 0x7f0000101000,
                     .adverts_key = 4};
  const Bytes whole = after(1, verbs::serialize(info));
  corpus.add("valid-info", whole);
  corpus.add("invalid-info-cut", std::span(whole).first(whole.size() - 1));
  info.queue_pair = 1U << 24;
  corpus.add("invalid-info-number", after(1, verbs::serialize(info)));
  info.queue_pair = 0;
  info.mtu = 128;
  corpus.add("invalid-info-mtu", after(1, verbs::serialize(info)));
}

void add_verbs_messages(const fs::path& root) {
  const Corpus corpus(root, "verbs_messages");
  using Kind = verbs::Immediate::Kind;
  const auto number = [](std::uint8_t action, std::uint32_t count) {
    WireWriter writer;
    writer.put_u32(count);
    return Step{action, 0, writer.take()};
  };
  const auto says = [&](Kind kind, std::uint32_t bytes, std::uint32_t messages) {
    return number(0, verbs::encode({kind, bytes, messages}));
  };
  const auto advert = [](std::uint64_t position, std::uint32_t bytes) {
    WireWriter writer;
    writer.put_u64(position);
    writer.put_u64(0x7f0000000000);
    writer.put_u32(bytes);
    writer.put_u32(9);
    return Step{1, 0, writer.take()};
  };
  const Step tells{5, 0, {}};
  corpus.add("valid-through-the-ring",
             std::vector{says(Kind::data, 65536, 0), says(Kind::data, 65536, 0), number(3, 131072),
                         tells, says(Kind::data, 1000, 0), number(3, 500)});
  corpus.add("valid-direct", std::vector{says(Kind::data, 1000, 0), number(4, 100000),
                                         says(Kind::data, 500, 0), says(Kind::direct, 65536, 1),
                                         says(Kind::direct, 32964, 1), says(Kind::data, 77, 1),
                                         number(3, 1500), number(3, 98500), number(3, 77)});
  corpus.add("valid-advertised",
             std::vector{number(2, 65536), advert(65536, 100000), says(Kind::advert, 0, 0),
                         number(2, 65536), number(2, 65536), number(2, 65536),
                         says(Kind::credit, 65536, 4)});
  corpus.add("invalid-beyond-the-ring", std::vector(5, says(Kind::data, 65536, 0)));
  corpus.add("invalid-many-messages", std::vector(129, says(Kind::data, 1, 0)));
  corpus.add("invalid-credit", std::vector{number(2, 10), says(Kind::credit, 11, 1)});
  corpus.add("invalid-not-advertised",
             std::vector{number(4, 100), says(Kind::direct, 100, 1), says(Kind::direct, 1, 1)});
  corpus.add("invalid-beyond-the-advert",
             std::vector{number(4, 100000), says(Kind::data, 60000, 0),
                         says(Kind::direct, 40001, 1), number(3, 60000), number(3, 40001)});
  corpus.add("endless-advert", std::vector{advert(~0ULL - 5, ~0U), number(2, 100)});
}

}  // namespace

void add_verbs(const fs::path& root) {
  add_verbs_connection(root);
  add_verbs_messages(root);
}

}  // namespace hccl::fuzz
