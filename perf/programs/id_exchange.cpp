// SPDX-License-Identifier: Apache-2.0
// Exchanges the unique id over a pipe or through PMIx.
#include "id_exchange.h"

#include "pmix_client.h"
#include "text.h"

#include <cerrno>
#include <cstring>

namespace hccl_perf {
namespace {

constexpr const char* kPmixKey = "hccl.perf.unique_id";
constexpr double kSocketSeconds = 60;

// The error text if rank 0's process ends before it has written the id.
constexpr const char* kRootGone = "rank 0 ended before it sent the unique id";

hcclUniqueId read_id(int descriptor) {
  hcclUniqueId id{};
  auto* bytes = reinterpret_cast<char*>(&id);
  std::size_t have = 0;
  while (have < sizeof id) {
    const ssize_t got = read(descriptor, bytes + have, sizeof id - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw RunError(kRootGone);
    have += static_cast<std::size_t>(got);
  }
  return id;
}

void write_id(int descriptor, const hcclUniqueId& id) {
  // The id is shorter than PIPE_BUF, so the write is never split.
  ssize_t put = write(descriptor, &id, sizeof id);
  while (put < 0 && errno == EINTR) put = write(descriptor, &id, sizeof id);
  if (put != static_cast<ssize_t>(sizeof id)) {
    throw RunError(
        text("cannot pass the unique id to the other processes: ", std::strerror(errno)));
  }
}

hcclUniqueId exchange_by_pmix(const std::optional<hcclUniqueId>& mine) {
  PmixClient client;
  const std::string shared = client.share(kPmixKey, mine ? id_to_text(*mine) : std::string());
  return mine ? *mine : id_from_text(shared);
}

int hex_digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  throw RunError("the unique id received from rank 0 is corrupt; set HCCL_COMM_ID");
}

}  // namespace

std::string id_to_text(const hcclUniqueId& id) {
  const char* digits = "0123456789abcdef";
  std::string written;
  for (std::size_t i = 0; i < id.length && i < sizeof id.internal; ++i) {
    written += digits[id.internal[i] >> 4];
    written += digits[id.internal[i] & 15];
  }
  return written;
}

hcclUniqueId id_from_text(const std::string& written) {
  hcclUniqueId id{};
  id.length = written.size() / 2;
  if (written.empty() || written.size() % 2 != 0 || id.length > sizeof id.internal) {
    throw RunError("the unique id received from rank 0 is corrupt; set HCCL_COMM_ID");
  }
  for (std::size_t i = 0; i < id.length; ++i) {
    id.internal[i] =
        static_cast<std::uint8_t>(hex_digit(written[2 * i]) * 16 + hex_digit(written[2 * i + 1]));
  }
  return id;
}

IdExchange exchange_by_pipe(Pipe& pipe, int others) {
  return [&pipe, others](const std::optional<hcclUniqueId>& mine) {
    if (!mine) {
      const hcclUniqueId id = read_id(pipe.read_end());
      pipe.close_read();
      return id;
    }
    for (int i = 0; i < others; ++i) write_id(pipe.write_end(), *mine);
    pipe.close_write();
    return *mine;
  };
}

IdExchange exchange_between_launched(const LaunchEnvironment& launch,
                                     const Environment& environment) {
  if (launch.size == 1 || value_of(environment, "HCCL_COMM_ID") != nullptr) {
    return [](const std::optional<hcclUniqueId>& mine) { return mine.value_or(hcclUniqueId{}); };
  }
  const bool has_pmix = value_of(environment, "PMIX_NAMESPACE") != nullptr;
  return [launch, has_pmix](const std::optional<hcclUniqueId>& mine) {
    if (!has_pmix) return exchange_by_socket(launch, kSocketSeconds)(mine);
    try {
      return exchange_by_pmix(mine);
    } catch (const RunError&) {
      if (!launch.on_one_node()) throw;
    }
    return exchange_by_socket(launch, kSocketSeconds)(mine);
  };
}

}  // namespace hccl_perf
