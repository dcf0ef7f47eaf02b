// SPDX-License-Identifier: Apache-2.0
#include "edl/checkpoint/rows.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "edl/checkpoint/layout_digest.hpp"
#include "edl/core/error.hpp"
#include "edl/optim/adagrad.hpp"
#include "edl/optim/rule.hpp"
#include "wire/scratch.hpp"

using namespace edl::checkpoint;
using edl::sparse::table;
using edl::sparse::table_cut;

namespace {

edl::rule<edl::adagrad> const adagrad{edl::adagrad{.learning_rate = 0.1f}};
std::vector<std::string> const slots = adagrad.slots();

edl::parameter_layout layout_of_two() {
  return {.variables = {{"w", {4}, 0}}, .parameters = 4, .state = 0, .tables = {{"words", 3}, {"users", 1}}};
}

/// Two servers' tables, with `rows` ids each in all.
struct servers {
  explicit servers(std::uint64_t rows) {
    for (std::size_t i = 0; i < 4; ++i)
      tables.push_back(std::make_unique<table>(
          edl::sparse::table_options{.width = i % 2 == 0 ? 3 : 1, .seed = i % 2}, adagrad));
    for (std::uint64_t id = 0; id < rows; ++id)
      for (std::size_t t = 0; t < 2; ++t) {
        std::vector<float> const slope(std::size_t(tables[t]->width()), 1);
        std::uint64_t const key = ~id * 3;
        tables[2 * server_of(key) + t]->push(std::span(&key, 1), slope, 0.1f, 0, std::uint32_t(id));
      }
  }

  static std::size_t server_of(std::uint64_t id) { return edl::sparse::id_hash(id).slot() >= 2048; }

  /// A checkpoint of both; its path.
  std::string save(scratch const& dir) {
    auto const layout = layout_of_two();
    std::string path = checkpoint_path(dir.path, 3);
    begin_checkpoint(path);
    manifest all{.job = "j", .version = 3, .layout = layout_digest(layout)};
    std::vector<float> const w(2);
    for (std::uint32_t i = 0; i < 2; ++i) {
      edl::ledger ledger;
      if (i == 1) ledger.apply({{{0, 0}, 0, 1}, 5});
      std::vector<segment> const dense{{{2 * i, 2 * i + 2}, 3, {}}};
      std::vector<segment> const rows{{{2048 * i, 2048 * i + 2048}, 3 + i, ledger}};
      std::vector<edl::view<float>> const of_slots(slots.size(), w);
      all.files.push_back(write_part(path, layout,
                                     {.server = i,
                                      .servers = 2,
                                      .version = 3,
                                      .elements = dense[0].elements,
                                      .variables = w,
                                      .slot_names = slots,
                                      .slots = of_slots,
                                      .segments = dense}));
      std::vector<std::shared_ptr<table_cut const>> cuts;
      for (std::size_t t = 0; t < 2; ++t) cuts.push_back(std::make_shared<table_cut>(*tables[2 * i + t]));
      all.files.push_back(write_rows(path, layout,
                                     {.server = i,
                                      .servers = 2,
                                      .version = 3,
                                      .slots = rows[0].elements,
                                      .tables = cuts,
                                      .slot_names = slots,
                                      .segments = rows}));
    }
    commit_checkpoint(path, all);
    return path;
  }

  std::vector<std::unique_ptr<table>> tables;  // of the first server, then of the second
};

using content = std::map<std::pair<std::size_t, std::uint64_t>, std::vector<float>>;

content content_of(servers& s, edl::element_range of) {
  content all;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t slot = of.first; slot < of.last; ++slot)
      s.tables[i]->for_each(std::uint32_t(slot), [&](auto const& header, edl::view<float> values) {
        auto& row = all[{i % 2, header.id}];
        row.assign(values.begin(), values.end());
        row.push_back(float(header.last_use)), row.push_back(float(header.uses));
      });
  return all;
}

std::vector<segment> read(std::string const& path, edl::element_range of, content& into,
                          edl::parameter_layout const& layout = layout_of_two(),
                          std::vector<std::string> const& names = slots) {
  return read_rows(path, layout, of, names, [&](std::size_t t, auto const& header, edl::view<float> values) {
    auto& row = into[{t, header.id}];
    CHECK(row.empty());
    row.assign(values.begin(), values.end());
    row.push_back(float(header.last_use)), row.push_back(float(header.uses));
  });
}

std::string rows_file(std::string const& path) {
  for (auto const& f : read_manifest(path).files)
    if (is_rows(f.name)) return path + "/" + f.name;
  return {};
}

}  // namespace

TEST_CASE("rows of any number of servers are read by any number of servers") {
  scratch const dir;
  servers s(20'000);
  std::string const path = s.save(dir);
  for (edl::element_range const of :
       {edl::element_range{0, 4096}, {0, 16}, {2000, 2100}, {2048, 4096}, {4080, 4096}}) {
    content got;
    auto const segments = read(path, of, got);
    CHECK(got == content_of(s, of));
    CHECK(segments.front().elements.first == of.first);
    CHECK(segments.back().elements.last == of.last);
    CHECK(segments.size() == (of.first < 2048 && of.last > 2048 ? 2 : 1));
  }
  content got;
  auto const segments = read(path, {0, 4096}, got);
  CHECK(segments[1].steps == 4);
  CHECK(read_segments(path, read_manifest(path).files[3])[0].ledger == segments[1].ledger);
  // The variables beside them are read as ever.
  std::vector<float> variables(4);
  CHECK(read_range(path, layout_of_two(), 0, variables).size() == 1);
}

TEST_CASE("tables without rows are written and read, too") {
  scratch const dir;
  servers s(0);
  content got;
  CHECK(read(s.save(dir), {0, 4096}, got).size() == 2);
  CHECK(got.empty());
}

TEST_CASE("rows of another model, a damaged file and a missing one are told by name") {
  scratch const dir;
  servers s(100);
  std::string const path = s.save(dir);
  content got;
  auto other = layout_of_two();
  other.tables[1].width = 2;
  CHECK_THROWS_WITH_AS(read(path, {0, 4096}, got, other),
                       doctest::Contains("has table \"users\" of width 1 where"), edl::error);
  other.tables.pop_back();
  CHECK_THROWS_WITH_AS(read(path, {0, 4096}, got, other), doctest::Contains("it has other tables"),
                       edl::error);
  CHECK_THROWS_WITH_AS(read(path, {0, 4096}, got, layout_of_two(), {}),
                       doctest::Contains("its optimiser has the slots"), edl::error);
  std::string const name = rows_file(path);
  {
    std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('x');
  }
  CHECK_THROWS_WITH_AS(read(path, {0, 4096}, got), doctest::Contains("is damaged"), edl::error);
  std::filesystem::resize_file(name, std::filesystem::file_size(name) - 5);
  CHECK_THROWS_WITH_AS(read(path, {0, 4096}, got), doctest::Contains("bytes"), edl::error);
  std::filesystem::remove(name);
  CHECK_THROWS_WITH_AS(read(path, {0, 4096}, got), doctest::Contains(name.c_str()), edl::error);
}
