// SPDX-License-Identifier: Apache-2.0
// A program that makes one of the typical mistakes of new users and prints only codes. The
// library's messages on stderr are the only explanation.
#include <hccl.h>
#include <synapse_api.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t kCount = 1000;
constexpr std::uint64_t kBytes = kCount * sizeof(float);

// The state of one process. Resources that the mistake leaves open are released when the process
// exits.
struct Rank {
  int number = 0;
  int from_peer = -1;  // read end of a pipe; to_peer is a write end
  int to_peer = -1;
  synDeviceId device = 0;
  synStreamHandle stream = nullptr;
  hcclComm_t comm = nullptr;
  std::uint64_t memory = 0;  // address of 2 * kBytes of device memory

  [[nodiscard]] void* data(std::uint64_t offset = 0) const {
    return reinterpret_cast<void*>(memory + offset);
  }
  // Prints and returns the code. The program continues after an error, as many programs do.
  int report(const char* call, int code) const {
    std::printf("rank %d: %s -> %d\n", number, call, code);
    std::fflush(stdout);
    return code;
  }
  void require_success(const char* call, int code) const {
    if (code == 0) return;
    report(call, code);
    std::exit(1);
  }
};

void pass_on(const Rank& rank, const void* what, std::size_t bytes) {
  if (write(rank.to_peer, what, bytes) != static_cast<ssize_t>(bytes)) std::exit(3);
}

void take(const Rank& rank, void* what, std::size_t bytes) {
  if (read(rank.from_peer, what, bytes) != static_cast<ssize_t>(bytes)) std::exit(3);
}

// Blocks until the other rank has ended.
void await_end(const Rank& rank) {
  char end = 0;
  while (read(rank.from_peer, &end, 1) > 0) continue;
}

// Returns the id that rank 0 created.
hcclUniqueId agree_on_id(const Rank& rank) {
  hcclUniqueId id{};
  if (rank.number == 0) {
    rank.require_success("hcclGetUniqueId", hcclGetUniqueId(&id));
    pass_on(rank, &id, sizeof(id));
  } else {
    take(rank, &id, sizeof(id));
  }
  return id;
}

void start(Rank& rank) {
  rank.require_success("synInitialize", synInitialize());
  rank.require_success("synDeviceAcquire", synDeviceAcquire(&rank.device, nullptr));
  rank.require_success("synStreamCreateGeneric",
                       synStreamCreateGeneric(&rank.stream, rank.device, 0));
  rank.require_success("synDeviceMalloc",
                       synDeviceMalloc(rank.device, 2 * kBytes, 0, 0, &rank.memory));
}

void join(Rank& rank) {
  start(rank);
  rank.require_success("hcclCommInitRank",
                       hcclCommInitRank(&rank.comm, 2, agree_on_id(rank), rank.number));
}

void join_alone(Rank& rank) {
  start(rank);
  hcclUniqueId id{};
  rank.require_success("hcclGetUniqueId", hcclGetUniqueId(&id));
  rank.require_success("hcclCommInitRank", hcclCommInitRank(&rank.comm, 1, id, 0));
}

int all_reduce(const Rank& rank, const void* from, void* to, std::size_t count,
               hcclDataType_t type = hcclFloat32) {
  return rank.report("hcclAllReduce",
                     hcclAllReduce(from, to, count, type, hcclSum, rank.comm, rank.stream));
}

void synchronize(const Rank& rank) {
  rank.report("synStreamSynchronize", synStreamSynchronize(rank.stream));
}

struct Mistake {
  const char* name;
  int ranks;
  void (*make)(Rank&);
};

std::vector<Mistake>& mistakes() {
  static std::vector<Mistake> all;
  return all;
}

bool list(const Mistake& mistake) noexcept {
  mistakes().push_back(mistake);
  return true;
}

// Declares a mistake that `ranks` (1 or 2) processes make. The function's body follows the macro.
#define MISTAKE(name, ranks)                                                   \
  void name(Rank& rank);                                                       \
  [[maybe_unused]] const bool name##_listed = list({#name, (ranks), &(name)}); \
  void name(Rank& rank)

MISTAKE(wrong_count, 2) {
  join(rank);
  all_reduce(rank, rank.data(), rank.data(), kCount + static_cast<std::size_t>(rank.number));
  synchronize(rank);
}

MISTAKE(wrong_type, 2) {
  join(rank);
  all_reduce(rank, rank.data(), rank.data(), kCount, rank.number == 0 ? hcclFloat32 : hcclInt32);
  synchronize(rank);
}

