// SPDX-License-Identifier: Apache-2.0
#include "common/columns.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "edl/compute/data/source.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"

namespace edl::tool {
namespace {

/// Values of a feature that are kept, of many, each with the same chance, to cut them into buckets.
constexpr std::size_t most_sampled = 65'536;

/// A text that is longer is no word of a vocabulary.
constexpr std::size_t longest_word = 256;

/// Why a text cannot stand in a file of words, which has one a line, without blanks at its ends; empty: it
/// can.
char const* oddity(std::string_view word) {
  if (word.size() > longest_word) return "is longer than 256 bytes";
  if (!is_utf8(word)) return "is not UTF-8";
  if (printable(word, longest_word) != word) return "has a line end or another control character";
  return word.starts_with(' ') || word.ends_with(' ') ? "has a blank at an end" : "";
}

}  // namespace

void column::take(double x, random_stream const& random) {
  if (!std::isfinite(x)) {
    ++not_finite;
    return;
  }
  ++values;
  min = std::min(min, x);
  max = std::max(max, x);
  double const before = x - mean;  // Welford, 1962
  mean += before / double(values);
  squares += before * (x - mean);
  if (sampled.size() < most_sampled)
    sampled.push_back(x);
  else if (std::uint64_t const at = random.below(values, values); at < most_sampled)
    sampled[at] = x;  // Vitter's algorithm R, 1985
}

void column::count(std::string_view word, std::size_t limit, std::function<std::string()> const& place) {
  if (many) return;
  if (auto const it = words.find(std::string(word)); it != words.end()) {
    ++it->second;
  } else if (char const* const why = oddity(word); *why) {
    countable = false;
    if (odd++ == 0) odd_one = fmt::format("'{}' ({}) {}", printable(word, 32), place(), why);
  } else if (words.size() < limit) {
    words.emplace(word, 1);
  } else {
    many = true, countable = false;
    words = {};
  }
}

double column::deviation() const { return std::sqrt(squares / double(std::max<std::uint64_t>(values, 1))); }

columns read_columns(data::source const& from, std::size_t most_words) {
  columns all;
  auto const in = from.open();
  example record;
  random_stream const random(1);
  std::uint64_t done = 0;
  std::uint64_t const records = data::records(from);
  for (std::size_t s = 0; s < from.shards().size(); ++s)
    for (std::uint64_t i = 0; i < from.shards()[s].records; ++i) {
      in->read(s, i, record);
      for (std::size_t f = 0; f < record.size(); ++f) {
        std::string_view const name = record.name(f);
        auto it = all.find(name);
        if (it == all.end()) it = all.emplace(name, column{.kind = record.kind_of(f)}).first;
        column& c = it->second;
        auto const place = [&] { return data::place_of(from, s, i); };
        if (record.kind_of(f) != c.kind && record.kind_of(f) != example::kind::none)
          throw data_error(fmt::format("{}: record {}: feature '{}' has another kind than before",
                                       from.shards()[s].name, i, printable(name, 64)));
        ++c.records;
        if (c.kind == example::kind::floats) {
          for (float const x : record.float_values(name)) c.take(x, random);
        } else if (c.kind == example::kind::integers) {
          for (std::int64_t const x : record.integer_values(name)) {
            c.take(double(x), random);
            c.least = std::min(c.least, x), c.most = std::max(c.most, x);
            c.count(fmt::format_int(x).str(), most_words, place);
          }
        } else if (c.kind == example::kind::strings) {
          c.values += record.count(name);
          for (std::size_t k = 0; k < record.count(name); ++k)
            c.count(record.bytes(name, k), most_words, place);
        }
      }
      if (++done % 100'000 == 0 && ::isatty(2) == 1) fmt::print(stderr, "\r{}/{} records", done, records);
    }
  if (done >= 100'000 && ::isatty(2) == 1) fmt::print(stderr, "\r{}/{} records\n", done, records);
  return all;
}

/// The words, the most frequent first.
std::vector<std::string> vocabulary_of(column const& c) {
  std::vector<std::pair<std::string, std::uint64_t>> sorted(c.words.begin(), c.words.end());
  std::ranges::sort(sorted, [](auto const& a, auto const& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> words;
  for (auto& [word, times] : sorted) words.push_back(std::move(word));
  return words;
}

}  // namespace edl::tool
