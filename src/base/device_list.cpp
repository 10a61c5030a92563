// SPDX-License-Identifier: Apache-2.0
// Parses and matches lists of RDMA devices.
#include "base/device_list.h"

#include "base/parse.h"

#include <algorithm>
#include <cstdint>

namespace hccl {
namespace {

constexpr std::size_t kLongestName = 63;  // IBV_SYSFS_NAME_MAX without the terminating null
constexpr std::uint64_t kMostPorts = 255;

bool is_name_character(char letter) {
  return letter > ' ' && letter <= '~' &&
         std::string_view("^=:,/").find(letter) == std::string_view::npos;
}

std::optional<DeviceList::Entry> parse_entry(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  DeviceList::Entry entry{std::string(text.substr(0, colon)), std::nullopt};
  if (entry.name.empty() || entry.name.size() > kLongestName) return std::nullopt;
  if (!std::ranges::all_of(entry.name, is_name_character)) return std::nullopt;
  if (colon == text.size()) return entry;
  const auto port = parse_number(text.substr(colon + 1));
  if (!port || *port < 1 || *port > kMostPorts) return std::nullopt;
  entry.port = static_cast<int>(*port);
  return entry;
}

}  // namespace

std::optional<std::size_t> DeviceList::position_of(std::string_view device, int port) const {
  const auto matches = [&](const Entry& entry) {
    if (port != 0 && entry.port && *entry.port != port) return false;
    return exact ? device == entry.name : device.starts_with(entry.name);
  };
  const auto found = std::ranges::find_if(entries, matches);
  if (found == entries.end()) return std::nullopt;
  return static_cast<std::size_t>(found - entries.begin());
}

bool DeviceList::names(std::string_view device, int port) const {
  return entries.empty() || position_of(device, port).has_value() != all_but;
}

std::optional<DeviceList> parse_device_list(std::string_view text) {
  DeviceList list;
  if (text.empty()) return list;
  list.all_but = text.starts_with('^');
  if (list.all_but) text.remove_prefix(1);
  list.exact = text.starts_with('=');
  if (list.exact) text.remove_prefix(1);
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    auto entry = parse_entry(text.substr(start, end - start));
    if (!entry) return std::nullopt;
    list.entries.push_back(std::move(*entry));
    start = end + 1;
  }
  return list;
}

}  // namespace hccl
