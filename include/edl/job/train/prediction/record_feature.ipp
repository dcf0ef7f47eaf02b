// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "edl/cli/nearest.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"
#include "edl/job/train/prediction/record_feature.hpp"

namespace edl {
namespace detail {

inline constexpr std::size_t most_values = std::size_t(1) << 24;

inline std::size_t count_of(record_feature const& f) {
  if (f.extents == std::vector<std::size_t>{0}) return std::max<std::size_t>(f.usual, 1);
  return std::accumulate(f.extents.begin(), f.extents.end(), std::size_t(1), std::multiplies<>());
}

inline void build(example& record, std::vector<record_feature> const& features) {
  example_builder to(record);
  for (record_feature const& f : features) {
    std::size_t const n = count_of(f);
    if (f.kind == example::kind::strings)
      to.bytes(f.name, std::vector<std::string_view>(n, f.text));
    else if (f.kind == example::kind::integers)
      std::ranges::fill(to.integers(f.name, n), 0);
    else
      std::ranges::fill(to.floats(f.name, n), 0.0f);
  }
}

/// Determines the features that `feed` needs: adds features until it accepts the record, or fails for another
/// reason.
inline std::vector<record_feature> needed_by(std::function<void(example const& record)> const& feed,
                                             std::size_t values) {
  constexpr int most_tries = 2000;
  std::vector<record_feature> all;
  example record;
  bool open = false;     // the number of the last one's values is a guess
  bool guessed = false;  // the last one's extents are the network's, for lack of other information
  for (int i = 0; i < most_tries; ++i) {
    detail::build(record, all);
    try {
      feed(record);
      return all;
    } catch (feature_error const& e) {
      auto at = std::ranges::find(all, e.feature, &record_feature::name);
      if (at == all.end()) {
        all.push_back({e.feature, e.kind, e.extents});
        open = e.kind == example::kind::floats && e.extents.empty() && !e.one;
        continue;
      }
      record_feature const before = *at;
      if (e.kind != example::kind::none) at->kind = e.kind;
      if (!e.extents.empty() || e.one) at->extents = e.extents;
      if (at->kind == before.kind && at->extents == before.extents) return all;
      if (detail::count_of(*at) > most_values || detail::count_of(*at) == 0) {
        *at = before;
        return all;
      }
      open = false;
    } catch (std::exception const& e) {
      auto const* const count = dynamic_cast<count_error const*>(&e);
      std::size_t const wanted = count ? count->wanted : values;
      if (!open || wanted <= 1 || wanted > most_values) {
        if (guessed) all.back().extents.clear();
        return all;
      }
      all.back().extents = {wanted};
      open = false, guessed = true;
      continue;
    }
    guessed = false;
  }
  return all;
}

/// Determines what `feed` accepts for an optional feature; assumes a number if nothing shows it.
inline record_feature taken_by(std::function<void(example const& record)> const& feed,
                               std::vector<record_feature> others, std::string const& name) {
  example record;
  others.push_back({name, example::kind::floats, {}});
  record_feature& one = others.back();
  for (int i = 0; i < 3; ++i) try {  // first its kind, then its extents
      build(record, others);
      feed(record);
      break;
    } catch (feature_error const& e) {
      if (e.feature != name) break;
      record_feature const before = one;
      if (e.kind != example::kind::none) one.kind = e.kind;
      one.extents = e.extents;
      if (count_of(one) <= most_values && count_of(one) > 0) continue;
      one = before;
      break;
    } catch (std::exception const&) {
      break;
    }
  return one;
}

}  // namespace detail

EDL_INLINE found_features features_read_by(std::function<void(example const& record)> const& feed,
                                           std::size_t values, std::vector<record_feature> known) {
  bool const is_known = !known.empty();
  found_features found{is_known ? std::move(known) : detail::needed_by(feed, values)};
  std::map<std::string, asked_features::asked, std::less<>> asked;
  {
    asked_features listening;
    example record;
    detail::build(record, found.all);
    try {
      feed(record);
    } catch (std::exception const& e) {
      if (!is_known) found.unknown = e.what();
    }
    asked = std::move(listening.all);
  }
  if (!is_known)
    for (record_feature& f : found.all) f.usual = 0;
  auto const needed = found.all;
  for (auto const& [name, how] : asked)
    if (std::ranges::find(needed, name, &record_feature::name) == needed.end()) {
      found.all.push_back(detail::taken_by(feed, needed, name));
      found.all.back().needed = false;
      found.all.back().usual = 0;
    }
  return found;
}

namespace detail {

/// Removes what distinguishes texts: "2026-11-28" and "1999-01-07" both become "1111-11-11".
inline std::string pattern_of(std::string_view text) {
  constexpr std::size_t longest = 64;
  std::string made(text.substr(0, longest));
  for (char& c : made)
    if (c >= '0' && c <= '9')
      c = '1';
    else if (c >= 'a' && c <= 'z')
      c = 'a';
    else if (c >= 'A' && c <= 'Z')
      c = 'A';
    else if (c < ' ' || c > '~')
      c = '?';
  return made;
}

EDL_INLINE void copy_but(example const& from, std::string_view but, example& into,
                         std::function<void(example_builder&)> const& put) {
  example_builder to(into);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::string_view const name = from.name(i);
    if (name == but) {
      put(to);
      continue;
    }
    if (from.kind_of(i) == example::kind::floats) {
      to.floats(name, from.float_values(name));
    } else if (from.kind_of(i) == example::kind::integers) {
      to.integers(name, from.integer_values(name));
    } else {
      std::vector<std::string_view> texts;
      for (std::size_t n = 0; n < from.count(name); ++n) texts.push_back(from.bytes(name, n));
      to.bytes(name, texts);
    }
    to.extents(from.extents(name));
  }
}

/// What records show about a feature that `feed` requests.
struct shown_feature {
  std::size_t place = 0;
  example::kind asked = example::kind::none, had = example::kind::none;
  std::vector<std::size_t> read{}, given{};  // extents
  std::optional<std::size_t> count{};        // in the first record that has it
  bool varies = false;
  std::string text{};

