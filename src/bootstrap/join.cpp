// SPDX-License-Identifier: Apache-2.0
// Joins in two steps: the rendezvous, then the exchange on the node. A single rank needs neither.
#include "bootstrap/join.h"

#include "base/error.h"
#include "base/process.h"
#include "base/secret.h"
#include "base/text.h"
#include "bootstrap/node_exchange.h"
#include "bootstrap/node_socket.h"
#include "bootstrap/rendezvous_client.h"
#include "bootstrap/root_server.h"
#include "bootstrap/server_registry.h"
#include "bootstrap/shared_secret.h"

#include <exception>

namespace hccl::bootstrap {
namespace {

// In the server's process, a join() that fails with a code other than hcclInternalError waits at
// most this long before it throws. The process may exit after that, so ranks that are still
// starting must receive the failure first.
constexpr std::chrono::milliseconds kFarewell{400};

void validate(int size, int rank, const Contribution& mine) {
  if (is_forked_child()) {
    throw Error(hcclInvalidUsage,
                "this process was forked from one that used hccl; start it with exec instead");
  }
  if (size < 1 || size > kMostRanks) {
    throw Error(hcclInvalidArgument, text("a communicator cannot have ", size, " ranks, only 1 to ",
                                          kMostRanks, "; report this as a bug in hccl"));
  }
  if (rank < 0 || rank >= size) {
    throw Error(hcclInvalidArgument, text("rank ", rank, " does not exist in a communicator of ",
                                          size, " ranks; report this as a bug in hccl"));
  }
  if (mine.blob.size() > kMostBlob) {
    throw Error(hcclInternalError,
                text("rank ", rank, " contributes ", mine.blob.size(),
                     " bytes for the other ranks of its node, but the limit is ", kMostBlob));
  }
}

RankTable table_of_one(Contribution mine) {
  const ProcessIdentity process = ProcessIdentity::mine();
  RankInfo self;
  self.rank = 0;
  self.pid = process.pid;
  self.host = process.host;
  self.node = process.node;
  self.blob = std::move(mine.blob);
  self.memory = std::move(mine.memory);
  RankTable table;
  table.members.push_back(std::move(self));
  return table;
}

RankTable rendezvous(const UniqueId& id, const Hello& hello, FileDescriptor listener,
                     Contribution mine, const MakeControl& make_control, Deadline deadline) {
  RendezvousClient client(id, JoinKey(id), hello, deadline);
  const bool may_serve = id.kind == UniqueId::Kind::fixed_address && hello.rank == 0;
  try {
    client.join([&]() -> std::string {
      // With a fixed address, rank 0 need not have called hcclGetUniqueId, so the server may not
      // have been started yet.
      if (!may_serve) return {};
      const std::string trouble = ServerRegistry::instance().create_if_absent(id);
      return trouble.empty() ? "" : text("rank 0 cannot run the server itself: ", trouble);
    });
    const Table table = client.wait_for_table();
    NodeExchange exchange(client, table, hello.rank, std::move(listener));
    return exchange.run(std::move(mine), make_control);
  } catch (const Error& error) {
    client.leave({error.code(), error.what()});
    throw;
  } catch (const std::exception& error) {
    client.leave({hcclInternalError, error.what()});
    throw;
  }
}

}  // namespace

RankTable join(const hcclUniqueId& id, int size, int rank, Contribution mine,
               const MakeControl& make_control, Deadline deadline) {
  validate(size, rank, mine);
  install_fork_guard();
  const UniqueId decoded = decode(id);
  if (size == 1) {
    ServerRegistry::instance().note_joined(decoded);
    return table_of_one(std::move(mine));
  }
  const Hello hello{.rank = rank,
                    .size = size,
                    .process = ProcessIdentity::mine(),
                    .node_socket = random_secret()};
  FileDescriptor listener = listen_on_node(hello.node_socket);
  try {
    RankTable table =
        rendezvous(decoded, hello, std::move(listener), std::move(mine), make_control, deadline);
    ServerRegistry::instance().note_joined(decoded);
    return table;
  } catch (const Error& error) {
    const auto server = ServerRegistry::instance().find(decoded);
    if (server && error.code() != hcclInternalError) server->wait_until_all_know(kFarewell);
    throw;
  }
}

}  // namespace hccl::bootstrap
