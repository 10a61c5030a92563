// SPDX-License-Identifier: Apache-2.0
// A rank's end of its connection to the root server. The control thread uses the link's state,
// which owns itself while it has a connection, so the link may be destroyed before the connection
// ends.
#include "bootstrap/control_link.h"

#include "base/process.h"
#include "base/text.h"
#include "bootstrap/callback_gate.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/messages.h"

#include <atomic>
#include <future>
#include <new>
#include <utility>

namespace hccl::bootstrap {
namespace {

constexpr std::chrono::seconds kDeparture{1};

}  // namespace

struct ControlLink::State final : std::enable_shared_from_this<State>, FrameConnection::Owner {
  State(const LinkSocket& link, Callbacks given)
      : rank(link.rank),
        server_rank(link.server_rank),
        server(link.server),
        server_is_known(link.server_is_known),
        callbacks(std::move(given)) {}

  // The following functions run on the control thread.
  void start(FrameConnection::Detached detached) {
    alive = shared_from_this();
    connection = std::make_shared<FrameConnection>(ControlThread::instance().loop(),
                                                   std::move(detached), FrameConnection::Limits{});
    connection->set_owner(this);
    connection->keep_alive();
    on_activity(*connection);
  }

  void on_activity(FrameConnection& active) override {
    const auto self = shared_from_this();
    const auto current = connection;
    while (connection.get() == &active) {
      const std::optional<Frame> frame = active.receive();
      if (!frame) break;
      on_frame(*frame);
    }
    if (connection.get() == &active && active.ended()) on_ended(active);
  }

  void on_frame(const Frame& frame) {
    if (frame.type == FrameType::departed) {
      const auto departed = parse<RankMessage>(frame.payload);
      if (!departed) return;
      server_departed = server_departed || departed->rank == server_rank;
      if (leaving && departed->rank == rank) leave();
      if (departed->rank != rank && callbacks.departed)
        gate.call([&] { callbacks.departed(departed->rank); });
    } else if (frame.type == FrameType::inquiry) {
      if (callbacks.inquiry) gate.call(callbacks.inquiry);
    } else if (frame.type == FrameType::verdict) {
      const auto verdict = parse<Failure>(frame.payload);
      if (verdict && callbacks.verdict)
        gate.call([&] { callbacks.verdict(believed(verdict->text)); });
    } else if (frame.type == FrameType::fault) {
      const auto fault = parse<Failure>(frame.payload);
      if (fault) report_fault(fault->code, believed(fault->text));
    }
  }

  void on_ended(const FrameConnection& ended) {
    const bool forged = ended.forged();
    const std::string why = text(ended.why(), ", ", ended.ends_text());
    hang_up();
    if (leaving) return leave();
    if (forged) return report_fault(hcclSocketError, text(server, ": ", forged_record_text()));
    if (server_departed || server_rank < 0) return;
    report_fault(hcclSystemError,
                 text(server, " has exited or cannot be reached (", why,
                      "); look at its output and at the network between the nodes"));
  }

  [[nodiscard]] std::string believed(const std::string& said) const {
    return server_is_known ? said : quoted(said);
  }

  void report_fault(hcclResult_t code, const std::string& what) {
    gate.call([&] { callbacks.fault(code, what); });
  }

  // Reports that this rank is leaving. The rank in the server's process waits until the server
  // sends the report back: by then, the server has notified all other ranks.
  void announce_departure() {
    leaving = true;
    if (!connection) return leave();
    connection->send(FrameType::departed, {});
    if (rank != server_rank) leave();
  }

  // Closes the connection, so that the server reports this rank as lost. If no memory is left,
  // raise() reports a fault in this way.
  void hang_up() {
    if (connection) connection->close();
    connection.reset();
    alive.reset();
  }

  // Sets `left` after the last frame has been sent, because the process may exit as soon as `left`
  // is set.
  void leave() {
    if (std::exchange(has_left, true)) return;
    const auto self = shared_from_this();
    const auto last = std::exchange(connection, nullptr);
    alive.reset();
    if (!last) return left.set_value();
    last->finish([self] { self->left.set_value(); });
  }

  const int rank;
  const int server_rank;
  const std::string server;
  const bool server_is_known;
  const Callbacks callbacks;
  std::shared_ptr<FrameConnection> connection;
  std::shared_ptr<State> alive;  // refers to this object while it has a connection
  bool server_departed = false;
  bool leaving = false;
  bool has_left = false;
  std::promise<void> left;
  CallbackGate gate;
  ReservedPost departing, breaking;
  std::atomic<bool> is_broken{false};
};

ControlLink::ControlLink(LinkSocket socket, Callbacks callbacks)
    : state_(std::make_shared<State>(socket, std::move(callbacks))) {
  ControlThread::instance().start();
  ControlThread::instance().post(
      [state = state_, link = std::make_shared<LinkSocket>(std::move(socket))] {
        state->start(std::move(link->connection));
      });
}

ControlLink::~ControlLink() {
  if (is_forked_child()) {
    static_cast<void>(new (std::nothrow) std::shared_ptr<State>(
        std::move(state_)));  // leaked: its destruction would change the parent's epoll set
    return;
  }
  state_->gate.close();
  const std::future<void> left = state_->left.get_future();
  ControlThread::instance().post(state_->departing, state_, [](void* state) {
    static_cast<State*>(state)->announce_departure();
  });
  if (!ControlThread::instance().is_current()) left.wait_for(kDeparture);
}

void ControlLink::cancel() noexcept { state_->gate.close(); }

void ControlLink::send(FrameType type, Bytes payload) {
  ControlThread::instance().post([state = state_, type, payload = std::move(payload)] {
    if (state->connection) state->connection->send(type, payload);
  });
}

void ControlLink::raise(hcclResult_t code, const std::function<std::string()>& make_text) noexcept {
  try {
    send(FrameType::fault, serialize(Failure{code, make_text()}));
  } catch (const std::bad_alloc&) {
    if (state_->is_broken.exchange(true)) return;
    ControlThread::instance().post(state_->breaking, state_,
                                   [](void* state) { static_cast<State*>(state)->hang_up(); });
  }
}

void ControlLink::ask_who_is_missing(const Waiting& waiting) {
  send(FrameType::stuck, serialize(waiting));
}

void ControlLink::answer(const Waiting& waiting) { send(FrameType::waiting, serialize(waiting)); }

}  // namespace hccl::bootstrap
