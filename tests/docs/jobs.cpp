// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/jobs.md. The build cuts them out of the document, in its order.
#include <doctest/doctest.h>

#include "edl/base/checkpoint/other_model.hpp"
#include "edl/edl.hpp"
#include "jobs-count.inc"

namespace nn = edl::nn;

namespace jobs {

static_assert(snippets == 1, "docs/jobs.md has another number of snippets than this file uses");

namespace {

struct digits {
  static constexpr auto network = nn::sequential(nn::image{.height = 8, .width = 8}, nn::conv2d{.filters = 2},
                                                 nn::global_average_pool{}, nn::dense{.units = 10});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<digits>& into, edl::mode) {
    into.label = record.integer("label");
  }
#include "jobs-1.inc"
};

}  // namespace

TEST_CASE("the names that others gave variables are of a model's own") {
  CHECK(edl::is_whole<digits>);
  CHECK(edl::model_traits<digits>::names_weights);
  CHECK_NOTHROW(edl::checkpoint::check_weight_names(edl::model<digits::network, edl::any_device>::layout(),
                                                    digits::weight_names));
}

}  // namespace jobs
