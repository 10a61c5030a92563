// SPDX-License-Identifier: Apache-2.0
// A listening TCP socket, and the loop on the control thread that accepts its connections.
#pragma once

#include "base/address.h"
#include "base/file_descriptor.h"

#include <functional>
#include <memory>

namespace hccl::bootstrap {

// A listening TCP socket on that address; port 0 picks one. Where it is invalid, errno tells why.
[[nodiscard]] FileDescriptor listen_on(const Address& address) noexcept;

// Made by any thread; start() and close() on the control thread.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  // Throws Error(hcclSystemError) if the socket cannot be watched.
  explicit Acceptor(FileDescriptor listener);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  using OnConnection = std::function<void(FileDescriptor, const Address& peer)>;

  // `on_connection` is called for each connection, `make_room` when there is no descriptor left for
  // one: it closes some connection and returns true, or false if it has none to close.
  void start(OnConnection on_connection, std::function<bool()> make_room);
  void close();

 private:
  struct Io;

  void wait_for_connection();
  void accept_connections();
  void pause();

  std::unique_ptr<Io> io_;
  OnConnection on_connection_;
  std::function<bool()> make_room_;
};

}  // namespace hccl::bootstrap
