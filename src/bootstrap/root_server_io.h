// SPDX-License-Identifier: Apache-2.0
// The timers of a RootServer, apart from its header so that its users need not include Asio.
#pragma once

#include "bootstrap/root_server.h"

#include <asio/steady_timer.hpp>

namespace hccl::bootstrap {

struct RootServer::Io {
  explicit Io(asio::io_context& context) : linger(context), report(context), judgement(context) {}

  asio::steady_timer linger;
  asio::steady_timer report;
  asio::steady_timer judgement;
};

}  // namespace hccl::bootstrap
