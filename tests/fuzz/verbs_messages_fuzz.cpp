// SPDX-License-Identifier: Apache-2.0
// An end of an RDMA stream whose peer says what the input says, until that cannot be right.
// Actions: 0 an immediate comes, 1 an invitation is written and read, 2 this end sends, 3 it takes,
// 4 it invites, 5 it tells credit; the bytes say what, or how many.
#include "fuzz.h"
#include "verbs/invitation.h"
#include "verbs/windows.h"

#include <algorithm>

namespace {

using namespace hccl;
using namespace hccl::verbs;

constexpr std::size_t kMostSteps = 400;

class Play {
 public:
  // False if the peer cannot mean it.
  [[nodiscard]] bool take(const fuzz::Step& step) {
    WireReader reader(step.bytes);
    bool fits = true;
    switch (step.action % 6) {
      case 0:
        heard_ = true;
        fits = hear(decode(reader.u32()));
        break;
      case 1:
        invitation_ = {reader.u64(), reader.u64(), reader.u32(), reader.u32()};
        guest_.invite(invitation_);
        break;
      case 2:
        send(reader.u32());
        break;
      case 3:
        take_bytes(reader.u32());
        break;
      case 4:
        invite(reader.u32());
        break;
      default:
        tell();
    }
    if (fits) check_bounds();
    return fits;
  }
  [[nodiscard]] bool heard() const { return heard_; }

 private:
  bool hear(const Message& message) {
    switch (message.kind) {
      case Message::Kind::data:
        return receiver_.arrive(message.bytes);
      case Message::Kind::direct:
        return receiver_.arrive(0) &&
               host_.arrive(message.bytes, receiver_.arrived(), receiver_.released());
      case Message::Kind::credit:
        return sender_.credit(message);
      case Message::Kind::invitation:
        return true;
    }
    return false;
  }

  void send(std::size_t bytes) {
    if (!sender_.may_send()) return;
    if (const std::size_t welcome = guest_.welcome(written_); welcome > 0) {
      bytes = std::min(bytes, welcome);
      const std::uint64_t at = guest_.address(written_) - invitation_.address;
      fuzz::check(at + bytes <= invitation_.bytes, "nothing goes beyond what was invited");
      sender_.send_straight();
    } else {
      bytes = std::min(bytes, sender_.room());
      sender_.send_through_ring(bytes);
    }
    written_ += bytes;
  }

  // What the ring holds, or what has come straight.
  void take_bytes(std::size_t most) {
    const bool open = host_.open();
    std::size_t count =
        open ? host_.ring_first(receiver_.released(), receiver_.held()) : receiver_.held();
    fuzz::check(count <= receiver_.held(), "no byte is read that has not come");
    count = std::min(count, most);
    if (count > 0) {
      receiver_.lend(count);
      fuzz::check(receiver_.release(count) == count, "what is lent can be released");
      if (open) take_invited(count, false);
    } else if (open) {
      take_invited(std::min(most, host_.straight()), true);
    }
  }
  void take_invited(std::size_t count, bool straight) {
    fuzz::check(count <= invited_, "no more is taken than was invited");
    invited_ -= count;
    host_.take(count, straight);
    fuzz::check(host_.open() == (invited_ > 0), "an invitation is open until all is taken");
  }

  void invite(std::size_t bytes) {
    if (host_.open()) return;
    invited_ = bytes;
    host_.invite(bytes);
  }
  void tell() {
    if (!receiver_.credit_due()) return;
    const Message credit = receiver_.take_credit();
    fuzz::check(decode(encode(credit)) == credit, "a credit fits a message");
    fuzz::check(!receiver_.credit_due(), "a credit is told once");
  }

  void check_bounds() const {
    fuzz::check(sender_.room() <= kRingBytes, "there is no more room than the ring has");
    fuzz::check(receiver_.held() <= kRingBytes, "the ring holds no more than it can");
    fuzz::check(receiver_.lent() <= receiver_.held(), "no more is lent than has come");
    fuzz::check(host_.straight() <= invited_, "no more comes straight than was invited");
  }

  SendWindow sender_;
  ReceiveWindow receiver_;
  Guest guest_;
  Host host_;
  Invitation invitation_;
  std::uint64_t written_ = 0;
  std::size_t invited_ = 0;  // and not taken
  bool heard_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Play play;
  bool fits = true;
  for (const fuzz::Step& step : fuzz::read_play(fuzz::bytes_of(data, size), kMostSteps)) {
    fits = play.take(step);
    if (!fits) break;
  }
  fuzz::accepted = fits && play.heard();
  return 0;
}
