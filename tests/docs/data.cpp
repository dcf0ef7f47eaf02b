// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/data.md, which the build cuts out of the document in its order.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "compute/data/support.hpp"
#include "edl/author/model_learner.hpp"
#include "edl/compute/data/format/record_file.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/edl.hpp"

namespace nn = edl::nn;

namespace data_md {
#include "data-count.inc"
static_assert(snippets == 3, "docs/data.md has another number of snippets than this file uses");

#include "data-1.inc"
#include "data-2.inc"
#include "data-3.inc"

}  // namespace data_md

namespace {

/// Runs the document's program by a command line.
template <class Model>
int run(std::vector<std::string> line) {
  line.insert(line.begin(), "pump");
  std::vector<char*> argv;
  for (std::string& word : line) argv.push_back(word.data());
  argv.push_back(nullptr);
  return edl::run<Model>(int(line.size()), argv.data());
}

}  // namespace

TEST_CASE("a picture of any size feeds the documents' network") {
  edl::author::model_learner<data_md::flowers> const learner(edl::cpu::open({}), {});
  edl::example record;
  edl::example_builder made(record);
  std::ranges::fill(made.floats("image", 40 * 50), 255.0f);
  made.integer("height", 40);
  made.integer("width", 50);
  made.integer("label", 3);
  auto b = edl::data::make_batch(1, learner.facts().input.size(), 0, 1);
  learner.feed(record, b, 0, edl::mode::training);
  CHECK(b.features[0] == doctest::Approx(1));
  CHECK(b.features[32 * 32 * 3 - 1] == doctest::Approx(1));
}

TEST_CASE("the documents' writer makes a file that is read") {
  support::scratch const dir;
  data_md::write_squares(dir / "data-00000");
  auto const from = edl::data::open_source(dir.path());
  CHECK(edl::data::records(*from) == 1000);
  edl::example record;
  from->open()->read(0, 12, record);
  CHECK(record.floating("x") == 12);
  CHECK(record.integer("square") == 144);
}

TEST_CASE("the documents' model trains on a format of its own") {
  support::scratch const dir;
  {
    std::ofstream out(dir / "a.readings", std::ios::binary);
    edl::random_stream const random(1, 0);
    for (std::uint64_t i = 0; i < 1280; ++i) {
      data_md::reading r{random.uniform(2 * i), random.uniform(2 * i + 1), 0};
      r.state = r.temperature > r.pressure ? 1 : 0;
      out.write(reinterpret_cast<char const*>(&r), sizeof r);
    }
  }
  CHECK(run<data_md::pump>({"train", "--training_data=" + dir / "a.readings", "--validation_split=0.1",
                            "--output=" + dir / "model", "--log_file_path=" + dir / "log"}) == 0);
  auto const log = support::read(dir / "log");
  CAPTURE(log);
  CHECK(support::has(log, "1152 records in the data set, 1152 counted once, 0 skipped as damaged, 0 left"));
  CHECK(support::has(log, "128 of 1280 records are held out for evaluation"));
  CHECK(support::has(log, "Evaluation metrics"));
  CHECK(run<data_md::pump>({"data", "--from=" + dir / "a.readings", "--to=" + dir / "records"}) == 0);
  CHECK(edl::data::records(*edl::data::open_source(dir / "records")) == 1280);
  support::write(dir / "b.readings", "12345");
  CHECK(run<data_md::pump>({"train", "--training_data=" + dir / "b.readings"}) == 1);
}
