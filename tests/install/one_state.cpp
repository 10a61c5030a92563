// SPDX-License-Identifier: Apache-2.0
// Loads the library under two names. The effects of calls through one name must be visible through
// the other.
#include <synapse_api.h>

#include <cstdint>
#include <cstdio>

#include <dlfcn.h>

namespace {

template <class Function>
Function* symbol(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return nullptr;
  }
  return reinterpret_cast<Function*>(dlsym(handle, name));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto* count_by_second = symbol<decltype(synDeviceGetCount)>(argv[2], "synDeviceGetCount");
  auto* initialize_by_first = symbol<decltype(synInitialize)>(argv[1], "synInitialize");
  if (count_by_second == nullptr || initialize_by_first == nullptr) return 2;
  std::uint32_t count = 0;
  if (count_by_second(&count) != synUninitialized) return 3;
  if (initialize_by_first() != synSuccess) return 4;
  return count_by_second(&count) == synSuccess && count > 0 ? 0 : 5;
}
