// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/coming-from.md. The build cuts them out of the document, in its order.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coming-from-count.inc"
#include "edl/author/model_learner.hpp"
#include "edl/base/checkpoint/model_reader.hpp"
#include "edl/core/error.hpp"
#include "edl/edl.hpp"

namespace nn = edl::nn;

namespace coming_from {

static_assert(snippets == 4, "docs/coming-from.md has another number of snippets than this file uses");

namespace {

#include "coming-from-1.inc"
#include "coming-from-3.inc"
#include "coming-from-4.inc"

struct scheduled : digits {
#include "coming-from-2.inc"
  using metrics = edl::metrics<mean_output>;
  static void feed(edl::example const& record, edl::sample<scheduled>& into, edl::mode) {
    into.label = record.integer("label");
  }
};

}  // namespace

TEST_CASE("the model that others have too is whole, with a schedule and a metric of its own") {
  CHECK(edl::is_whole<digits>);
  CHECK(edl::is_whole<scheduled>);
  edl::author::model_learner<digits> const learner(edl::cpu::open({}), {});
  CHECK(learner.facts().output.size() == 10);
  CHECK(edl::model_traits<scheduled>::make_rule().learning_rate(999) == 0.002f);
  CHECK(edl::model_traits<scheduled>::make_rule().learning_rate(1000) == 0.0002f);
  std::array<double, 2> sums{};
  mean_output::update(sums, {1, 1, 2}, 2, std::vector<float>{1, 2, 3, 6}, {}, 0);
  CHECK(mean_output::value(sums) == 3);
}

TEST_CASE("a model that is not there is an error that names its file") {
  CHECK_THROWS_WITH_AS((void)kernel_of("no/such/folder"),
                       doctest::Contains("no/such/folder/model.safetensors"), edl::error);
}

}  // namespace coming_from
