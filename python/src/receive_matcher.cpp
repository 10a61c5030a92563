// SPDX-License-Identifier: Apache-2.0
#include "receive_matcher.h"

#include "allocator.h"
#include "call.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include <c10/util/Exception.h>
#include <hccl_emulation.h>

namespace hccl_torch {

namespace {

// The maximum duration of one wait for a message, and of one probe. The value is small, so that the
// threads soon notice stop().
constexpr std::chrono::milliseconds kProbeTime{50};
// The pause between two probes while ranks offer messages for which no receive has been posted.
constexpr std::chrono::milliseconds kPause{1};

// Calls `call`. Returns the reason if it fails, else an empty string.
template <class Call>
std::string reason_of_failure(Call call) noexcept {
  try {
    call();
    return {};
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

c10::intrusive_ptr<c10d::Work> ReceiveMatcher::post(at::Tensor& tensor, int source, int tag) {
  const auto type = source == kAnySource ? c10d::OpType::RECVANYSOURCE : c10d::OpType::RECV;
  const std::chrono::milliseconds timeout = communicator_->timeout();
  // A time-out of 0 means no limit.
  const auto deadline = timeout.count() == 0 ? Clock::time_point::max() : Clock::now() + timeout;
  Receive receive{queue_.defer(type, "recv", tensor), tensor, source, tag, deadline};
  c10::intrusive_ptr<Work> work = receive.work;
  work->operation().source = source;
  Lock lock(mutex_);
  if (stopping_) {
    work->fail("the process group has been destroyed");
    return work;
  }
  const auto found = std::ranges::find_if(unexpected_, [&](const Message& message) {
    return message.tag == tag && receive.fits(message.source);
  });
  if (found != unexpected_.end()) {
    const Message message = std::move(*found);
    unexpected_.erase(found);
    lock.unlock();
    deliver(std::move(receive), message);
    return work;
  }
  start_thread(source);
  posted_.push_back(std::move(receive));
  changed_.notify_all();
  return work;
}

bool ReceiveMatcher::must_post(int source) {
  if (communicator_->is_in_forked_child()) return false;
  if (is_own(source)) return true;
  const std::lock_guard lock(mutex_);
  const auto busy = sources_.find(source);
  return (busy != sources_.end() && busy->second.is_busy) ||
         std::ranges::any_of(posted_, [&](const Receive& receive) {
           return receive.source == source || (receive.source == kAnySource && receive.tag == 0);
         });
}

bool ReceiveMatcher::has_posted() {
  const std::lock_guard lock(mutex_);
  return !posted_.empty();
}

void ReceiveMatcher::send_to_self(const at::Tensor& bytes, int tag) {
  Lock lock(mutex_);
  arrive(lock, {communicator_->rank(), tag, bytes});
}

void ReceiveMatcher::stop() {
  std::map<int, Source> sources;
  std::thread prober;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto& [source, state] : sources_) sources[source].reader = std::move(state.reader);
    prober = std::move(prober_);
  }
  changed_.notify_all();
  for (auto& [source, state] : sources) {
    if (state.reader.joinable()) state.reader.join();
  }
  if (prober.joinable()) prober.join();
  Lock lock(mutex_);
  fail_if(lock, "the process group has been destroyed", [](const Receive&) { return true; });
}

void ReceiveMatcher::start_thread(int source) {
  if (source == kAnySource || is_own(source)) {
    if (!prober_.joinable()) prober_ = std::thread(&ReceiveMatcher::probe, this);
  } else {
    std::thread& reader = sources_[source].reader;
    if (!reader.joinable()) reader = std::thread(&ReceiveMatcher::read, this, source);
  }
}

void ReceiveMatcher::read(int source) {
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || next_from(source) != posted_.end(); });
    if (stopping_) return;
    const auto receive = next_from(source);
    if (receive->tag == 0) {
      queue_plain(lock, receive, source);
    } else {
      read_tagged(lock, c10::intrusive_ptr<Work>(receive->work), source);
    }
  }
}

// Returns no receive if an any-source receive without a tag may match first. Only the prober, which
// sees message sizes, can then tell messages with a tag from messages without one.
ReceiveMatcher::Receives::iterator ReceiveMatcher::next_from(int source) {
  if (sources_[source].is_busy) return posted_.end();
  const auto is_plain_from_any = [](const Receive& receive) {
    return receive.source == kAnySource && receive.tag == 0;
  };
  const auto first = std::ranges::find(posted_, source, &Receive::source);
  if (first == posted_.end()) return first;
  const auto end = first->tag == 0 ? first : posted_.end();
  return std::any_of(posted_.begin(), end, is_plain_from_any) ? posted_.end() : first;
}