  void see(asked_features::asked const& how, example const& record, std::string const& name) {
    place = how.place, asked = how.kind;
    if (!how.extents.empty()) read = how.extents;
    for (std::size_t i = 0; i < record.size(); ++i) {
      if (record.name(i) != name) continue;
      varies = varies || record.count(name) == 0;
      if (record.count(name) == 0) continue;
      auto const kind = record.kind_of(i);
      had = had == example::kind::none || had == example::kind::integers ? kind : had;
      varies = varies || (count && *count != record.count(name));
      if (count) continue;
      count = record.count(name);
      auto const in = record.extents(name);
      given.assign(in.begin(), in.end());
      if (kind == example::kind::strings) text = pattern_of(record.bytes(name, 0));
    }
  }

  record_feature made(std::string const& name) const {
    record_feature f{.name = name, .kind = asked == example::kind::none ? had : asked, .extents = {}};
    std::size_t const n = count.value_or(1);
    if (f.kind == example::kind::none) f.kind = example::kind::floats;
    if (read.size() > 1 || (!read.empty() && given.size() < 2))
      f.extents = read;
    else if (varies)
      f.extents = {0}, f.usual = n;
    else if (given.size() > 1)
      f.extents = given;
    else if (n != 1)
      f.extents = {n};
    if (f.kind == example::kind::strings) f.text = text;
    return f;
  }
};

inline constexpr std::size_t most_fed = 16, most_inputs = 16'384, longest_facts = 1 << 20;

inline bool takes(std::function<void(example const& record)> const& feed, example const& record) {
  try {
    feed(record);
    return true;
  } catch (std::exception const&) {
    return false;
  }
}

}  // namespace detail

