// SPDX-License-Identifier: Apache-2.0
// Short runs of ddp_trainer, started as users start it, and their results.
#pragma once

#include "run_program.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ddp_trainer {

using hccl_perf::Outcome;
using hccl_perf::Program;
using Words = hccl_perf::CommandLine;

// A temporary folder. The destructor removes it.
class Folder {
 public:
  Folder() {
    std::string path = std::filesystem::temp_directory_path() / "trainer.XXXXXX";
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make a folder");
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      found.push_back(entry.path().filename());
    return found;
  }

 private:
  std::filesystem::path path_;
};

inline std::string contents_of(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  return all.str();
}

inline Words command(const Words& arguments) {
  Words words{hccl_perf::program_path("ddp_trainer")};
  words.append(arguments);
  return words;
}

inline Outcome run(const Words& arguments, const Program::Variables& variables = {}) {
  return Program(command(arguments), variables).wait();
}

// The results that must agree: losses and accuracies of all epochs, and a checksum of the weights.
struct Curve {
  std::vector<double> losses;
  std::vector<double> test_accuracies;
  std::string weights;
  bool operator==(const Curve&) const = default;
};

inline Curve curve_in(const std::string& json_path) {
  const auto json = nlohmann::json::parse(contents_of(json_path));
  Curve curve;
  for (const auto& epoch : json.at("epochs")) {
    curve.losses.push_back(epoch.at("loss"));
    curve.test_accuracies.push_back(epoch.at("test_accuracy"));
  }
  curve.weights = json.at("weights_crc32");
  return curve;
}

// Trains a network, which must succeed, and returns the results.
inline Curve train(const Words& arguments) {
  const Folder folder;
  Words all = arguments;
  all.append({"--json", folder.file("run.json")});
  const Outcome outcome = run(all);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return outcome.status == 0 ? curve_in(folder.file("run.json")) : Curve{};
}

}  // namespace ddp_trainer
