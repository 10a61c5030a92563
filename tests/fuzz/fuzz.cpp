// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include "base/log.h"
#include "base/passed_descriptors.h"
#include "base/sha256.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::fuzz {

namespace {

// Turns off the log, because refusals of unknown peers are expected.
[[maybe_unused]] const bool kQuiet = [] {
  setenv("LOG_LEVEL_ALL", "6", 1);
  Config settings;
  settings.log_level = LogLevel::off;
  configure_log(settings);
  return true;
}();

int some_file() {
  static const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return file;
}

}  // namespace

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

std::vector<Step> read_play(std::span<const std::byte> input, std::size_t most) {
  std::vector<Step> steps;
  constexpr std::size_t kHead = 4;
  while (input.size() >= kHead && steps.size() < most) {
    WireReader reader(input);
    Step step;
    step.action = reader.u8();
    step.detail = reader.u8();
    const std::size_t length = std::min<std::size_t>(reader.u16(), input.size() - kHead);
    const auto bytes = input.subspan(kHead, length);
    step.bytes.assign(bytes.begin(), bytes.end());
    input = input.subspan(kHead + length);
    steps.push_back(std::move(step));
  }
  return steps;
}

Bytes write_play(const std::vector<Step>& steps) {
  WireWriter writer;
  for (const Step& step : steps) {
    writer.put_u8(step.action);
    writer.put_u8(step.detail);
    writer.put_u16(static_cast<std::uint16_t>(step.bytes.size()));
    writer.put_bytes(step.bytes);
  }
  return writer.take();
}

int open_descriptors() {
  static_cast<void>(some_file());  // opens the file before descriptors are counted
  DIR* const folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

Connection make_connection() {
  std::array<int, 2> ends{-1, -1};
  check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0,
        "a pair of sockets is created");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

bool send_bytes(int socket, std::span<const std::byte> bytes, std::size_t descriptors) {
  constexpr std::size_t kMost = 253;  // descriptors in one message (SCM_MAX_FD)
  descriptors = std::min(descriptors, kMost);
  Bytes copy(bytes.begin(), bytes.end());
  iovec part{copy.data(), copy.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  DescriptorBuffer<kMost> control;
  const std::vector<int> all(descriptors, some_file());
  if (descriptors > 0) attach_descriptors(message, control.bytes, all);
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(copy.size());
}

std::optional<bootstrap::Frame> await_frame(bootstrap::EventLoop& loop,
                                            bootstrap::FrameConnection& connection) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(20));
  while (true) {
    std::optional<bootstrap::Frame> frame = connection.receive();
    if (frame || connection.ended()) return frame;
    check(!deadline.expired(), "a frame arrives or the connection ends");
    loop.run_one(deadline);
  }
}

const bootstrap::JoinKey& fixed_key() {
  static const bootstrap::JoinKey key{SecretBytes(32, std::byte{0x5A}), true};
  return key;
}

}  // namespace hccl::fuzz
