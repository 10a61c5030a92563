// SPDX-License-Identifier: Apache-2.0
// The sockets on which a rank is reached, and the connections that have come to them: strangers'
// until they have proved themselves, then kept until somebody opens the stream that they are.
#pragma once

#include "base/file_descriptor.h"
#include "base/stranger_log.h"
#include "transport/connecting.h"
#include "transport/handshake.h"

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hccl::transport {

// The differences between families of sockets.
struct Family {
  const char* name = "";                          // of the transport, for the log
  std::string (*describe)(int socket) = nullptr;  // who is at the other end
  // Why a connection is closed at once: a clause; empty: it is not.
  std::string (*object)(int socket) = nullptr;
};

// Any thread. Nothing runs by itself: whoever waits for a stream looks after all connections.
class Listener {
 public:
  // The sockets listen already and do not block. Throws Error(hcclSystemError).
  Listener(std::vector<FileDescriptor> sockets, const Membership& own, const Limits& limits,
           const Family& family);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  friend class Claim;

  struct Guest {
    FileDescriptor socket;
    std::string who;  // once it has hung up, nobody can tell
    AcceptorHandshake handshake;
    Deadline deadline;
  };
  struct Seat {
    FileDescriptor socket;  // invalid until it has come and after it has been taken
    int bell = -1;          // eventfd of the claim that waits for it
    bool taken = false;
  };
  using Guests = std::list<Guest>;  // in order of arrival

  // All of these with the mutex held.
  void serve();
  void accept_from(const FileDescriptor& socket);
  void welcome(FileDescriptor socket);
  [[nodiscard]] bool listen_to(Guest& guest);
  void seat(Guest& guest);
  void reject(const std::string& who, const std::string& why);
  void dismiss(Guests::iterator guest, const std::string& why);
  void remove(Guests::iterator guest);
  void rest();
  void wake_up();
  void watch(int fd);
  void unwatch(int fd);

  std::mutex mutex_;
  std::vector<FileDescriptor> sockets_;
  const Membership own_;
  const Limits limits_;
  const Family family_;
  FileDescriptor epoll_;  // readable if any of the sockets or guests is
  Guests guests_;
  std::map<StreamKey, Seat> seats_;
  Deadline resting_ = Deadline::never();  // not accepting for want of descriptors until then
  bool rests_ = false;
  StrangerLog strangers_;
};

// A stream that this rank waits for, and then has. Throws Error if it is claimed already.
class Claim final : public Connecting {
 public:
  Claim(std::shared_ptr<Listener> listener, const StreamKey& key);
  ~Claim() override;

  [[nodiscard]] std::optional<FileDescriptor> poll() override;
  void plan_sleep(SleepPlan& plan) override;

 private:
  std::shared_ptr<Listener> listener_;
  StreamKey key_;
  FileDescriptor bell_;  // rung when another thread has received our connection
};

}  // namespace hccl::transport