bool ReceiveMatcher::is_probed(const Receive& receive) const {
  return !receive.is_matched && (receive.source == kAnySource || is_own(receive.source));
}

bool ReceiveMatcher::waits_for_any() const {
  return communicator_->identity().size > 1 &&
         std::ranges::any_of(posted_, [](const Receive& receive) {
           return receive.source == kAnySource && !receive.is_matched;
         });
}

void ReceiveMatcher::probe() {
  Lock lock(mutex_);
  for (;;) {
    await_turn(lock);
    if (stopping_) return;
    probe_once(lock);
  }
}

void ReceiveMatcher::await_turn(Lock& lock) {
  const auto is_late = [&](const Receive& receive) {
    return is_probed(receive) && receive.deadline <= Clock::now();
  };
  while (!stopping_) {
    const auto late = std::ranges::find_if(posted_, is_late);
    if (late != posted_.end()) {
      const Work* const work = late->work.get();
      fail_if(lock, reason_of_timeout(*late),
              [&](const Receive& one) { return one.work.get() == work; });
    } else if (waits_for_any()) {
      return;
    } else if (std::ranges::any_of(posted_, [&](const Receive& one) { return is_probed(one); })) {
      changed_.wait_for(lock, kProbeTime);
    } else {
      changed_.wait(lock);
    }
  }
}

std::string ReceiveMatcher::reason_of_timeout(const Receive& receive) const {
  const auto limit = communicator_->timeout().count();
  if (receive.source == kAnySource)
    return c10::str("no rank has sent a message within ", limit,
                    " ms; make a rank send one, or give the group a longer timeout");
  return c10::str("rank ", receive.source, " has sent itself no message with tag ", receive.tag,
                  " within ", limit, " ms; call isend for this message, before or after irecv");
}

// Ignores the probed message if another thread has begun to receive from the same rank since the
// probe. In that case, the probed message may be the elements that follow a header.
void ReceiveMatcher::probe_once(Lock& lock) {
  const std::uint64_t before = taken_;
  int source = kAnySource;
  std::uint64_t bytes = 0;
  lock.unlock();
  hcclResult_t result = hcclSuccess;
  const std::string reason = reason_of_failure([&] {
    result = hcclEmulationProbe(communicator_->get(),
                                static_cast<std::uint64_t>(kProbeTime.count()), &source, &bytes);
    if (result != hcclBusy) check(result, "hcclEmulationProbe");
  });
  lock.lock();
  if (!reason.empty()) {
    fail_if(lock, reason, [](const Receive& receive) { return receive.source == kAnySource; });
  } else if (result != hcclBusy && !take_offer(lock, source, bytes, before)) {
    changed_.wait_for(lock, kPause);
  }
}

// Treats a message of kWireBytes bytes as a header, unless a receive without a tag expects this
// size.
bool ReceiveMatcher::take_offer(Lock& lock, int source, std::uint64_t bytes, std::uint64_t before) {
  if (sources_[source].is_busy || sources_[source].taken > before) return false;
  const bool is_header = bytes == TagHeader::kWireBytes;
  const auto first = std::ranges::find_if(posted_, [&](const Receive& receive) {
    return !receive.is_matched && receive.fits(source) && (receive.tag == 0 || is_header);
  });
  if (first == posted_.end()) return false;
  const bool expects_as_much = first->tensor.nbytes() == TagHeader::kWireBytes;
  if (is_header && !(first->tag == 0 && expects_as_much)) {
    read_tagged(lock, c10::intrusive_ptr<Work>(first->work), source);
  } else if (first->source == kAnySource) {
    queue_plain(lock, first, source);
  } else {
    return false;  // the reader of `source` serves this receive
  }
  return true;
}

void ReceiveMatcher::queue_plain(Lock& lock, Receives::iterator receive, int source) {
  sources_[source].is_busy = true;
  receive->is_matched = true;
  lock.unlock();
  const std::string reason = reason_of_failure([&] { queue_receive(*receive, source); });
  if (!reason.empty()) receive->work->fail(reason);
  lock.lock();
  Receives done;
  done.splice(done.begin(), posted_, receive);
  release(source);
  lock.unlock();
  done.clear();
  lock.lock();
}

