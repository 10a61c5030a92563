// SPDX-License-Identifier: Apache-2.0
// Fuzzes one end of an RDMA stream with messages from its peer, until the first message that no
// correct peer can send. Actions: 0 receives an immediate, 1 receives an advert, 2 sends bytes, 3
// takes received bytes, 4 advertises a buffer, 5 returns credit. A step's bytes encode the message
// to receive, or how many bytes to send, take or advertise.
#include "fuzz.h"
#include "verbs/advert.h"
#include "verbs/flow_control.h"

#include <algorithm>

namespace {

using namespace hccl;
using namespace hccl::verbs;

constexpr std::size_t kMostSteps = 400;

class Play {
 public:
  // Runs a step. Returns false if no correct peer can have sent the step's message.
  [[nodiscard]] bool take(const fuzz::Step& step) {
    WireReader reader(step.bytes);
    bool fits = true;
    switch (step.action % 6) {
      case 0:
        received_ = true;
        fits = on_immediate(decode(reader.u32()));
        break;
      case 1:
        advert_ = {reader.u64(), reader.u64(), reader.u32(), reader.u32()};
        sender_view_.update(advert_);
        break;
      case 2:
        send(reader.u32());
        break;
      case 3:
        take_bytes(reader.u32());
        break;
      case 4:
        advertise(reader.u32());
        break;
      default:
        return_credit();
    }
    if (fits) check_bounds();
    return fits;
  }
  [[nodiscard]] bool received() const { return received_; }

 private:
  bool on_immediate(const Immediate& message) {
    switch (message.kind) {
      case Immediate::Kind::data:
        return receiver_.arrive(message.bytes);
      case Immediate::Kind::direct:
        return receiver_.arrive(0) &&
               receiver_view_.arrive(message.bytes, receiver_.arrived(), receiver_.released());
      case Immediate::Kind::credit:
        return sender_.credit(message);
      case Immediate::Kind::advert:
        return true;
    }
    return false;
  }

  void send(std::size_t bytes) {
    if (!sender_.may_send()) return;
    if (const std::size_t direct_room = sender_view_.direct_room(written_); direct_room > 0) {
      bytes = std::min(bytes, direct_room);
      const std::uint64_t at = sender_view_.address(written_) - advert_.address;
      fuzz::check(at + bytes <= advert_.bytes, "nothing exceeds the advertised bytes");
      sender_.send_direct();
    } else {
      bytes = std::min(bytes, sender_.room());
      sender_.send_through_ring(bytes);
    }
    written_ += bytes;
  }

  // Takes bytes that arrived in the ring, or that the peer wrote directly to the advertised buffer.
  void take_bytes(std::size_t most) {
    const bool open = receiver_view_.open();
    std::size_t count =
        open ? receiver_view_.ring_first(receiver_.released(), receiver_.held()) : receiver_.held();
    fuzz::check(count <= receiver_.held(), "no byte is read before it arrives");
    count = std::min(count, most);
    if (count > 0) {
      receiver_.lend(count);
      fuzz::check(receiver_.release(count) == count, "lent bytes can be released");
      if (open) take_advertised(count, false);
    } else if (open) {
      take_advertised(std::min(most, receiver_view_.direct()), true);
    }
  }
  void take_advertised(std::size_t count, bool direct) {
    fuzz::check(count <= advertised_, "no more is taken than was advertised");
    advertised_ -= count;
    receiver_view_.take(count, direct);
    fuzz::check(receiver_view_.open() == (advertised_ > 0),
                "an advert stays open until all its bytes are taken");
  }

  void advertise(std::size_t bytes) {
    if (receiver_view_.open()) return;
    advertised_ = bytes;
    receiver_view_.advertise(bytes);
  }
  void return_credit() {
    if (!receiver_.credit_due()) return;
    const Immediate credit = receiver_.take_credit();
    fuzz::check(decode(encode(credit)) == credit, "a credit fits a message");
    fuzz::check(!receiver_.credit_due(), "a credit is reported once");
  }

  void check_bounds() const {
    fuzz::check(sender_.room() <= kRingBytes, "the free space is at most the ring's size");
    fuzz::check(receiver_.held() <= kRingBytes, "the ring holds at most its capacity");
    fuzz::check(receiver_.lent() <= receiver_.held(), "no more is lent than has arrived");
    fuzz::check(receiver_view_.direct() <= advertised_,
                "no more direct bytes arrive than were advertised");
  }

  SendWindow sender_;
  ReceiveWindow receiver_;
  SenderView sender_view_;
  ReceiverView receiver_view_;
  Advert advert_;
  std::uint64_t written_ = 0;
  std::size_t advertised_ = 0;  // advertised bytes that have not been taken
  bool received_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Play play;
  bool fits = true;
  for (const fuzz::Step& step : fuzz::read_play(fuzz::bytes_of(data, size), kMostSteps)) {
    fits = play.take(step);
    if (!fits) break;
  }
  fuzz::accepted = fits && play.received();
  return 0;
}
