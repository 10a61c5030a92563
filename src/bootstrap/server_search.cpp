// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/server_search.h"

#include "base/address.h"
#include "base/config.h"
#include "base/errno_advice.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "bootstrap/root_socket.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace hccl::bootstrap {
namespace {

constexpr std::chrono::milliseconds kFirstPause{2};
constexpr std::chrono::milliseconds kLongestPause{50};
constexpr std::chrono::seconds kConnectLimit{5};
// How long to retry refused connections to the server of an id with a secret. That server starts
// before the id exists, so if no process listens, the server has ended.
constexpr std::chrono::milliseconds kRefusalPatience{500};

FileDescriptor tcp_socket(bool v6) {
  FileDescriptor result(
      socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!result.valid()) {
    throw Error(
        hcclSystemError,
        text("cannot create a socket: ", system_error_text(errno), "; ",
             advice_on(errno, "enable the server's IP version (IPv4 or IPv6) on this host")));
  }
  const int on = 1;
  // Lets the server bind its port even if this connection happens to use the same port number.
  setsockopt(result.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(result.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return result;
}

}  // namespace

ServerSearch::ServerSearch(EventLoop& loop, ServerIdentity& server, Deadline deadline)
    : loop_(loop), server_(server), deadline_(deadline), reports_(config()->hang_report) {}

void ServerSearch::run(const std::function<std::string()>& before_attempt, const Join& join) {
  std::chrono::milliseconds pause = kFirstPause;
  while (true) {
    own_trouble_ = before_attempt();
    if (try_locally(join)) return;
    bool all_refused = true;
    for (const Address& address : server_.id.addresses) {
      const Attempt outcome = try_address(address, join);
      if (outcome == Attempt::joined) return;
      all_refused = all_refused && outcome == Attempt::refused;
    }
    if (all_refused) {
      note_refusal();
    } else {
      refusals_end_.reset();
    }
    check();
    std::this_thread::sleep_for(deadline_.remaining(pause));
    pause = std::min(pause * 2, kLongestPause);
  }
}

bool ServerSearch::try_locally(const Join& join) {
  FileDescriptor socket = connect_to_local_server(server_.id);
  if (!socket.valid()) return false;
  server_.address = server_.id.addresses.front();
  if (join(std::move(socket), Route::unix_socket)) return true;
  server_.address = {};
  return false;
}

ServerSearch::Attempt ServerSearch::try_address(const Address& address, const Join& join) {
  FileDescriptor socket = tcp_socket(address.v6);
  const SocketAddress where = to_socket_address(address);
  int error = connect(socket.get(), where.get(), where.length) == 0 ? 0 : errno;
  if (error == EINPROGRESS || error == EINTR) error = await_connection(socket);
  // If no process listens, a socket may connect to itself, with the same port on both ends.
  if (error == 0 && local_address(socket.get()) == remote_address(socket.get()))
    error = ECONNREFUSED;
  if (error != 0) {
    trouble_ = system_error_text(error);
    return error == ECONNREFUSED ? Attempt::refused : Attempt::unreachable;
  }
  server_.address = address;
  return join(std::move(socket), Route::tcp) ? Attempt::joined : Attempt::dropped;
}

// Waits until the connection attempt has finished, but for at most kConnectLimit. Returns 0 if the
// attempt has succeeded, and otherwise an errno.
int ServerSearch::await_connection(const FileDescriptor& socket) {
  DescriptorWait wait(loop_);
  if (const int error = wait.watch(socket.get()); error != 0) return error;
  bool is_done = false;
  wait.when_writable([&is_done] { is_done = true; });
  const Deadline limit = deadline_.within(kConnectLimit);
  do {
    loop_.run_one(limit);
  } while (!is_done && !limit.expired());
  if (!is_done) return ETIMEDOUT;
  int error = ETIMEDOUT;
  socklen_t length = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

void ServerSearch::note_refusal() {
  if (server_.id.kind != UniqueId::Kind::with_secret) return;
  if (!refusals_end_) refusals_end_ = Deadline::after(kRefusalPatience);
  if (!refusals_end_->expired()) return;
  throw Error(hcclSystemError,
              text("rank ", server_.joining_rank, ": no process listens at ", server_.where(),
                   ": the process that made the unique id has exited, or the communicator with "
                   "this id is complete or destroyed; make a new id and start all ranks again"));
}

void ServerSearch::check() {
  if (deadline_.expired()) give_up();
  const auto due = reports_.next();
  if (!due || Deadline::Clock::now() - begin_ < *due) return;
  reports_.note_made();
  log(LogLevel::warning, "bootstrap", "rank ", server_.joining_rank, " has found no server at ",
      server_.where(), " for ", elapsed_seconds(), " s (", troubles(),
      "); still trying: check whether the rank that runs the server was started");
}

void ServerSearch::give_up() const {
  throw Error(
      hcclInternalError,
      text("rank ", server_.joining_rank, " found no server at ", server_.where(), " within ",
           elapsed_seconds(), " s (", troubles(), "); ",
           server_.address.port != 0
               ? "check whether the program that listens there is stopped, is hung or is not hccl"
               : "start the rank that calls hcclGetUniqueId",
           ", or raise HCCL_INIT_TIMEOUT"));
}

std::string ServerSearch::troubles() const {
  return own_trouble_.empty() ? trouble_ : text(trouble_, "; ", own_trouble_);
}

double ServerSearch::elapsed_seconds() const {
  const std::chrono::duration<double> elapsed = Deadline::Clock::now() - begin_;
  return elapsed.count() < 10 ? std::round(elapsed.count() * 10) / 10 : std::round(elapsed.count());
}

}  // namespace hccl::bootstrap
