// SPDX-License-Identifier: Apache-2.0
// Gloo's side of the comparison across nodes: all-reduces of float over its TCP transport on
// loopback, one process for each rank. Implements the command protocol of command.h.
//   gloo_collectives RANKS
// If Gloo was built with TLS, the variable GLOO_COLLECTIVES_TLS may name a folder with key.pem and
// certificate.pem; the ranks then use TLS.
// `variant` selects the algorithm: 0, 1 = ring and bcube of gloo::allreduce; 2, 3, 4 =
// AllreduceRing, AllreduceRingChunked and AllreduceHalvingDoubling; 5, 6, 7 = the same without
// Gloo's thread (at most 64 KiB): each rank polls its own connections. Variants 2 to 7 sum in
// place, and restore the input once every 100 sums, before the values of two ranks can overflow.
#include "child.h"
#include "command.h"
#include "processes.h"
#include "session.h"
#include "shape.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#if __has_include(<gloo/transport/tcp/tls/device.h>)
#include <gloo/transport/tcp/tls/device.h>
#endif

namespace peers {
namespace {

constexpr int kFunctions = 2;   // variants of gloo::allreduce
constexpr int kAlgorithms = 3;  // number of algorithm classes
constexpr int kVariants = kFunctions + 2 * kAlgorithms;
// The maximum message size in bytes for polling ranks. They send before they receive, so they would
// block forever on a message that is larger than the kernel's buffers.
constexpr std::size_t kMostPolled = std::size_t{64} << 10;
constexpr std::uint64_t kSumsInPlace = 100;  // 2 ranks double a float 127 times before it overflows

// The board, and the directory in which the ranks of one driver find each other. The directory is
// removed after the ranks have joined.
struct Meeting {
  CommandBoard board;
  std::array<char, 256> folder{};
};

std::shared_ptr<gloo::transport::Device> make_device() {
  gloo::transport::tcp::attr attributes("127.0.0.1");
#if __has_include(<gloo/transport/tcp/tls/device.h>)
  if (const char* const folder = std::getenv("GLOO_COLLECTIVES_TLS"); folder != nullptr) {
    const std::string path(folder);
    return gloo::transport::tcp::tls::CreateDevice(
        attributes, path + "/key.pem", path + "/certificate.pem", path + "/certificate.pem", "");
  }
#endif
  return gloo::transport::tcp::CreateDevice(attributes);
}

// Connects all ranks. The parameter is a template's, because Gloo's newer versions take a shared
// pointer to the store.
template <class Context>
void connect_all(Context& context, const std::string& folder,
                 std::shared_ptr<gloo::transport::Device> device) {
  const auto store = std::make_shared<gloo::rendezvous::FileStore>(folder);
  if constexpr (requires { context.connectFullMesh(store, device); }) {
    context.connectFullMesh(store, device);
  } else {
    context.connectFullMesh(*store, device);
  }
}

class GlooEngine final : public Engine {
 public:
  GlooEngine(Meeting& meeting, int rank)
      : rank_(rank), ranks_(meeting.board.ranks), device_(make_device()) {
    auto context = std::make_shared<gloo::rendezvous::Context>(rank_, ranks_);
    connect_all(*context, meeting.folder.data(), device_);
    contexts_ = std::make_unique<gloo::rendezvous::ContextFactory>(context);
  }

  void prepare(const Command& command) override {
    if (command.collective != Collective::all_reduce || command.in_place)
      throw std::runtime_error("this driver supports only all_reduce, out of place");
    if (command.variant < 0 || command.variant >= kVariants)
      throw std::runtime_error("variant must be between 0 and " + std::to_string(kVariants - 1));
    if (command.variant >= kFunctions + kAlgorithms && command.bytes > kMostPolled) {
      throw std::runtime_error("variants that poll support at most " + std::to_string(kMostPolled) +
                               " bytes");
    }
    const Shape shape = shape_of(command, rank_, ranks_);
    algorithm_.reset();
    function_.reset();
    send_.resize(shape.send_count);
    recv_.assign(shape.recv_count, kPoison);
    fill_for_timing(command, rank_, send_);
    // Makes new connections, because the old ones may still carry notifications for the buffers of
    // the previous algorithm.
    context_ = contexts_->makeContext(device_);
    if (command.variant < kFunctions)
      make_function(command.variant);
    else
      make_algorithm(command.variant - kFunctions);
  }

