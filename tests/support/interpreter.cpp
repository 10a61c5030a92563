// SPDX-License-Identifier: Apache-2.0
// Interprets the ranks' schedules in turn. A message is a vector of words in a queue.
#include "interpreter.h"

#include "schedule/chunking.h"

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>

namespace hccl::test {
namespace {

using schedule::Role;
using schedule::Span;
using schedule::Transfer;
using Message = std::vector<std::uint64_t>;

// The buffers of a rank. In place, the shorter of input and output is part of the longer one.
class Buffers {
 public:
  Buffers(const schedule::Shape& shape, const std::vector<std::uint64_t>& input,
          std::uint64_t count)
      : input_(input),
        own_output_(shape.has_output() ? count * shape.blocks_in_output() : 0),
        input_begin_(input_.data()),
        output_begin_(own_output_.data()),
        output_count_(own_output_.size()) {
    if (!shape.aliased()) return;
    const std::uint64_t own_block = count * static_cast<std::uint64_t>(shape.rank);
    const bool input_is_longer = shape.blocks_in_input() > shape.blocks_in_output();
    const bool output_is_longer = shape.blocks_in_input() < shape.blocks_in_output();
    if (input_is_longer) {
      output_begin_ = input_begin_ + own_block;
    } else {
      input_begin_ = output_begin_ + (output_is_longer ? own_block : 0);
      std::copy(input.begin(), input.end(), input_begin_);
    }
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  [[nodiscard]] std::uint64_t* begin(Role role) const {
    return role == Role::input ? input_begin_ : output_begin_;
  }
  [[nodiscard]] std::vector<std::uint64_t> output() const {
    return {output_begin_, output_begin_ + output_count_};
  }

 private:
  std::vector<std::uint64_t> input_;
  std::vector<std::uint64_t> own_output_;
  std::uint64_t* input_begin_;
  std::uint64_t* output_begin_;
  std::size_t output_count_;
};

using Wires = std::map<std::pair<std::int32_t, std::int32_t>, std::deque<Message>>;

// The schedule of one rank in one channel, and its state.
class Program {
 public:
  Program(const schedule::Shape& shape, const schedule::Schedule& schedule, const Buffers& buffers,
          std::uint64_t count, std::uint32_t alignment)
      : shape_(shape),
        schedule_(schedule),
        buffers_(buffers),
        chunking_(shape, schedule, count, alignment),
        scratch_(chunking_.scratch_elements()) {}

  [[nodiscard]] bool finished() const { return step_ == schedule_.steps.size(); }

  // Runs the current step, or the part of it for which messages have arrived. Returns whether the
  // rank has made progress.
  bool advance(Wires& wires, hcclDataType_t type, hcclRedOp_t operation) {
    if (finished()) return false;
    const schedule::Step& step = schedule_.steps[step_];
    const auto receives = schedule_.receives(step);
    bool further = false;
    if (!std::exchange(entered_, true)) {
      further = true;
      for (const Transfer& send : schedule_.sends(step)) {
        if (!send.forward) wires[{shape_.rank, send.peer}].push_back(read(send.span));
      }
    }
    for (; received_ < receives.size(); ++received_) {
      const Transfer& receive = receives[received_];
      Message message;
      if (receive.peer == shape_.rank) {
        message = read(receive.operand);
      } else {
        auto& wire = wires[{receive.peer, shape_.rank}];
        if (wire.empty()) return further;
        message = std::move(wire.front());
        wire.pop_front();
      }
      apply(receive, std::move(message), type, operation);
      forward(wires);
      further = true;
    }
    received_ = 0;
    entered_ = false;
    ++step_;
    return true;
  }

 private:
  template <class Function>
  void for_runs(const Span& span, Function function) {
    std::uint64_t* const begin =
        span.role == Role::scratch ? scratch_.data() : buffers_.begin(span.role);
    const std::uint64_t elements = chunking_.elements(span);
    for (std::uint64_t at = 0; at < elements;) {
      const schedule::Elements run = chunking_.run(span, at);
      const std::uint64_t taken = std::min(run.count, elements - at);
      function(begin + run.first, at, taken);
      at += taken;
    }
  }

