// SPDX-License-Identifier: Apache-2.0
// Tables of causes: one for completion statuses, and one for asynchronous events. The names are
// those that libibverbs prints, so that users can search for them; only the statuses of tag
// matching have other names.
#include "verbs/verbs_errors.h"

#include "base/text.h"

#include <array>
#include <cerrno>
#include <string_view>

#include <sys/resource.h>

namespace hccl::verbs {
namespace {

struct Cause {
  const char* name;
  Severity severity;
  const char* cause;
  const char* advice;
};

constexpr const char* kReport = "report this with the versions of hccl, the kernel and the driver";
constexpr const char* kSameVersion = "install the same version of hccl on all ranks";
constexpr const char* kSeePeer = "see the error text or the log of the other rank";
constexpr const char* kSeeKernel = "look for the device in the output of `dmesg`";
constexpr const char* kNothing = "no action is needed";
constexpr const char* kUnused = "it concerns a verbs feature that hccl does not use";
constexpr const char* kInfinibandOnly = "it concerns InfiniBand subnets, not RoCE";

// Indexed by ibv_wc_status.
constexpr std::array kCompletions{
    Cause{"success", Severity::ignorable, "nothing went wrong", kNothing},
    Cause{"local length error", Severity::own_fault,
          "a message is longer than the buffer that was posted for it, or than the port can carry",
          kSameVersion},
    Cause{"local QP operation error", Severity::own_fault,
          "the queue pair was given a request that it does not support", kReport},
    Cause{"local EE context operation error", Severity::own_fault, kUnused, kReport},
    Cause{"local protection error", Severity::own_fault,
          "the memory of a request is not, or no longer, registered for this use", kReport},
    // On some devices, this is the only error of a queue pair whose peer wrote outside of the open
    // memory. Otherwise it follows another error, which made the queue pair flush its requests.
    Cause{
        "Work Request Flushed Error", Severity::peer_lost,
        "the device ended the connection, probably because the peer tried to write to memory that "
        "is not open to it",
        "see the error text or the log of the other rank, and install the same version of hccl on "
        "all ranks"},
    Cause{"memory management operation error", Severity::own_fault,
          "a memory window could not be opened to the peer", kReport},
    Cause{"bad response error", Severity::peer_lost,
          "the peer's device sent an answer that the protocol does not allow", kSeeKernel},
    Cause{"local access error", Severity::own_fault,
          "the peer's message targets memory that it may not write to", kReport},
    Cause{"remote invalid request error", Severity::own_fault,
          "the peer's device refused a request that is longer than the peer's buffer, or of a kind "
          "that the peer does not allow",
          kSameVersion},
    Cause{"remote access error", Severity::peer_lost,
          "the target memory is not, or no longer, open to this rank: the peer has left the "
          "communicator, or has freed the memory too early",
          kSeePeer},
    Cause{"remote operation error", Severity::peer_lost,
          "the peer's device could not carry out a request because of a fault of its own",
          kSeePeer},
    Cause{"transport retry counter exceeded", Severity::peer_lost,
          "the peer's process or host has stopped answering, or packets are lost on the way: a "
          "wrong GID index, a missing route, an MTU that a switch does not carry, a firewall that "
          "drops UDP port 4791, or congestion without flow control (PFC)",
          ""},  // replaced by path_check()
    Cause{"RNR retry counter exceeded", Severity::peer_lost,
          "the peer has not posted a receive buffer for a long time: its process is stopped, or it "
          "runs another version of hccl",
          kSeePeer},
    Cause{"local RDD violation error", Severity::own_fault, kUnused, kReport},
    Cause{"remote invalid RD request", Severity::own_fault, kUnused, kReport},
    Cause{"aborted error", Severity::peer_lost, "the peer's device aborted the request", kSeePeer},
    Cause{"invalid EE context number", Severity::own_fault, kUnused, kReport},
    Cause{"invalid EE context state", Severity::own_fault, kUnused, kReport},
    Cause{"fatal error", Severity::device_gone,
          "the device has failed, or was removed or reset while the program used it", kSeeKernel},
    Cause{"response timeout error", Severity::peer_lost, "the peer's device did not answer in time",
          ""},
    Cause{"general error", Severity::device_gone,
          "the device or its driver reports a failure without a specific status", kSeeKernel},
    Cause{"tag matching error", Severity::own_fault, kUnused, kReport},
    Cause{"tag matching rendezvous incomplete", Severity::own_fault, kUnused, kReport},
};
static_assert(kCompletions.size() == IBV_WC_TM_RNDV_INCOMPLETE + 1);

// Indexed by ibv_event_type.
constexpr std::array kEvents{
    Cause{"CQ error", Severity::own_fault,
          "a completion queue has overflowed, and its queue pairs are lost", kReport},
    Cause{"local work queue catastrophic error", Severity::device_gone,
          "the device had to stop processing a queue pair", kSeeKernel},
    Cause{"invalid request local work queue error", Severity::own_fault,
          "a peer sent a request that this rank's queue pair does not allow", kSameVersion},
    Cause{"local access violation work queue error", Severity::own_fault,
          "a peer tried to access memory that is not registered for this access", kSameVersion},
    Cause{"communication established", Severity::ignorable,
          "the first message arrived before the queue pair was ready to send", kNothing},
    Cause{"send queue drained", Severity::ignorable, "all posted requests have been sent",
          kNothing},
    Cause{"path migrated", Severity::ignorable, kUnused, kNothing},
    Cause{"path migration request error", Severity::ignorable, kUnused, kNothing},
    Cause{"local catastrophic error", Severity::device_gone,
          "the device has failed, or was removed or reset while the program used it", kSeeKernel},
    Cause{"port active", Severity::ignorable, "the port's link is up again", kNothing},
    Cause{"port error", Severity::port_down, "the port has lost its link",
          "check its cable, and run `ip link` to check that its network interface is up"},
    Cause{"LID change", Severity::ignorable, kInfinibandOnly, kNothing},
    Cause{"P_Key change", Severity::ignorable, kInfinibandOnly, kNothing},
    Cause{"SM change", Severity::ignorable, kInfinibandOnly, kNothing},
    Cause{"SRQ catastrophic error", Severity::own_fault, kUnused, kReport},
    Cause{"SRQ limit reached", Severity::ignorable, kUnused, kNothing},
    Cause{"last WQE reached", Severity::ignorable, kUnused, kNothing},
    Cause{"client reregistration", Severity::ignorable, kInfinibandOnly, kNothing},
    Cause{
        "GID table change", Severity::ignorable,
        "an address of the network interface was added or removed; connections that use a removed "
        "address stop working",
        "do not change addresses while ranks run"},
    Cause{"WQ fatal", Severity::own_fault, kUnused, kReport},
};
static_assert(kEvents.size() == IBV_EVENT_WQ_FATAL + 1);

constexpr Cause kUnknown{"unknown", Severity::device_gone,
                         "the driver is newer than this library, which does not know this value",
                         kSeeKernel};

template <std::size_t N>
const Cause& find(const std::array<Cause, N>& causes, int number) {
  return number >= 0 && static_cast<std::size_t>(number) < N
             ? causes.at(static_cast<std::size_t>(number))
             : kUnknown;
}

// Returns the checks to make when a peer does not answer: whether it still runs, and whether a ping
// gets through whose packets are as large as full RoCE packets. The headers of a RoCE v2 packet are
// 36 bytes longer than those of a ping.
std::string path_check(const ConnectionEnds& ends) {
  constexpr std::uint32_t kBeyondPing = 36;
  return text("check whether rank ", ends.peer_rank,
              " is still running and, if so, whether `ping -M do -s ", ends.mtu + kBeyondPing, ' ',
              ends.peer_gid, "` gets through");
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return text(bytes, ' ', kUnits.at(unit));
}

}  // namespace

Severity severity_of(ibv_wc_status status) {
  return find(kCompletions, static_cast<int>(status)).severity;
}

Severity severity_of(ibv_event_type event) {
  return find(kEvents, static_cast<int>(event)).severity;
}

std::string describe_completion(ibv_wc_status status, std::uint32_t vendor_error,
                                const ConnectionEnds& ends) {
  const int number = static_cast<int>(status);
  const Cause& cause = find(kCompletions, number);
  const std::string advice = *cause.advice == '\0' ? path_check(ends) : cause.advice;
  return text("completion error ", number, " (", cause.name, "), vendor error ", vendor_error,
              ", between rank ", ends.own_rank, " (", ends.device, " port ", ends.port, ", GID ",
              ends.own_gid, ") and rank ", ends.peer_rank, " (host ", ends.peer_host, ", GID ",
              ends.peer_gid, ") with an MTU of ", ends.mtu, ": ", cause.cause, "; ", advice);
}

std::string describe_refused_write(ibv_wc_status status, const ConnectionEnds& ends) {
  const int number = static_cast<int>(status);
  return text("rank ", ends.peer_rank, " (host ", ends.peer_host, ", GID ", ends.peer_gid,
              ") tried to write to memory that is not open to it, so ", ends.device, " port ",
              ends.port, " of rank ", ends.own_rank, " has ended the connection (completion error ",
              number, ": ", find(kCompletions, number).name, "); ", kSeePeer, ", and ",
              kSameVersion);
}

std::string describe_event(ibv_event_type event, const std::string& device, int port) {
  const int number = static_cast<int>(event);
  const Cause& cause = find(kEvents, number);
  const std::string where = port > 0 ? text(device, " port ", port) : device;
  return text("event ", number, " (", cause.name, ") of RDMA device ", where, ": ", cause.cause,
              "; ", cause.advice);
}

std::uint64_t locked_memory_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

std::string memlock_advice(std::size_t bytes, int error_number, const std::string& device,
                           std::uint64_t limit) {
  const std::string failure = text("cannot register ", bytes, " bytes with ", device, ": ",
                                   system_error_text(error_number));
  if (error_number == ENOMEM && limit != RLIM_INFINITY) {
    return text(failure, "; the limit on locked memory is ", size_text(limit),
                ": raise `ulimit -l` (for a container: --ulimit memlock=-1), or run without RoCE: "
                "HCCL_IB_DISABLE=1");
  }
  if (error_number == ENOMEM) {
    return text(failure,
                ", though locked memory has no limit; free memory on the host, or use fewer "
                "ranks and streams");
  }
  return text(failure, "; ", kSeeKernel);
}

}  // namespace hccl::verbs
