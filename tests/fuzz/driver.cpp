// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer: on its corpus, then on mutated inputs. Prints the seed of
// the mutations. Saves an input that crashes the program or runs longer than kSecondsPerInput; pass
// the saved file as an argument to run that input alone.
#include "fuzz.h"
#include "mutator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

// Sets a function that sanitizers call before they terminate the program. The symbol is null in
// builds without a sanitizer.
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming): the sanitizers' name
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

namespace fs = std::filesystem;
using hccl::fuzz::Input;

constexpr unsigned kSecondsPerInput = 60;

struct Current {
  const Input* input = nullptr;
  std::string file;
};

Current& current() {
  static Current instance;
  return instance;
}

void print(const char* text) { static_cast<void>(!write(STDERR_FILENO, text, std::strlen(text))); }

void save_input() {
  const Input* const input = std::exchange(current().input, nullptr);
  if (input == nullptr) return;
  const char* const path = current().file.c_str();
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool written =
      fd >= 0 && write(fd, input->data(), input->size()) == static_cast<ssize_t>(input->size());
  print(written ? "\nthe input is saved; to run only this input, pass this file as the argument: "
                : "\nthe input cannot be saved to ");
  print(path);
  print("\n");
}

void save_and_die(int signal_number) {
  print(signal_number == SIGALRM ? "\nan input took too long" : "\nan input crashed the program");
  save_input();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void run(const Input& input) {
  current().input = &input;
  hccl::fuzz::accepted = false;
  alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  current().input = nullptr;
}

Input read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Runs an input. Returns whether the outcome matches the file's name: the target must accept
// valid-... and refuse invalid-..., and may do either with other names.
bool replay(const fs::path& path, const Input& input) {
  run(input);
  const std::string name = path.filename().string();
  if (name.starts_with("valid-") == hccl::fuzz::accepted ||
      !(name.starts_with("valid-") || name.starts_with("invalid-"))) {
    return true;
  }
  std::fprintf(stderr, "%s was %s\n", path.c_str(),
               hccl::fuzz::accepted ? "accepted" : "not accepted");
  return false;
}

int fuzz(const fs::path& corpus, long iterations, std::uint64_t seed) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(corpus)) files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<Input> inputs{{}};
  bool good = true;
  for (const fs::path& file : files) {
    inputs.push_back(read_file(file));
    good = replay(file, inputs.back()) && good;
  }
  std::fprintf(stderr, "%zu inputs of the corpus; seed %llu, %ld iterations\n", files.size(),
               static_cast<unsigned long long>(seed), iterations);
  hccl::fuzz::Mutator mutator(seed);
  long accepted = 0;
  for (long i = 0; i < iterations; ++i) {
    const Input input = mutator.next(inputs);
    run(input);
    if (hccl::fuzz::accepted) ++accepted;
  }
  std::fprintf(stderr, "%ld of the mutated inputs were accepted\n", accepted);
  if (files.empty()) std::fprintf(stderr, "no corpus in %s\n", corpus.c_str());
  return good && !files.empty() ? 0 : 1;
}

const char* environment_or(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

}  // namespace

// The arguments are either the corpus folder, the number of iterations and the seed, or input
// files.
int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s <corpus folder> [iterations] [seed] | <file>...\n", argv[0]);
    return 2;
  }
  current().file = std::string(environment_or("TMPDIR", "/tmp")) + "/" +
                   fs::path(argv[0]).filename().string() + "-" + std::to_string(getpid());
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) {
    if (__sanitizer_set_death_callback != nullptr && number != SIGALRM && number != SIGABRT)
      continue;
    signal(number, save_and_die);
  }
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_input);
  if (fs::is_directory(argv[1])) {
    const long iterations = argc > 2 ? std::atol(argv[2]) : 10'000;
    const char* const chosen = argc > 3 ? argv[3] : std::getenv("HCCL_TEST_SEED");
    const std::uint64_t seed =
        chosen != nullptr ? std::strtoull(chosen, nullptr, 0) : std::random_device{}();
    return fuzz(argv[1], iterations, seed);
  }
  bool good = true;
  for (int i = 1; i < argc; ++i) good = replay(argv[i], read_file(argv[i])) && good;
  return good ? 0 : 1;
}
