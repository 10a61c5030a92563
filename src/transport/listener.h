// SPDX-License-Identifier: Apache-2.0
// The listening sockets of a rank and the connections accepted on them. A connection is pending
// until it has authenticated; then the listener keeps it until its stream is opened.
#pragma once

#include "base/address.h"
#include "base/file_descriptor.h"
#include "base/rejection_log.h"
#include "transport/connection_attempt.h"
#include "transport/handshake.h"

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hccl::transport {

// The properties that differ between socket families.
struct SocketFamily {
  const char* name = "";  // of the transport, for log lines
  // Describes the other end of an accepted connection, whose address is `from`.
  std::string (*describe)(int socket, const SocketAddress& from) = nullptr;
  // Returns the reason to close a new connection immediately, as a clause, or an empty string to
  // keep it. May be null.
  std::string (*objection)(int socket) = nullptr;
  LeastProtection least_protection = nullptr;  // null: none
};

// A listener has no thread of its own: every thread that waits for a stream serves all connections.
// Thread safety: any thread.
class Listener {
 public:
  // `sockets` must be listening and non-blocking. Throws Error(hcclSystemError).
  Listener(std::vector<FileDescriptor> sockets, Membership own, const ConnectionLimits& limits,
           const SocketFamily& family);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  friend class InboundConnection;

  struct PendingConnection {
    FileDescriptor socket;
    std::string who;
    Address from;  // 0.0.0.0:0 for a unix socket
    AcceptorHandshake handshake;
    Deadline deadline;
  };
  struct Inbound {
    FileDescriptor socket;  // invalid before the connection has arrived and after it was taken
    ProtectedStream stream{};
    std::string who{};
    int bell = -1;  // eventfd of the InboundConnection that waits for the stream
    bool taken = false;
  };
  using PendingList = std::list<PendingConnection>;  // in order of arrival

  // Call these with the mutex held.
  void serve();
  void accept_from(const FileDescriptor& socket);
  void admit(FileDescriptor socket, const SocketAddress& from);
  [[nodiscard]] PendingList::iterator victim();
  [[nodiscard]] bool progress(PendingConnection& pending);
  void hand_over(PendingConnection& pending);
  void reject(const std::string& who, const std::string& why);
  void dismiss(PendingList::iterator pending, const std::string& why);
  void remove(PendingList::iterator pending);
  void pause_accepting();
  void resume_accepting();
  void watch(int fd);
  void unwatch(int fd);

  std::mutex mutex_;
  std::vector<FileDescriptor> sockets_;
  const Membership own_;
  const ConnectionLimits limits_;
  const SocketFamily family_;
  FileDescriptor epoll_;  // readable if any listening or pending socket is readable
  PendingList pending_;
  std::map<StreamKey, Inbound> inbound_;
  // The time at which accepting resumes after a shortage of descriptors.
  Deadline paused_until_ = Deadline::never();
  bool paused_ = false;
  RejectionLog rejections_;
};

// A stream that this rank waits to accept.
class InboundConnection final : public ConnectionAttempt {
 public:
  // Throws Error(hcclInternalError) if another object waits for the stream or has accepted it, and
  // Error(hcclSystemError) if no descriptor is left.
  InboundConnection(std::shared_ptr<Listener> listener, const StreamKey& key);
  ~InboundConnection() override;

  [[nodiscard]] std::optional<Connected> poll() override;
  void plan_sleep(SleepPlan& plan) override;

 private:
  std::shared_ptr<Listener> listener_;
  StreamKey key_;
  FileDescriptor bell_;  // rung when another thread has accepted the connection
};

}  // namespace hccl::transport
