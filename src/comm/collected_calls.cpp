// SPDX-License-Identifier: Apache-2.0
// Numbers a group's messages, and queues its calls.
#include "comm/collected_calls.h"

#include "base/config.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/blocking.h"

namespace hccl::comm {
namespace {

// Runs one step of queueing a group. Keeps the first error instead of throwing, so that the other
// steps still run.
template <class Part>
void attempt(Part part, std::exception_ptr& first_error) {
  try {
    part();
  } catch (...) {
    if (!first_error) first_error = std::current_exception();
  }
}

// Sorts the messages by communicator, in an order that is the same on all ranks. A stream runs the
// messages of one communicator after those of another, so ranks with different orders could
// deadlock.
void put_in_common_order(std::pmr::list<MessagePart>& messages) {
  messages.sort([](const MessagePart& a, const MessagePart& b) {
    return a.communicator->comes_before(*b.communicator);
  });
}

}  // namespace

void check_room(std::size_t calls) {
  if (calls < kMostGroupCalls) return;
  throw Error(hcclInvalidUsage, text("a group has more than ", kMostGroupCalls,
                                     " calls on one stream; call hcclGroupEnd earlier"));
}

// Messages between two ranks match in the order of the calls, regardless of streams. Therefore all
// messages are numbered before any is queued. First pairs the messages that this rank sends to
// itself. Drops a communicator's messages on a stream if pairing fails or if the communicator
// cannot be used with the stream.
void CollectedCalls::number_messages(std::exception_ptr& first_error) {
  struct Numbered {
    Communicator* communicator;
    device::Stream* stream;
    PointToPoint* call;
  };
  std::pmr::vector<Numbered> all(&memory_);
  for (StreamCalls& calls : streams_) {
    std::erase_if(calls.messages, [&](MessagePart& part) {
      bool paired = false;
      attempt(
          [&] {
            part.communicator->check_usable(*calls.stream);
            part.copies = pair_self_messages(part.calls, part.communicator->rank());
            part.communicator->begin_use(*calls.stream);
            paired = true;
          },
          first_error);
      return !paired;
    });
    for (MessagePart& part : calls.messages) {
      for (PointToPoint& call : part.calls.all())
        all.push_back({part.communicator.get(), calls.stream.get(), &call});
    }
  }
  const auto order = [](const Numbered& one) { return one.call->order; };
  if (!std::ranges::is_sorted(all, {}, order)) std::ranges::sort(all, {}, order);
  for (const Numbered& one : all)
    attempt([&] { one.communicator->number(*one.stream, *one.call); }, first_error);
}

bool CollectedCalls::has_calls_of(const Communicator& communicator) const {
  const auto is_its = [&](const auto& part) { return part.communicator.get() == &communicator; };
  return std::ranges::any_of(collectives_, is_its) ||
         std::ranges::any_of(streams_, [&](const StreamCalls& calls) {
           return std::ranges::any_of(calls.messages, is_its);
         });
}

void CollectedCalls::queue() {
  std::exception_ptr first_error;
  for (StreamCalls& calls : streams_) calls.stream->make_room();
  number_messages(first_error);
  for (const CollectivePart& part : collectives_)
    attempt([&] { part.communicator->enqueue(*part.stream, part.call); }, first_error);
  for (StreamCalls& calls : streams_) {
    put_in_common_order(calls.messages);
    for (MessagePart& part : calls.messages) {
      attempt(
          [&] {
            part.communicator->enqueue_numbered(*calls.stream, std::move(part.calls),
                                                std::move(part.copies));
          },
          first_error);
    }
  }
  if (blocking_mode()) [[unlikely]]
    attempt([&] { wait(); }, first_error);
  if (first_error) std::rethrow_exception(first_error);
}

void CollectedCalls::wait() const {
  std::vector<std::shared_ptr<device::Stream>> streams;
  std::vector<std::shared_ptr<Communicator>> communicators;
  for (const StreamCalls& calls : streams_) {
    streams.push_back(calls.stream);
    for (const MessagePart& part : calls.messages) communicators.push_back(part.communicator);
  }
  for (const CollectivePart& part : collectives_) communicators.push_back(part.communicator);
  wait_for_streams(streams, communicators);
}

}  // namespace hccl::comm
