// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/adamw.hpp"

#include <doctest/doctest.h>

#include "compute/optim/check.hpp"
#include "edl/compute/optim/lion.hpp"
#include "edl/compute/optim/on_accelerator.hpp"
#include "edl/compute/optim/rmsprop.hpp"

namespace adamw_test {

namespace {

// What docs/models.md says of GPUs.
static_assert(edl::optimizes_on_accelerator<edl::adamw> && edl::optimizes_on_accelerator<edl::adam>);
static_assert(!edl::optimizes_on_accelerator<edl::lion> && !edl::optimizes_on_accelerator<edl::rmsprop>);

}  // namespace

TEST_CASE("adamw is adam with weight decay, bit by bit") {
  for (bool const amsgrad : {false, true}) {
    check::memory<float, edl::adamw> a(edl::adamw{.amsgrad = amsgrad}, check::normal<float>(100, 1, 0));
    check::memory<float, edl::adam> b(edl::adam{.amsgrad = amsgrad, .weight_decay = 0.004f}, a.weights);
    check::memory<float, edl::adam> without(edl::adam{.amsgrad = amsgrad}, a.weights);
    for (std::uint64_t step = 0; step < 20; ++step) {
      auto const g = check::normal<float>(100, 2, step);
      a.apply(g, 0.1f);
      b.apply(g, 0.1f);
      without.apply(g, 0.1f);
    }
    CHECK(check::same_bits(a.weights, b.weights));
    CHECK(!check::same_bits(a.weights, without.weights));
  }
}

TEST_CASE("adamw: slots, and the same however it is cut") {
  CHECK(edl::adamw{}.slots().size() == 2);
  CHECK(edl::adamw{.amsgrad = true}.slots()[2].name == "v_max");
  CHECK(edl::optimizer<edl::adamw>);
  check::same_however_cut(edl::adamw{});
}

}  // namespace adamw_test
