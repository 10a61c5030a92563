// SPDX-License-Identifier: Apache-2.0
// Faults of a communicator that spans nodes: ranks of this node see them in shared memory, ranks of
// other nodes receive them over the control link.
#include "base/text.h"
#include "network/network_backend.h"

namespace hccl::network {

AsyncError NetworkBackend::async_error() const {
  if (failed()) return {segment_->fault().code(), segment_->fault().text()};
  const transport::Trouble here = trouble();
  return {here.code, here.text};
}

void NetworkBackend::fail(hcclResult_t code, const char* why) noexcept {
  segment_->fail(code, why);
  tell_others();
}

void NetworkBackend::mate_died(int mate) noexcept {
  segment_->rank_died(mate);
  tell_others();
}

void NetworkBackend::depart() {
  segment_->depart();
  cut_link();
}

void NetworkBackend::tell_others() {
  if (!failed()) return;
  if (const auto others = link())
    others->raise(segment_->fault().code(), [this] { return segment_->fault().text(); });
  wake();
}

std::shared_ptr<bootstrap::ControlLink> NetworkBackend::link() {
  const std::lock_guard lock(link_mutex_);
  return link_;
}

// Takes the link under the lock, because a stream's thread may be reporting a fault over it.
void NetworkBackend::cut_link() {
  std::shared_ptr<bootstrap::ControlLink> link;
  {
    const std::lock_guard lock(link_mutex_);
    link.swap(link_);
  }
  // A callback may hold the link as well, and uses this back end.
  if (link) link->cancel();
}

void NetworkBackend::attach_link(bootstrap::LinkSocket socket) {
  stall_reports_.attach({[this](const bootstrap::Waiting& waiting) {
                           if (const auto others = link()) others->answer(waiting);
                         },
                         [this](const bootstrap::Waiting& waiting) {
                           if (const auto others = link()) others->ask_who_is_missing(waiting);
                         },
                         socket.server});
  bootstrap::ControlLink::Callbacks callbacks;
  callbacks.fault = [this](hcclResult_t code, const std::string& what) {
    if (!failed()) {
      segment_->fault().raise_with(code, [&] {
        const transport::Trouble here = trouble();  // a local problem makes other ranks seem lost
        return here.code != hcclSuccess ? text(what, "; here: ", here.text) : what;
      });
    }
    wake();
  };
  callbacks.departed = [this](int rank) {
    stall_reports_.on_departed(rank);
    wake();
  };
  callbacks.inquiry = [this] {
    stall_reports_.on_inquiry();
    wake();
  };
  callbacks.verdict = [this](const std::string& root_cause) {
    stall_reports_.on_verdict(root_cause);
  };
  const std::lock_guard lock(link_mutex_);  // callbacks read link_
  link_ = std::make_shared<bootstrap::ControlLink>(std::move(socket), std::move(callbacks));
}

}  // namespace hccl::network