void ReceiveMatcher::release(int source) {
  sources_[source].is_busy = false;
  sources_[source].taken = ++taken_;
  changed_.notify_all();
}

void ReceiveMatcher::queue_receive(const Receive& receive, int source) {
  at::Tensor tensor = receive.tensor;
  Issue issue(queue_, receive.work, communicator_->stream_from(source));
  issue.operation().source = source;
  issue.receive(issue.output(tensor, false), source);
  static_cast<void>(issue.end());
}

void ReceiveMatcher::read_tagged(Lock& lock, const c10::intrusive_ptr<Work>& work, int source) {
  sources_[source].is_busy = true;
  lock.unlock();
  Message message;
  const std::string reason = reason_of_failure([&] { message = receive_tagged(source, *work); });
  lock.lock();
  release(source);
  if (reason.empty()) {
    arrive(lock, std::move(message));
  } else {
    fail_if(lock, reason, [&](const Receive& receive) { return receive.work == work; });
  }
}

ReceiveMatcher::Message ReceiveMatcher::receive_tagged(int source, Work& work) {
  const at::Tensor bytes = receive_now(source, TagHeader::kWireBytes, work, false);
  TagHeader header;
  std::memcpy(&header, bytes.const_data_ptr(), sizeof header);
  TORCH_CHECK_WITH(DistBackendError, header.mark == TagHeader::kMark, "rank ", source,
                   " sent an untagged message before the tagged message that this rank expects; "
                   "post the receives from a rank in the order of its sends");
  return {source, header.tag, receive_now(source, header.bytes, work, true)};
}

at::Tensor ReceiveMatcher::receive_now(int source, std::int64_t bytes, Work& work, bool is_coming) {
  at::Tensor buffer = empty_scratch({bytes}, at::kByte);
  const c10::intrusive_ptr<Work> part = queue_.make_part(&work, "recv");
  {
    Issue issue(queue_, part, communicator_->stream_from(source));
    issue.receive(issue.output(buffer, false), source);
    issue.end_part();
  }
  while (!part->ends_within(kProbeTime)) {
    TORCH_CHECK_WITH(DistBackendError, is_coming || !stopping_,
                     "the process group has been destroyed");
  }
  if (const std::exception_ptr error = part->exception()) std::rethrow_exception(error);
  return buffer;
}

void ReceiveMatcher::arrive(Lock& lock, Message message) {
  const auto found = std::ranges::find_if(posted_, [&](const Receive& receive) {
    return !receive.is_matched && receive.tag == message.tag && receive.fits(message.source);
  });
  if (found == posted_.end()) {
    unexpected_.push_back(std::move(message));
    return;
  }
  Receive receive = std::move(*found);
  posted_.erase(found);
  changed_.notify_all();
  lock.unlock();
  deliver(std::move(receive), message);
  lock.lock();
}

void ReceiveMatcher::deliver(Receive receive, const Message& message) noexcept {
  const std::string reason = reason_of_failure([&] {
    at::Tensor& tensor = receive.tensor;
    const at::Tensor& bytes = message.bytes;
    receive.work->operation().source = message.source;
    TORCH_CHECK_WITH(DistBackendError, bytes.nbytes() == tensor.nbytes(), "rank ", message.source,
                     " has sent ", bytes.nbytes(), " bytes with tag ", message.tag,
                     " for a tensor of ", tensor.nbytes(),
                     " bytes; receive the message into a tensor of the same size");
    Issue issue(queue_, receive.work, communicator_->stream_from(message.source));
    issue.await_collectives(tensor);
    if (tensor.numel() > 0)
      deliver_into(tensor, bytes.view(tensor.scalar_type()).view(tensor.sizes()), "recv");
    issue.fill(tensor);
    static_cast<void>(issue.end());
  });
  if (!reason.empty()) receive.work->fail(reason);
}

template <class Condition>
void ReceiveMatcher::fail_if(Lock& lock, const std::string& reason, Condition condition) {
  Receives failed;
  for (auto at = posted_.begin(); at != posted_.end();) {
    const auto receive = at++;
    if (!receive->is_matched && condition(*receive)) failed.splice(failed.end(), posted_, receive);
  }
  changed_.notify_all();
  lock.unlock();
  for (const Receive& receive : failed) receive.work->fail(reason);
  failed.clear();
  lock.lock();
}

}  // namespace hccl_torch