MISTAKE(wrong_root, 2) {
  join(rank);
  rank.report("hcclBroadcast", hcclBroadcast(rank.data(), rank.data(), kCount, hcclFloat32,
                                             rank.number, rank.comm, rank.stream));
  synchronize(rank);
}

MISTAKE(root_out_of_range, 1) {
  join_alone(rank);
  rank.report("hcclBroadcast", hcclBroadcast(rank.data(), rank.data(), kCount, hcclFloat32, 5,
                                             rank.comm, rank.stream));
}

MISTAKE(garbage_pointer, 1) {
  join_alone(rank);
  all_reduce(rank, reinterpret_cast<void*>(16), rank.data(), kCount);
}

MISTAKE(null_buffers, 1) {
  join_alone(rank);
  all_reduce(rank, nullptr, nullptr, kCount);
}

MISTAKE(stream_of_another_device, 1) {
  start(rank);
  const synStreamHandle first = rank.stream;
  join_alone(rank);  // acquires a second device
  rank.stream = first;
  all_reduce(rank, rank.data(), rank.data(), kCount);
}

MISTAKE(destroyed_stream, 1) {
  join_alone(rank);
  rank.require_success("synStreamDestroy", synStreamDestroy(rank.stream));
  all_reduce(rank, rank.data(), rank.data(), kCount);
}

MISTAKE(destroyed_communicator, 1) {
  join_alone(rank);
  rank.require_success("hcclCommDestroy", hcclCommDestroy(rank.comm));
  all_reduce(rank, rank.data(), rank.data(), kCount);
}

MISTAKE(rank_out_of_range, 1) {
  start(rank);
  hcclUniqueId id{};
  rank.require_success("hcclGetUniqueId", hcclGetUniqueId(&id));
  rank.report("hcclCommInitRank", hcclCommInitRank(&rank.comm, 2, id, 2));
}

MISTAKE(sizes_differ, 2) {
  start(rank);
  const hcclUniqueId id = agree_on_id(rank);
  rank.report("hcclCommInitRank", hcclCommInitRank(&rank.comm, 2 + rank.number, id, rank.number));
}

MISTAKE(rank_claimed_twice, 2) {
  start(rank);
  const hcclUniqueId id = agree_on_id(rank);
  rank.report("hcclCommInitRank", hcclCommInitRank(&rank.comm, 2, id, 0));
}

// Rank 0 creates the id and exits before rank 1 joins.
MISTAKE(id_of_an_earlier_run, 2) {
  start(rank);
  const hcclUniqueId id = agree_on_id(rank);
  if (rank.number == 0) return;
  await_end(rank);
  rank.report("hcclCommInitRank", hcclCommInitRank(&rank.comm, 2, id, rank.number));
}

MISTAKE(missing_rank, 2) {
  start(rank);
  const hcclUniqueId id = agree_on_id(rank);
  if (rank.number == 1) return await_end(rank);
  rank.report("hcclCommInitRank", hcclCommInitRank(&rank.comm, 2, id, rank.number));
}

MISTAKE(forgotten_group_end, 2) {
  join(rank);
  if (rank.number == 1) rank.require_success("hcclGroupStart", hcclGroupStart());
  all_reduce(rank, rank.data(), rank.data(), kCount);
  synchronize(rank);
  rank.report("hcclCommDestroy", hcclCommDestroy(rank.comm));
}

MISTAKE(group_end_without_start, 1) {
  join_alone(rank);
  rank.report("hcclGroupEnd", hcclGroupEnd());
}

MISTAKE(send_without_receive, 2) {
  join(rank);
  if (rank.number == 1) return await_end(rank);
  rank.report("hcclSend", hcclSend(rank.data(), kCount, hcclFloat32, 1, rank.comm, rank.stream));
  synchronize(rank);
}

MISTAKE(late_rank, 2) {
  join(rank);
  if (rank.number == 1) return await_end(rank);
  all_reduce(rank, rank.data(), rank.data(), kCount);
  synchronize(rank);
}

// Rank 1 dies only after rank 0 has queued its call. Otherwise, that call itself would fail.
MISTAKE(killed_peer, 2) {
  join(rank);
  char go = 0;
  if (rank.number == 1) {
    take(rank, &go, 1);
    raise(SIGKILL);
  }
  all_reduce(rank, rank.data(), rank.data(), kCount);
  pass_on(rank, &go, 1);
  synchronize(rank);
}

