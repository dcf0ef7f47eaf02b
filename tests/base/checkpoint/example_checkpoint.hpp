// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "base/wire/scratch.hpp"
#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/base/checkpoint/layout_digest.hpp"

/// The file of server `i` in a checkpoint.
inline std::string part_of(std::string const& path, std::size_t i) {
  return path + "/" + edl::checkpoint::read_manifest(path).files.at(i).name;
}

/// A model's state, every number different, to be written by any number of servers.
struct example_state {
  edl::parameter_layout layout = odd_layout();
  std::vector<std::string> slot_names{"m", "v"};
  std::vector<float> variables, m, v;

  explicit example_state(float from = 0)
      : variables(layout.size()), m(layout.parameters), v(layout.parameters) {
    std::iota(variables.begin(), variables.end(), from + 0.25f);
    std::iota(m.begin(), m.end(), from + 1000.5f);
    std::iota(v.begin(), v.end(), from - 5000.125f);
  }

  /// What server `i` of `n` has applied.
  static edl::ledger ledger(std::uint32_t i) {
    edl::ledger l;
    l.set_closed(0, 0, 4 + i);
    l.set_open({0, 30}, 3 + i);
    return l;
  }

  edl::checkpoint::manifest::file write(edl::bucket::place const& path, std::uint64_t version,
                                        std::uint32_t i, std::uint32_t n) const {
    auto const range = edl::partition(layout.size(), n, i);
    auto const slot = [&](std::vector<float> const& of) {
      auto const end = std::min(range.last, of.size()), begin = std::min(range.first, of.size());
      return edl::view<float>(of).subspan(begin, end - begin);
    };
    std::vector<edl::view<float>> const slots{slot(m), slot(v)};
    std::vector<edl::checkpoint::segment> const segments{{range, version + i, ledger(i)}};
    return edl::checkpoint::write_part(
        path, layout,
        {.server = i,
         .servers = n,
         .version = version,
         .elements = range,
         .variables = edl::view<float>(variables).subspan(range.first, range.size()),
         .slot_names = slot_names,
         .slots = slots,
         .segments = segments});
  }

  edl::checkpoint::manifest manifest(std::uint64_t version) const {
    edl::checkpoint::manifest all{
        .job = "example", .version = version, .layout = edl::checkpoint::layout_digest(layout)};
    all.minibatch_size = 64, all.records_per_task = 512, all.seed = 1, all.epochs = 2;
    all.shards = {{"a.rec", 1000}};
    return all;
  }

  /// A whole checkpoint of `n` servers; its path.
  std::string write(edl::bucket::place const& directory, std::uint64_t version, std::uint32_t n) const {
    return write_at({0, version}, directory, n);
  }
  std::string write_at(edl::position at, edl::bucket::place const& directory, std::uint32_t n) const {
    std::uint64_t const version = at.version;
    auto const path = directory.at(edl::checkpoint::checkpoint_path(directory.path(), version));
    auto const earlier = edl::checkpoint::begin_checkpoint(path);
    auto all = manifest(version);
    all.generation = at.generation;
    for (std::uint32_t i = 0; i < n; ++i) all.files.push_back(write(path, version, i, n));
    edl::checkpoint::commit_checkpoint(path, all, earlier);
    return path.path();
  }

  /// Reads all of a checkpoint as `n` servers would; whether it is this state.
  bool is_in(std::string const& path, std::uint32_t n = 1) const {
    for (std::uint32_t i = 0; i < n; ++i) {
      auto const range = edl::partition(layout.size(), n, i);
      auto const first = std::min(range.first, layout.parameters);
      std::vector<float> got(range.size()), a(std::min(range.last, layout.parameters) - first), b(a.size());
      std::vector<std::span<float>> const slots{a, b};
      edl::checkpoint::read_range(path, layout, range.first, got, slot_names, slots);
      auto const begins = [](std::vector<float> const& part, auto at) {
        return std::equal(part.begin(), part.end(), at);
      };
      if (!begins(got, variables.begin() + long(range.first)) || !begins(a, m.begin() + long(first)) ||
          !begins(b, v.begin() + long(first)))
        return false;
    }
    return true;
  }
};
