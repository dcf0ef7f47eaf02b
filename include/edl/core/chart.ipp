// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "edl/core/chart.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl {
namespace detail::svg {

// Pixels. The reader's font is unknown, so every letter counts as wide as a wide one.
inline constexpr double letter = 7, width = 800, edge = 16, right = 32, title_height = 40, line_height = 18,
                        between = 14, foot = 44, swatch = 18;
inline constexpr std::size_t colours = 5;

inline constexpr char const* style =
    "<style>\n"
    "text{font:12px sans-serif;fill:#222}.title{font-size:16px;font-weight:bold}.name{font-weight:bold}\n"
    ".back{fill:#fff}.grid{stroke:#ddd}.frame{fill:none;stroke:#888}\n"
    ".line{fill:none;stroke-width:1.6;stroke-linejoin:round}.again{stroke-dasharray:5 3}\n"
    ".c0{stroke:#1f6fb4}.c1{stroke:#d9600f}.c2{stroke:#2a8a3a}.c3{stroke:#b8302f}.c4{stroke:#7a55b0}\n"
    "@media (prefers-color-scheme:dark){text{fill:#ddd}.back{fill:#161616}.grid{stroke:#383838}\n"
    ".c0{stroke:#6db3f2}.c1{stroke:#ffa25c}.c2{stroke:#6fce7f}.c3{stroke:#ff8a86}.c4{stroke:#c3a3f0}}\n"
    "</style>\n";

inline std::string escaped(std::string const& text) {
  std::string all;
  for (char const c : printable(text, std::string::npos)) switch (c) {
      case '<':
        all += "&lt;";
        break;
      case '>':
        all += "&gt;";
        break;
      case '&':
        all += "&amp;";
        break;
      default:
        all += c;
    }
  return all;
}

inline double width_of(std::string_view text) {
  return letter * double(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

/// The text, shortened with "…" to the room.
inline std::string fitting(std::string const& text, double room) {
  std::string out;
  double used = 2 * letter;
  for (char const c : text) {
    if ((c & 0xc0) != 0x80 && (used += letter) > room) return out + "…";
    out += c;
  }
  return out;
}

struct range {
  double from = std::numeric_limits<double>::infinity(), to = -from;

  void take(double v) {
    if (!std::isfinite(v)) return;
    v = std::clamp(v, -1e300, 1e300);
    from = std::min(from, v), to = std::max(to, v);
  }
  /// The range, widened if it is too narrow to be divided.
  range proper() const {
    if (from > to) return {0, 1};
    if (from == 0 && to == 0) return {0, 1};
    double const size = std::max(std::abs(from), std::abs(to)),
                 half = to - from <= 1e-9 * size ? std::max(size / 2, 1e-12) : 0;
    return {from - half, to + half};
  }
  double share(double v) const { return std::clamp((v - from) / (to - from), 0.0, 1.0); }
};

struct axis {
  range limits;
  std::vector<double> ticks;
  std::vector<std::string> labels;
};

/// From the tick below the values to the tick above them.
inline axis y_axis(chart::panel const& p) {
  axis a;
  for (chart::line const& l : p.lines)
    for (auto const& [x, y] : l.points) a.limits.take(y);
  if (p.least) a.limits.take(*p.least);
  if (p.most) a.limits.take(*p.most);
  a.limits = a.limits.proper();
  auto const inside = round_ticks(a.limits.from, a.limits.to, 5);
  double const step = inside.size() > 1 ? inside[1] - inside[0] : a.limits.to - a.limits.from;
  double const first = std::floor(a.limits.from / step + 1e-9), last = std::ceil(a.limits.to / step - 1e-9);
  for (double i = first; i <= last; ++i) a.ticks.push_back(i * step);
  a.limits = {first * step, last * step};
  a.labels = tick_labels(a.ticks);
  return a;
}

inline axis x_axis(chart const& c, double room) {
  axis a;
  for (chart::panel const& p : c.panels)
    for (chart::line const& l : p.lines)
      for (auto const& [x, y] : l.points) a.limits.take(x);
  if (a.limits.from > 0 && a.limits.from < a.limits.to / 5) a.limits.from = 0;
  a.limits = a.limits.proper();
  for (std::size_t n = 10; n > 1; --n) {
    a.ticks = round_ticks(a.limits.from, a.limits.to, n);
    a.labels = tick_labels(a.ticks);
    double widest = 0;
    for (std::string const& l : a.labels) widest = std::max(widest, width_of(l) + 2 * letter);
    if (a.ticks.size() < 2 || widest < room * a.limits.share(a.limits.from + a.ticks[1] - a.ticks[0])) break;
  }
  return a;
}

/// As many points as a screen can show: of each column of pixels the first, the lowest, the highest and the
/// last.
inline std::vector<std::pair<double, double>> thinned(std::vector<std::pair<double, double>> const& all) {
  auto const columns = std::size_t(width);
  if (all.size() <= 4 * columns) return all;
  std::vector<std::pair<double, double>> out;
  for (std::size_t c = 0; c < columns; ++c) {
    auto const first = all.begin() + std::ptrdiff_t(c * all.size() / columns),
               end = all.begin() + std::ptrdiff_t((c + 1) * all.size() / columns);
    auto const by_y = [](auto const& a, auto const& b) { return a.second < b.second; };
    auto const [least, most] = std::minmax_element(first, end, by_y);
    out.push_back(*first);
    for (auto const it : {std::min(least, most), std::max(least, most), std::prev(end)})
      if (out.back() != *it) out.push_back(*it);
  }
  return out;
}

struct frame {
  double left, top, wide, high;
};

inline std::string colour(std::size_t n) {
  return fmt::format("line c{}{}", n % colours, n < colours ? "" : " again");
}

inline std::string drawn(chart::line const& l, std::size_t number, frame const& f, axis const& x,
                         axis const& y) {
  std::string path, before;
  bool pen = false;  // is down
  for (auto const& [px, py] : thinned(l.points)) {
    if (!std::isfinite(py) || !std::isfinite(px)) {
      pen = false;
      continue;
    }
    double const at_x = f.left + f.wide * x.limits.share(px);
    std::string const at_y = fmt::format("{:.1f}", f.top + f.high * (1 - y.limits.share(py)));
    if (pen && l.steps) path += fmt::format("L{:.1f} {}", at_x, before);
    // A single point is a line of length zero, of which the round cap shows.
    path += fmt::format("{}{:.1f} {}{}", pen ? "L" : "M", at_x, at_y, pen ? "" : "h0");
    before = at_y;
    pen = true;
  }
  return path.empty()
             ? ""
             : fmt::format("<path class=\"{}\" stroke-linecap=\"round\" d=\"{}\"/>\n", colour(number), path);
}

/// The panel's name and the legend of its lines; sets `at` to where they end.
inline std::string heading(chart::panel const& p, double left, double& at) {
  std::string const name = fitting(p.name, width - right - left);
  std::string out =
      fmt::format("<text class=\"name\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", left, at + 12, escaped(name));
  double x = left + 1.25 * width_of(name) + 2 * letter;
  for (std::size_t n = 0; p.lines.size() > 1 && n < p.lines.size(); ++n) {
    std::string const text = fitting(p.lines[n].name, width - right - left - swatch);
    double const wide = swatch + 6 + width_of(text);
    if (x + wide > width - right) x = left, at += line_height;
    out += fmt::format(
        "<path class=\"{}\" d=\"M{:.0f} {:.0f}h{:.0f}\"/><text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
        colour(n), x, at + 8, swatch, x + swatch + 6, at + 12, escaped(text));
    x += wide + 2 * letter;
  }
  at += line_height;
  return out;
}

}  // namespace detail::svg

EDL_INLINE std::vector<double> round_ticks(double from, double to, std::size_t most) {
  if (!(to > from) || !std::isfinite(to - from) || most == 0) return {};
  double const power = std::pow(10, std::floor(std::log10((to - from) / double(most))));
  for (double const factor : {1, 2, 5, 10, 20}) {
    double const step = factor * power;
    double const first = std::ceil(from / step - 1e-9), last = std::floor(to / step + 1e-9);
    if (!std::isfinite(first) || std::abs(first) > 1e15 || last - first + 1 > double(most)) continue;
    std::vector<double> all;
    for (double i = first; i <= last; ++i) all.push_back(i * step);
    return all;
  }
  return {};
}

EDL_INLINE std::vector<std::string> tick_labels(std::vector<double> const& ticks) {
  if (ticks.empty()) return {};
  double const step = ticks.size() > 1 ? ticks[1] - ticks[0] : std::max(std::abs(ticks[0]), 1.0);
  double const most = std::max(std::abs(ticks.front()), std::abs(ticks.back()));
  double unit = 1;
  char const* name = "";
  for (auto const& [size, letter] : {std::pair{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (unit == 1 && most >= 10 * size && most < 1e16) unit = size, name = letter;
  std::vector<std::string> all;
  for (double const t : ticks) {
    double const v = t / unit;
    double const places = std::ceil(-std::log10(step / unit) - 1e-9);
    if (places > 5 || most >= 1e16)
      all.push_back(std::abs(t) < step / 2 ? "0" : fmt::format("{:.6g}", t));
    else
      all.push_back(std::abs(t) < step / 2 ? "0"
                                           : fmt::format("{:.{}f}{}", v, std::max(0, int(places)), name));
  }
  return all;
}

EDL_INLINE std::string to_svg(chart const& of) {
  using namespace detail::svg;
  std::vector<axis> ys;
  double widest = 0;
  for (chart::panel const& p : of.panels) {
    ys.push_back(y_axis(p));
    for (std::string const& l : ys.back().labels) widest = std::max(widest, width_of(l));
  }
  double const left = edge + widest + letter, wide = width - left - right,
               high = of.panels.size() < 2   ? 280
                      : of.panels.size() < 4 ? 160
                                             : 120;
  axis const x = x_axis(of, wide);
  std::string body;
  double at = title_height;
  for (std::size_t i = 0; i < of.panels.size(); ++i) {
    chart::panel const& p = of.panels[i];
    axis const& y = ys[i];
    body += heading(p, left, at);
    frame const f{left, at + 4, wide, high};
    for (std::size_t t = 0; t < y.ticks.size(); ++t) {
      double const v = f.top + high * (1 - y.limits.share(y.ticks[t]));
      body += fmt::format(
          "<path class=\"grid\" d=\"M{:.1f} {:.1f}h{:.1f}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{}</text>\n",
          left, v, wide, left - letter, v + 4, y.labels[t]);
    }
    for (double const t : x.ticks)
      body += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}v{:.1f}\"/>\n",
                          left + wide * x.limits.share(t), f.top, high);
    body +=
        fmt::format("<rect class=\"frame\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
                    left, f.top, wide, high);
    for (std::size_t n = 0; n < p.lines.size(); ++n) body += drawn(p.lines[n], n, f, x, y);
    at = f.top + high + between;
  }
  for (std::size_t t = 0; t < x.ticks.size(); ++t)
    body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                        left + wide * x.limits.share(x.ticks[t]), at + 2, x.labels[t]);
  body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", left + wide / 2,
                      at + 22, escaped(of.x_name));
  std::string const title = escaped(fitting(of.title, (width - 2 * edge) * 12 / 17));
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
             "height=\"{1:.0f}\">\n<title>{2}</title>\n{3}<rect class=\"back\" width=\"100%\" "
             "height=\"100%\"/>\n<text class=\"title\" x=\"{4:.0f}\" y=\"26\">{2}</text>\n",
             width, at + foot - between, title, style, edge) +
         body + "</svg>\n";
}

}  // namespace edl
