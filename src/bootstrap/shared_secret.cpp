// SPDX-License-Identifier: Apache-2.0
// Rejects a secret file that other users can read or change, as ssh does with private keys.
#include "bootstrap/shared_secret.h"

#include "base/config.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/file_descriptor.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "crypto/keys.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hccl::bootstrap {
namespace {

constexpr std::size_t kLongestSecret = 4096;
constexpr std::size_t kShortSecret = 16;
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

[[noreturn]] void refuse_file(const std::string& path, const std::string& why) {
  throw Error(hcclInvalidArgument, text("HCCL_SECRET_FILE=", quoted(path), ' ', why));
}

void check_file(const std::string& path, const FileDescriptor& file) {
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0) {
    refuse_file(path, text("cannot be read: ", system_error_text(errno), "; name a file that user ",
                           geteuid(), " may read"));
  }
  if (!S_ISREG(status.st_mode))
    refuse_file(path, "is not a regular file; name one that holds the secret");
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    refuse_file(path, text("belongs to user ", status.st_uid, ", who can change it; chown it to ",
                           "user ", geteuid()));
  }
  if ((status.st_mode & kOthers) != 0) refuse_file(path, "is open to other users; chmod it to 600");
}

// Returns the contents of the file, or its first kLongestSecret + 1 bytes if it is longer. Does not
// rely on the size that fstat() reports, because some files (in /proc) report a size of 0 and are
// read in several pieces.
SecretBytes read_start(const std::string& path, const FileDescriptor& file) {
  SecretBytes buffer(kLongestSecret + 1);
  std::size_t length = 0;
  while (length < buffer.size()) {
    const ssize_t count = read(file.get(), buffer.data() + length, buffer.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      refuse_file(path, text("cannot be read: ", system_error_text(errno), "; name another file"));
    }
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
  }
  buffer.resize(length);
  return buffer;
}

SecretBytes read_secret_file(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO would block until a writer opens it.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  check_file(path, file);
  SecretBytes secret = read_start(path, file);
  if (secret.size() > kLongestSecret) {
    refuse_file(path, text("is larger than ", kLongestSecret, " bytes; name a file that holds ",
                           "nothing but the secret"));
  }
  const auto ends_with = [&](char end) {
    return !secret.empty() && secret.back() == static_cast<std::byte>(end);
  };
  if (ends_with('\n')) {
    secret.pop_back();
    if (ends_with('\r')) secret.pop_back();
  }
  if (secret.empty()) refuse_file(path, "is empty; write the secret into it");
  return secret;
}

SecretBytes shared_secret(const Config& config) {
  const auto secret = std::as_bytes(std::span(config.secret));
  if (config.secret_file.empty()) return {secret.begin(), secret.end()};
  if (!config.secret.empty()) {
    throw Error(hcclInvalidArgument,
                "HCCL_SECRET and HCCL_SECRET_FILE are both set; unset HCCL_SECRET");
  }
  return read_secret_file(config.secret_file);
}

void warn_once(std::atomic<bool>& warned, const std::string& message) {
  if (!warned.exchange(true)) log(LogLevel::warning, "bootstrap", message);
}

bool others_can_reach(const UniqueId& id) {
  return !std::ranges::all_of(id.addresses, [](const Address& one) { return one.is_loopback(); });
}

void check_short_secret(const UniqueId& id, const Config& config, std::size_t length) {
  static std::atomic<bool> warned{false};
  if (config.require_secret && others_can_reach(id)) {
    throw Error(hcclInvalidArgument,
                text("HCCL_REQUIRE_SECRET=1, but the secret of HCCL_COMM_ID has only ", length,
                     " bytes and can be guessed; make one with (umask 077; head -c 24 ",
                     "/dev/urandom | base64 > job.secret), and set HCCL_SECRET_FILE to a copy of ",
                     "that file on every rank"));
  }
  warn_once(warned,
            text("the secret of HCCL_COMM_ID has only ", length, " bytes and can be guessed; ",
                 "use at least ", kShortSecret, " random bytes"));
}

// Without a secret, the kernel identifies the users of processes on this machine, but nothing
// authenticates processes on other machines.
void check_without_secret(const UniqueId& id, const Config& config) {
  static std::atomic<bool> warned{false};
  if (config.require_secret && others_can_reach(id)) {
    throw Error(hcclInvalidArgument, text("HCCL_REQUIRE_SECRET=1, but the ranks that join at ",
                                          id.addresses.front().to_text(),
                                          " share no secret; on every rank, set HCCL_SECRET_FILE "
                                          "to the path of a file with the same secret"));
  }
  if (std::ranges::all_of(id.addresses, is_of_this_machine)) return;
  warn_once(
      warned,
      text("HCCL_COMM_ID is ", id.addresses.front().to_text(), ", on another machine, and ",
           "the ranks share no secret: anyone who answers at this address or intercepts the "
           "connection can read and change their data; on every rank, set HCCL_SECRET_FILE to the "
           "path of a file with the same secret"));
}

// Stretches the secret only once for several communicators.
SecretBytes stretched(const SecretBytes& secret) {
  static std::mutex mutex;
  // Never freed, because other threads may still use them when the process exits.
  static SecretBytes& known = *new SecretBytes;
  static SecretBytes& key = *new SecretBytes;
  const std::lock_guard lock(mutex);
  if (known != secret) {
    key = crypto::stretch_key(secret, "hccl-secret");
    known = secret;
  }
  return key;
}

}  // namespace

SecretBytes join_secret(const UniqueId& id) {
  const auto settings = config();
  SecretBytes secret = shared_secret(*settings);
  if (id.kind == UniqueId::Kind::with_secret) return secret;
  if (secret.empty()) {
    check_without_secret(id, *settings);
  } else if (secret.size() < kShortSecret) {
    check_short_secret(id, *settings, secret.size());
  }
  return secret;
}

JoinKey::JoinKey(const UniqueId& id) : shared_(join_secret(id)) {
  if (id.kind == UniqueId::Kind::with_secret) of_id_.assign(id.secret.begin(), id.secret.end());
  is_secret_ = !of_id_.empty() || !shared_.empty();
}

JoinKey::JoinKey(SecretBytes session_key, bool is_secret)
    : is_secret_(is_secret), session_key_(std::move(session_key)) {}

const SecretBytes& JoinKey::session_key() const {
  if (!session_key_.empty()) return session_key_;
  if (!is_secret_) {
    session_key_.resize(crypto::kKeySize);
  } else if (of_id_.empty()) {
    session_key_ = stretched(shared_);
  } else {
    SecretBytes both = of_id_;
    if (!shared_.empty()) {
      const SecretBytes more = stretched(shared_);
      both.insert(both.end(), more.begin(), more.end());
    }
    session_key_ = crypto::derive_key(both, "hccl-id");
  }
  return session_key_;
}

std::uint16_t JoinKey::check() const {
  Sha256 hash;
  hash.update(std::as_bytes(std::span("hccl-secret-check")));
  hash.update(of_id_);
  hash.update(shared_);
  const Digest digest = hash.finish();
  return WireReader(std::span(digest).first<sizeof(std::uint16_t)>()).u16();
}

}  // namespace hccl::bootstrap
