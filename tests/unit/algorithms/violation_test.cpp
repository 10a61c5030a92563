// SPDX-License-Identifier: Apache-2.0
// Negative controls. The verifier must reject faulty schedules, and for the right reason.
#include "algorithms/catalogue.h"
#include "all_ranks.h"
#include "proof/verifier.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace hccl::algorithms {
namespace {

using proof::Property;
using schedule::Action;
using schedule::Role;
using schedule::Step;
using schedule::Transfer;

constexpr std::int32_t kRanks = 6;
constexpr std::size_t kFaulty = 2;  // the rank with the faulty schedule

schedule::Shape shape_of(const Algorithm& algorithm) {
  return {.collective = algorithm.collective, .rank_count = kRanks, .root = 1, .pipeline = 3};
}

std::optional<proof::Violation> violation_of(const Algorithm& algorithm,
                                             const test::AllRanks& all) {
  return proof::verify(all.shapes, all.schedules, algorithm.bound(all.shapes[0]));
}

// Expects that `break_it` changes a schedule of at least `least` algorithms, and that the verifier
// rejects each changed schedule for one of `reasons`.
void expect_caught(std::size_t least, const std::set<Property>& reasons,
                   const std::function<bool(Schedule&)>& break_it) {
  std::set<std::string> names;
  for (const Algorithm& algorithm : flat()) {
    test::AllRanks all = test::build_all(shape_of(algorithm), algorithm.build);
    EXPECT_FALSE(violation_of(algorithm, all)) << algorithm.name;
    if (all.schedules.size() <= kFaulty || !break_it(all.schedules[kFaulty])) continue;
    const auto violation = violation_of(algorithm, all);
    const std::string name = std::string(algorithm.name) + " " + name_of(algorithm.collective);
    EXPECT_TRUE(violation) << name << " passes despite the fault";
    if (!violation) continue;
    EXPECT_TRUE(reasons.contains(violation->property)) << name << ": " << violation->text;
    EXPECT_NE(violation->text.find("rank "), std::string::npos) << violation->text;
    names.insert(name);
  }
  EXPECT_GE(names.size(), least);
}

const std::set<Property> kStuckOrWrong = {Property::completes, Property::exactly_once};

TEST(Violation, DroppedStepIsCaught) {
  expect_caught(18, kStuckOrWrong, [](Schedule& schedule) {
    schedule.steps.erase(schedule.steps.begin());
    return true;
  });
}

TEST(Violation, DuplicatedStepIsCaught) {
  expect_caught(18, {Property::completes, Property::exactly_once, Property::within_bound},
                [](Schedule& schedule) {
                  schedule.steps.push_back(schedule.steps.front());
                  std::rotate(schedule.steps.begin(), schedule.steps.end() - 1,
                              schedule.steps.end());
                  return true;
                });
}

// Schedules with a single step are skipped, because they cannot be reordered.
TEST(Violation, ReorderedStepsAreCaught) {
  expect_caught(9, kStuckOrWrong, [](Schedule& schedule) {
    if (schedule.steps.size() < 2) return false;
    std::swap(schedule.steps.front(), schedule.steps.back());
    return true;
  });
}

TEST(Violation, SwappedChunksAreCaught) {
  expect_caught(6, {Property::exactly_once, Property::no_hazard}, [](Schedule& schedule) {
    for (Transfer& transfer : schedule.transfers) {
      const bool input = transfer.span.role == Role::input && schedule.input_chunks > 1;
      if (!input || transfer.span.chunk_count != 1) continue;
      transfer.span.first_chunk = (transfer.span.first_chunk + 1) % schedule.input_chunks;
      return true;
    }
    return false;
  });
}

TEST(Violation, StoreInsteadOfReductionIsCaught) {
  expect_caught(8, {Property::exactly_once}, [](Schedule& schedule) {
    for (Transfer& transfer : schedule.transfers) {
      if (transfer.action != Action::reduce) continue;
      transfer.action = Action::store;
      return true;
    }
    return false;
  });
}

TEST(Violation, ReductionInsteadOfStoreIsCaught) {
  expect_caught(12, {Property::exactly_once}, [](Schedule& schedule) {
    for (const Step& step : schedule.steps) {
      for (std::uint32_t i = 0; i < step.receives.count; ++i) {
        Transfer& receive = schedule.transfers[step.receives.first + i];
        if (receive.action != Action::store || receive.span.chunk_count == 0) continue;
        receive.action = Action::reduce;
        receive.operand = receive.span;
        return true;
      }
    }
    return false;
  });
}

TEST(Violation, WrongPeerIsCaught) {
  expect_caught(18, {Property::completes, Property::exactly_once, Property::within_bound},
                [](Schedule& schedule) {
                  for (Transfer& transfer : schedule.transfers) {
                    if (transfer.peer == kFaulty) continue;
                    transfer.peer = (transfer.peer + 1) % kRanks;
                    if (transfer.peer == kFaulty) transfer.peer = (transfer.peer + 1) % kRanks;
                    return true;
                  }
                  return false;
                });
}

TEST(Violation, MissingForwardIsCaught) {
  expect_caught(2, {Property::no_hazard}, [](Schedule& schedule) {
    bool changed = false;
    for (Transfer& transfer : schedule.transfers) {
      changed = changed || transfer.forward;
      transfer.forward = false;
    }
    return changed;
  });
}

// The verifier must detect schedules for a wrong root.
TEST(Violation, WrongRootIsCaught) {
  for (const Algorithm& algorithm : flat()) {
    if (algorithm.collective != Collective::broadcast && algorithm.collective != Collective::reduce)
      continue;
    test::AllRanks all = test::build_all(shape_of(algorithm), algorithm.build);
    for (schedule::Shape& shape : all.shapes) shape.root = 0;
    EXPECT_TRUE(violation_of(algorithm, all)) << algorithm.name;
  }
}

TEST(Violation, DifferentFoldOrderOnOneRankIsCaught) {
  const Algorithm& one_shot = *find("one_shot", Collective::all_reduce);
  test::AllRanks all = test::build_all(shape_of(one_shot), one_shot.build);
  Schedule& schedule = all.schedules[kFaulty];
  const Step& step = schedule.steps.front();
  std::swap(schedule.transfers[step.receives.first + 3].peer,
            schedule.transfers[step.receives.first + 5].peer);
  const auto violation = violation_of(one_shot, all);
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->property, Property::same_bits) << violation->text;
}

// A schedule for out-of-place calls that runs in place may overwrite data that is still needed. The
// verifier must detect that.
TEST(Violation, OutOfPlaceScheduleRunInPlaceIsCaught) {
  for (const auto& [name, collective] : {std::pair{"one_shot", Collective::all_reduce},
                                         {"direct", Collective::all_reduce},
                                         {"direct", Collective::reduce_scatter},
                                         {"pairwise", Collective::all_to_all}}) {
    const Algorithm& algorithm = *find(name, collective);
    test::AllRanks all = test::build_all(shape_of(algorithm), algorithm.build);
    for (schedule::Shape& shape : all.shapes) shape.in_place = true;
    EXPECT_TRUE(violation_of(algorithm, all)) << name;
  }
}

TEST(Violation, DifferentCutIsCaught) {
  const Algorithm& tree = *find("tree", Collective::all_reduce);
  schedule::Shape shape = shape_of(tree);
  test::AllRanks all = test::build_all(shape, tree.build);
  shape.pipeline = 2;
  shape.rank = kFaulty;
  all.schedules[kFaulty] = tree.build(shape);
  const auto violation = violation_of(tree, all);
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->property, Property::well_formed) << violation->text;
}

}  // namespace
}  // namespace hccl::algorithms