MISTAKE(initialized_twice, 1) {
  start(rank);
  rank.report("synInitialize", synInitialize());
}

MISTAKE(not_initialized, 1) {
  rank.report("synDeviceAcquire", synDeviceAcquire(&rank.device, nullptr));
}

MISTAKE(no_device, 1) {
  rank.require_success("synInitialize", synInitialize());
  hcclUniqueId id{};
  rank.require_success("hcclGetUniqueId", hcclGetUniqueId(&id));
  rank.report("hcclCommInitRank", hcclCommInitRank(&rank.comm, 1, id, 0));
}

// The test sets a variable to a wrong value or misspells its name.
void initialize(Rank& rank) { rank.report("synInitialize", synInitialize()); }
MISTAKE(bad_value, 1) { initialize(rank); }
MISTAKE(misspelt_variable, 1) { initialize(rank); }

MISTAKE(unknown_algorithm, 1) { initialize(rank); }

MISTAKE(overlapping_buffers, 1) {
  join_alone(rank);
  all_reduce(rank, rank.data(), rank.data(kBytes / 2), kCount);
}

MISTAKE(freed_buffer, 1) {
  join_alone(rank);
  rank.require_success("synDeviceFree", synDeviceFree(rank.device, rank.memory, 0));
  all_reduce(rank, rank.data(), rank.data(), kCount);
}

MISTAKE(freed_twice, 1) {
  start(rank);
  rank.require_success("synDeviceFree", synDeviceFree(rank.device, rank.memory, 0));
  rank.report("synDeviceFree", synDeviceFree(rank.device, rank.memory, 0));
}

MISTAKE(held_device, 2) {
  rank.require_success("synInitialize", synInitialize());
  char go = 0;
  if (rank.number == 1) take(rank, &go, 1);
  rank.report("synDeviceAcquireByModuleId", synDeviceAcquireByModuleId(&rank.device, 3));
  if (rank.number == 0) pass_on(rank, &go, 1);
  if (rank.number == 0) static_cast<void>(read(rank.from_peer, &go, 1));
}

MISTAKE(copy_out_of_range, 1) {
  start(rank);
  std::vector<float> host(4 * kCount);
  rank.report("synMemCopyAsync",
              synMemCopyAsync(rank.stream, reinterpret_cast<std::uint64_t>(host.data()), 4 * kBytes,
                              rank.memory, HOST_TO_DRAM));
}

MISTAKE(copy_to_nowhere, 1) {
  start(rank);
  rank.report("synMemCopyAsync",
              synMemCopyAsync(rank.stream, rank.memory, kBytes, 16, DRAM_TO_HOST));
  synchronize(rank);
}

MISTAKE(no_reduction, 1) {
  join_alone(rank);
  rank.report("hcclAllReduce", hcclAllReduce(rank.data(), rank.data(), kCount, hcclFloat32,
                                             hcclOpNone, rank.comm, rank.stream));
}

MISTAKE(compute_graph, 1) {
  start(rank);
  synGraphHandle graph = nullptr;
  rank.report("synGraphCreate", synGraphCreate(&graph, synDeviceGaudi2));
}

int run(const Mistake& mistake) {
  std::array<std::array<int, 2>, 2> pipes{};  // indexed by the rank that reads
  for (auto& ends : pipes) {
    if (pipe(ends.data()) != 0) return 3;
  }
  std::array<pid_t, 2> children{};
  for (int number = 0; number < mistake.ranks; ++number) {
    const auto own = static_cast<std::size_t>(number);
    children[own] = fork();  // before the first call into the library
    if (children[own] != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Rank rank{.number = number, .from_peer = pipes[own][0], .to_peer = pipes[1 - own][1]};
    close(pipes[own][1]);
    close(pipes[1 - own][0]);
    mistake.make(rank);
    std::exit(0);
  }
  for (const auto& ends : pipes) {
    for (const int end : ends) close(end);
  }
  for (int number = 0; number < mistake.ranks; ++number)
    waitpid(children[static_cast<std::size_t>(number)], nullptr, 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (const Mistake& mistake : mistakes()) {
    if (argc == 2 && std::strcmp(argv[1], mistake.name) == 0) return run(mistake);
    if (argc == 2 && std::strcmp(argv[1], "--list") == 0) std::printf("%s\n", mistake.name);
  }
  return argc == 2 && std::strcmp(argv[1], "--list") == 0 ? 0 : 2;
}
