// SPDX-License-Identifier: Apache-2.0
// Serialises and parses messages. For each message, a function fields(message, io) lists the fields
// once, as the arguments of one call to `io`, which is a FieldWriter or a FieldReader.
#pragma once

#include "base/address.h"
#include "base/fields.h"
#include "base/secret_bytes.h"
#include "bootstrap/wire.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace hccl::bootstrap {

// A text of at most `most` bytes. The writer truncates a longer text; the reader rejects it.
template <class Text>
struct Limited {
  Text& text;
  std::size_t most;
};
template <class Text>
[[nodiscard]] Limited<Text> limited(Text& text, std::size_t most) {
  return {text, most};
}

// A list of at most `most` elements, preceded by its length as a `Number`. The writer truncates a
// longer list; the reader rejects it. An element that is a byte string is preceded by a 16-bit
// length, and has at most `most_bytes` bytes.
template <class Number, class List>
struct Counted {
  List& list;
  std::size_t most;
  std::size_t most_bytes = 0;
};
template <class Number, class List>
[[nodiscard]] Counted<Number, List> counted(List& list, std::size_t most,
                                            std::size_t most_bytes = 0) {
  return {list, most, most_bytes};
}

// A number or enumerator from `first` to `last`. The reader rejects all other values.
template <class Value>
struct Bounded {
  Value& value;
  std::type_identity_t<std::remove_const_t<Value>> first;
  std::type_identity_t<std::remove_const_t<Value>> last;
};
template <class Value>
[[nodiscard]] Bounded<Value> bounded(Value& value,
                                     std::type_identity_t<std::remove_const_t<Value>> first,
                                     std::type_identity_t<std::remove_const_t<Value>> last) {
  return {value, first, last};
}

// The integer type used to serialise a number or an enumerator.
template <class Value, bool = std::is_enum_v<Value>>
struct Travelling {
  using Number = std::remove_const_t<Value>;
};
template <class Value>
struct Travelling<Value, true> {
  using Number = std::underlying_type_t<std::remove_const_t<Value>>;
};
template <class Value>
using NumberOf = typename Travelling<Value>::Number;

// All remaining bytes of the message.
template <class List>
struct Remainder {
  List& bytes;
};
template <class List>
[[nodiscard]] Remainder<List> remainder(List& bytes) {
  return {bytes};
}

class FieldWriter {
 public:
  template <class... Fields>
  void operator()(const Fields&... all) {
    (put(all), ...);
  }
  [[nodiscard]] Bytes take() { return writer_.take(); }

 private:
  template <std::integral Number>
  void put(Number value) {
    if constexpr (sizeof(Number) == 1) writer_.put_u8(static_cast<std::uint8_t>(value));
    if constexpr (sizeof(Number) == 2) writer_.put_u16(static_cast<std::uint16_t>(value));
    if constexpr (sizeof(Number) == 4) writer_.put_u32(static_cast<std::uint32_t>(value));
    if constexpr (sizeof(Number) == 8) writer_.put_u64(static_cast<std::uint64_t>(value));
  }
  template <std::size_t N>
  void put(const std::array<std::byte, N>& bytes) {
    writer_.put_bytes(bytes);
  }
  void put(const SecretBytes& bytes) { writer_.put_bytes(bytes); }
  void put(const Address& address) { put_address(writer_, address); }
  template <class Text>
  void put(const Limited<Text>& field) {
    writer_.put_text(field.text.substr(0, field.most));
  }
  template <class Value>
  void put(const Bounded<Value>& field) {
    put(static_cast<NumberOf<Value>>(field.value));
  }
  template <class List>
  void put(const Remainder<List>& field) {
    writer_.put_bytes(field.bytes);
  }
  template <class Number, class List>
  void put(const Counted<Number, List>& field) {
    const auto all = std::span(field.list).first(std::min(field.list.size(), field.most));
    put(static_cast<Number>(all.size()));
    for (const auto& element : all) {
      if constexpr (std::same_as<typename List::value_type, Bytes>) {
        put(static_cast<std::uint16_t>(element.size()));
        writer_.put_bytes(element);
      } else {
        put(element);
      }
    }
  }
  template <class Message>
  requires std::is_class_v<Message>
  void put(const Message& message) { fields(message, *this); }

  WireWriter writer_;
};

class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : reader_(bytes) {}

  template <class... Fields>
  void operator()(Fields&&... all) {
    (get(all), ...);
  }
  // Returns whether every field was present and within its limits, and no bytes are left over.
  [[nodiscard]] bool complete() const { return ok_ && reader_.complete(); }

 private:
  template <std::integral Number>
  void get(Number& value) {
    if constexpr (std::same_as<Number, bool>) {
      value = reader_.u8() != 0;
    } else {
      if constexpr (sizeof(Number) == 1) value = static_cast<Number>(reader_.u8());
      if constexpr (sizeof(Number) == 2) value = static_cast<Number>(reader_.u16());
      if constexpr (sizeof(Number) == 4) value = static_cast<Number>(reader_.u32());
      if constexpr (sizeof(Number) == 8) value = static_cast<Number>(reader_.u64());
    }
  }
  template <std::size_t N>
  void get(std::array<std::byte, N>& bytes) {
    bytes = reader_.array<N>();
  }
  void get(SecretBytes& bytes) { reader_.read_into(bytes); }
  void get(Address& address) {
    const auto read = read_address(reader_);
    require(read.has_value());
    if (read) address = *read;
  }
  template <class Text>
  void get(Limited<Text>& field) {
    field.text = reader_.text(field.most);
  }
  template <class Value>
  void get(Bounded<Value>& field) {
    NumberOf<Value> number{};
    get(number);
    require(number >= static_cast<NumberOf<Value>>(field.first) &&
            number <= static_cast<NumberOf<Value>>(field.last));
    if (ok_) field.value = static_cast<Value>(number);
  }
  template <class List>
  void get(Remainder<List>& field) {
    field.bytes = reader_.remainder();
  }
  template <class Number, class List>
  void get(Counted<Number, List>& field) {
    Number number{};
    get(number);
    require(number <= field.most);
    for (Number i = 0; i < number && ok_ && reader_.ok(); ++i) {
      auto& element = field.list.emplace_back();
      if constexpr (std::same_as<typename List::value_type, Bytes>) {
        const std::size_t size = reader_.u16();
        require(size <= field.most_bytes);
        if (ok_) element = reader_.bytes(size);
      } else {
        get(element);
      }
    }
  }
  template <class Message>
  requires std::is_class_v<Message>
  void get(Message& message) { fields(message, *this); }
  void require(bool condition) { ok_ = ok_ && condition; }

  WireReader reader_;
  bool ok_ = true;
};

}  // namespace hccl::bootstrap