EDL_INLINE record_facts facts_of(std::function<void(example const& record)> const& feed,
                                 data::source const& from) try {
  using clock = std::chrono::steady_clock;
  auto const until = clock::now() + std::chrono::seconds(1);
  std::map<std::string, detail::shown_feature> shown;
  auto const reader = from.open();
  example record, first;
  std::size_t fed = 0;
  for (std::size_t shard = 0; shard < from.shards().size(); ++shard)
    for (std::uint64_t i = 0; i < from.shards()[shard].records; ++i) {
      if (fed == detail::most_fed || clock::now() > until) break;
      ++fed;
      asked_features asked;
      try {
        reader->read(shard, i, record);
        asked.all.clear();
        feed(record);
      } catch (std::exception const&) {
        continue;  // training reports the error
      }
      auto const all = std::move(asked.all);
      for (auto const& [name, how] : all) shown[name].see(how, record, name);
      if (first.size() == 0) first = record;
    }
  record_facts facts;
  facts.classes.assign(from.classes().begin(), from.classes().end());
  if (shown.size() > detail::most_inputs) return facts;
  for (auto const& [name, one] : shown) {
    record_feature& f = facts.inputs.emplace_back(one.made(name));
    if (clock::now() > until) continue;
    detail::copy_but(first, name, record, [](example_builder&) {});
    f.needed = !detail::takes(feed, record);
    // The feature may have had only whole numbers although fractions are allowed.
    if (f.kind != example::kind::integers) continue;
    std::vector<float> const fractions(detail::count_of(f), 0.5f);
    detail::copy_but(first, name, record, [&](example_builder& to) { to.floats(name, fractions); });
    if (first.contains(name) && detail::takes(feed, record)) f.kind = example::kind::floats;
  }
  std::ranges::sort(facts.inputs, [&](record_feature const& a, record_feature const& b) {
    return std::pair(!a.needed, shown[a.name].place) < std::pair(!b.needed, shown[b.name].place);
  });
  for (record_feature& f : facts.inputs) {
    if (f.text.empty()) continue;
    std::vector<std::string_view> const texts(detail::count_of(f), f.text);
    detail::copy_but(first, f.name, record, [&](example_builder& to) { to.bytes(f.name, texts); });
    if (clock::now() > until || !detail::takes(feed, record)) f.text.clear();
  }
  return facts;
} catch (std::exception const&) {
  return {};
}

EDL_INLINE std::string to_text(record_facts const& of) try {
  using nlohmann::json;
  if (of.inputs.empty() && of.classes.empty() && (of.missing.empty() || of.missing == "auto")) return {};
  json inputs = json::array();
  for (record_feature const& f : of.inputs) {
    json& one = inputs.emplace_back(json{{"name", f.name}, {"kind", int(f.kind)}, {"extents", f.extents}});
    if (!f.needed) one["needed"] = false;
    if (f.usual != 1) one["usual"] = f.usual;
    if (!f.text.empty()) one["text"] = f.text;
  }
  json all{{"inputs", std::move(inputs)}};
  if (!of.classes.empty()) all["classes"] = of.classes;
  if (!of.missing.empty()) all["missing"] = of.missing;
  std::string text = all.dump();
  return text.size() > detail::longest_facts ? std::string() : text;
} catch (nlohmann::json::type_error const&) {
  return {};
}

EDL_INLINE record_facts read_facts(std::string_view text) try {
  using nlohmann::json;
  if (text.empty() || text.size() > detail::longest_facts) return {};
  json const all = parse_json(text);
  if (!all.is_object()) return {};
  record_facts facts;
  for (json const& one : all.at("inputs")) {
    auto const kind = one.at("kind").get<int>();
    record_feature& f =
        facts.inputs.emplace_back(record_feature{.name = one.at("name").get<std::string>(),
                                                 .kind = example::kind(kind),
                                                 .extents = one.at("extents").get<std::vector<std::size_t>>(),
                                                 .needed = one.value("needed", true),
                                                 .usual = one.value("usual", std::size_t(1)),
                                                 .text = one.value("text", std::string())});
    std::size_t count = 1;
    for (std::size_t const e : f.extents) {
      if (e > detail::most_values / std::max<std::size_t>(count, 1)) return {};
      count *= e;
    }
    if (kind < 1 || kind > 3 || f.extents.size() > 8 || f.usual > detail::most_values) return {};
  }
  facts.classes = all.value("classes", std::vector<std::string>());
  facts.missing = all.value("missing", std::string());
  return facts;
} catch (nlohmann::json::exception const&) {
  return {};
}

