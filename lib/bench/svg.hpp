// The few shapes that charts are made of, as SVG inside HTML that is also well-formed XML. Colours
// come from the page's style sheet, by class.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace adit::bench {

/// Text as content or attribute of HTML and XML. Control characters, which XML has no way to
/// write, become blanks.
std::string escaped(std::string_view text);

class Svg {
 public:
  /// `title` and `description` are for those who do not see it.
  Svg(double width, double height, std::string_view title, std::string_view description);

  void line(double x1, double y1, double x2, double y2, std::string_view cssClass);
  /// `tip` shows where the mouse rests.
  void rectangle(double x, double y, double width, double height, std::string_view cssClass,
                 std::string_view tip = "");
  void path(const std::vector<std::pair<double, double>>& points, std::string_view cssClass);
  enum class Anchor : unsigned char { Start, Middle, End };
  void text(double x, double y, Anchor anchor, std::string_view content,
            std::string_view cssClass = "");
  [[nodiscard]] std::string take() &&;

 private:
  std::string out_;
};

/// An axis from 0 to at least `largest`, with a round distance between ticks.
struct Axis {
  double top = 1;
  double step = 1;
  static Axis upTo(double largest, unsigned ticks);
};

}  // namespace adit::bench
