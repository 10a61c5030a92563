// SPDX-License-Identifier: Apache-2.0
#include "verbs/queue_pair.h"

#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/secret.h"
#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

namespace hccl::verbs {
namespace {

constexpr int kDrainPollMilliseconds = 20;
constexpr std::uint64_t kReceiveId = ~std::uint64_t{0};  // the wr_id of all receive requests

std::uint32_t random_packet_number() {
  std::uint32_t number = 0;
  std::memcpy(&number, random_secret().data(), sizeof(number));
  return number & 0xffffff;
}

}  // namespace

QueuePair::QueuePair(std::shared_ptr<RdmaDevice> device, const Depths& depths)
    : device_(std::move(device)), depths_(depths), first_packet_(random_packet_number()) {
  const VerbsLibrary& library = device_->library();
  {
    const StandardStreamPlaceholders placeholders;
    channel_ = own(library.create_comp_channel(device_->context()), "completion channel");
  }
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  completions_ =
      own(library.create_cq(device_->context(),
                            static_cast<int>(depths.requests + depths.arrivals + kReceiveBatch),
                            nullptr, channel_.get(), 0),
          "completion queue");
  create_pair();
}

// The events of a completion queue must be acknowledged before the queue is destroyed.
QueuePair::~QueuePair() {
  pair_.reset();
  drain_notifications();
}

template <class Object>
std::unique_ptr<Object, Destroy> QueuePair::own(Object* object, const char* what) const {
  if (object != nullptr) return {object, Destroy{&device_->library()}};
  throw Error(
      hcclSystemError,
      text("cannot create a ", what, " on ", device_->port().device, ": ", system_error_text(errno),
           "; use fewer communicators and streams, or raise ulimit -l and ulimit -n"));
}

void QueuePair::create_pair() {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = completions_.get();
  attributes.recv_cq = completions_.get();
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {.max_send_wr = depths_.requests,
                    .max_recv_wr = depths_.arrivals + kReceiveBatch,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = depths_.inline_bytes};
  ibv_qp* made = device_->library().create_qp(device_->domain(), &attributes);
  if (made == nullptr) {  // some NICs support no inline data
    attributes.cap.max_inline_data = 0;
    made = device_->library().create_qp(device_->domain(), &attributes);
  }
  pair_ = own(made, "queue pair");
  depths_.inline_bytes = std::min(depths_.inline_bytes, attributes.cap.max_inline_data);
}

void QueuePair::modify(const QueuePairChange& change, QueuePairState::Phase phase,
                       const char* step) {
  state_.advance(phase);
  ibv_qp_attr attributes = change.attributes;
  const int error = device_->library().modify_qp(pair_.get(), &attributes, change.mask);
  if (error == 0) return;
  throw Error(hcclSystemError,
              text("rank ", ends_.own_rank, " cannot make its queue pair to rank ", ends_.peer_rank,
                   " (", ends_.device, " port ", ends_.port, ", GID ", ends_.own_gid, " to ",
                   ends_.peer_gid, ") ", step, ": ", system_error_text(error),
                   "; check HCCL_IB_GID_INDEX, and that the two addresses can reach each other"));
}

void QueuePair::connect(const QpInfo& peer, const ConnectionEnds& ends) {
  ends_ = ends;
  const UsablePort& port = device_->port();
  const QueuePairParameters parameters{.own_port = static_cast<std::uint8_t>(port.number),
                                       .own_gid_index = static_cast<std::uint8_t>(port.gid.index),
                                       .own_mtu = port.mtu,
                                       .own_packet_number = first_packet_,
                                       .peer_queue_pair = peer.queue_pair,
                                       .peer_packet_number = peer.first_packet,
                                       .peer_mtu = peer.mtu,
                                       .peer_gid = peer.gid};
  modify(to_initialized(parameters), QueuePairState::Phase::initialized, "usable");
  missing_receives_ = depths_.arrivals + kReceiveBatch;
  replenish_receives();
  modify(to_ready_to_receive(parameters), QueuePairState::Phase::ready_to_receive,
         "ready to receive");
  modify(to_ready_to_send(parameters), QueuePairState::Phase::ready_to_send, "ready to send");
}

// Posts receive requests without memory: a write with immediate consumes a receive request, but
// carries its own address.
void QueuePair::replenish_receives() {
  std::array<ibv_recv_wr, kReceiveBatch> requests{};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].wr_id = kReceiveId;
    if (i > 0) requests[i - 1].next = &requests[i];
  }
  ibv_recv_wr* refused = nullptr;
  for (; missing_receives_ >= kReceiveBatch; missing_receives_ -= kReceiveBatch) {
    const int error = ibv_post_recv(pair_.get(), requests.data(), &refused);
    if (error == 0) continue;
    throw Error(hcclSystemError, text("cannot post a receive on ", device_->port().device, ": ",
                                      system_error_text(error), "; see the kernel's log"));
  }
}

std::uint64_t QueuePair::write(std::span<const std::byte> bytes, std::uint32_t local_key,
                               const Target& target, std::uint32_t immediate) {
  ibv_sge part{};
  part.addr = reinterpret_cast<std::uintptr_t>(bytes.data());
  part.length = static_cast<std::uint32_t>(bytes.size());
  part.lkey = local_key;
  ibv_send_wr request{};
  request.sg_list = &part;
  request.num_sge = bytes.empty() ? 0 : 1;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  // Request a completion for at least one in `every` writes. A completion also covers all earlier
  // writes.
  const std::uint64_t every = std::max<std::uint64_t>(depths_.requests / 8, 1);
  const bool copied = copies(bytes.size());
  if (copied) request.send_flags |= IBV_SEND_INLINE;
  if (!copied || (posted_ + 1) % every == 0) request.send_flags |= IBV_SEND_SIGNALED;
  request.imm_data = htonl(immediate);
  request.wr.rdma.remote_addr = target.address;
  request.wr.rdma.rkey = target.key;
  return post_or_throw(request);
}

