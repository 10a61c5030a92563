// SPDX-License-Identifier: Apache-2.0
// A rank's end of the star over which nodes hear of each other. The session belongs to the control
// thread; the state is shared with it so that either side may go first.
#include "bootstrap/control_link.h"

#include "base/process.h"
#include "base/text.h"
#include "bootstrap/callback_gate.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/messages.h"
#include "bootstrap/session.h"

#include <atomic>
#include <future>
#include <new>
#include <utility>

namespace hccl::bootstrap {
namespace {

constexpr std::chrono::seconds kDeparture{1};

}  // namespace

struct ControlLink::State final : std::enable_shared_from_this<State>, Session::Owner {
  State(const LinkSocket& link, Callbacks given)
      : rank(link.rank),
        server_rank(link.server_rank),
        server(link.server),
        server_is_known(link.server_is_known),
        callbacks(std::move(given)) {}

  // On the control thread from here on.
  void start(LinkSocket link) {
    const Address peer = remote_address(link.socket.get());
    session = std::make_shared<Session>(std::move(link.socket), peer, *this);
    session->rank = 0;  // it speaks frames, not hellos
    if (link.seal) session->authenticate(*link.seal);
    session->keep_alive();
    const auto self = shared_from_this();
    session->start(std::move(link.heard));
  }

  void on_frame(Session&, const Frame& frame) override {
    const auto self = shared_from_this();  // whoever waits for leave() gives up its share
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
      if (const auto fault = parse<Failure>(frame.payload))
        tell(fault->code, believed(fault->text));
    }
  }

  void on_closed(Session& closed, const std::string& why) override {
    const auto self = shared_from_this();
    if (leaving) return leave();
    if (server_departed || server_rank < 0) return;
    tell(hcclSystemError,
         text(server, " is gone or out of reach (", why, ", ", closed.ends(),
              "); see its own output, and whether the network between the nodes is up"));
  }

  void on_forged(Session&) override {
    const auto self = shared_from_this();
    if (session) session->close();
    if (leaving) return leave();
    tell(hcclSocketError, text(server, ": ", kForgedFrame));
  }

  [[nodiscard]] std::string believed(const std::string& said) const {
    return server_is_known ? said : quoted(said);
  }

  void tell(hcclResult_t code, const std::string& what) {
    gate.call([&] { callbacks.fault(code, what); });
  }

  // The server's own rank stays until the server has told the others.
  void say_departed() {
    leaving = true;
    if (!session) return leave();
    session->send(FrameType::departed, {});
    if (rank != server_rank) leave();
  }

  // The others take this rank for gone: all that is left to tell them of a fault.
  void hang_up() {
    if (session) session->close();
    session.reset();
  }

  void leave() {
    if (session) session->finish();
    session.reset();
    if (!std::exchange(has_left, true)) left.set_value();
  }

  const int rank;
  const int server_rank;
  const std::string server;
  const bool server_is_known;
  const Callbacks callbacks;
  std::shared_ptr<Session> session;
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
        state->start(std::move(*link));
      });
}

ControlLink::~ControlLink() {
  if (is_forked_child()) {
    static_cast<void>(new (std::nothrow)
                          std::shared_ptr<State>(std::move(state_)));  // the parent's thread has it
    return;
  }
  state_->gate.close();
  const std::future<void> left = state_->left.get_future();
  ControlThread::instance().post(state_->departing, state_,
                                 [](void* state) { static_cast<State*>(state)->say_departed(); });
  if (!ControlThread::instance().is_current()) left.wait_for(kDeparture);
}

void ControlLink::cancel() noexcept { state_->gate.close(); }

void ControlLink::send(FrameType type, Bytes payload) {
  ControlThread::instance().post([state = state_, type, payload = std::move(payload)] {
    if (state->session) state->session->send(type, payload);
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
