// SPDX-License-Identifier: Apache-2.0
#include "comm/fabric_watch.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

#include <algorithm>

namespace hccl::comm {
namespace {

constexpr std::chrono::milliseconds kVerdictPatience{500};
constexpr std::chrono::milliseconds kMatesPause{20};

}  // namespace

FabricWatch::FabricWatch(Fabric& fabric, std::function<std::string()> doing,
                         std::function<std::vector<int>()> awaited)
    : fabric_(fabric),
      doing_(std::move(doing)),
      awaited_(std::move(awaited)),
      deadline_(Deadline::after(fabric.options().operation_timeout)),
      report_(Deadline::after(fabric.options().hang_report)) {}

void FabricWatch::look() {
  if (fabric_.fault().raised()) fabric_.fault().throw_error();
  if (deadline_.expired()) {
    throw Error(hcclSystemError,
                text(doing_(), ": waited ", seconds(fabric_.options().operation_timeout), " s for ",
                     awaited_text(), "; raise HCCL_TIMEOUT if that is no fault"));
  }
  if (report_.expired() && fabric_.claim_hang_report()) {
    log_line(
        LogLevel::error, "hang",
        text("rank ", fabric_.options().rank, " has waited ",
             seconds(fabric_.options().hang_report), " s in ", doing_(), " for ", awaited_text()));
  }
}

std::string FabricWatch::awaited_text() const {
  std::vector<int> ranks = awaited_();
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string list;
  for (const int rank : ranks) list += text(list.empty() ? "" : ", ", fabric_.rank_text(rank));
  return list.empty() ? "nobody" : list;
}

void throw_lost(const Fabric& fabric, transport::WaitSet& wait_set, const std::string& doing,
                const transport::PeerLost& lost) {
  // A mate of this node may raise it without ringing.
  const Deadline patience = Deadline::after(kVerdictPatience);
  while (!fabric.fault().raised() && !patience.expired())
    static_cast<void>(wait_set.wait({}, Deadline::after(patience.remaining(kMatesPause))));
  if (fabric.fault().raised()) fabric.fault().throw_error();
  throw Error(hcclSystemError,
              text(doing, ": ", fabric.rank_text(lost.peer()), " is gone or out of reach (",
                   lost.what(), "); look at its output, and at the network to it"));
}

}  // namespace hccl::comm