  [[nodiscard]] Message read(const Span& span) {
    Message message(chunking_.elements(span));
    for_runs(span, [&](const std::uint64_t* from, std::uint64_t at, std::uint64_t count) {
      std::copy_n(from, count, message.data() + at);
    });
    return message;
  }

  void apply(const Transfer& receive, Message message, hcclDataType_t type, hcclRedOp_t operation) {
    if (message.size() != chunking_.elements(receive.span))
      throw std::runtime_error("a message and the span that receives it differ in length");
    if (receive.action == schedule::Action::reduce) {
      const bool local = receive.peer == shape_.rank;
      const Message other = read(local ? receive.span : receive.operand);
      std::vector<std::uint64_t> pair(2);
      for (std::size_t i = 0; i < message.size(); ++i) {
        pair = {message[i], other[i]};
        message[i] = fold(type, operation, pair);
      }
    }
    for_runs(receive.span, [&](std::uint64_t* to, std::uint64_t at, std::uint64_t count) {
      std::copy_n(message.data() + at, count, to);
    });
  }

  // Forwards the span that the current receive has written, unless a later receive of the step
  // writes the same span.
  void forward(Wires& wires) {
    const schedule::Step& step = schedule_.steps[step_];
    const auto receives = schedule_.receives(step);
    const Span& span = receives[received_].span;
    for (std::size_t i = received_ + 1; i < receives.size(); ++i) {
      if (receives[i].span == span) return;
    }
    for (const Transfer& send : schedule_.sends(step)) {
      if (send.forward && send.span == span) wires[{shape_.rank, send.peer}].push_back(read(span));
    }
  }

  const schedule::Shape& shape_;
  const schedule::Schedule& schedule_;
  const Buffers& buffers_;
  schedule::Chunking chunking_;
  std::vector<std::uint64_t> scratch_;
  std::size_t step_ = 0;
  std::size_t received_ = 0;
  bool entered_ = false;
};

void run(std::deque<Program>& programs, hcclDataType_t type, hcclRedOp_t operation) {
  Wires wires;
  for (bool further = true; further;) {
    further = false;
    for (Program& program : programs) further = program.advance(wires, type, operation) || further;
  }
  const auto finished = [](const Program& program) { return program.finished(); };
  if (!std::all_of(programs.begin(), programs.end(), finished))
    throw std::runtime_error("the schedules do not complete");
}

}  // namespace

Words interpret(const std::vector<AllRanks>& channels, hcclDataType_t type, hcclRedOp_t operation,
                const Words& inputs, std::uint64_t count, std::uint32_t alignment) {
  const auto& shapes = channels.at(0).shapes;
  const bool averages = operation == hcclAvg && shapes.size() > 1;
  std::deque<Buffers> buffers;
  for (std::size_t rank = 0; rank < shapes.size(); ++rank) {
    std::vector<std::uint64_t> input = inputs.at(rank);
    if (averages && is_prescaled(type)) {
      for (std::uint64_t& word : input) word = scaled(type, word, prescale_of(shapes.size()));
    }
    buffers.emplace_back(shapes[rank], input, count);
  }
  const hcclRedOp_t folded = operation == hcclAvg ? hcclSum : operation;
  for (const AllRanks& channel : channels) {
    std::deque<Program> programs;
    for (std::size_t rank = 0; rank < shapes.size(); ++rank)
      programs.emplace_back(channel.shapes[rank], channel.schedules[rank], buffers[rank], count,
                            alignment);
    run(programs, type, folded);
  }
  Words outputs;
  for (const Buffers& of_rank : buffers) outputs.push_back(of_rank.output());
  if (averages) {
    for (auto& output : outputs) {
      for (std::uint64_t& word : output) word = average_of_sum(type, word, shapes.size());
    }
  }
  return outputs;
}

}  // namespace hccl::test
