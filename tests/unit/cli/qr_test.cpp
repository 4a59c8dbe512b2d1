// QR codes: what is drawn is the library's matrix, with light round it.
#include "cli/qr.hpp"

#include <qrencode.h>

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

using namespace adit;
using cli::qrText;

namespace {

/// Rows of modules, true for dark, as a terminal with light text on dark shows them.
std::vector<std::vector<bool>> modulesOf(std::string_view text) {
  std::vector<std::vector<bool>> rows;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    std::vector<bool> upper;
    std::vector<bool> lower;
    while (!line.empty()) {
      const bool blank = line.front() == ' ';
      const std::string_view block = line.substr(0, blank ? 1 : 3);
      REQUIRE((blank || block == "█" || block == "▀" || block == "▄"));
      upper.push_back(block != "█" && block != "▀");
      lower.push_back(block != "█" && block != "▄");
      line.remove_prefix(block.size());
    }
    rows.push_back(upper);
    rows.push_back(lower);
  }
  return rows;
}

}  // namespace

TEST_CASE("qr: the drawn modules are the library's, in a quiet zone of light ones") {
  const auto [length, quiet] = GENERATE(table<std::size_t, std::size_t>({
      {17, 4},    // version 1
      {134, 2},   // a token: 41 modules; with 4 round them more than 24 lines
      {340, 2},   // a client's file
      {2953, 2},  // the most
  }));
  const std::string content(length, 'x');
  const std::unique_ptr<QRcode, decltype(&QRcode_free)> code(
      QRcode_encodeData(static_cast<int>(length),
                        reinterpret_cast<const unsigned char*>(content.data()), 0, QR_ECLEVEL_L),
      QRcode_free);
  REQUIRE(code);
  const auto width = static_cast<std::size_t>(code->width);
  const auto rows = modulesOf(qrText(content, false).value());
  REQUIRE(rows.size() >= width + 2 * quiet);
  for (std::size_t y = 0; y < width + 2 * quiet; ++y) {
    REQUIRE(rows[y].size() == width + 2 * quiet);
    for (std::size_t x = 0; x < rows[y].size(); ++x) {
      const bool inside = x >= quiet && y >= quiet && x < width + quiet && y < width + quiet;
      const bool dark = inside && (code->data[(y - quiet) * width + x - quiet] & 1) != 0;
      REQUIRE(rows[y][x] == dark);
    }
  }
}

TEST_CASE("qr: a token fits a terminal of 80 by 24") {
  const std::string text = qrText(std::string(134, 'x'), false).value();
  CHECK(std::count(text.begin(), text.end(), '\n') <= 23);
  CHECK(modulesOf(text).front().size() <= 80);
}

TEST_CASE("qr: colours stand round each line") {
  const std::string text = qrText("adit", true).value();
  CHECK(text.starts_with("\x1b[97;40m"));
  CHECK(text.ends_with("\x1b[0m\n"));
}

TEST_CASE("qr: what does not fit is refused") {
  CHECK_FALSE(qrText("", false));
  CHECK_FALSE(qrText(std::string(2954, 'x'), false));
}
