// SPDX-License-Identifier: Apache-2.0
#include "comm/rank_blob.h"

#include "base/error.h"
#include "base/rank_text.h"
#include "base/shared_memory.h"
#include "base/text.h"
#include "node/control_block.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace hccl::comm {
namespace {

ForcedName forced_name(const std::string& name) {
  ForcedName padded{};
  std::copy_n(name.begin(), std::min(name.size(), padded.size()), padded.begin());
  return padded;
}

std::string setting_text(const char* variable, const ForcedName& name) {
  const std::string_view shown(name.data(), strnlen(name.data(), name.size()));
  return shown.empty() ? text("does not set ", variable)
                       : text("sets ", variable, '=', quoted(shown));
}

// Throws Error(hcclInvalidUsage) if one rank forces a name that the other does not force.
void require_same(const char* variable, const bootstrap::RankInfo& own, const ForcedName& own_name,
                  const bootstrap::RankInfo& other, const ForcedName& other_name) {
  if (own_name == other_name) return;
  throw Error(
      hcclInvalidUsage,
      text(member_text(own), ' ', setting_text(variable, own_name), ", but ", member_text(other),
           ' ', setting_text(variable, other_name), "; set the same ", variable, " on all ranks"));
}

}  // namespace

RankBlob RankBlob::of(device::Device& device, const Config& settings) {
  RankBlob blob;
  blob.module = device.module();
  blob.memory_bytes = device.arena().view()->bytes();
  blob.algorithm = forced_name(settings.algorithm);
  blob.transport = forced_name(settings.transport);
  blob.cpus = node::CpuAllowance::of_this_thread();
  return blob;
}

Bytes encode(const RankBlob& blob) {
  Bytes bytes(sizeof blob);
  std::memcpy(bytes.data(), &blob, sizeof blob);
  return bytes;
}

RankBlob decode(const bootstrap::RankInfo& member) {
  RankBlob blob;
  if (member.blob.size() == sizeof blob) std::memcpy(&blob, member.blob.data(), sizeof blob);
  if (member.blob.size() != sizeof blob || blob.layout != RankBlob::kLayout) {
    throw Error(hcclInvalidUsage,
                text(member_text(member),
                     " runs a different version of hccl; install the same version on all ranks"));
  }
  return blob;
}

std::string member_text(const bootstrap::RankInfo& member) {
  return rank_text(member.rank, member.pid, member.host);
}

void inspect(const bootstrap::RankTable& table, int own_rank) {
  const bootstrap::RankInfo& own = table.members[static_cast<std::size_t>(own_rank)];
  const RankBlob own_blob = decode(own);
  const bootstrap::RankInfo* leader = &own;
  int ranks = 0;
  for (const bootstrap::RankInfo& member : table.members) {
    if (member.node != own.node) continue;
    if (ranks++ == 0) leader = &member;
    const RankBlob blob = decode(member);
    require_same("HCCL_ALGO", own, own_blob.algorithm, member, blob.algorithm);
    require_same("HCCL_TRANSPORT", own, own_blob.transport, member, blob.transport);
    require_sealed(member.memory, blob.memory_bytes, member_text(member));
  }
  require_sealed(table.control, node::ControlBlock::bytes(ranks), member_text(*leader));
}

}  // namespace hccl::comm
