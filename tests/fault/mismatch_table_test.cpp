// SPDX-License-Identifier: Apache-2.0
// Tests mismatched calls of each collective in kCollectives, on one node and on several, with and
// without a forced algorithm or transport. All ranks must fail with an error that names the odd
// rank, the one whose call differs, and no output may change. If HCCL_TEST_TABLE is set, each
// layout appends one row per mistake to the Markdown table in that file.
#include "algorithms/catalogue.h"
#include "faults.h"

#include <cstdlib>
#include <fstream>
#include <ostream>
#include <set>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

struct Mistake {
  const char* what;
  Operation usual;
  Operation odd;
};

constexpr std::array kCollectives{Collective::all_reduce, Collective::broadcast,
                                  Collective::all_gather, Collective::reduce_scatter,
                                  Collective::reduce,     Collective::all_to_all};

// Returns the mistakes to try with a collective of about `count` elements per rank.
std::vector<Mistake> mistakes(Collective collective, std::size_t count, std::size_t ranks) {
  const Operation usual = make_operation(collective, count * ranks);
  std::vector<Mistake> all;
  const auto add = [&](const char* what, const Operation& odd) {
    all.push_back({what, usual, odd});
  };
  add("count", make_operation(collective, (count + 1) * ranks));
  add("count 0", make_operation(collective, 0));
  add("small against large", make_operation(collective, count > 1000 ? ranks : 400'000 * ranks));
  add("type", make_operation(collective, count * ranks, hcclInt32));
  if (traits(collective).reduces)
    add("reduction", make_operation(collective, count * ranks, hcclFloat32, hcclMax));
  if (traits(collective).has_root())
    add("root", make_operation(collective, count * ranks, hcclFloat32, hcclSum, 1));
  for (const Collective other : kCollectives) {
    if (other == collective) continue;
    add("collective", make_operation(other, count * ranks));
    break;
  }
  return all;
}

bool has(const std::string& algorithm, Collective collective) {
  return algorithms::find(algorithm, collective) != nullptr;
}

struct Layout {
  std::string nodes;      // one letter per rank, which names its node
  std::string algorithm;  // forced, or empty
  std::string transport;  // forced, or empty

  [[nodiscard]] std::string text() const {
    return join(nodes, algorithm.empty() ? "" : " ", algorithm, transport.empty() ? "" : " over ",
                transport);
  }
};

void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.text(); }

std::string text_of(const Mistake& mistake) {
  return join(name_of(mistake.usual.collective), " of ", mistake.usual.count, ": ", mistake.what);
}

// Makes one mistake on a new communicator. Returns the deviations from the expected failure, or "".
std::string try_mistake(Session& session, World& world, const Mistake& mistake, int odd, int slot) {
  const Group group = session.join_all(slot);
  synStreamHandle stream = session.make_stream();
  Operation operation = world.rank == odd ? mistake.odd : mistake.usual;
  operation.offset = 3;
  OperationRun run(session, group, operation);
  const hcclResult_t queued = run.queue(stream);
  const synStatus synchronised = synStreamSynchronize(stream);
  std::string wrong;
  const auto note = [&](const std::string& what) {
    wrong += join(wrong.empty() ? "" : "; ", what);
  };
  if (queued != hcclSuccess && queued != hcclInvalidUsage) note(join("queued: ", queued));
  // If this rank learns of the mismatch before its call, the call is refused and the stream does
  // not fail.
  const bool refused = queued == hcclInvalidUsage && synchronised == synSuccess;
  if (synchronised != synFailHccl && !refused) note(join("synchronised: ", synchronised));
  try {
    run.verify_untouched();
  } catch (const Failure&) {
    note("output touched");
  }
  try {
    if (synchronised == synSuccess) await_async_error(group, std::chrono::seconds(2));
    // With two ranks, the error names both, because either may be the odd one.
    for (int rank = 0; rank < (world.size == 2 ? 2 : 1); ++rank)
      expect_failed(group, hcclInvalidUsage, world.size == 2 ? rank : odd);
    const std::string message = async_message(group.handle);
    const bool both = contains(message, name_of(mistake.usual.collective)) &&
                      contains(message, name_of(mistake.odd.collective));
    if (!both) note(join("text: ", message));
    if (world.size > 2 &&
        !contains(message, join("rank ", odd, ' ', name_of(mistake.odd.collective))))
      note(join("does not blame rank ", odd, ": ", message));
  } catch (const Failure& failure) {
    note(failure.what());
  }
  session.forget_communicators();
  succeed(hcclCommDestroy(group.handle));
  world.board->barrier(0, world.size);
  return wrong;
}

// Keeps a quarter of the mistakes, because sanitizer builds are slow. The layout determines which
// quarter.
void keep_a_part(std::vector<Mistake>& all, const Layout& layout) {
  constexpr std::size_t kParts = 4;
  std::size_t number = layout.nodes.size() + layout.algorithm.size() + layout.transport.size();
  std::erase_if(all, [&](const Mistake&) { return number++ % kParts != 0; });
}

class MismatchTable : public testing::TestWithParam<Layout> {};

TEST_P(MismatchTable, FailsEveryRankAndNamesTheOddOne) {
  const Layout& layout = GetParam();
  const int size = static_cast<int>(layout.nodes.size());
  const int odd = size - 1;
  std::vector<Mistake> all;
  for (const std::size_t count : {std::size_t{1000}, std::size_t{1'000'000}}) {
    for (const Collective collective : kCollectives) {
      // Skip collectives that the forced algorithm does not support: the planner would choose
      // another algorithm for them.
      if (!layout.algorithm.empty() && !has(layout.algorithm, collective)) continue;
      for (Mistake& mistake : mistakes(collective, count / static_cast<std::size_t>(size),
                                       static_cast<std::size_t>(size)))
        all.push_back(std::move(mistake));
    }
  }
  if (sanitized()) keep_a_part(all, layout);
  RankOptions options{
      .environment = {{"HCCL_SOCKET_IFNAME", "lo"}}, .comm_id = false, .seconds = 280};
  if (!layout.algorithm.empty()) options.environment.emplace_back("HCCL_ALGO", layout.algorithm);
  if (!layout.transport.empty())
    options.environment.emplace_back("HCCL_TRANSPORT", layout.transport);
  const auto ranks = [&](World& world) {
    setenv("HCCL_NODE_ID",
           join("mismatch-", layout.nodes[static_cast<std::size_t>(world.rank)]).c_str(), 1);
    Session session(world);
    int slot = 1;
    for (const Mistake& mistake : all) {
      const std::string wrong = try_mistake(session, world, mistake, odd, slot++);
      if (!wrong.empty()) world.report(join(text_of(mistake), ": rank ", world.rank, ": ", wrong));
    }
    world.report("tried all");
    session.finish();
  };
  const std::vector<RankOutcome> outcomes = run_ranks(size, ranks, options);
  EXPECT_EQ(failures(outcomes), "");
  std::set<std::string> wrong;
  for (const RankOutcome& outcome : outcomes)
    wrong.insert(outcome.reports.begin(), outcome.reports.end());
  const bool complete = wrong.erase("tried all") != 0;
  for (const std::string& line : wrong) ADD_FAILURE() << line;
  const char* const table = std::getenv("HCCL_TEST_TABLE");
  if (table == nullptr || !complete) return;
  std::ofstream file(table, std::ios::app);
  for (const Mistake& mistake : all) {
    std::string cell = "all ranks fail, odd rank named, output untouched";
    for (const std::string& line : wrong) {
      const std::string begin = join(text_of(mistake), ": ");
      if (line.starts_with(begin)) cell = line.substr(begin.size());
    }
    file << "| " << layout.text() << " | " << text_of(mistake) << " | " << cell << " |\n";
  }
}

std::vector<Layout> layouts() {
  std::vector<Layout> all{{"aa", "", ""},      {"aaaa", "", ""},       {"ab", "", ""},
                          {"aabb", "", ""},    {"abbb", "", ""},       {"aa", "", "tcp"},
                          {"aaaa", "", "tcp"}, {"aaaa", "ring", "shm"}};
  for (const char* algorithm :
       {"ring", "tree", "halving_doubling", "direct", "one_shot", "chain", "hierarchical"}) {
    for (const char* nodes : {"ab", "aabb", "abbb"}) all.push_back({nodes, algorithm, ""});
  }
  return all;
}

std::string name_of_layout(const testing::TestParamInfo<Layout>& of) {
  std::string name = of.param.nodes;
  for (const std::string& part : {of.param.algorithm, of.param.transport}) {
    if (!part.empty()) name += join('_', part);
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Layouts, MismatchTable, testing::ValuesIn(layouts()), name_of_layout);

}  // namespace
}  // namespace hccl::test
