// SPDX-License-Identifier: Apache-2.0
// The corpora of what ranks over RDMA read from others.
#include "corpus.h"
#include "verbs/introduction.h"
#include "verbs/invitation.h"
#include "verbs/message.h"
#include "verbs/offer.h"

namespace hccl::fuzz {
namespace {

Bytes after(std::uint8_t which, const Bytes& rest) {
  WireWriter writer;
  writer.put_u8(which);
  writer.put_bytes(rest);
  return writer.take();
}

void add_verbs_facts(const fs::path& root) {
  const Corpus corpus(root, "verbs_facts");
  verbs::Offer offer{5, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 1}, 4000};
  corpus.add("valid-offer-ipv4", after(0, verbs::serialize(offer)));
  offer.gid = {0xfd, 0, 1};
  const Bytes six = after(0, verbs::serialize(offer));
  corpus.add("valid-offer-ipv6", six);
  corpus.add("invalid-offer-cut", std::span(six).first(six.size() - 1));
  offer.tcp_port = 0;
  corpus.add("invalid-offer-without-port", after(0, verbs::serialize(offer)));
  verbs::Facts facts{.queue_pair = 17,
                     .first_packet = 0xabcdef,
                     .gid = offer.gid,
                     .mtu = 1024,
                     .ring_address = 0x7f0000001000,
                     .ring_key = 3,
                     .notes_address = 0x7f0000101000,
                     .notes_key = 4};
  const Bytes whole = after(1, verbs::serialize(facts));
  corpus.add("valid-facts", whole);
  corpus.add("invalid-facts-cut", std::span(whole).first(whole.size() - 1));
  facts.queue_pair = 1U << 24;
  corpus.add("invalid-facts-number", after(1, verbs::serialize(facts)));
  facts.queue_pair = 0;
  facts.mtu = 128;
  corpus.add("invalid-facts-mtu", after(1, verbs::serialize(facts)));
}

void add_verbs_messages(const fs::path& root) {
  const Corpus corpus(root, "verbs_messages");
  using Kind = verbs::Message::Kind;
  const auto number = [](std::uint8_t action, std::uint32_t count) {
    WireWriter writer;
    writer.put_u32(count);
    return Step{action, 0, writer.take()};
  };
  const auto says = [&](Kind kind, std::uint32_t bytes, std::uint32_t messages) {
    return number(0, verbs::encode({kind, bytes, messages}));
  };
  const auto invitation = [](std::uint64_t position, std::uint32_t bytes) {
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
  corpus.add("valid-straight", std::vector{says(Kind::data, 1000, 0), number(4, 100000),
                                           says(Kind::data, 500, 0), says(Kind::direct, 65536, 1),
                                           says(Kind::direct, 32964, 1), says(Kind::data, 77, 1),
                                           number(3, 1500), number(3, 98500), number(3, 77)});
  corpus.add("valid-invited",
             std::vector{number(2, 65536), invitation(65536, 100000), says(Kind::invitation, 0, 0),
                         number(2, 65536), number(2, 65536), number(2, 65536),
                         says(Kind::credit, 65536, 4)});
  corpus.add("invalid-beyond-the-ring", std::vector(5, says(Kind::data, 65536, 0)));
  corpus.add("invalid-many-messages", std::vector(129, says(Kind::data, 1, 0)));
  corpus.add("invalid-credit", std::vector{number(2, 10), says(Kind::credit, 11, 1)});
  corpus.add("invalid-uninvited",
             std::vector{number(4, 100), says(Kind::direct, 100, 1), says(Kind::direct, 1, 1)});
  corpus.add("invalid-beyond-the-invitation",
             std::vector{number(4, 100000), says(Kind::data, 60000, 0),
                         says(Kind::direct, 40001, 1), number(3, 60000), number(3, 40001)});
  corpus.add("endless-invitation", std::vector{invitation(~0ULL - 5, ~0U), number(2, 100)});
}

}  // namespace

void add_verbs(const fs::path& root) {
  add_verbs_facts(root);
  add_verbs_messages(root);
}

}  // namespace hccl::fuzz
