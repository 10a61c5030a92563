// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parser of HCCL_COMM_ID. Looks up no host names, because a look-up would use the
// network.
#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"
#include "bootstrap/comm_id.h"
#include "fuzz.h"

#include <array>

#include <arpa/inet.h>

namespace {

using namespace hccl;

bool is_numeric(const std::string& host) {
  std::array<std::byte, sizeof(in6_addr)> ignored{};
  return inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string value(data, data + size);
  const auto parts = parse_host_and_port(value);
  fuzz::accepted = parts.has_value();
  if (parts && !is_numeric(parts->host)) {
    const auto again = parse_host_and_port(text('[', parts->host, "]:", parts->port));
    fuzz::check(again && again->host == parts->host && again->port == parts->port,
                "host and port survive printing");
    return 0;
  }
  try {
    const auto addresses = bootstrap::parse_comm_id(value);
    fuzz::check(parts.has_value(), "an id with an address is well-formed");
    fuzz::check(addresses.size() == 1 && addresses[0].port == parts->port, "one address");
    fuzz::check(bootstrap::parse_comm_id(addresses[0].to_text()) == addresses,
                "an address survives printing");
  } catch (const Error& error) {
    fuzz::check(!parts, "a numeric address needs no look-up");
    fuzz::check(error.code() == hcclInvalidArgument, "a bad value is an invalid argument");
    fuzz::check(std::string_view(error.what()).find('\n') == std::string_view::npos, "one line");
  }
  return 0;
}
