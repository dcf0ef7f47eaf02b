// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/sorted_by.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {
namespace detail {

inline constexpr std::uint64_t sorted_runs = 12, sorted_run = 6, least_sorted = 256;

/// The text of a single-valued feature, of any kind.
inline std::string value_text(example const& record, std::size_t feature) {
  auto const name = record.name(feature);
  return record.kind_of(feature) == example::kind::strings ? std::string(record.bytes(name))
                                                           : fmt::format("{}", record.floating(name));
}

}  // namespace detail

EDL_INLINE std::string sorted_by(source const& of) try {
  using namespace detail;
  std::uint64_t const all = records(of);
  if (all < least_sorted || !of.classes().empty()) return {};
  std::map<std::string, std::vector<std::vector<std::string>>> seen;  // values by feature, run by run
  auto const in = of.open();
  example record;
  for (std::uint64_t run = 0; run < sorted_runs; ++run) {
    std::uint64_t place = (all - sorted_run) / (sorted_runs - 1) * run;
    std::size_t shard = 0;
    for (; place >= of.shards()[shard].records; ++shard) place -= of.shards()[shard].records;
    for (std::uint64_t i = 0; i < sorted_run && place + i < of.shards()[shard].records; ++i) {
      in->read(shard, place + i, record);
      for (std::size_t f = 0; f < record.size(); ++f) {
        if (record.count(record.name(f)) != 1) continue;
        auto& runs = seen[std::string(record.name(f))];
        runs.resize(std::size_t(run) + 1);
        runs.back().push_back(value_text(record, f));
      }
    }
  }
  for (auto const& [name, runs] : seen) {
    std::size_t equal = 0, most = 0;
    std::map<std::string, std::size_t> times;  // of a run's first value
    for (auto const& values : runs) {
      if (values.empty()) continue;
      equal += values.size() > 1 && std::ranges::count(values, values[0]) == std::ptrdiff_t(values.size());
      most = std::max(most, ++times[values[0]]);
    }
    // If values came at random, with one of them in 7 of 10 records, one source in a million would look like
    // this.
    if (4 * equal >= 3 * sorted_runs && 10 * most <= 7 * sorted_runs) return name;
  }
  return {};
} catch (std::exception const&) {  // including errors of a user's reader
  return {};
}

}  // namespace edl::data
