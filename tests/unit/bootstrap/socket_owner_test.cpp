// SPDX-License-Identifier: Apache-2.0
// The kernel tells who owns the other end of a loopback connection.
#include "bootstrap/socket_owner.h"

#include "base/address.h"
#include "bootstrap/comm_id.h"
#include "bootstrap/pending_connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::bootstrap {
namespace {

TEST(SocketOwner, IsTheUserOfTheOtherEnd) {
  for (const char* form : {"127.0.0.1:1", "[::1]:1"}) {
    Address address = parse_comm_id(form).at(0);
    address.port = 0;
    const FileDescriptor listener = listen_on(address);
    ASSERT_TRUE(listener.valid());
    const SocketAddress where = to_socket_address(local_address(listener.get()));
    FileDescriptor client(socket(where.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(client.get(), where.get(), where.length), 0);
    const FileDescriptor server(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(server.valid());
    const SocketOwner owner = tcp_peer_owner(server.get());
    EXPECT_EQ(owner.knowledge, SocketOwner::Knowledge::known) << form;
    EXPECT_EQ(owner.user, geteuid()) << form;
    client.reset();
    EXPECT_EQ(tcp_peer_owner(server.get()).knowledge, SocketOwner::Knowledge::none) << form;
  }
}

}  // namespace
}  // namespace hccl::bootstrap
