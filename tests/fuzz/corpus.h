// SPDX-License-Identifier: Apache-2.0
// Writes the inputs of one fuzz target to a folder and replaces older inputs.
#pragma once

#include "fuzz.h"

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace hccl::fuzz {

namespace fs = std::filesystem;

class Corpus {
 public:
  Corpus(const fs::path& root, const char* target) : folder_(root / target) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void add(const std::string& name, std::span<const std::byte> bytes) const {
    std::ofstream file(folder_ / name, std::ios::binary);
    for (const std::byte byte : bytes) file.put(static_cast<char>(byte));
  }
  void add(const std::string& name, const std::string& content) const {
    add(name, std::as_bytes(std::span(content)));
  }
  void add(const std::string& name, const std::vector<Step>& play) const {
    add(name, write_play(play));
  }

 private:
  fs::path folder_;
};

// Writes the corpora of the RDMA targets.
void add_verbs(const fs::path& root);

}  // namespace hccl::fuzz
