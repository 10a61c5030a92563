// SPDX-License-Identifier: Apache-2.0
// Frames, with descriptors on unix sockets, over a non-blocking socket that its owner polls.
#pragma once

#include "base/deadline.h"
#include "base/retry.h"
#include "bootstrap/frame_seal.h"
#include "bootstrap/wire.h"

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hccl::bootstrap {

// Never blocks and never throws for what the other side does: closed() and why() tell. One thread.
class FrameChannel {
 public:
  // `most_descriptors`: as many may have arrived without being received.
  FrameChannel(FileDescriptor socket, std::size_t most_payload,
               std::size_t most_descriptors = 1024);

  [[nodiscard]] int fd() const { return socket_.get(); }
  // Queues the frame and sends what can be sent. The descriptors must stay open until flush() says
  // done.
  void send(FrameType type, std::span<const std::byte> payload,
            const std::vector<int>& descriptors = {});
  // Sends more; true when nothing is left.
  bool flush();
  // The next frame, if it is all there.
  [[nodiscard]] std::optional<Frame> receive();

  // From now on both ends give each frame a code. A refusal that comes before any other frame has
  // none, for the keys may differ; behind one, whose code has shown that they do not, it is forged.
  void authenticate(const FrameSeal& seal) { seal_ = seal; }

  // Ends the channel, which has nothing unsent, and returns its socket, what has come and not been
  // received, and the codes of what follows.
  struct Rest {
    FileDescriptor socket;
    Bytes received;
    std::optional<FrameSeal> seal;
  };
  [[nodiscard]] Rest release();

  // The other side has closed, or broke the rules; frames that came before may still be received.
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] const std::string& why() const { return why_; }
  // It closed because the other side sent what no hccl process sends.
  [[nodiscard]] bool broke_rules() const { return broke_rules_; }
  // It closed because a frame's code was wrong: the other side does not know the key, or somebody
  // between the two has changed the frame.
  [[nodiscard]] bool forged() const { return forged_; }
  // poll(2) events this channel waits for.
  [[nodiscard]] short events() const;
  // The kernel was short of memory, or of room for descriptors in flight. poll(2) does not tell
  // when it has some: call flush() again after patience().
  [[nodiscard]] bool stalled() const { return stalled_; }
  // How long to poll at most before the next flush().
  [[nodiscard]] Deadline::Duration patience() const {
    return stalled_ ? Deadline::Duration(kShortagePause) : std::chrono::hours(24);
  }

 private:
  struct Unsent {
    Bytes bytes;
    std::size_t sent = 0;
    std::vector<int> descriptors;
  };

  bool send_some(Unsent& unsent);
  void read_some();
  void close(const std::string& why);
  void refuse(const std::string& why);
  [[nodiscard]] std::optional<Frame> take_frame();

  FileDescriptor socket_;
  std::size_t most_payload_;
  std::size_t most_descriptors_;
  std::deque<Unsent> unsent_;
  Bytes received_;
  std::deque<FileDescriptor> received_descriptors_;
  std::optional<FrameSeal> seal_;
  bool has_opened_ = false;  // a frame with the right code
  bool closed_ = false;
  bool forged_ = false;
  bool broke_rules_ = false;
  bool stalled_ = false;
  std::string why_;
};

}  // namespace hccl::bootstrap
