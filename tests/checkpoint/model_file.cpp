// SPDX-License-Identifier: Apache-2.0
#include "edl/checkpoint/model_file.hpp"

#include <doctest/doctest.h>

#include <map>
#include <numeric>

#include "edl/checkpoint/safetensors.hpp"
#include "edl/core/durable_file.hpp"
#include "wire/scratch.hpp"

using namespace edl::checkpoint;

TEST_CASE("a model survives its file") {
  scratch const dir;
  auto const layout = odd_layout();
  std::vector<float> values(layout.size()), read(layout.size());
  std::iota(values.begin(), values.end(), 0.5f);
  export_model(dir / "model.safetensors", layout, values, 938);
  CHECK(entries(dir.path) == std::vector<std::string>{"model.safetensors"});
  import_model(dir / "model.safetensors", layout, read);
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

TEST_CASE("a model of another shape is refused by name, and nothing is read") {
  scratch const dir;
  auto layout = odd_layout();
  std::vector<float> const values(layout.size(), 1);
  export_model(dir / "m", layout, values, 0);
  std::vector<float> read(layout.size(), -1);
  layout.variables[3].dims = {7, 12};
  CHECK(contains(complaint([&] { import_model(dir / "m", layout, read); }), "'dense_1/kernel'"));
  layout.variables[3].dims = {12, 7}, layout.variables[4].name = "batch_norm_2/mean";
  CHECK(contains(complaint([&] { import_model(dir / "m", layout, read); }),
                 "lacks variable 'batch_norm_2/mean'"));
  CHECK(read == std::vector<float>(layout.size(), -1));
  CHECK(contains(complaint([&] { import_model(dir / "m", layout, std::span(read).first(3)); }), "3 values"));
  CHECK(contains(complaint([&] { export_model(dir / "m", layout, edl::view<float>(read).first(3), 0); }),
                 "3 values"));
}
