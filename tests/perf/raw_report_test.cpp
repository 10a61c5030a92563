// SPDX-License-Identifier: Apache-2.0
// The file of raw times.
#include "raw_report.h"

#include "sample_results.h"

namespace hccl_perf {
namespace {

TEST(RawReport, HasALineForEachCallAndRank) {
  Options options = sample_options("all_reduce");
  options.min_bytes = options.max_bytes = 4096;
  options.cycles = 2;
  Row row = sample_row("all_reduce", 4096, {1000});
  row.out_of_place.raw.queued = {{10, 11}, {20, 21}};
  row.in_place->raw.single = {{30}, {40.25}};
  const std::string before = "all_reduce,4,4096,2048,bfloat16,max,-1,";
  const std::string lines =
      "collective,ranks,size_bytes,count,type,redop,root,cycle,placement,"
      "pass,rank,call,time_ns\n" +
      before + "0,out_of_place,queued,0,0,10.0\n" + before + "0,out_of_place,queued,0,1,11.0\n" +
      before + "0,out_of_place,queued,1,0,20.0\n" + before + "0,out_of_place,queued,1,1,21.0\n" +
      before + "0,in_place,single,0,0,30.0\n" + before + "0,in_place,single,1,0,40.2\n";
  Results results = sample_results(options, {row});
  EXPECT_EQ(raw_text(results), lines);
  const CommaLocale commas;
  EXPECT_EQ(raw_text(results), lines) << "in every locale";
  results.rows.push_back(sample_row("all_reduce", 4096, {1000}));
  results.rows.back().in_place->raw.queued = {{50}};
  EXPECT_NE(raw_text(results).find(before + "1,in_place,queued,0,0,50.0\n"), std::string::npos)
      << "the second cycle";
}

}  // namespace
}  // namespace hccl_perf
