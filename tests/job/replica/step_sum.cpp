// SPDX-License-Identifier: Apache-2.0
#include "edl/job/replica/step_sum.hpp"

#include <algorithm>
#include <string>

#include "edl/core/random.hpp"
#include "job/collective/members.hpp"

namespace step_sum_test {

using edl::replica::step_sum;
using members::connected, members::side_by_side;

namespace {

constexpr std::size_t parameters = 1000, state = 10, elements = parameters + state;

step_sum::options cut_in(std::size_t buckets, std::size_t places = 0, bool bfloat16 = false) {
  return {.parameters = parameters,
          .state = state,
          .bfloat16 = bfloat16,
          .places = places,
          .bucket_bytes = (parameters * sizeof(float) + buckets - 1) / buckets};
}

/// A minibatch as its worker computes it: gradients appear from the last to the first.
struct minibatch {
  edl::contribution c;
  std::vector<float> gradients, change;

  explicit minibatch(std::uint32_t number)
      : c({{7, number}, number % 3, 3}, 30 + number, number), gradients(parameters), change(state) {
    edl::random_stream const random(number + 1, 0);
    auto const draw = [&](std::size_t i) {
      return float(int(random.below(2'000'001, i)) - 1'000'000) / 999'983;
    };
    for (std::size_t i = 0; i < parameters; ++i) gradients[i] = draw(i);
    for (std::size_t i = 0; i < state; ++i) change[i] = draw(parameters + i);
  }
};

/// Computes a minibatch for the last of a member's places, and brings it.
void compute(step_sum& to, std::size_t place, minibatch const& m, std::vector<float>& gradients) {
  gradients.assign(parameters, -1e30f);
  for (std::size_t first = parameters; first > 0;) {
    std::size_t const layer = std::min<std::size_t>(first, 90);
    first -= layer;
    std::copy_n(m.gradients.begin() + std::ptrdiff_t(first), layer,
                gradients.begin() + std::ptrdiff_t(first));
    to.ready(place, m.c, gradients, first);
  }
  to.bring(place, m.c, gradients, m.change);
}

using keys = std::vector<edl::minibatch_key>;

struct outcome {
  std::vector<float> sums;
  keys brought;
};

/// One step: minibatch i is in place i, where `present` says so. `early(r)`: whether member r says what is
/// ready.
template <class Early, class Present>
std::vector<outcome> step(step_sum::options o, int size, edl::collective::group_options how, Early early,
                          Present present, int steps = 1) {
  auto groups = connected(size, how);
  std::vector<outcome> all(static_cast<std::size_t>(size));
  side_by_side(size, [&](int r) {
    step_sum sum(o);
    sum.enter(std::move(groups[std::size_t(r)]));
    auto const [first, count] = sum.own();
    std::vector<float> gradients;
    for (int s = 0; s < steps; ++s) {
      std::size_t last = count;
      for (std::size_t i = 0; i < count; ++i)
        if (present(first + i)) last = i;
      for (std::size_t i = 0; i < count; ++i) {
        if (!present(first + i)) continue;
        minibatch const m(std::uint32_t(first + i + std::size_t(s) * 100));
        if (i == last && early(r))
          compute(sum, i, m, gradients);
        else
          sum.bring(i, m.c, m.gradients, m.change);
      }
      auto const brought = sum.sum();
      auto& mine = all[std::size_t(r)];
      mine.sums.assign(sum.sums().begin(), sum.sums().end());
      mine.brought.clear();
      for (auto const& c : brought) mine.brought.push_back(c.key);
      CHECK(sum.brought() == 0);
    }
  });
  return all;
}

constexpr auto everybody = [](auto) { return true; };
constexpr auto nobody = [](auto) { return false; };

keys names(std::initializer_list<std::uint32_t> numbers, std::uint32_t add = 0) {
  keys all;
  for (std::uint32_t const n : numbers) all.push_back(minibatch(n + add).c.key);
  return all;
}

std::vector<edl::collective::group_options> const ways{{.shared_memory = false}, {}};

}  // namespace

TEST_CASE("buckets that are summed while gradients are computed give what they give afterwards") {
  for (auto const& how : ways)
    for (int const size : {1, 2, 3, 5})
      for (bool const bfloat16 : {false, true}) {
        CAPTURE(how.shared_memory);
        CAPTURE(size);
        CAPTURE(bfloat16);
        auto const at_once = step(cut_in(1, 0, bfloat16), size, how, nobody, everybody, 3);
        for (std::size_t const buckets : {2u, 5u, 11u}) {
          CAPTURE(buckets);
          auto const late = step(cut_in(buckets, 0, bfloat16), size, how, nobody, everybody, 3);
          auto const early = step(cut_in(buckets, 0, bfloat16), size, how, everybody, everybody, 3);
          auto const mixed =
              step(cut_in(buckets, 0, bfloat16), size, how, [](int r) { return r % 2 == 0; }, everybody, 3);
          for (auto const* all : {&late, &early, &mixed})
            for (auto const& member : *all) {
              CHECK(member.sums == late[0].sums);
              CHECK(member.brought == at_once[0].brought);
            }
          CHECK(late[0].brought.size() == std::size_t(size));
          // Where an element lies decides who begins its sum, which two members do not notice.
          if (size <= 2 && !bfloat16) CHECK(late[0].sums == at_once[0].sums);
          bool near = true;
          for (std::size_t i = 0; i < elements; ++i)
            near = near && std::abs(late[0].sums[i] - at_once[0].sums[i]) <= (bfloat16 ? 8.0f : 1e-3f);
          CHECK(near);
        }
      }
}

TEST_CASE("sums are those of what was brought, times its records") {
  auto const all = step(cut_in(4), 3, {}, everybody, [](std::size_t place) { return place != 1; });
  std::vector<float> expected(elements), added(elements);
  for (std::uint32_t const number : {0u, 2u}) {
    minibatch const m(number);
    for (std::size_t i = 0; i < elements; ++i)
      added[i] = (i < parameters ? m.gradients[i] : m.change[i - parameters]) * float(m.c.records);
    for (std::size_t i = 0; i < elements; ++i) expected[i] += added[i];
  }
  for (auto const& member : all) {
    CHECK(member.brought == names({0, 2}));
    CHECK(member.sums == expected);
  }
  auto const none = step(cut_in(4), 3, {}, everybody, nobody);
  for (auto const& member : none) {
    CHECK(member.brought.empty());
    CHECK(member.sums == std::vector<float>(elements, 0));
  }
}

TEST_CASE("a step of fixed places has the same bits, whoever fills them, when and over what") {
  for (bool const bfloat16 : {false, true})
    for (std::size_t const places : {1u, 3u, 4u})
      for (auto const& present : {+[](std::size_t) { return true; }, +[](std::size_t p) { return p != 1; }}) {
        auto const reference = step(cut_in(1, places, bfloat16), 1, {}, nobody, present, 2);
        REQUIRE(reference[0].brought.size() == places - (present(1) || places == 1 ? 0 : 1));
        for (auto const& how : ways)
          for (int const size : {1, 2, 3, 5})
            for (std::size_t const buckets : {1u, 6u})
              for (bool const early : {false, true}) {
                CAPTURE(bfloat16);
                CAPTURE(places);
                CAPTURE(how.shared_memory);
                CAPTURE(size);
                CAPTURE(buckets);
                CAPTURE(early);
                auto const all = step(
                    cut_in(buckets, places, bfloat16), size, how, [&](int) { return early; }, present, 2);
                for (auto const& member : all) {
                  CHECK(member.sums == reference[0].sums);
                  CHECK(member.brought == reference[0].brought);
                }
              }
      }
}

TEST_CASE(
    "a member that is lost while gradients are computed ends the sum of all, and the next group goes on") {
  for (auto const& how : ways)
    for (std::size_t const places : {0u, 3u}) {
      CAPTURE(how.shared_memory);
      CAPTURE(places);
      constexpr int size = 3;
      auto first = connected(size, how), second = connected(size - 1, how);
      std::vector<std::shared_ptr<members::group>> groups;
      for (auto& g : first) groups.push_back(std::move(g));
      std::vector<outcome> all(size - 1);
      side_by_side(size, [&](int r) {
        step_sum sum(cut_in(8, places));
        auto const group = groups[std::size_t(r)];
        sum.enter(group);
        std::vector<float> gradients(parameters, -1e30f);
        minibatch const m{std::uint32_t(r)};
        if (r == 2) {
          // In the middle of its pass: some buckets are under way or done.
          std::copy(m.gradients.begin() + 600, m.gradients.end(), gradients.begin() + 600);
          sum.ready(0, m.c, gradients, 600);
          group->abort();
          return;
        }
        compute(sum, 0, m, gradients);
        CHECK_THROWS_AS(sum.sum(), edl::collective::broken);
        group->abort();
        sum.enter(std::move(second[std::size_t(r)]));
        CHECK(sum.brought() == 0);
        auto const [begin, count] = sum.own();
        for (std::size_t i = 0; i < count; ++i) {
          minibatch const again(std::uint32_t(begin + i));
          if (i + 1 == count)
            compute(sum, i, again, gradients);
          else
            sum.bring(i, again.c, again.gradients, again.change);
        }
        sum.sum();
        all[std::size_t(r)].sums.assign(sum.sums().begin(), sum.sums().end());
      });
      auto const expected = step(cut_in(8, places), 2, how, nobody, everybody);
      for (auto const& member : all) CHECK(member.sums == expected[0].sums);
    }
}

TEST_CASE("who leaves a group in the middle of a pass is not held up, nor is who ends") {
  for (auto const& how : ways)
    for (bool const ends : {false, true}) {
      auto groups = connected(2, how);
      std::shared_ptr<members::group> const mine = std::move(groups[0]);
      step_sum sum(cut_in(4));
      sum.enter(mine);
      minibatch const m(0);
      sum.ready(0, m.c, m.gradients, 300);  // the other never takes part
      CHECK(sum.begun());
      if (ends) continue;
      mine->abort();
      sum.enter(nullptr);
      CHECK_FALSE(sum.begun());
      CHECK(sum.own().count == 0);
      CHECK_THROWS_AS(sum.sum(), edl::collective::broken);
    }
}

TEST_CASE("a sum that began with a minibatch which is not brought breaks") {
  auto groups = connected(1);
  step_sum sum(cut_in(4));
  sum.enter(std::move(groups[0]));
  minibatch const m(0);
  sum.ready(0, m.c, m.gradients, 300);
  CHECK_THROWS_AS(sum.sum(), edl::collective::broken);
}

TEST_CASE("a model of one bucket is summed at once, when all is there") {
  auto groups = connected(1);
  step_sum sum(cut_in(1));
  sum.enter(std::move(groups[0]));
  minibatch const m(0);
  sum.ready(0, m.c, m.gradients, 0);
  CHECK_FALSE(sum.begun());
  sum.bring(0, m.c, m.gradients, m.change);
  CHECK(sum.sum().size() == 1);
}

TEST_CASE("a member that wants the group to end with a step is heard by all in that step") {
  for (auto const& how : ways)
    for (std::size_t const places : {0u, 4u}) {
      CAPTURE(how.shared_memory);
      CAPTURE(places);
      constexpr int size = 3;
      auto groups = connected(size, how);
      std::vector<std::vector<bool>> heard(size);
      side_by_side(size, [&](int r) {
        step_sum sum(cut_in(2, places));
        sum.enter(std::move(groups[std::size_t(r)]));
        for (int s = 0; s < 3; ++s) {
          sum.sum(s == 1 && r == 2);
          heard[std::size_t(r)].push_back(sum.ends());
        }
      });
      for (auto const& member : heard) CHECK(member == std::vector<bool>{false, true, false});
    }
}

}  // namespace step_sum_test
