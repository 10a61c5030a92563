// SPDX-License-Identifier: Apache-2.0
// Discrete events in the order of time: a send becomes ready, a message arrives.
#include "schedule/simulator.h"

#include "schedule/chunking.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <queue>

namespace hccl::schedule {
namespace {

struct Message {
  double first_slice = 0;  // has arrived
  double last = 0;
};

// One rank in one channel.
struct Program {
  Program(const Shape& shape_in, const Schedule& schedule_in, std::uint64_t bytes)
      : shape(&shape_in), schedule(&schedule_in), chunking(shape_in, schedule_in, bytes, 1) {}

  const Shape* shape;
  const Schedule* schedule;
  Chunking chunking;
  std::size_t step = 0;
  double start = 0;
  double end = 0;  // of what the step has done so far
  std::uint32_t received = 0;
  std::uint32_t sends_left = 0;
  double busy_folding_until = 0;
  std::map<Span, Message, bool (*)(const Span&, const Span&)> written{before};  // in this step
  std::map<std::int32_t, std::deque<Message>> inbox{};                          // by sender

  static bool before(const Span& a, const Span& b) {
    return std::tie(a.role, a.slot, a.first_chunk, a.chunk_count) <
           std::tie(b.role, b.slot, b.first_chunk, b.chunk_count);
  }
  [[nodiscard]] bool finished() const { return step == schedule->steps.size(); }
  [[nodiscard]] const Step& current() const { return schedule->steps[step]; }
};

struct Event {
  double time = 0;
  std::size_t order = 0;  // of two at one time, the one made first
  std::size_t program = 0;
  const Transfer* send = nullptr;  // becomes ready; else a message has come
  double not_before_end = 0;       // of a forwarding send: when its last slice is there

  friend bool operator>(const Event& a, const Event& b) {
    return std::tie(a.time, a.order) > std::tie(b.time, b.order);
  }
};

class Simulation {
 public:
  Simulation(std::span<const Shape> shapes, std::span<const Schedule> schedules,
             const Cluster& cluster, std::uint64_t bytes)
      : cluster_(cluster),
        ranks_(static_cast<std::size_t>(shapes[0].rank_count)),
        slice_(static_cast<double>(cluster.slice)) {
    programs_.reserve(shapes.size());
    for (std::size_t i = 0; i < shapes.size(); ++i)
      programs_.emplace_back(shapes[i], schedules[i], bytes);
    const auto nodes = static_cast<std::size_t>(
        1 + *std::max_element(cluster.node_of_rank.begin(), cluster.node_of_rank.end()));
    leaving_.resize(nodes);
    arriving_.resize(nodes);
    local_.resize(ranks_);
  }

  double run() {
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      enter_step(i);
      advance(i);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.send != nullptr) send(event);
      advance(event.program);
    }
    double last = 0;
    for (const Program& program : programs_)
      last = std::max(last,
                      program.finished() ? program.end : std::numeric_limits<double>::infinity());
    return last;
  }

 private:
  void push(double time, std::size_t program, const Transfer* send, double not_before_end) {
    events_.push({time, made_++, program, send, not_before_end});
  }

  void enter_step(std::size_t index) {
    Program& program = programs_[index];
    if (program.finished()) return;
    program.start = program.end;
    program.received = 0;
    program.sends_left = program.current().sends.count;
    program.written.clear();
    for (const Transfer& send : program.schedule->sends(program.current())) {
      if (!send.forward) push(program.start, index, &send, 0);
    }
  }

  void send(const Event& event) {
    Program& from = programs_[event.program];
    const std::int32_t rank = from.shape->rank;
    const std::int32_t peer = event.send->peer;
    const auto channel = event.program / ranks_;
    const auto bytes = static_cast<double>(from.chunking.elements(event.send->span));
    const std::int32_t node = node_of(rank);
    const bool near = node == node_of(peer);
    const Link& link = near ? cluster_.memory : cluster_.network;
    double& out = near ? local_[static_cast<std::size_t>(rank)] : leaving_[index(node)];
    const double begin = std::max(event.time, out);
    out = std::max(begin + bytes / link.bandwidth, event.not_before_end);
    double last = out + link.latency;
    if (!near) {
      double& in = arriving_[index(node_of(peer))];
      last = std::max(last, in + bytes / link.bandwidth);
      in = last;
    }
    const double first = std::max(begin + link.latency, last - bytes / link.bandwidth) +
                         std::min(bytes, slice_) / link.bandwidth;
    const std::size_t target = channel * ranks_ + index(peer);
    programs_[target].inbox[rank].push_back({first, last});
    push(last, target, nullptr, 0);
    from.end = std::max(from.end, out);
    --from.sends_left;
  }

  void advance(std::size_t index) {
    Program& program = programs_[index];
    while (!program.finished()) {
      const auto receives = program.schedule->receives(program.current());
      while (program.received < receives.size() && receive(program, receives[program.received])) {
        ++program.received;
        forward(index);
      }
      if (program.received < receives.size() || program.sends_left > 0) return;
      ++program.step;
      enter_step(index);
    }
  }

  bool receive(Program& program, const Transfer& receive) {
    Message message{program.start, program.start};
    if (receive.peer != program.shape->rank) {
      auto& inbox = program.inbox[receive.peer];
      if (inbox.empty()) return false;
      message = inbox.front();
      inbox.pop_front();
      message.first_slice = std::max(message.first_slice, program.start);
      message.last = std::max(message.last, program.start);
    }
    if (receive.action == Action::reduce && cluster_.reduction > 0) {
      const auto bytes = static_cast<double>(program.chunking.elements(receive.span));
      const double folding = bytes / cluster_.reduction;
      message.first_slice += std::min(bytes, slice_) / cluster_.reduction;
      message.last = std::max(message.last, program.busy_folding_until) + folding;
      program.busy_folding_until = message.last;
    }
    Message& written = program.written[receive.span];
    written.first_slice = std::max(written.first_slice, message.first_slice);
    written.last = std::max(written.last, message.last);
    program.end = std::max(program.end, message.last);
    return true;
  }

  // What the receive just taken was the last to write goes on.
  void forward(std::size_t index) {
    const Program& program = programs_[index];
    const auto receives = program.schedule->receives(program.current());
    const Span& span = receives[program.received - 1].span;
    for (std::size_t i = program.received; i < receives.size(); ++i) {
      if (receives[i].span == span) return;
    }
    for (const Transfer& send : program.schedule->sends(program.current())) {
      if (!send.forward || send.span != span) continue;
      const Message& written = program.written.at(span);
      const double rest = std::min(static_cast<double>(program.chunking.elements(span)), slice_) /
                          cluster_.network.bandwidth;
      push(written.first_slice, index, &send, written.last + rest);
    }
  }

  [[nodiscard]] static std::size_t index(std::int32_t number) {
    return static_cast<std::size_t>(number);
  }
  [[nodiscard]] std::int32_t node_of(std::int32_t rank) const {
    return cluster_.node_of_rank[index(rank)];
  }

  const Cluster& cluster_;
  std::size_t ranks_;
  double slice_;
  std::vector<Program> programs_;
  std::vector<double> leaving_;  // when each node's card is free again
  std::vector<double> arriving_;
  std::vector<double> local_;  // and each rank's memory link
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::size_t made_ = 0;
};

}  // namespace

double simulate(std::span<const Shape> shapes, std::span<const Schedule> schedules,
                const Cluster& cluster, std::uint64_t bytes) {
  return Simulation(shapes, schedules, cluster, bytes).run();
}

}  // namespace hccl::schedule