  void run(const Command& /*command*/, std::uint64_t iterations) override {
    for (std::uint64_t i = 0; i < iterations; ++i) {
      if (function_ != nullptr) {
        gloo::allreduce(*function_);
        continue;
      }
      if (i % kSumsInPlace == 0) std::copy(send_.begin(), send_.end(), recv_.begin());
      algorithm_->run();
    }
  }

  std::uint64_t verify(const Command& command) override {
    prepare(command);
    const std::vector<float> input = make_input(shape_of(command, rank_, ranks_), rank_);
    std::copy(input.begin(), input.end(), send_.begin());
    run(command, 1);
    return count_wrong(command, rank_, ranks_, recv_);
  }

 private:
  void make_function(int number) {
    using Algorithm = gloo::AllreduceOptions::Algorithm;
    function_ = std::make_unique<gloo::AllreduceOptions>(context_);
    function_->setAlgorithm(number == 0 ? Algorithm::RING : Algorithm::BCUBE);
    function_->setInput(send_.data(), send_.size());
    function_->setOutput(recv_.data(), recv_.size());
    function_->setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
  }

  void make_algorithm(int number) {
    for (int peer = 0; number >= kAlgorithms && peer < ranks_; ++peer)
      if (peer != rank_) context_->getPair(peer)->setSync(true, true);
    const std::vector<float*> buffers{recv_.data()};
    const int count = static_cast<int>(recv_.size());
    switch (number % kAlgorithms) {
      case 0:
        algorithm_ = std::make_unique<gloo::AllreduceRing<float>>(context_, buffers, count);
        break;
      case 1:
        algorithm_ = std::make_unique<gloo::AllreduceRingChunked<float>>(context_, buffers, count);
        break;
      default:
        algorithm_ =
            std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context_, buffers, count);
    }
  }

  int rank_;
  int ranks_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::unique_ptr<gloo::rendezvous::ContextFactory> contexts_;
  std::shared_ptr<gloo::Context> context_;
  std::vector<float> send_;
  std::vector<float> recv_;
  std::unique_ptr<gloo::AllreduceOptions> function_;
  std::unique_ptr<gloo::Algorithm> algorithm_;
};

void make_folder(Meeting& meeting) {
  const std::string path = std::filesystem::temp_directory_path() / "gloo_collectives-XXXXXX";
  if (path.size() >= meeting.folder.size()) throw std::runtime_error("TMPDIR is too long");
  std::copy(path.begin(), path.end(), meeting.folder.begin());
  if (mkdtemp(meeting.folder.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "mkdtemp");
}

std::string title() {
  return "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) +
         "." + std::to_string(GLOO_VERSION_PATCH);
}

int run_ranks(int ranks) {
  const hccl_perf::Shared<Meeting> meeting;
  initialise(meeting->board, ranks);
  make_folder(*meeting);
  const int status = run_processes("gloo_collectives", ranks, [&](int rank) {
    GlooEngine engine(*meeting, rank);
    pthread_barrier_wait(&meeting->board.barrier);
    if (rank == 0) std::filesystem::remove_all(meeting->folder.data());
    return serve(meeting->board, rank, engine, title());
  });
  std::filesystem::remove_all(meeting->folder.data());  // in case not all ranks have joined
  return status;
}

}  // namespace
}  // namespace peers

int main(int argc, char** argv) {
  return peers::main_of_driver("gloo_collectives", argc, argv, peers::run_ranks);
}
