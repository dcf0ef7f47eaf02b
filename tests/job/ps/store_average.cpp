// SPDX-License-Identifier: Apache-2.0
// The moving average of a store's weights: evaluations, copies and checkpoints.
#include <doctest/doctest.h>

#include "job/ps/small_store.hpp"

namespace store_average_test {

using namespace small_store;

TEST_CASE("evaluations have the average of the weights, and training has the weights") {
  auto const layout = small_layout();
  store s({.layout = layout,
           .elements = {0, 6},
           .rule = adding,
           .when = at_once,
           .evaluation_steps = 2,
           .moving_average = 0.5});
  CHECK(values(s.averaged().variables()) == std::vector<float>(6, 0));  // no step yet
  CHECK(s.full_snapshot().slot_names == std::vector<std::string>{"average_less_weight"});
  CHECK(s.full_snapshot().row_slot_names.empty());
  s.push(batch(0), 0, ones, twos);
  CHECK(values(s.averaged().variables()) == std::vector<float>{1, 1, 1, 1, 2, 2});
  CHECK(s.push(batch(1), 1, ones, twos).evaluate);
  CHECK(values(s.current()) == std::vector<float>{2, 2, 2, 2, 4, 4});
  // (1/2 · 1 + 2) / (1/2 + 1)
  auto const frozen = s.frozen().evaluation(2);
  CHECK(frozen.version() == 2);
  CHECK(frozen.variables()[0] == doctest::Approx(5.0 / 3));
  CHECK(frozen.variables()[4] == 4);  // what is carried has none
  CHECK(values(frozen.variables()) == values(s.averaged().variables()));
  s.push(batch(2), 2, ones, twos);
  CHECK(s.frozen().evaluation(2).variables()[0] == doctest::Approx(5.0 / 3));
}

TEST_CASE("a restored average goes on with the same bits, and one that is not there begins at the weights") {
  scratch const dir;
  auto const layout = small_layout();
  store_options const with{
      .layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once, .moving_average = 0.9};
  store_options without = with;
  without.moving_average = 0;
  store whole(with), plain(without);
  for (std::uint32_t i = 0; i < 9; ++i)
    whole.push(batch(i), i, ones, twos), plain.push(batch(i), i, ones, twos);
  CHECK(values(whole.current()) == values(plain.current()));
  CHECK(values(whole.averaged().variables()) != values(whole.current()));
  auto const path = save(dir, layout, 9, {whole.full_snapshot()});
  CHECK(has_average(path));

  store again(with), copy(with);
  again.restore(path);
  auto const full = whole.full_snapshot();
  auto all = values(full.variables.variables());
  auto const slots = values(full.slots.values());
  all.insert(all.end(), slots.begin(), slots.end());
  copy.restore(full.segments, {}, all);
  store right(
      {.layout = layout, .elements = {2, 6}, .rule = momentum, .when = at_once, .moving_average = 0.9});
  right.restore(path);
  for (store* const s : {&whole, &again, &copy}) s->push(batch(20), 9, ones, twos);
  right.push(batch(20), 9, edl::view<float>(ones).first(2), twos);
  auto const is = values(whole.averaged().variables());
  CHECK(values(again.averaged().variables()) == is);
  CHECK(values(copy.averaged().variables()) == is);
  CHECK(values(right.averaged().variables()) == std::vector<float>(is.begin() + 2, is.end()));

  // Off and on again.
  store off(without), on(with);
  off.restore(path);
  CHECK(values(off.current()) == values(plain.current()));
  scratch const other;
  auto const lacking = save(other, layout, 9, {off.full_snapshot()});
  CHECK_FALSE(has_average(lacking));
  on.restore(lacking);
  CHECK(values(on.averaged().variables()) == values(on.current()));
  on.push(batch(20), 9, ones, twos);
  CHECK(values(on.current()) == values(whole.current()));
  CHECK(values(on.averaged().variables()) != values(on.current()));
}

TEST_CASE("rows of tables have no average, and travel with variables that have one") {
  scratch const dir;
  auto layout = small_layout();
  layout.tables = {{"words", 1}};
  store_options with{.layout = layout,
                     .elements = {0, 6},
                     .slots = {0, 4096},
                     .tables = {{.width = 1, .initial = edl::nn::constant{0}}},
                     .rule = momentum,
                     .when = at_once,
                     .moving_average = 0.9};
  store s(with), back(with);
  std::vector<std::uint64_t> const ids{7};
  std::vector<float> const slope{1};
  edl::sparse::row_gradients const rows{ids, slope};
  for (std::uint32_t i = 0; i < 3; ++i) s.push(batch(i), i, ones, twos, {&rows, 1});
  CHECK(s.rows().table(0).values() == 3);  // the weight, and the rule's two slots
  back.restore(save(dir, layout, 3, {s.full_snapshot()}));
  for (store* const of : {&s, &back}) of->push(batch(3), 3, ones, twos, {&rows, 1});
  float is = 0, was = 0;
  s.rows().pull(0, ids, {&was, 1});
  back.rows().pull(0, ids, {&is, 1});
  CHECK(is == was);
  CHECK(is != 0);
  CHECK(values(back.averaged().variables()) == values(s.averaged().variables()));
  with.moving_average = 0;
  store without(with);
  without.restore(save(dir, layout, 4, {s.full_snapshot()}));
  without.rows().pull(0, ids, {&is, 1});
  CHECK(is == was);
}

}  // namespace store_average_test
