// SPDX-License-Identifier: Apache-2.0
#include "lost_hosts.h"

#include "check.h"
#include "faults.h"
#include "rank_test.h"
#include "session.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace hccl::test {

using Clock = std::chrono::steady_clock;

void Progress::await(const std::atomic<int>& count, int ranks) {
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (count < ranks && Clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

RankFunction reduces_until_failure(const std::function<void(int)>& move, const Progress& progress,
                                   std::size_t count, const std::vector<hcclResult_t>& codes) {
  const auto reduce = [&progress, count, codes](RANK_PARAMETERS) {
    const DeviceMemory memory(session.device(), count * 4);
    void* const data = memory.pointer();
    const auto reduces = [&] {
      return hcclAllReduce(data, data, count, hcclFloat32, hcclSum, group.handle, stream) ==
                 hcclSuccess &&
             synStreamSynchronize(stream) == synSuccess;
    };
    require(reduces(), last_hccl_message());
    ++progress.counts().reducing;
    while (reduces()) {
    }
    ++progress.counts().failed;
    const std::string message = async_message(group.handle);
    world.report(message);
    hcclResult_t code = hcclSuccess;
    succeed(hcclCommGetAsyncError(group.handle, &code));
    require(std::ranges::find(codes, code) != codes.end(), join("code ", code, ": ", message));
    expect_usable_remains(session, group, stream, code);
  };
  return in_session(reduce, [move](const World& world) { move(world.rank); });
}

std::string blames_none_of(const RankOutcome& outcome, const std::vector<int>& ranks) {
  const std::string text = outcome.reports.empty() ? "nothing" : outcome.reports.back();
  // A time-out's error text begins with the reporting rank and names the culprits after "s for".
  const std::size_t waited = text.find(" s for ");
  const std::size_t end = text.find(';', waited);
  const std::string culprits =
      waited == std::string::npos ? text : text.substr(waited, end - waited);
  for (const int rank : ranks) {
    if (names_rank(culprits, rank)) return "";
  }
  return join(text, "; ", outcome.failure);
}

}  // namespace hccl::test