std::uint64_t QueuePair::open(ibv_mw& window, const Registration& registered,
                              std::span<std::byte> memory) {
  ibv_send_wr request{};
  request.opcode = IBV_WR_BIND_MW;
  request.send_flags = IBV_SEND_SIGNALED;
  request.bind_mw.mw = &window;
  request.bind_mw.rkey = next_key(window);
  request.bind_mw.bind_info = {.mr = registered.region(),
                               .addr = reinterpret_cast<std::uintptr_t>(memory.data()),
                               .length = memory.size(),
                               .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
  const std::uint64_t number = post_or_throw(request);
  window.rkey = request.bind_mw.rkey;  // not all drivers do this
  return number;
}

std::uint64_t QueuePair::close(ibv_mw& window) {
  ibv_send_wr request{};
  request.opcode = IBV_WR_LOCAL_INV;
  request.send_flags = IBV_SEND_SIGNALED;
  request.invalidate_rkey = window.rkey;
  return post_or_throw(request);
}

std::uint64_t QueuePair::post_or_throw(ibv_send_wr& request) {
  const int error = post(request);
  if (error == 0) return posted_;
  throw Error(hcclSystemError, text("cannot post a request on ", device_->port().device, ": ",
                                    system_error_text(error), "; see the kernel's log"));
}

int QueuePair::post(ibv_send_wr& request) noexcept {
  request.wr_id = ++posted_;
  ibv_send_wr* refused = nullptr;
  return ibv_post_send(pair_.get(), &request, &refused);
}

void QueuePair::fail(const ibv_wc& completion) noexcept {
  // The first failure flushes the other requests, some of which may complete before it.
  if (!failure_.text.empty() && !(only_flushed_ && completion.status != IBV_WC_WR_FLUSH_ERR))
    return;
  only_flushed_ = completion.status == IBV_WC_WR_FLUSH_ERR;
  const Severity severity = severity_of(completion.status);
  if (completion.wr_id == kReceiveId && !only_flushed_ && severity != Severity::device_gone) {
    failure_ = {true, describe_refused_write(completion.status, ends_)};
    return;
  }
  failure_ = {severity == Severity::peer_lost,
              describe_completion(completion.status, completion.vendor_err, ends_)};
}

// Reads completions, stores their immediates for poll() and returns the number of immediates.
std::size_t QueuePair::reap() noexcept {
  std::array<ibv_wc, kBatch> found;
  const int count = ibv_poll_cq(completions_.get(), kBatch, found.data());
  if (count < 0 && failure_.text.empty()) {
    failure_ = {false, text("the completion queue of ", device_->port().device,
                            " cannot be read; see the kernel's log")};
  }
  has_more_ = count == static_cast<int>(kBatch);
  std::size_t arrivals = 0;
  for (const ibv_wc& completion :
       std::span(found).first(static_cast<std::size_t>(std::max(count, 0)))) {
    if (completion.status != IBV_WC_SUCCESS) {
      fail(completion);
    } else if (completion.wr_id == kReceiveId) {
      immediates_[arrivals++] = ntohl(completion.imm_data);
    } else {
      completed_ = std::max(completed_, completion.wr_id);
    }
  }
  return arrivals;
}

std::span<const std::uint32_t> QueuePair::poll() {
  const std::size_t arrivals = reap();
  missing_receives_ += static_cast<std::uint32_t>(arrivals);
  if (missing_receives_ >= kReceiveBatch) replenish_receives();
  return std::span(immediates_).first(arrivals);
}

bool QueuePair::arm() noexcept {
  armed_ = armed_ || ibv_req_notify_cq(completions_.get(), 0) == 0;
  return armed_;
}

void QueuePair::drain_notifications() noexcept {
  ibv_cq* rung = nullptr;
  void* nothing = nullptr;
  while (completions_ != nullptr &&
         device_->library().get_cq_event(channel_.get(), &rung, &nothing) == 0) {
    device_->library().ack_cq_events(rung, 1);
    armed_ = false;
  }
}

void QueuePair::cut() noexcept {
  if (failure_.text.empty())
    failure_ = {true, "this rank aborted its queue pair because a call failed"};
  ibv_qp_attr attributes = to_error().attributes;
  static_cast<void>(device_->library().modify_qp(pair_.get(), &attributes, to_error().mask));
}

void QueuePair::drain(Deadline deadline, int hung_up) noexcept {
  if (free_requests() == 0 || !failure_.text.empty()) return;
  // The completion of this empty write means that all earlier writes have arrived.
  ibv_send_wr last{};
  last.opcode = IBV_WR_RDMA_WRITE;
  last.send_flags = IBV_SEND_SIGNALED;
  if (post(last) != 0) return;
  while (!deadline.expired()) {
    drain_notifications();
    if (!arm()) return;
    static_cast<void>(reap());
    if (completed_ == posted_ || !failure_.text.empty()) return;
    if (has_more_) continue;
    std::array<pollfd, 2> wait{{{channel_->fd, POLLIN, 0}, {hung_up, POLLIN, 0}}};
    if (::poll(wait.data(), wait.size(), kDrainPollMilliseconds) > 0 && wait[1].revents != 0)
      return;
  }
}

}  // namespace hccl::verbs
