// SPDX-License-Identifier: Apache-2.0
// The part of PMIx that gives the number of processes of the job, and passes a string from rank 0
// to the other ranks. libpmix is loaded at run time, so programs also run on machines without it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace hccl_perf {

// The part of PMIx's public ABI that the client uses (PMIx standard 2 and later). A test compares
// this part with <pmix.h> if that header is installed.
namespace pmix_abi {

inline constexpr int kSuccess = 0;
inline constexpr std::uint8_t kGlobalScope = 3;
inline constexpr std::uint16_t kStringType = 3;
inline constexpr std::uint16_t kUint32Type = 14;
inline constexpr std::uint32_t kWildcardRank = UINT32_MAX - 1;
inline constexpr const char* kJobSize = "pmix.job.size";

struct Process {
  char name_space[256];
  std::uint32_t rank;
};

struct Value {
  std::uint16_t type;
  union Data {
    char* string;
    std::uint32_t number;
    void* largest[3];  // as large as the largest member in <pmix.h>: two pointers and a char
  } data;
};

}  // namespace pmix_abi

class PmixClient {
 public:
  // Connects to the server that the launcher runs on this node. Throws RunError.
  PmixClient();
  ~PmixClient();
  PmixClient(const PmixClient&) = delete;
  PmixClient& operator=(const PmixClient&) = delete;

  [[nodiscard]] int rank() const;
  [[nodiscard]] int job_size() const;

  // Returns the `value` of rank 0 on every rank. Other ranks' values are ignored. Every rank of the
  // job must call share(). Blocks until all ranks have called it.
  [[nodiscard]] std::string share(const std::string& key, const std::string& value);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  pmix_abi::Process self_{};
};

}  // namespace hccl_perf
