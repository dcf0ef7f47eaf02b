// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/lookahead.hpp"

#include <doctest/doctest.h>

#include "check.hpp"
#include "edl/compute/optim/adam.hpp"
#include "edl/compute/optim/sgd.hpp"

namespace lookahead_test {

using edl::lookahead;
using edl::sgd;

TEST_CASE("lookahead: every few steps the weights go back to slow ones") {
  lookahead<sgd> const o{.optimizer = {}, .every = 2, .keep = 0.25f};
  check::memory<double, lookahead<sgd>> m(o, {8});
  std::vector<double> const one{1};
  m.apply(one, 2);  // 6
  CHECK(m.weights[0] == 6);
  CHECK(m.slots[0][0] == 8);
  m.apply(one, 2);  // 4, and back to 0.25 · 8 + 0.75 · 4
  CHECK(m.weights[0] == 5);
  CHECK(m.slots[0][0] == 5);
  m.apply(one, 2);
  CHECK(m.weights[0] == 3);
  m.apply(one, 2);  // 1, and back to 0.25 · 5 + 0.75 · 1
  CHECK(m.weights[0] == 2);
}

TEST_CASE("lookahead: what is kept grows to the last step, which ends at the slow weights") {
  lookahead<sgd> const o{.optimizer = {}, .every = 5, .keep = 0.8f, .steps = 42};
  CHECK(o.kept_after(0) < 0);
  CHECK(o.kept_after(4) == doctest::Approx(0.8 * std::pow(5 / 42.0, 3)));
  CHECK(o.kept_after(39) == doctest::Approx(0.8 * std::pow(40 / 42.0, 3)));
  CHECK(o.kept_after(40) < 0);
  CHECK(o.kept_after(41) == 1);
  CHECK(o.kept_after(44) == 0.8f);
  CHECK(lookahead<sgd>{.optimizer = {}, .every = 1}.kept_after(0) == 0.5f);
}

TEST_CASE(
    "lookahead: cuts and restarts change no bit, and the other optimiser's slots and rate are its own") {
  lookahead<edl::adam> const o{.optimizer = {.learning_rate = 0.25f, .amsgrad = true}};
  check::same_however_cut(o);
  CHECK(o.learning_rate == 0.25f);
  REQUIRE(o.slots().size() == 4);
  CHECK(o.slots()[2].name == "v_max");
  CHECK(o.slots()[3].name == "slow");
}

}  // namespace lookahead_test
