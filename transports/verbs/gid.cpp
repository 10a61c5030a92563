// SPDX-License-Identifier: Apache-2.0
// Classifies and formats GIDs.
#include "verbs/gid.h"

#include "base/address.h"
#include "base/text.h"

#include <algorithm>

namespace hccl::verbs {
namespace {

// Offset of the IPv4 address in an IPv4-mapped IPv6 address, which begins with ::ffff.
constexpr std::size_t kMappedAt = 12;

}  // namespace

Address address_of(const GidBytes& gid) {
  Address address;
  address.v6 = !is_ipv4(gid);
  std::copy(gid.begin() + (address.v6 ? 0 : kMappedAt), gid.end(), address.bytes.begin());
  return address;
}

bool is_ipv4(const GidBytes& gid) {
  constexpr std::array<std::uint8_t, kMappedAt> kPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kPrefix.begin(), kPrefix.end(), gid.begin());
}

bool is_link_local(const GidBytes& gid) { return !is_ipv4(gid) && address_of(gid).is_link_local(); }

bool is_zero(const GidBytes& gid) { return gid == GidBytes{}; }

std::string to_text(const GidBytes& gid) { return address_of(gid).host_text(); }

const char* to_text(Gid::Kind kind) {
  switch (kind) {
    case Gid::Kind::infiniband:
      return "InfiniBand";
    case Gid::Kind::roce_v1:
      return "RoCE v1";
    case Gid::Kind::roce_v2:
      return "RoCE v2";
  }
  return "unknown";
}

std::string why_unreachable(const GidBytes& ours, const GidBytes& theirs, bool same_network) {
  const bool loopback = address_of(ours).is_loopback() || address_of(theirs).is_loopback();
  if (loopback && !same_network) {
    return text("its GID ", to_text(theirs), " cannot be reached from this rank's GID ",
                to_text(ours), ": loopback does not cross network namespaces");
  }
  if (is_ipv4(ours) == is_ipv4(theirs)) return "";
  const auto family = [](const GidBytes& gid) { return is_ipv4(gid) ? "IPv4" : "IPv6"; };
  return text("its GID ", to_text(theirs), " is ", family(theirs), ", but this rank's GID ",
              to_text(ours), " is ", family(ours));
}

}  // namespace hccl::verbs