EDL_INLINE void check_extents(record_feature const& f, view<std::size_t> given) {
  if (fits_extents(given, f.extents)) return;
  std::string const wanted = f.extents == std::vector<std::size_t>{0} ? "a list" : shown_extents(f.extents);
  throw data_error(
      fmt::format("'{}' is {} of a record, and the model takes {}: give the values in that order, "
                  "or as a flat list",
                  printable(f.name, 64), shown_extents(given), wanted));
}

EDL_INLINE void check_records(record_facts const& known, data::source const& of) {
  auto const has_order = [](record_feature const& f) {
    return std::ranges::count_if(f.extents, [](std::size_t e) { return e != 1; }) > 1;
  };
  if (std::ranges::none_of(known.inputs, has_order)) return;
  auto const in = of.open();
  example record;
  for (std::size_t shard = 0; shard < of.shards().size(); ++shard) {
    if (of.shards()[shard].records == 0) continue;
    try {
      in->read(shard, 0, record);
    } catch (data_error const&) {
      continue;  // reported when it is its turn
    }
    data::at_record(of, shard, 0, [&] {
      for (record_feature const& f : known.inputs)
        if (has_order(f) && record.count(f.name) > 0) check_extents(f, record.extents(f.name));
    });
  }
}

EDL_INLINE std::string missing_features(record_facts const& known, data::source const& of,
                                        std::string_view given) {
  std::vector<std::string> const present = of.features();
  if (present.empty()) return {};
  auto const is_there = [&](std::string const& name) {
    return std::ranges::find(present, name) != present.end();
  };
  std::vector<std::string> not_taken;
  for (std::string const& name : present)
    if (std::ranges::find(known.inputs, name, &record_feature::name) == known.inputs.end())
      not_taken.push_back(name);
  std::string missing;
  for (record_feature const& f : known.inputs) {
    if (is_there(f.name)) continue;
    auto const other_case =
        std::ranges::find(not_taken, lower(f.name), [](std::string const& c) { return lower(c); });
    std::string const name = printable(f.name, 64),
                      like = other_case != not_taken.end() ? *other_case : cli::nearest(f.name, not_taken);
    if (!like.empty())
      throw data_error(
          fmt::format("{} has no column '{}', which the model takes, but '{}', which it does not take: give "
                      "both the same name, or add an empty column '{}' if they differ in meaning",
                      given, name, printable(like, 64), name));
    if (f.needed) throw data_error(fmt::format("{} has no column '{}', which the model needs", given, name));
    missing += fmt::format("{}'{}'", missing.empty() ? "" : ", ", name);
  }
  return missing.empty() ? missing
                         : fmt::format("{} has no column {}, which the model takes: all its records lack it",
                                       given, missing);
}

EDL_INLINE std::string stray_feature(std::span<std::string_view const> given,
                                     std::span<record_feature const> inputs) {
  auto const stray = std::ranges::find_if(given, [&](std::string_view name) {
    return std::ranges::find(inputs, name, &record_feature::name) == inputs.end();
  });
  if (stray == given.end()) return {};
  std::string all;
  bool complete = true;
  for (record_feature const& f : inputs) {
    all += (all.empty() ? "" : ", ") + f.name;
    complete &= std::ranges::find(given, f.name) != given.end();
  }
  if (complete) return {};
  return fmt::format(
      "the model takes no input '{}'; it takes {}: others are ignored only where all of these are "
      "given, if as null",
      printable(*stray), all);
}

}  // namespace edl
