// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/model_file.hpp"

#include <doctest/doctest.h>

#include <map>
#include <numeric>

#include "base/wire/scratch.hpp"
#include "edl/base/checkpoint/other_model.hpp"
#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/durable_file.hpp"

namespace model_file_test {

using namespace edl::checkpoint;

TEST_CASE("a model survives its file") {
  scratch const dir;
  auto const layout = odd_layout();
  std::vector<float> values(layout.size()), read(layout.size());
  std::iota(values.begin(), values.end(), 0.5f);
  export_model(dir / "model.safetensors", layout, values, {}, 938);
  CHECK(entries(dir.path()) == std::vector<std::string>{"model.safetensors"});
  other_model(dir / "model.safetensors").read(layout, {}, 0, read);
  CHECK(read == values);
  safetensors_file const file(dir / "model.safetensors");
  CHECK(file.tensors().size() == layout.variables.size());
  REQUIRE(file.find("batch_norm_1/mean"));
  CHECK(file.find("dense_1/kernel")->dims == std::vector<std::uint64_t>{12, 7});
  CHECK(file.metadata().at("version") == "938");
  CHECK(model_version(dir / "model.safetensors") == 938);
}

TEST_CASE("a file of others has no version") {
  scratch const dir;
  float const value = 1;
  for (std::map<std::string, std::string> const& facts :
       {std::map<std::string, std::string>{}, {{"version", "two"}}, {{"version", "99999999999999999999"}}}) {
    edl::durable_file file(dir / "m");
    tensor_source const only{.name = "a", .dims = {1}, .data = std::as_bytes(std::span(&value, 1))};
    write_safetensors(file, {&only, 1}, facts);
    file.commit();
    CHECK(model_version(dir / "m") == 0);
  }
  CHECK(contains(complaint([&] { model_version(dir / "none"); }), dir / "none"));
}

TEST_CASE("a model of another shape is told by name, and nothing of it is read") {
  scratch const dir;
  auto layout = odd_layout();
  std::vector<float> const values(layout.size(), 1);
  export_model(dir / "m", layout, values, {}, 0);
  CHECK(other_model(dir / "m").match(layout, {}).whole());
  layout.variables[3].dims = {7, 12}, layout.variables[4].name = "batch_norm_2/mean";
  other_model const from(dir / "m");
  auto const match = from.match(layout, {});
  CHECK(match.other_shape ==
        std::vector<std::string>{"dense_1/kernel (F32 [12, 7] there, F32 [7, 12] here)"});
  CHECK(match.missing == std::vector<std::string>{"batch_norm_2/mean"});
  std::vector<float> read(layout.size(), -1);
  from.read(layout, {}, 0, read);
  for (std::size_t i : {3, 4})
    for (std::size_t at = 0; at < layout.variables[i].dims.size(); ++at)
      CHECK(read[layout.variables[i].offset + at] == -1);
  CHECK(contains(complaint([&] { export_model(dir / "m", layout, edl::view<float>(read).first(3), {}, 0); }),
                 "3 values"));
}

TEST_CASE("the rows of tables are exported beside the variables, and read some at a time") {
  scratch const dir;
  auto layout = odd_layout();
  layout.tables = {{"words", 3}, {"none", 2}};
  std::vector<float> const values(layout.size(), 1);
  edl::rule<edl::adagrad> const adagrad{edl::adagrad{}};
  edl::sparse::table words({.width = 3, .seed = 5}, adagrad), none({.width = 2}, adagrad);
  std::vector<std::uint64_t> ids;
  for (std::uint64_t id = 0; id < 10'000; ++id) ids.push_back(~id * id);
  words.push(ids, std::vector<float>(ids.size() * 3, 0.5f), 0.1f, 0, 1);
  edl::sparse::table_snapshot const a(words), b(none);
  std::vector<edl::checkpoint::row_source> const sources{edl::checkpoint::rows_of(a),
                                                         edl::checkpoint::rows_of(b)};
  export_model(dir / "m", layout, values, sources, 1);
  std::vector<float> read(layout.size());
  other_model(dir / "m").read(layout, {}, 0, read);
  CHECK(read == values);
  std::size_t rows = 0;
  import_rows(dir / "m", layout,
              [&](std::size_t table, edl::view<std::uint64_t> some, edl::view<float> weights) {
                CHECK(table == 0);
                std::vector<float> want(some.size() * 3);
                words.pull(some, want);
                CHECK(std::ranges::equal(weights, want));
                rows += some.size();
              });
  CHECK(rows == words.size());
  CHECK(contains(complaint([&] { export_model(dir / "m", layout, values, {}, 1); }),
                 "0 tables for a model of 2"));
  layout.tables[0].width = 4;
  auto const import = [&] { import_rows(dir / "m", layout, [](auto, auto, auto) {}); };
  CHECK(contains(complaint(import), "the model has rows of 4 values"));
  layout.tables[0].name = "verbs";
  CHECK(contains(complaint(import), "lacks table 'verbs' of the model"));
}

TEST_CASE("a bit that flips in a model's file is noticed, and a file of others is not asked for a checksum") {
  scratch const dir;
  auto const layout = odd_layout();
  std::vector<float> const values(layout.size(), 1);
  std::string const path = dir / "model.safetensors";
  export_model(path, layout, values, {}, 938, {.seed = 7, .hyperparameters = "rate=0.1"});
  check_model(path);
  std::string const good = slurp(path);
  int told = 0, tried = 0;
  for (std::size_t at = 8 + 26; at < good.size(); at += 7, ++tried) {
    std::string bad = good;
    bad[at] = char(bad[at] ^ 1);
    spill(path, bad);
    told += contains(complaint([&] { check_model(path); }), path + " is damaged: its CRC-32 is ");
  }
  CHECK(told == tried);
  float const value = 1;
  edl::durable_file file(dir / "m");
  tensor_source const only{.name = "a", .dims = {1}, .data = std::as_bytes(std::span(&value, 1))};
  write_safetensors(file, {&only, 1}, {{"about", "crc32"}});
  file.commit();
  check_model(dir / "m");
}

}  // namespace model_file_test
