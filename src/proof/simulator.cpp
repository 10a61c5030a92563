// SPDX-License-Identifier: Apache-2.0
// A discrete-event simulation.
#include "proof/simulator.h"

#include "schedule/chunking.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

namespace hccl::proof {
namespace {

using schedule::Action;
using schedule::Chunking;
using schedule::Span;
using schedule::Step;
using schedule::Transfer;

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr double kMostSlices = 32;

// A send in progress. Its slices become ready, leave and arrive in order.
struct SimulatedFlow {
  std::size_t from = 0;  // indices of programs
  std::size_t to = 0;
  const Transfer* send = nullptr;
  double slice_bytes = 0;
  std::uint32_t slices = 0;
  std::uint32_t ready = 0;
  std::uint32_t left = 0;
  std::uint32_t arrived = 0;
  bool queued = false;
  // The index of the matching receive among the receives of the target's step; kNone until the
  // target reaches the step that contains it.
  std::size_t receive = kNone;
};

// A receive of a program's current step.
struct Receive {
  const Transfer* transfer = nullptr;
  std::size_t flow = kNone;  // kNone for a copy, and until the sender starts
  std::uint32_t slices = 0;
  std::uint32_t written = 0;
  std::size_t after = kNone;   // the previous receive that writes the same span
  std::size_t before = kNone;  // the next receive that writes the same span
};

// The schedule of one rank in one channel.
struct Program {
  Program(const Shape& shape_in, const Schedule& schedule_in, std::uint64_t bytes)
      : shape(&shape_in), schedule(&schedule_in), chunking(shape_in, schedule_in, bytes, 1) {}

  [[nodiscard]] double bytes(const Span& span) const {
    return static_cast<double>(chunking.elements(span));
  }

  const Shape* shape;
  const Schedule* schedule;
  Chunking chunking;
  std::size_t step = 0;
  double end = 0;  // latest end of the step's transfers so far
  double folds_until = 0;
  std::size_t left = 0;  // unfinished transfers of the step
  std::vector<Receive> receives{};
  std::vector<std::size_t> forwards{};  // indices of flows
  std::map<std::int32_t, std::deque<std::size_t>>
      early{};  // flows that still wait for a receive, by sender
};

// A port through which slices leave: the NIC of a node or, for ranks on the same node, the sending
// rank's own link. Flows take turns on it.
struct NetworkCard {
  std::deque<std::size_t> flows{};
  bool busy = false;
};

enum class What : std::uint8_t { enters, is_ready, has_arrived, is_free };

struct SimulatedEvent {
  double time = 0;
  std::size_t order = 0;  // breaks ties in favour of the event created first
  What what = What::enters;
  std::size_t which = 0;  // index of a program, flow or port

  friend bool operator>(const SimulatedEvent& a, const SimulatedEvent& b) {
    return std::tie(a.time, a.order) > std::tie(b.time, b.order);
  }
};

class Simulation {
 public:
  Simulation(std::span<const Shape> shapes, std::span<const Schedule> schedules,
             const Cluster& cluster, std::uint64_t bytes)
      : cluster_(cluster), ranks_(shapes[0].ranks()) {
    programs_.reserve(shapes.size());
    for (std::size_t i = 0; i < shapes.size(); ++i)
      programs_.emplace_back(shapes[i], schedules[i], bytes);
    cards_ = index(std::ranges::max(cluster.node_of_rank)) + 1;
    ports_.resize(cards_ + ranks_);
    arriving_until_.resize(cards_);
  }

  double run() {
    for (std::size_t i = 0; i < programs_.size(); ++i) enter_step(i, 0);
    while (!events_.empty()) {
      const SimulatedEvent event = events_.top();
      events_.pop();
      handle(event);
    }
    double last = 0;
    for (const Program& program : programs_) {
      if (program.step < program.schedule->steps.size())
        return std::numeric_limits<double>::infinity();
      last = std::max(last, program.end);
    }
    return last;
  }

 private:
  [[nodiscard]] static std::size_t index(std::int32_t number) {
    return static_cast<std::size_t>(number);
  }

  void push(double time, What what, std::size_t which) {
    events_.push({time, made_++, what, which});
  }

  void handle(const SimulatedEvent& event) {
    switch (event.what) {
      case What::enters:
        ++programs_[event.which].step;
        return enter_step(event.which, event.time);
      case What::is_ready:
        ++flows_[event.which].ready;
        return offer(event.which, event.time);
      case What::has_arrived:
        ++flows_[event.which].arrived;
        return write(flows_[event.which].to, flows_[event.which].receive, event.time);
      case What::is_free:
        ports_[event.which].busy = false;
        return transmit(event.which, event.time);
    }
  }

  [[nodiscard]] std::uint32_t slices_of(double bytes) const {
    const double slices = std::ceil(bytes / static_cast<double>(cluster_.slice));
    return static_cast<std::uint32_t>(std::clamp(slices, 1.0, kMostSlices));
  }

  void enter_step(std::size_t number, double now) {
    Program& program = programs_[number];
    program.receives.clear();
    program.forwards.clear();
    if (program.step == program.schedule->steps.size()) return;
    const Step& step = program.schedule->steps[program.step];
    program.left = step.sends.count + step.receives.count;
    for (const Transfer& receive : program.schedule->receives(step)) expect(program, receive);
    for (const Transfer& send : program.schedule->sends(step)) start(number, send, now);
    for (std::size_t i = 0; i < program.receives.size(); ++i) write(number, i, now);
  }

