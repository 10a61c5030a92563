// SPDX-License-Identifier: Apache-2.0
// sendmsg and recvmsg with SCM_RIGHTS. Descriptors travel with the first byte of their frame, so
// they are always here when the frame is complete.
#include "bootstrap/frame_channel.h"

#include "base/text.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>

namespace hccl::bootstrap {
namespace {

constexpr std::size_t kReadSize = std::size_t{64} << 10;
constexpr std::size_t kKernelMost = 253;  // descriptors in one message (SCM_MAX_FD)

template <std::size_t Count>
struct alignas(cmsghdr) ControlBuffer {
  std::array<std::byte, CMSG_SPACE(Count * sizeof(int))> bytes{};
};

}  // namespace

FrameChannel::FrameChannel(FileDescriptor socket, std::size_t most_payload,
                           std::size_t most_descriptors)
    : socket_(std::move(socket)),
      most_payload_(most_payload),
      most_descriptors_(most_descriptors) {}

void FrameChannel::send(FrameType type, std::span<const std::byte> payload,
                        const std::vector<int>& descriptors) {
  if (closed_) return;
  Bytes frame = seal_ ? encode_frame(type, payload, descriptors.size(),
                                     seal_->next_code(type, sha256(payload)))
                      : encode_frame(type, payload, descriptors.size());
  unsent_.push_back({std::move(frame), 0, descriptors});
  flush();
}

FrameChannel::Rest FrameChannel::release() {
  closed_ = true;
  return {std::move(socket_), std::move(received_), seal_};
}

bool FrameChannel::flush() {
  stalled_ = false;
  while (!closed_ && !unsent_.empty()) {
    if (!send_some(unsent_.front())) return false;
    if (unsent_.front().sent == unsent_.front().bytes.size()) unsent_.pop_front();
  }
  return true;
}

bool FrameChannel::send_some(Unsent& unsent) {
  iovec part{unsent.bytes.data() + unsent.sent, unsent.bytes.size() - unsent.sent};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer<kMostDescriptors> control;
  if (unsent.sent == 0 && !unsent.descriptors.empty()) {
    const std::size_t size = unsent.descriptors.size() * sizeof(int);
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header == nullptr) return false;  // never: the buffer has room
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(header), unsent.descriptors.data(), size);
  }
  const ssize_t count = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count >= 0) {
    unsent.sent += static_cast<std::size_t>(count);
    return true;
  }
  if (errno == EINTR) return true;
  stalled_ = errno == ETOOMANYREFS || is_memory_shortage(errno);
  if (errno == EAGAIN || stalled_) return false;
  // Frames that the other side sent before it went may still be unread.
  unsent_.clear();
  return false;
}

std::optional<Frame> FrameChannel::receive() {
  std::optional<Frame> frame = take_frame();
  if (frame || closed_) return frame;
  read_some();
  return take_frame();
}

void FrameChannel::read_some() {
  const std::size_t before = received_.size();
  received_.resize(before + kReadSize);
  ControlBuffer<kKernelMost> control;
  iovec part{received_.data() + before, kReadSize};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t count = 0;
  do {
    count = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  const int error = errno;
  received_.resize(before + (count > 0 ? static_cast<std::size_t>(count) : 0));
  if (count < 0 && error == EAGAIN) return;
  if (count <= 0) return close(count == 0 ? "closed the connection" : system_error_text(error));
  bool lost = (message.msg_flags & MSG_CTRUNC) != 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t found = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < found; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      received_descriptors_.emplace_back(fd);
      lost = lost || !received_descriptors_.back().valid();
    }
  }
  if (lost) {
    return close(
        "cannot be heard out, for this process may not open that many files (raise ulimit -n)");
  }
  if (received_descriptors_.size() > most_descriptors_) refuse("sent too many descriptors");
}

std::optional<Frame> FrameChannel::take_frame() {
  if (received_.size() < kFrameHeaderSize) return std::nullopt;
  const std::span<const std::byte> bytes(received_);
  const auto header = parse_header(bytes.first<kFrameHeaderSize>(), most_payload_);
  if (!header) {
    refuse("sent bytes that are no frame of ours");
    return std::nullopt;
  }
  const std::size_t end = kFrameHeaderSize + header->length;
  if (received_.size() < end) return std::nullopt;
  if (received_descriptors_.size() < header->descriptors) {
    refuse("sent a frame without its descriptors");
    return std::nullopt;
  }
  Frame frame;
  frame.type = header->type;
  const auto payload = bytes.subspan(kFrameHeaderSize, header->length);
  frame.payload.assign(payload.begin(), payload.end());
  for (std::size_t i = 0; i < header->descriptors; ++i) {
    frame.descriptors.push_back(std::move(received_descriptors_.front()));
    received_descriptors_.pop_front();
  }
  received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(end));
  const bool may_lack_code = frame.type == FrameType::refusal && !has_opened_;
  if (seal_ && !may_lack_code) {
    has_opened_ = seal_->open(frame);
    if (!has_opened_) {
      forged_ = true;
      refuse("sent a frame whose code is wrong");
      return std::nullopt;
    }
  }
  return frame;
}

void FrameChannel::refuse(const std::string& why) {
  received_.clear();
  received_descriptors_.clear();
  broke_rules_ = true;
  close(why);
}

void FrameChannel::close(const std::string& why) {
  if (closed_) return;
  closed_ = true;
  why_ = why;
  unsent_.clear();
}

short FrameChannel::events() const {
  if (closed_) return 0;
  return static_cast<short>(unsent_.empty() || stalled_ ? POLLIN : POLLIN | POLLOUT);
}

}  // namespace hccl::bootstrap
