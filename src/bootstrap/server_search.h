// SPDX-License-Identifier: Apache-2.0
// A rank's search for its root server: connects to the sockets of the unique id until a server
// admits the rank. Until then, logs reports at the times set by MissingReports.
#pragma once

#include "base/address.h"
#include "base/deadline.h"
#include "base/file_descriptor.h"
#include "bootstrap/event_loop.h"
#include "bootstrap/missing_reports.h"
#include "bootstrap/server_identity.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace hccl::bootstrap {

class ServerSearch {
 public:
  enum class Route : std::uint8_t { unix_socket, tcp };
  // Joins over the connection. Returns false if that fails, and the search is to continue.
  using Join = std::function<bool(FileDescriptor, Route)>;

  // `loop` and `server` must outlive the search.
  ServerSearch(EventLoop& loop, ServerIdentity& server, Deadline deadline);

  // Connects to the server's unix socket, if there is one in this network namespace, and to the
  // addresses in turn until join() returns true for a connection. Calls before_attempt() before
  // each round. Blocks at most until the deadline, and then throws Error(hcclInternalError), which
  // contains the last text that before_attempt() has returned. Throws Error(hcclSystemError) if no
  // socket can be created, or if the server of an id with a secret has ended.
  void run(const std::function<std::string()>& before_attempt, const Join& join);
  // Throws Error(hcclInternalError) after the deadline. When a report is due, logs that no server
  // has been found. Call it repeatedly while waiting for a server's answer.
  void check();
  // Sets the reason why no server has admitted the rank yet, for use in messages.
  void set_trouble(std::string why) { trouble_ = std::move(why); }
  // Returns the seconds since the search began: rounded to tenths if below ten, otherwise to whole
  // seconds.
  [[nodiscard]] double elapsed_seconds() const;

 private:
  enum class Attempt { joined, refused, unreachable, dropped };

  [[nodiscard]] bool try_locally(const Join& join);
  [[nodiscard]] Attempt try_address(const Address& address, const Join& join);
  [[nodiscard]] int await_connection(const FileDescriptor& socket);
  void note_refusal();
  [[noreturn]] void give_up() const;
  [[nodiscard]] std::string troubles() const;

  EventLoop& loop_;
  ServerIdentity& server_;
  const Deadline deadline_;
  const Deadline::Clock::time_point begin_ = Deadline::Clock::now();
  MissingReports reports_;
  std::optional<Deadline> refusals_end_;
  std::string trouble_ = "no answer";
  std::string own_trouble_;
};

}  // namespace hccl::bootstrap