  void expect(Program& program, const Transfer& transfer) {
    const std::size_t number = program.receives.size();
    Receive receive{&transfer, kNone, slices_of(program.bytes(transfer.span))};
    for (std::size_t i = 0; i < number; ++i) {
      if (program.receives[i].transfer->span == transfer.span) receive.after = i;
    }
    if (receive.after != kNone) program.receives[receive.after].before = number;
    const auto early = program.early.find(transfer.peer);
    if (early != program.early.end() && !early->second.empty()) {
      receive.flow = early->second.front();
      early->second.pop_front();
      flows_[receive.flow].receive = number;
    }
    program.receives.push_back(receive);
  }

  void start(std::size_t number, const Transfer& send, double now) {
    Program& program = programs_[number];
    const double bytes = program.bytes(send.span);
    const std::size_t target = number / ranks_ * ranks_ + index(send.peer);
    const std::uint32_t slices = slices_of(bytes);
    const std::size_t made = flows_.size();
    flows_.push_back({number, target, &send, bytes / slices, slices, send.forward ? 0 : slices});
    Program& to = programs_[target];
    const auto waiting = std::ranges::find_if(to.receives, [&](const Receive& receive) {
      return receive.flow == kNone && receive.transfer->peer == program.shape->rank;
    });
    if (waiting != to.receives.end()) {
      waiting->flow = made;
      flows_[made].receive = static_cast<std::size_t>(waiting - to.receives.begin());
    } else {
      to.early[program.shape->rank].push_back(made);
    }
    if (send.forward) program.forwards.push_back(made);
    offer(made, now);
  }

  // Puts a flow into the queue of its port if a slice is ready.
  void offer(std::size_t number, double now) {
    SimulatedFlow& flow = flows_[number];
    if (flow.queued || flow.left == flow.ready) return;
    flow.queued = true;
    const std::size_t port = port_of(flow);
    ports_[port].flows.push_back(number);
    transmit(port, now);
  }

  [[nodiscard]] std::int32_t node_of(std::size_t program) const {
    return cluster_.node_of_rank[program % ranks_];
  }
  [[nodiscard]] std::size_t port_of(const SimulatedFlow& flow) const {
    const bool near = node_of(flow.from) == node_of(flow.to);
    return near ? cards_ + flow.from % ranks_ : index(node_of(flow.from));
  }

  void transmit(std::size_t number, double now) {
    NetworkCard& port = ports_[number];
    if (port.busy || port.flows.empty()) return;
    const std::size_t which = port.flows.front();
    port.flows.pop_front();
    SimulatedFlow& flow = flows_[which];
    const bool near = number >= cards_;
    const LinkModel& link = near ? cluster_.memory : cluster_.network;
    const double duration = flow.slice_bytes / link.bandwidth;
    double arrival = now + duration + link.latency;
    if (!near) {
      double& until = arriving_until_[index(node_of(flow.to))];
      arrival = std::max(arrival, until + duration);
      until = arrival;
    }
    port.busy = true;
    push(now + duration, What::is_free, number);
    push(arrival, What::has_arrived, which);
    ++flow.left;
    flow.queued = flow.left < flow.ready;
    if (flow.queued) port.flows.push_back(which);
    if (flow.left == flow.slices) finish_transfer(flow.from, now + duration);
  }

  void finish_transfer(std::size_t number, double time) {
    Program& program = programs_[number];
    program.end = std::max(program.end, time);
    if (--program.left == 0) push(program.end, What::enters, number);
  }

  // Writes the slices of a receive that can be written now. Then does the same for the next receive
  // of the same span, which may have waited for them.
  void write(std::size_t number, std::size_t which, double now) {
    if (which == kNone) return;  // the target has not reached the step, or no receive follows
    Program& program = programs_[number];
    Receive& receive = program.receives[which];
    const bool local = receive.transfer->peer == program.shape->rank;
    const std::uint32_t arrived = local                   ? receive.slices
                                  : receive.flow == kNone ? 0
                                                          : flows_[receive.flow].arrived;
    const std::uint32_t allowed =
        receive.after == kNone ? receive.slices : program.receives[receive.after].written;
    const double bytes = program.bytes(receive.transfer->span) / receive.slices;
    for (; receive.written < std::min(arrived, allowed); ++receive.written) {
      double time = now;
      if (receive.transfer->action == Action::reduce && cluster_.reduction > 0) {
        time = std::max(now, program.folds_until) + bytes / cluster_.reduction;
        program.folds_until = time;
      }
      if (receive.before == kNone) forward(program, receive.transfer->span, time);
      if (receive.written + 1 == receive.slices) finish_transfer(number, time);
    }
    write(number, receive.before, now);
  }

  void forward(const Program& program, const Span& span, double time) {
    for (const std::size_t flow : program.forwards) {
      if (flows_[flow].send->span == span) push(time, What::is_ready, flow);
    }
  }

  const Cluster& cluster_;
  std::size_t ranks_;
  std::size_t cards_ = 0;
  std::vector<Program> programs_;
  std::deque<SimulatedFlow> flows_;
  std::vector<NetworkCard> ports_;      // the NICs of the nodes, then the links of the ranks
  std::vector<double> arriving_until_;  // when each NIC's last arrival ends
  std::priority_queue<SimulatedEvent, std::vector<SimulatedEvent>, std::greater<>> events_;
  std::size_t made_ = 0;
};

}  // namespace

double simulate(std::span<const Shape> shapes, std::span<const Schedule> schedules,
                const Cluster& cluster, std::uint64_t bytes) {
  return Simulation(shapes, schedules, cluster, bytes).run();
}

}  // namespace hccl::proof
