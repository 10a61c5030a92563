// SPDX-License-Identifier: Apache-2.0
// Sends and receives across endpoints. Each direction of a pair of ranks has one stream, on which
// the messages follow each other in the order of the calls; whose turn it is has the stream to
// itself.
#pragma once

#include "node/point_to_point.h"
#include "transport/endpoint.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace hccl::comm {

class Fabric;

class FabricMessages {
 public:
  explicit FabricMessages(Fabric& fabric) : fabric_(fabric) {}
  FabricMessages(const FabricMessages&) = delete;
  FabricMessages& operator=(const FabricMessages&) = delete;

  // By one thread at a time, in the order of the program's calls.
  void number(node::PointToPoint& call);

  // One direction between this rank and a peer.
  struct Way {
    std::atomic<std::uint64_t> turn{0};  // of the message with this number
    std::uint64_t numbered = 0;
    std::unique_ptr<transport::Endpoint> endpoint;  // whose turn it is opens and uses it
  };
  [[nodiscard]] Way& way(const node::PointToPoint& call);
  // Of a call whose turn it is. Throws Error.
  [[nodiscard]] transport::Endpoint& endpoint(const node::PointToPoint& call);

 private:
  void prepare();

  Fabric& fabric_;
  std::once_flag prepared_;
  std::deque<Way> sends_, receives_;  // by peer
};

}  // namespace hccl::comm
