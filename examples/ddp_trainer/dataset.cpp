// SPDX-License-Identifier: Apache-2.0
// Reads the digits.
#include "dataset.h"

#include "errors.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

#include <zlib.h>

namespace ddp_trainer {
namespace {

constexpr int kBrightest = 16;
constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

[[noreturn]] void reject(const std::string& path, std::size_t line, const std::string& why) {
  throw RunError(text("data file ", path, ", line ", line, ": ", why));
}

std::string read_all(const std::string& path) {
  errno = 0;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose_r);
  if (file == nullptr) {
    throw RunError(text("data file ", path, ": ",
                        errno == 0 ? "not enough memory to read it" : std::strerror(errno),
                        "; name another file with --data"));
  }
  std::string all;
  std::array<char, 65536> piece{};
  for (;;) {
    const int count = gzread(file.get(), piece.data(), piece.size());
    if (count <= 0) break;
    all.append(piece.data(), static_cast<std::size_t>(count));
    if (all.size() > kMaxBytes)
      throw RunError(text("data file ", path, " has more than ", kMaxBytes >> 20, " MiB"));
  }
  int status = Z_OK;
  std::string_view why = gzerror(file.get(), &status);
  // gzread() does not report a file that ends too early, but gzerror() does.
  if (status != Z_OK && status != Z_STREAM_END) {
    const std::string named = path + ": ";  // the prefix of zlib's messages
    if (why.substr(0, named.size()) == named) why.remove_prefix(named.size());
    throw RunError(text("data file ", path, " is damaged or truncated: ",
                        status == Z_ERRNO ? std::string_view(std::strerror(errno)) : why));
  }
  return all;
}

// Parses the numbers of a line and appends them to `data`.
void parse_line(const std::string& path, std::size_t line, std::string_view words, Dataset& data) {
  std::size_t column = 0;
  const char* at = words.data();
  const char* const end = at + words.size();
  while (true) {
    int value = 0;
    const auto [stopped, error] = std::from_chars(at, end, value);
    if (error == std::errc::result_out_of_range)
      reject(path, line, text("column ", column + 1, " is too large"));
    if (error != std::errc() || (stopped != end && *stopped != ','))
      reject(path, line, text("column ", column + 1, " is not a number"));
    const int most =
        column < Dataset::kPixels ? kBrightest : static_cast<int>(Dataset::kClasses) - 1;
    if (column <= Dataset::kPixels && (value < 0 || value > most))
      reject(path, line, text("column ", column + 1, " is ", value, ", not from 0 to ", most));
    if (column < Dataset::kPixels) {
      data.pixels.push_back(static_cast<float>(value) / kBrightest);
    } else if (column == Dataset::kPixels) {
      data.classes.push_back(static_cast<std::uint8_t>(value));
    }
    ++column;
    if (stopped == end) break;
    at = stopped + 1;
  }
  if (column != Dataset::kPixels + 1) {
    reject(path, line,
           text("has ", column, " columns instead of ", Dataset::kPixels + 1,
                ": 64 pixels and the class"));
  }
}

}  // namespace

Dataset read_digits(const std::string& path) {
  const std::string all = read_all(path);
  Dataset data;
  std::size_t line = 0;
  for (std::string_view rest = all; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    std::string_view words = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    ++line;
    if (!words.empty() && words.back() == '\r') words.remove_suffix(1);
    if (end == std::string_view::npos)
      reject(path, line, "ends without a line feed: the file is truncated");
    parse_line(path, line, words, data);
  }
  if (data.size() == 0) throw RunError(text("data file ", path, " is empty"));
  return data;
}

Split split(const Dataset& all) {
  Split parts;
  for (std::size_t index = 0; index < all.size(); ++index) {
    Dataset& part = index % 5 == 4 ? parts.test : parts.training;
    part.pixels.insert(part.pixels.end(), all.sample(index), all.sample(index) + Dataset::kPixels);
    part.classes.push_back(all.classes[index]);
  }
  if (parts.test.size() == 0)
    throw RunError("the data has fewer than 5 samples, too few for a test sample");
  const auto add = [&](const auto& values) {
    parts.check_sum = static_cast<std::uint32_t>(
        crc32_z(parts.check_sum, reinterpret_cast<const Bytef*>(values.data()),
                values.size() * sizeof values[0]));
  };
  add(all.pixels);
  add(all.classes);
  return parts;
}

}  // namespace ddp_trainer
