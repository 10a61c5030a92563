// SPDX-License-Identifier: Apache-2.0
// The file consists of a line with the format's name, a line of JSON, the floats, and a checksum of
// everything before it.
#include "checkpoint.h"

#include "errors.h"
#include "report_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include <nlohmann/json.hpp>
#include <zlib.h>

namespace ddp_trainer {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "ddp_trainer checkpoint 2";

[[noreturn]] void reject(const std::string& path, const std::string& why) {
  throw RunError(text("checkpoint ", path, " ", why));
}

std::uint32_t check_sum(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void append(std::string& file, const std::vector<float>& values) {
  file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

std::vector<float> take(std::string_view& rest, std::size_t count) {
  std::vector<float> values(count);
  std::memcpy(values.data(), rest.data(), count * sizeof(float));
  rest.remove_prefix(count * sizeof(float));
  return values;
}

json to_json(const EpochReport& epoch) {
  return {{"epoch", epoch.epoch},
          {"loss", epoch.loss},
          {"accuracy", epoch.accuracy},
          {"test_loss", epoch.test_loss},
          {"test_accuracy", epoch.test_accuracy},
          {"seconds", epoch.seconds},
          {"samples_per_second", epoch.samples_per_second},
          {"step_ms", epoch.step_ms},
          {"communication_ms", epoch.communication_ms}};
}

EpochReport epoch_from(const json& from) {
  return {from.at("epoch"),
          from.at("loss"),
          from.at("accuracy"),
          from.at("test_loss"),
          from.at("test_accuracy"),
          from.at("seconds"),
          from.at("samples_per_second"),
          from.at("step_ms"),
          from.at("communication_ms")};
}

std::string contents_of(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) reject(path, "is not a regular file");
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream contents;
  contents << stream.rdbuf();
  if (!stream) reject(path, text("cannot be read: ", std::strerror(errno)));
  return contents.str();
}

// Checks the format and the checksum of `rest`, the contents of the file. Returns the header, and
// sets `rest` to the floats.
std::string take_header(const std::string& path, std::string_view& rest) {
  const std::size_t begin = std::strlen(kFormat) + 1;
  if (rest.substr(0, begin - 1) != kFormat) reject(path, "is not a checkpoint of ddp_trainer");
  const std::size_t end = rest.find('\n', begin);
  std::uint32_t sum = 0;
  if (end == std::string_view::npos || rest.size() - end <= sizeof sum)
    reject(path, "is truncated");
  std::memcpy(&sum, rest.data() + rest.size() - sizeof sum, sizeof sum);
  rest.remove_suffix(sizeof sum);
  if (sum != check_sum(rest)) reject(path, "is damaged or truncated: its checksum is wrong");
  const std::string header(rest.substr(begin, end - begin));
  rest.remove_prefix(end + 1);
  return header;
}

Checkpoint take_checkpoint(const std::string& path, const json& header, std::string_view rest,
                           const TrainingPlan& plan, std::uint32_t data) {
  if (header.at("training") != identity(plan)) {
    reject(path, text("belongs to a different training run: the checkpoint has ",
                      header.at("training").get<std::string>(), "; this run has ", identity(plan)));
  }
  if (header.at("data") != data)
    reject(path, "belongs to a training run with different data; give the same --data");
  Checkpoint checkpoint;
  checkpoint.steps = header.at("steps");
  for (const json& epoch : header.at("epochs")) checkpoint.epochs.push_back(epoch_from(epoch));
  const std::size_t count = Layout(plan.widths).parameters();
  const std::size_t states = plan.optimizer.states();
  if (header.at("states") != states || rest.size() != (1 + states) * count * sizeof(float))
    reject(path, "does not have the length that its header implies");
  checkpoint.parameters = take(rest, count);
  for (std::size_t i = 0; i < states; ++i) checkpoint.states.push_back(take(rest, count));
  return checkpoint;
}

// Returns an optimizer state, gathered from the ranks' shards. Blocks until all ranks have called
// the function, unless `share` is the whole state.
std::vector<float> whole(Buffer<float>& share, std::size_t count, const Rank& rank) {
  const auto ranks = static_cast<std::size_t>(rank.ranks);
  std::vector<float> all(count);
  if (share.count() >= count) {
    std::copy_n(share.host(), count, all.begin());
    return all;
  }
  Buffer<float> gathered(*rank.device, share.count() * ranks);
  check(hcclAllGather(share.device(), gathered.device(), share.count(), hcclFloat32,
                      rank.communicator, rank.network->handle()),
        "hcclAllGather");
  rank.network->synchronize();
  std::copy_n(gathered.host(), count, all.begin());
  return all;
}

}  // namespace

std::string layers(const TrainingPlan& plan) {
  std::string list;
  for (const std::size_t width : plan.widths) list += text(list.empty() ? "" : "-", width);
  return "layers " + list;
}

std::string identity(const TrainingPlan& plan) {
  const OptimizerOptions& optimizer = plan.optimizer;
  return text(layers(plan), ", seed ", plan.seed, ", batch ", plan.sampling.batch, ", micro-batch ",
              plan.sampling.micro_batch, ", ",
              optimizer.kind == OptimizerOptions::Kind::sgd
                  ? text("sgd with momentum ", optimizer.momentum)
                  : std::string("adamw"),
              ", rate ", optimizer.rate, ", weight decay ", optimizer.weight_decay,
              plan.bfloat16 ? ", bfloat16 gradients" : ", float32 gradients");
}

Checkpoint read_checkpoint(const std::string& path, const TrainingPlan& plan, std::uint32_t data) {
  const std::string file = contents_of(path);
  std::string_view rest = file;
  const std::string header = take_header(path, rest);
  try {
    return take_checkpoint(path, json::parse(header), rest, plan, data);
  } catch (const json::exception& error) {
    reject(path, text("has a header that cannot be read: ", error.what()));
  }
}

void write_checkpoint(const std::string& path, const TrainingPlan& plan, std::uint32_t data,
                      const Checkpoint& checkpoint) {
  json epochs = json::array();
  for (const EpochReport& epoch : checkpoint.epochs) epochs.push_back(to_json(epoch));
  const json header{{"training", identity(plan)},
                    {"data", data},
                    {"steps", checkpoint.steps},
                    {"states", checkpoint.states.size()},
                    {"epochs", epochs}};
  std::string file = text(kFormat, '\n', header.dump(), '\n');
  append(file, checkpoint.parameters);
  for (const std::vector<float>& state : checkpoint.states) append(file, state);
  const std::uint32_t sum = check_sum(file);
  file.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  hccl_perf::write_report("--checkpoint", path, file);
}

Checkpoint save(Trainer& trainer, const Rank& rank) {
  const std::size_t count = trainer.layout().parameters();
  Checkpoint checkpoint;
  checkpoint.steps = trainer.steps_done();
  checkpoint.parameters.assign(trainer.parameters().host(), trainer.parameters().host() + count);
  for (const auto& state : trainer.optimizer().states())
    checkpoint.states.push_back(whole(*state, count, rank));
  return checkpoint;
}

void restore(const Checkpoint& checkpoint, Trainer& trainer) {
  std::copy(checkpoint.parameters.begin(), checkpoint.parameters.end(),
            trainer.parameters().host());
  const Range range = trainer.optimizer().range();
  const std::size_t end = std::min(range.end, checkpoint.parameters.size());
  for (std::size_t i = 0; i < checkpoint.states.size() && range.begin < end; ++i) {
    std::copy_n(checkpoint.states[i].data() + range.begin, end - range.begin,
                trainer.optimizer().states().at(i)->host());
  }
  trainer.resume_after(checkpoint.steps);
}

}  // namespace ddp_trainer
