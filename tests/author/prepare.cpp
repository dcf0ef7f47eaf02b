// SPDX-License-Identifier: Apache-2.0
#include "edl/author/prepare.hpp"

#include "app/job.hpp"
#include "edl/base/checkpoint/other_model.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/core/error.hpp"

namespace prepare_test {

using job::has, job::train;

namespace {

/// Of tests/models/tiny.cpp's `prepared`.
edl::parameter_layout layout() {
  return {{{"conv2d/bias", {1}, 0},
           {"dense/kernel", {1, 3}, 1},
           {"dense/bias", {3}, 4},
           {"conv2d/kernel", {2, 2, 2, 1}, 7}},
          7,
          8};
}

/// The mean of the first records.
std::vector<float> mean(std::string const& path, std::size_t most) {
  auto const from = edl::data::open_source(path);
  std::vector<float> sum(8);
  std::size_t const n =
      edl::author::feed_first(*from, most, false, [&](edl::example const& record, std::size_t) {
        auto const x = record.floats("x");
        for (std::size_t i = 0; i < 8; ++i) sum[i] += x(i);
      });
  for (float& v : sum) v /= float(n);
  return sum;
}

}  // namespace

TEST_CASE("whoever makes a new model prepares it by the training data, and what is not trained stays so") {
  auto const wanted = mean(job::data().training, 5000);
  using arguments = std::vector<std::string>;
  for (auto const& how : {arguments{}, arguments{"--num_workers=1", "--num_ps_pods=2", "--use_async"},
                          arguments{"--num_workers=2", "--distribution_strategy=AllreduceStrategy"}}) {
    job::scratch const dir;
    arguments more{"--output=" + dir / "model"};
    more.insert(more.end(), how.begin(), how.end());
    job::run j(train(more), {.env = {{"TINY_PREPARED", "1"}}});
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    std::vector<float> values(15);
    edl::checkpoint::other_model(dir / "model/model.safetensors").read(layout(), {}, 0, values);
    for (std::size_t i = 0; i < 8; ++i) CHECK(values[7 + i] == doctest::Approx(wanted[i]).epsilon(1e-5));
  }
}

TEST_CASE("the first records, fewer of them, and without those that are damaged") {
  auto const from = edl::data::open_source(job::data().training);
  std::size_t last = 0;
  auto const count = [&](edl::example const&, std::size_t i) { last = i; };
  CHECK(edl::author::feed_first(*from, 700, false, count) == 700);
  CHECK(last == 699);
  CHECK(edl::author::feed_first(*from, 5000, false, count) == 2048);
  auto const odd = [&](edl::example const& record, std::size_t) {
    if (record.integer("label") == 1) throw edl::data_error("odd");
  };
  CHECK_THROWS_AS(edl::author::feed_first(*from, 100, false, odd), edl::data_error);
  CHECK(edl::author::feed_first(*from, 5000, true, odd) < 1600);
  CHECK(edl::author::prepared_records(3072) == 5000);
  CHECK(edl::author::prepared_records(224 * 224 * 3) == 445);
  CHECK(edl::author::prepared_records(1'000'000'000) == 1);
}

}  // namespace prepare_test
