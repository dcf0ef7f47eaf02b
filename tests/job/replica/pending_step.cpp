// SPDX-License-Identifier: Apache-2.0
#include "edl/job/replica/pending_step.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "job/ps/small_store.hpp"

namespace pending_step_test {

using namespace small_store;

TEST_CASE("a step that a world did not come to is made later, whatever became of its memory") {
  edl::parameter_layout const layout = with_table();
  store_options const of{.layout = layout,
                         .elements = {0, 6},
                         .slots = {0, 4096},
                         .tables = {{.width = 1, .initial = edl::nn::constant{0}}},
                         .rule = adding,
                         .when = at_once};
  store at_once_made(of), later(of);
  std::vector<std::uint64_t> ids{5, 9};
  std::vector<float> sums{4, 8, 12, 16, 1, 2}, slopes{4, 8};
  std::vector<std::vector<edl::sparse::row_gradients>> const rows{{{ids, slopes}}};
  std::vector<contribution> const minibatches{{batch(0), 4}};
  edl::replica::pending_step pending(3, 1, minibatches, sums, rows);
  CHECK(pending.leads_to(3, 1));
  CHECK_FALSE(pending.leads_to(3, 2));
  CHECK_FALSE(pending.leads_to(4, 1));
  at_once_made.step(minibatches, sums, rows);
  std::ranges::fill(sums, 0.0f), std::ranges::fill(slopes, 0.0f), std::ranges::fill(ids, 0u);
  pending.make(later);
  CHECK(later.version() == 1);
  CHECK(later.segments().counted() == at_once_made.segments().counted());
  CHECK(values(later.current()) == values(at_once_made.current()));
  for (std::uint64_t const id : {5u, 9u}) {
    float a = 0, b = 0;
    later.rows().pull(0, {&id, 1}, {&a, 1}), at_once_made.rows().pull(0, {&id, 1}, {&b, 1});
    CHECK(a == b);
    CHECK(a != 0);
  }
}

}  // namespace pending_step_test
