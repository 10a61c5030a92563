// SPDX-License-Identifier: Apache-2.0
// Reduces all gradients in one all-reduce, as Optimum for Gaudi does. This all-reduce does not
// overlap with the backward pass, but there is no per-bucket overhead.
#include "network_work.h"

namespace ddp_trainer {
namespace {

class FastDdp final : public GradientSync {
 public:
  explicit FastDdp(const Rank& rank) : rank_(rank), work_(rank) {}

  void reduce(Gradients& gradients) override {
    gradients.to_wire(rank_, 0, gradients.count());
    work_.begin("all-reduce", gradients.wire_bytes(gradients.count()), [&] {
      check(hcclAllReduce(gradients.wire(0), gradients.wire(0), gradients.count(),
                          gradients.wire_type(), hcclSum, rank_.communicator,
                          rank_.network->handle()),
            "hcclAllReduce");
    });
    work_.join();
    gradients.from_wire(rank_, 0, gradients.count());
  }

 private:
  Rank rank_;
  NetworkWork work_;
};

}  // namespace

std::unique_ptr<GradientSync> make_fast_ddp(const Rank& rank) {
  return std::make_unique<FastDdp>(rank);
}

}  // namespace ddp_trainer
