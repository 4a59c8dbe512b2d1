#include "cli/qr.hpp"

#include <qrencode.h>

#include <cerrno>
#include <memory>

namespace adit::cli {
namespace {

constexpr int kColumns = 80;
/// Of 24 lines one stays for the prompt.
constexpr int kLines = 23;
constexpr int kQuietZone = 4;
constexpr int kNarrowQuietZone = 2;

struct FreeCode {
  void operator()(QRcode* code) const { QRcode_free(code); }
};
using Code = std::unique_ptr<QRcode, FreeCode>;

int quietZoneOf(int width) {
  const int side = width + 2 * kQuietZone;
  return side <= kColumns && (side + 1) / 2 <= kLines ? kQuietZone : kNarrowQuietZone;
}

/// Whether the module is light; everything round the code is.
bool isLight(const QRcode& code, int x, int y) {
  if (x < 0 || y < 0 || x >= code.width || y >= code.width) return true;
  return (code.data[y * code.width + x] & 1) == 0;
}

std::string_view block(bool upper, bool lower) {
  if (upper) return lower ? "█" : "▀";
  return lower ? "▄" : " ";
}

std::string draw(const QRcode& code, bool color) {
  const int quiet = quietZoneOf(code.width);
  std::string text;
  for (int y = -quiet; y < code.width + quiet; y += 2) {
    text += color ? "\x1b[97;40m" : "";
    for (int x = -quiet; x < code.width + quiet; ++x) {
      // Below an odd last row there is nothing to draw.
      text += block(isLight(code, x, y), y + 1 < code.width + quiet && isLight(code, x, y + 1));
    }
    text += color ? "\x1b[0m\n" : "\n";
  }
  return text;
}

}  // namespace

Result<std::string> qrText(std::string_view content, bool color) {
  if (content.empty()) return fail("nothing to make a QR code of");
  const Code code(QRcode_encodeData(static_cast<int>(content.size()),
                                    reinterpret_cast<const unsigned char*>(content.data()), 0,
                                    QR_ECLEVEL_L));
  if (code) return draw(*code, color);
  if (errno == ERANGE) return fail("{} bytes are too many for a QR code", content.size());
  return failErrno(errno, "QR code");
}

}  // namespace adit::cli
