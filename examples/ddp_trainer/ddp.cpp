// SPDX-License-Identifier: Apache-2.0
// Collects gradients in buckets, like PyTorch's reducer. The gradients fill the buckets in order
// from the last layer to the first. Each bucket is all-reduced as soon as it is full, and the last
// bucket at the end of the backward pass. The limit of the first bucket is at most
// kFirstBucketBytes, so that communication begins early.
#include "network_work.h"

#include <algorithm>

namespace ddp_trainer {
namespace {

constexpr std::size_t kFirstBucketBytes = 1U << 20;

class Ddp final : public GradientSync {
 public:
  Ddp(const Rank& rank, std::size_t bucket_bytes)
      : rank_(rank), bucket_bytes_(bucket_bytes), work_(rank) {}

  void ready(Gradients& gradients, Range range) override {
    full_ = range.end;
    const std::size_t limit =
        begun_ == 0 ? std::min(kFirstBucketBytes, bucket_bytes_) : bucket_bytes_;
    if ((full_ - begun_) * sizeof(float) >= limit) begin_bucket(gradients);
  }

  void reduce(Gradients& gradients) override {
    if (full_ > begun_) begin_bucket(gradients);
    work_.join();
    gradients.from_wire(rank_, 0, full_);
    begun_ = full_ = 0;
  }

 private:
  void begin_bucket(Gradients& gradients) {
    const Range bucket{begun_, full_};
    gradients.to_wire(rank_, bucket.begin, bucket.end);
    work_.begin("all-reduce", gradients.wire_bytes(bucket.size()), [&] {
      void* const part = gradients.wire(bucket.begin);
      check(hcclAllReduce(part, part, bucket.size(), gradients.wire_type(), hcclSum,
                          rank_.communicator, rank_.network->handle()),
            "hcclAllReduce");
    });
    begun_ = full_;
  }

  Rank rank_;
  std::size_t bucket_bytes_;
  NetworkWork work_;
  std::size_t begun_ = 0;  // number of gradients whose reduction is queued
  std::size_t full_ = 0;   // end of the last range passed to ready()
};

}  // namespace

std::unique_ptr<GradientSync> make_ddp(const Rank& rank, std::size_t bucket_bytes) {
  return std::make_unique<Ddp>(rank, bucket_bytes);
}

}  // namespace ddp_trainer
