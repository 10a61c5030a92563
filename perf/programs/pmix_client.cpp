// SPDX-License-Identifier: Apache-2.0
// Calls libpmix through dlsym.
#include "pmix_client.h"

#include "text.h"

#include <cstdlib>
#include <memory>

#include <dlfcn.h>

namespace hccl_perf {

using pmix_abi::Process;
using pmix_abi::Value;

struct PmixClient::Library {
  using Init = int (*)(Process*, void* info, std::size_t info_count);
  using Finalize = int (*)(const void* info, std::size_t info_count);
  using Put = int (*)(std::uint8_t scope, const char* key, Value* value);
  using Commit = int (*)();
  using Fence = int (*)(const Process*, std::size_t count, const void* info,
                        std::size_t info_count);
  using Get = int (*)(const Process*, const char* key, const void* info, std::size_t info_count,
                      Value**);

  Library() : handle(dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) throw RunError(text("PMIx is not usable: ", dlerror()));
    load(init, "PMIx_Init");
    load(finalize, "PMIx_Finalize");
    load(put, "PMIx_Put");
    load(commit, "PMIx_Commit");
    load(fence, "PMIx_Fence");
    load(get, "PMIx_Get");
  }

  template <class Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function == nullptr) throw RunError(text("PMIx is not usable: libpmix.so.2 has no ", name));
  }

  void* handle;  // never closed, because the library's threads and exit handlers may still run
  Init init = nullptr;
  Finalize finalize = nullptr;
  Put put = nullptr;
  Commit commit = nullptr;
  Fence fence = nullptr;
  Get get = nullptr;
};

namespace {

// Frees memory that PMIx_Get has allocated.
struct Freed {
  void operator()(Value* value) const {
    const std::unique_ptr<char, Freed> text(
        value->type == pmix_abi::kStringType ? value->data.string : nullptr);
    (*this)(static_cast<void*>(value));
  }
  void operator()(void* memory) const {
    std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc): malloc() allocated it
  }
};
using ValuePointer = std::unique_ptr<Value, Freed>;

void check(int status, const char* call) {
  if (status != pmix_abi::kSuccess)
    throw RunError(text("PMIx is not usable: ", call, " returned ", status));
}

}  // namespace

PmixClient::PmixClient() : library_(std::make_unique<Library>()) {
  check(library_->init(&self_, nullptr, 0), "PMIx_Init");
}

PmixClient::~PmixClient() { library_->finalize(nullptr, 0); }

int PmixClient::rank() const { return static_cast<int>(self_.rank); }

int PmixClient::job_size() const {
  Process job = self_;
  job.rank = pmix_abi::kWildcardRank;
  Value* found = nullptr;
  check(library_->get(&job, pmix_abi::kJobSize, nullptr, 0, &found), "PMIx_Get of the job size");
  const ValuePointer value(found);
  const bool is_number = value->type == pmix_abi::kUint32Type;
  const int size = is_number ? static_cast<int>(value->data.number) : 0;
  if (!is_number) throw RunError("PMIx is not usable: the job size is not a number");
  return size;
}

std::string PmixClient::share(const std::string& key, const std::string& value) {
  if (self_.rank == 0) {
    std::string copy = value;
    Value put{};
    put.type = pmix_abi::kStringType;
    put.data.string = copy.data();
    check(library_->put(pmix_abi::kGlobalScope, key.c_str(), &put), "PMIx_Put");
    check(library_->commit(), "PMIx_Commit");
  }
  check(library_->fence(nullptr, 0, nullptr, 0), "PMIx_Fence");
  if (self_.rank == 0) return value;

  Process root = self_;
  root.rank = 0;
  Value* found = nullptr;
  check(library_->get(&root, key.c_str(), nullptr, 0, &found), "PMIx_Get of the unique id");
  const ValuePointer got(found);
  const bool is_string = got->type == pmix_abi::kStringType && got->data.string != nullptr;
  if (!is_string) throw RunError("PMIx is not usable: it returned a unique id that is not text");
  return got->data.string;
}

}  // namespace hccl_perf
