#include "bench/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace adit::bench {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

Svg::Svg(double width, double height, std::string_view title, std::string_view description)
    : out_(fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
                       "xmlns=\"http://www.w3.org/2000/svg\"><title>{}</title><desc>{}</desc>\n",
                       width, height, escaped(title), escaped(description))) {}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view cssClass) {
  out_ +=
      fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n",
                  x1, y1, x2, y2, cssClass);
}

void Svg::rectangle(double x, double y, double width, double height, std::string_view cssClass,
                    std::string_view tip) {
  out_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\">", x, y,
      std::max(width, 0.0), std::max(height, 0.0), cssClass);
  if (!tip.empty()) out_ += fmt::format("<title>{}</title>", escaped(tip));
  out_ += "</rect>\n";
}

void Svg::path(const std::vector<std::pair<double, double>>& points, std::string_view cssClass) {
  if (points.empty()) return;
  std::string data;
  for (const auto& [x, y] : points) {
    data += fmt::format("{}{:.1f} {:.1f}", data.empty() ? "M" : " L", x, y);
  }
  out_ += fmt::format("<path d=\"{}\" class=\"{}\"/>\n", data, cssClass);
}

void Svg::text(double x, double y, Anchor anchor, std::string_view content,
               std::string_view cssClass) {
  constexpr const char* kNames[] = {"start", "middle", "end"};
  out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n",
                      x, y, kNames[static_cast<unsigned char>(anchor)], cssClass, escaped(content));
}

std::string Svg::take() && {
  return std::move(out_) + "</svg>\n";
}

Axis Axis::upTo(double largest, unsigned ticks) {
  if (!(largest > 0) || !std::isfinite(largest)) return {};
  const double rough = largest / std::max(ticks, 1U);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  return {std::ceil(largest / step) * step, step};
}

}  // namespace adit::bench
