// SPDX-License-Identifier: Apache-2.0
#include "data/survey.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "edl/compute/data/format/picture.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"

namespace edl::tool {
namespace {

/// Calls `take(shard, record)` for at most `limit` records of a source, evenly spread, in order.
template <class Take>
void each_of(data::source const& of, std::uint64_t limit, Take&& take) {
  std::uint64_t const all = data::records(of), wanted = std::min(all, limit);
  std::uint64_t first = 0;
  std::size_t shard = 0;
  for (std::uint64_t i = 0; i < wanted; ++i) {
    // Not i · all / wanted, which may be too large.
    std::uint64_t const place = i * (all / wanted) + i * (all % wanted) / wanted;
    while (place - first >= of.shards()[shard].records) first += of.shards()[shard++].records;
    take(shard, place - first);
  }
}

void count(seen_feature& f, std::string word) {
  if (f.many) return;
  ++f.distinct[std::move(word)];
  f.many = f.distinct.size() > most_distinct;
  if (f.many) f.distinct = {};
}

void see(seen_feature& f, example const& record, std::size_t feature) {
  auto const name = record.name(feature);
  auto const what = record.kind_of(feature);
  std::size_t const values = record.count(name);
  ++f.records;
  f.least_values = std::min(f.least_values, values);
  f.most_values = std::max(f.most_values, values);
  f.mixed = f.mixed || (f.kind != example::kind::none && f.kind != what);
  f.kind = what;
  auto const number = [&](double x) {
    if (!std::isfinite(x)) {
      ++f.not_finite;
      return;
    }
    f.min = std::min(f.min, x);
    f.max = std::max(f.max, x);
  };
  if (what == example::kind::floats)
    for (float const x : record.float_values(name)) number(double(x));
  if (what == example::kind::integers)
    for (std::int64_t const x : record.integer_values(name)) {
      number(double(x));
      f.least = std::min(f.least, x), f.most = std::max(f.most, x);
    }
  if (values != 1) return;
  if (what == example::kind::integers) count(f, fmt::format("{}", record.integer(name)));
  if (what != example::kind::strings) return;
  if (record.bytes(name).empty())
    ++f.blank;
  else
    count(f, std::string(record.bytes(name)));
}

char const* name_of(example::kind k) {
  constexpr char const* names[]{"empty", "bytes", "floats", "integers"};
  return names[std::size_t(k)];
}

/// A list of numbers: all of a short one, the beginning and the range of a long one.
template <class Values>
std::string described(Values const& values, char const* kind) {
  constexpr std::size_t shown = 8;
  std::string text;
  if (values.size() > shown) {
    text = fmt::format("{} {}", values.size(), kind);
    std::vector<std::ranges::range_value_t<Values>> finite;
    std::ranges::copy_if(values, std::back_inserter(finite), [](auto x) { return std::isfinite(double(x)); });
    if (!finite.empty())
      text += fmt::format(", {} to {}", std::ranges::min(finite), std::ranges::max(finite));
    if (finite.size() < values.size()) text += fmt::format(", {} not finite", values.size() - finite.size());
    text += ": ";
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(values.size(), shown); ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", values[i]);
  return text + (values.size() > shown ? ", …" : values.empty() ? "no values" : "");
}

/// The picture of a record; none where it has no such feature.
std::optional<picture> find_picture(example const& record) {
  if (!record.contains("image")) return std::nullopt;
  if (record.contains("height") && record.contains("width")) return picture_of(record);
  auto const values = record.float_values("image");
  for (int const channels : {1, 3}) {
    auto const side = int(std::lround(std::sqrt(double(values.size()) / channels)));
    if (side > 0 && std::size_t(side) * std::size_t(side) * std::size_t(channels) == values.size())
      return picture{{side, side, channels}, values};
  }
  return std::nullopt;
}

}  // namespace

survey survey_records(data::source const& of, std::uint64_t limit) {
  survey s;
  auto const in = of.open();
  example record;
  each_of(of, limit, [&](std::size_t shard, std::uint64_t number) {
    try {
      in->read(shard, number, record);
    } catch (data_error const&) {
      ++s.unreadable;
      return;
    }
    ++s.records;
    for (std::size_t f = 0; f < record.size(); ++f) see(s.features[std::string(record.name(f))], record, f);
  });
  return s;
}

std::string number_text(nlohmann::json const& number) {
  return number.is_number_integer() ? number.dump() : fmt::format("{}", float(number.get<double>()));
}

nlohmann::json describe(survey const& s) {
  auto list = nlohmann::json::array();
  for (auto const& [name, f] : s.features) {
    nlohmann::json j{{"name", printable(name, 64)},
                     {"kind", f.mixed ? "several kinds" : name_of(f.kind)},
                     {"missing", s.records - f.records + f.blank}};
    j["values"] = f.least_values;
    if (f.most_values > f.least_values) j["most_values"] = f.most_values;
    if (f.kind == example::kind::integers && !f.mixed && f.least <= f.most)
      j["min"] = f.least, j["max"] = f.most;
    else if (f.min <= f.max)
      j["min"] = f.min, j["max"] = f.max;
    if (f.kind == example::kind::floats || f.not_finite > 0) j["not_finite"] = f.not_finite;
    if (!f.distinct.empty()) j["distinct"] = f.distinct.size();
    if (f.many) j["distinct"] = fmt::format("more than {}", most_distinct);
    list.push_back(std::move(j));
  }
  return list;
}

std::string describe(example const& record) {
  std::map<std::string, std::string> lines;
  std::size_t width = 0;
  for (std::size_t i = 0; i < record.size(); ++i) {
    auto const name = record.name(i);
    std::string const shown = printable(name, 64);
    width = std::max(width, shown.size());
    std::string& text = lines[shown];
    if (record.kind_of(i) == example::kind::floats) text = described(record.float_values(name), "floats");
    if (record.kind_of(i) == example::kind::integers)
      text = described(record.integer_values(name), "integers");
    for (std::size_t k = 0;
         record.kind_of(i) == example::kind::strings && k < std::min<std::size_t>(record.count(name), 8); ++k)
      text += fmt::format("{}\"{}\"", k > 0 ? ", " : "", printable(record.bytes(name, k), 60));
  }
  std::string all;
  for (auto const& [name, text] : lines) all += fmt::format("  {:<{}}  {}\n", name, width, text);
  return all;
}

contact_sheet make_contact_sheet(data::source const& of, std::size_t most) {
  constexpr int side = 64, gap = 4;
  struct cell {
    std::int64_t label = 0;
    shape extents;
    std::vector<float> values;
  };
  std::vector<cell> cells;
  auto const in = of.open();
  example record;
  bool labelled = true;
  std::string none;
  each_of(of, most, [&](std::size_t shard, std::uint64_t number) {
    try {
      in->read(shard, number, record);
      auto const found = find_picture(record);
      if (!found) return;
      double const scale = double(side) / std::max(found->extents.height, found->extents.width);
      cell c;
      c.extents = {std::max(1, int(std::lround(found->extents.height * scale))),
                   std::max(1, int(std::lround(found->extents.width * scale))), 3};
      c.values.resize(c.extents.size());
      resize(*found, c.extents, c.values);
      labelled = labelled && record.count("label") == 1;
      if (labelled) c.label = std::int64_t(record.floating("label"));
      cells.push_back(std::move(c));
    } catch (data_error const& e) {
      none = e.what();
    }
  });
  if (cells.empty())
    throw data_error(none.empty() ? "the records have no pictures: a feature 'image' of floats" : none);
  std::ranges::stable_sort(cells, {}, &cell::label);
  contact_sheet sheet;
  sheet.pictures = cells.size();
  sheet.columns =
      std::min<std::size_t>(std::size_t(std::ceil(std::sqrt(double(cells.size())))), cells.size());
  std::size_t const rows = (cells.size() + sheet.columns - 1) / sheet.columns;
  sheet.picture.extents = {int(rows) * (side + gap) + gap, int(sheet.columns) * (side + gap) + gap, 3};
  sheet.picture.values.assign(sheet.picture.extents.size(), 255);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cell const& c = cells[i];
    if (labelled) sheet.labels.push_back(c.label);
    std::size_t const top = i / sheet.columns * (side + gap) + gap + std::size_t(side - c.extents.height) / 2,
                      left = i % sheet.columns * (side + gap) + gap + std::size_t(side - c.extents.width) / 2,
                      row = 3 * std::size_t(c.extents.width);
    for (std::size_t y = 0; y < std::size_t(c.extents.height); ++y)
      for (std::size_t x = 0; x < row; ++x)
        sheet.picture.values[(top + y) * 3 * std::size_t(sheet.picture.extents.width) + 3 * left + x] =
            std::uint8_t(std::clamp(std::lround(c.values[y * row + x]), 0l, 255l));
  }
  return sheet;
}

}  // namespace edl::tool
