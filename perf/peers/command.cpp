// SPDX-License-Identifier: Apache-2.0
// Parses one command line of the drivers: a verb, then key=value words.
#include "command.h"

#include <array>
#include <sstream>
#include <stdexcept>

namespace peers {
namespace {

constexpr std::array<const char*, kCollectives> kNames = {
    "all_reduce", "broadcast", "all_gather", "reduce_scatter",
    "reduce",     "alltoall",  "sendrecv",   "barrier"};

std::uint64_t parse_number(const std::string& word, const std::string& value) {
  std::size_t used = 0;
  const bool digit = !value.empty() && value.front() >= '0' && value.front() <= '9';
  const std::uint64_t number = digit ? std::stoull(value, &used) : 0;
  if (!digit || used != value.size()) throw std::invalid_argument("not a number: " + word);
  return number;
}

Collective parse_collective(const std::string& word, const std::string& value) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (value == kNames[i]) return static_cast<Collective>(i);
  throw std::invalid_argument("unknown collective: " + word);
}

bool parse_choice(const std::string& word, const std::string& value, const char* no,
                  const char* yes) {
  if (value != no && value != yes)
    throw std::invalid_argument("expected " + std::string(no) + " or " + yes + ": " + word);
  return value == yes;
}

void apply(Command& command, const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (key == "collective")
    command.collective = parse_collective(word, value);
  else if (key == "bytes")
    command.bytes = parse_number(word, value);
  else if (key == "iterations")
    command.iterations = parse_number(word, value);
  else if (key == "warmup")
    command.warmup = parse_number(word, value);
  else if (key == "batch")
    command.batch = parse_number(word, value);
  else if (key == "variant")
    command.variant = static_cast<int>(parse_number(word, value));
  else if (key == "place")
    command.in_place = parse_choice(word, value, "out", "in");
  else if (key == "mode")
    command.latency = parse_choice(word, value, "queued", "latency");
  else
    throw std::invalid_argument("unknown word: " + word);
}

}  // namespace

const char* collective_name(Collective collective) {
  return kNames.at(static_cast<std::size_t>(collective));
}

Command parse_command(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  Command command;
  if (verb == "run" || verb == "verify")
    command.verb = verb == "run" ? Verb::run : Verb::verify;
  else
    throw std::invalid_argument("expected run or verify: " + line);
  for (std::string word; words >> word;) apply(command, word);
  if (command.iterations == 0)
    throw std::invalid_argument("iterations must be at least 1: " + line);
  return command;
}

}  // namespace peers
