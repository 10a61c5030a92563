// SPDX-License-Identifier: Apache-2.0
// Guards every use of OpenSSL. OpenSSL queues errors for a thread that the program may use too, and
// its memory may be freed while the process exits.
#pragma once

#include <cstddef>
#include <shared_mutex>
#include <span>
#include <string>

namespace hccl::crypto {

// Must exist while a thread calls OpenSSL. Discards the errors that OpenSSL has queued for this
// thread, before the calls and after them. If a thread has called exit(), it waits for the object
// before it frees OpenSSL's memory. A thread may hold only one object at a time.
class OpensslCall {
 public:
  // The first object initialises OpenSSL.
  OpensslCall();
  ~OpensslCall();
  OpensslCall(const OpensslCall&) = delete;
  OpensslCall& operator=(const OpensslCall&) = delete;

  // Returns false if the process is exiting, and OpenSSL must not be called any more.
  [[nodiscard]] bool is_possible() const { return is_possible_; }
  // Throws Error(hcclInvalidUsage) unless is_possible().
  void require() const;

  // Returns the reason code (ERR_GET_REASON) of the latest error, or 0 if there is none.
  [[nodiscard]] static int latest_reason() noexcept;
  // Returns OpenSSL's text for the latest error.
  [[nodiscard]] static std::string latest_text();
  // Throws std::bad_alloc if the latest error is a lack of memory, and otherwise
  // Error(hcclSystemError) with OpenSSL's text.
  [[noreturn]] static void throw_latest(const std::string& what);

 private:
  std::shared_lock<std::shared_mutex> lock_;
  bool is_possible_;
};

// Returns the bytes in the type that OpenSSL's functions take.
[[nodiscard]] inline const unsigned char* octets_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace hccl::crypto
