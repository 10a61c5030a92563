// SPDX-License-Identifier: Apache-2.0
// Tests the unique id as text, and its exchange through a pipe and through a socket.
#include "id_exchange.h"

#include "text.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

hcclUniqueId some_id() {
  hcclUniqueId id{};
  id.length = 144;
  for (std::size_t i = 0; i < id.length; ++i)
    id.internal[i] = static_cast<std::uint8_t>(i * 37 + 11);
  return id;
}

bool same(const hcclUniqueId& left, const hcclUniqueId& right) {
  return std::memcmp(&left, &right, sizeof left) == 0;
}

LaunchEnvironment job(const std::string& name, int rank, int size) {
  return {"test", rank, size, rank, size, text(name, ".", getpid())};
}

TEST(UniqueIdText, RoundTrips) {
  EXPECT_TRUE(same(id_from_text(id_to_text(some_id())), some_id()));
}

TEST(UniqueIdText, IsRefusedWhenDamaged) {
  for (const std::string& damaged :
       {std::string(), std::string("abc"), std::string("zz"), std::string(2050, 'a')}) {
    EXPECT_THROW(static_cast<void>(id_from_text(damaged)), RunError) << damaged;
  }
}

TEST(ExchangeByPipe, PassesTheIdToEveryProcess) {
  Pipe pipe;
  const int reader = dup(pipe.read_end());
  EXPECT_TRUE(same(exchange_by_pipe(pipe, 3)(some_id()), some_id()));
  for (int i = 0; i < 3; ++i) {
    hcclUniqueId got{};
    ASSERT_EQ(read(reader, &got, sizeof got), static_cast<ssize_t>(sizeof got));
    EXPECT_TRUE(same(got, some_id()));
  }
  char more = 0;
  EXPECT_EQ(read(reader, &more, 1), 0) << "end of file after the last id";
  close(reader);
}

TEST(ExchangeByPipe, ReportsThatRankZeroExited) {
  Pipe pipe;
  pipe.close_write();
  EXPECT_THROW(static_cast<void>(exchange_by_pipe(pipe, 1)(std::nullopt)), RunError);
}

TEST(ExchangeBySocket, ServesEarlyAndLateProcesses) {
  const int size = 4;
  std::vector<hcclUniqueId> got(size);
  std::vector<std::thread> threads;
  for (int rank = size - 1; rank >= 0; --rank) {
    threads.emplace_back([&got, rank] {
      const auto mine = rank == 0 ? std::optional(some_id()) : std::nullopt;
      got[static_cast<std::size_t>(rank)] = exchange_by_socket(job("all", rank, size), 20)(mine);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const hcclUniqueId& id : got) EXPECT_TRUE(same(id, some_id()));
}

TEST(ExchangeBySocket, NamesTheMissingRank) {
  try {
    static_cast<void>(exchange_by_socket(job("alone", 0, 3), 0.2)(some_id()));
    FAIL() << "returned";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
  }
  EXPECT_THROW(static_cast<void>(exchange_by_socket(job("nobody", 1, 3), 0.2)(std::nullopt)),
               RunError);
}

TEST(ExchangeBySocket, EndsAtTheDeadlineDespiteSignals) {
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = [](int) {};
  ignore.sa_flags = SA_RESTART;  // poll() still fails, but accept4() would continue to wait
  ASSERT_EQ(sigaction(SIGUSR1, &ignore, &before), 0);
  std::atomic<bool> ended{false};
  std::thread server([&ended] {
    EXPECT_THROW(static_cast<void>(exchange_by_socket(job("signals", 0, 2), 0.2)(some_id())),
                 RunError);
    ended = true;
  });
  while (!ended) {
    pthread_kill(server.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  server.join();
  EXPECT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST(ExchangeBetweenLaunched, LeavesHcclCommIdToTheLibrary) {
  const auto environment = [](const char* name) {
    return std::string(name) == "HCCL_COMM_ID" ? "127.0.0.1:5555" : nullptr;
  };
  const IdExchange exchange = exchange_between_launched(job("address", 1, 3), environment);
  EXPECT_EQ(exchange(std::nullopt).length, 0U);
}

// An empty HCCL_COMM_ID or PMIX_NAMESPACE must count as unset: the exchange then tries the socket,
// which fails in this test.
TEST(ExchangeBetweenLaunched, TreatsAnEmptyVariableAsUnset) {
  LaunchEnvironment elsewhere = job("empty", 1, 3);
  elsewhere.local_size = 2;
  const auto environment = [](const char* name) {
    const std::string asked = name;
    return asked == "HCCL_COMM_ID" || asked == "PMIX_NAMESPACE" ? "" : nullptr;
  };
  try {
    static_cast<void>(exchange_between_launched(elsewhere, environment)(std::nullopt));
    FAIL() << "an empty address was accepted";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("no PMIx to pass"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace hccl_perf
