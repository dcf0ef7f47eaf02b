// SPDX-License-Identifier: Apache-2.0
// Steps that GPUs make together: members are threads of the test.
#include "edl/job/replica/gpu_sum.hpp"

#include "cuda/gpus.hpp"
#include "edl/author/model_learner.hpp"
#include "edl/edl.hpp"
#include "edl/job/replica/step_sum.hpp"
#include "job/collective/members.hpp"

namespace gpu_sum_test {

namespace nn = edl::nn;
using edl::replica::gpu_sum, edl::replica::step_sum;
using members::connected, members::side_by_side;

namespace {

struct deep {
  static constexpr auto network =
      nn::sequential(nn::features{.count = 6}, nn::dense{.units = 40}, nn::relu{}, nn::batch_norm{},
                     nn::dense{.units = 30}, nn::relu{}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::sgd optimizer{.learning_rate = 1};
  static void feed(edl::example const&, edl::sample<deep>&, edl::mode) {}
};
using edl::worker::trainer;

constexpr std::size_t bucket_bytes = 800;

edl::data::batch batch_of(trainer const& t, std::uint64_t number, int rows) {
  auto b = t.make_batch();
  edl::random_stream const random(number + 1, 0);
  for (std::size_t i = 0; i < b.features.size(); ++i) b.features[i] = float(random.below(2001, i)) / 1000 - 1;
  for (std::size_t i = 0; i < b.classes.size(); ++i)
    b.classes[i] = std::int32_t(random.below(3, b.features.size() + i));
  b.rows = rows;
  return b;
}

edl::contribution identity(int rank, int rows) {
  return {{{0, std::uint32_t(rank)}, 0, 2}, std::uint32_t(rows), 0};
}

/// This thread works on a trainer's GPU.
void use(trainer& t) { t.arena()->average(0); }

/// Trainers with GPUs of their own, all with the same variables; none where there are too few.
struct team {
  std::vector<std::unique_ptr<trainer>> trainers;
  std::vector<float> variables;
  std::size_t parameters = 0;

  explicit team(int size, int gpus) {
    if (gpus_or_skip(gpus).empty()) return;
    for (int r = 0; r < size; ++r)
      trainers.push_back(edl::author::make_trainer<deep>(
          {.max_batch = 8, .on = edl::worker::device_kind::cuda, .cuda = {.index = r % gpus}}));
    variables.assign(trainers[0]->variables().begin(), trainers[0]->variables().end());
    parameters = trainers[0]->gradients().size();
  }

  gpu_sum::options options() const { return {.parameters = parameters, .bucket_bytes = bucket_bytes}; }

  /// As the variables are after a step of these minibatches, computed one by one and summed by the hosts.
  std::vector<float> expected(std::vector<int> const& rows, std::uint64_t number) {
    int const size = int(rows.size());
    auto groups = connected(size);
    std::vector<float> after = variables;
    std::size_t const state = variables.size() - parameters;
    std::vector<std::vector<float>> gradients, changes;
    for (int r = 0; r < size; ++r) {
      trainer& t = *trainers[std::size_t(r)];
      use(t);
      std::ranges::copy(variables, t.variables().begin());
      t.variables_written();
      auto const b = batch_of(t, number + std::uint64_t(r), rows[std::size_t(r)]);
      t.train(b, number, {});
      gradients.emplace_back(t.gradients().begin(), t.gradients().end());
      changes.emplace_back(t.variables().begin() + std::ptrdiff_t(parameters), t.variables().end());
      for (std::size_t i = 0; i < state; ++i) changes.back()[i] -= variables[parameters + i];
    }
    side_by_side(size, [&](int r) {
      step_sum sum({.parameters = parameters, .state = state});
      sum.enter(std::move(groups[std::size_t(r)]));
      auto const at = std::size_t(r);
      if (rows[at] > 0) sum.bring(0, identity(r, rows[at]), gradients[at], changes[at]);
      auto const all = sum.sum();
      if (r > 0) return;
      float records = 0;
      for (auto const& c : all) records += float(c.records);
      for (std::size_t i = 0; i < after.size(); ++i)
        after[i] += (i < parameters ? -1.0f : 1.0f) * sum.sums()[i] / records;
    });
    return after;
  }
};

/// One step of a member, as a replica makes it. Without rows it brings nothing.
std::vector<edl::contribution> step(trainer& t, gpu_sum& sum, int rank, int rows, std::uint64_t number,
                                    std::size_t* announced = nullptr) {
  use(t);
  if (rows > 0) {
    auto const b = batch_of(t, number + std::uint64_t(rank), rows);
    auto const c = identity(rank, rows);
    t.train(b, number, [&](std::size_t first) {
      if (announced) ++*announced;
      sum.ready(c, first);
    });
    sum.bring(c, true);
  }
  auto const all = sum.sum();
  std::uint64_t records = 0;
  for (auto const& each : all) records += each.records;
  t.arena()->average(records);
  t.arena()->step(1, 0);
  return all;
}

}  // namespace

TEST_CASE("a step by GPUs is the hosts' within rounding, early, late, and of who brings nothing") {
  constexpr int size = 3;
  team all(size, size);
  if (all.trainers.empty()) return;
  std::vector<std::vector<int>> const steps{{8, 8, 8}, {8, 3, 8}, {8, 0, 5}, {0, 0, 4}, {8, 8, 8}};
  std::vector<std::vector<float>> expected;
  for (std::size_t s = 0; s < steps.size(); ++s) expected.push_back(all.expected(steps[s], s * 10));
  std::vector<float> slots;
  auto groups = connected(size);
  std::vector<std::unique_ptr<gpu_sum>> sums;
  for (auto& t : all.trainers) sums.push_back(std::make_unique<gpu_sum>(t->arena(), all.options()));
  side_by_side(size, [&](int r) {
    auto const at = std::size_t(r);
    CHECK_FALSE(sums[at]->enter(std::move(groups[at])));
  });
  for (std::size_t s = 0; s < steps.size(); ++s) {
    CAPTURE(s);
    std::vector<std::size_t> announced(size);
    std::vector<std::vector<edl::contribution>> brought(size);
    for (auto& t : all.trainers) t->arena()->place(all.variables, slots, 1);
    side_by_side(size, [&](int r) {
      auto const at = std::size_t(r);
      brought[at] = step(*all.trainers[at], *sums[at], r, steps[s][at], s * 10, &announced[at]);
    });
    std::size_t const some = std::size_t(std::ranges::count_if(steps[s], [](int rows) { return rows > 0; }));
    std::vector<std::vector<float>> got;
    for (int r = 0; r < size; ++r) {
      auto const at = std::size_t(r);
      CHECK(brought[at].size() == some);
      CHECK((announced[at] > 1) == (steps[s][at] > 0));  // the sum began amid the pass
      got.emplace_back(all.variables.size());
      all.trainers[at]->arena()->fetch(got.back(), slots);
      CHECK(got.back() == got.front());
    }
    CHECK(got[0] != all.variables);
    CHECK(distance(got[0], expected[s]) < 1e-6);
  }
}

TEST_CASE("evaluation of other variables leaves those of the arena, and a step amid it is theirs") {
  team one(1, 1);
  if (one.trainers.empty()) return;
  trainer& t = *one.trainers[0];
  std::vector<float> slots, before, after(one.variables.size());
  auto const expected = one.expected({8}, 0);
  gpu_sum sum(t.arena(), one.options());
  auto groups = connected(1);
  REQUIRE_FALSE(sum.enter(std::move(groups[0])));
  t.arena()->place(one.variables, slots, 1);
  auto const b = batch_of(t, 0, 8);
  auto const c = identity(0, 8);
  t.train(b, 0, [&](std::size_t first) { sum.ready(c, first); });
  std::ranges::fill(t.variables(), 0.0f);
  t.variables_written();
  auto const zero = t.predict(b);
  CHECK(std::ranges::all_of(zero, [](float y) { return y == 0; }));
  sum.bring(c, true);
  CHECK(sum.sum().size() == 1);
  t.arena()->average(8);
  t.arena()->step(1, 0);
  t.arena()->fetch(after, slots);
  CHECK(distance(after, expected) < 1e-6);
  CHECK(std::ranges::all_of(t.predict(b), [](float y) { return y == 0; }));
  t.resume();
  CHECK_FALSE(std::ranges::all_of(t.predict(b), [](float y) { return y == 0; }));
}

TEST_CASE("a loss that is no number begins no sum") {
  team one(1, 1);
  if (one.trainers.empty()) return;
  trainer& t = *one.trainers[0];
  std::vector<float> slots, after(one.variables.size());
  gpu_sum sum(t.arena(), one.options());
  auto groups = connected(1);
  REQUIRE_FALSE(sum.enter(std::move(groups[0])));
  t.arena()->place(one.variables, slots, 1);
  auto b = batch_of(t, 0, 8);
  b.features[0] = NAN;
  for (int times = 0; times < 3; ++times) {
    CHECK_FALSE(std::isfinite(t.train(b, 0, [&](std::size_t) { FAIL("it has begun"); })));
    CHECK(sum.sum().empty());
    t.arena()->fetch(after, slots);
    CHECK(after == one.variables);
  }
}

TEST_CASE(
    "a member that is lost when GPUs join, or amid a sum, ends it for all, and the next group goes on") {
  constexpr int size = 3;
  team all(size, size);
  if (all.trainers.empty()) return;
  auto const expected = all.expected({8, 8}, 0);
  std::vector<float> slots;
  std::vector<std::unique_ptr<gpu_sum>> sums;
  for (auto& t : all.trainers) sums.push_back(std::make_unique<gpu_sum>(t->arena(), all.options()));
  for (bool const joining : {true, false}) {
    CAPTURE(joining);
    auto first = connected(size), second = connected(size - 1);
    std::vector<std::shared_ptr<members::group>> groups;
    for (auto& g : first) groups.push_back(std::move(g));
    for (auto& t : all.trainers) t->arena()->place(all.variables, slots, 1);
    std::vector<std::vector<edl::contribution>> brought(size);
    side_by_side(size, [&](int r) {
      auto const at = std::size_t(r);
      gpu_sum& sum = *sums[at];
      auto const group = groups[at];
      if (r == 2 && joining) {
        // Says who it is, and does not live to come.
        std::vector<float> said(size * 11), where(64);
        edl::gpu_identity const self = edl::open_cuda({.index = 2})->identity();
        for (std::size_t i = 0; i < 8; ++i)
          said[22 + i] = float(unsigned(self.uuid[2 * i]) | unsigned(self.uuid[2 * i + 1]) << 8);
        said[22 + 8] = float(self.nccl & 0xffff), said[22 + 9] = float(self.nccl >> 16);
        group->all_reduce(said);
        group->all_reduce(where);
        group->abort();
        return;
      }
      if (joining) {
        CHECK_THROWS_AS(sum.enter(group), edl::collective::broken);
      } else {
        REQUIRE_FALSE(sum.enter(group));
        if (r == 2) {
          auto const b = batch_of(*all.trainers[at], 2, 8);
          std::size_t told = 0;
          all.trainers[at]->train(b, 0, [&](std::size_t from) {
            if (told++ < 2) sum.ready(identity(2, 8), from);
          });
          CHECK(sum.begun());
          group->abort();
          sum.leave();
          return;
        }
        CHECK_THROWS_AS(step(*all.trainers[at], sum, r, 8, 0), edl::collective::broken);
        CHECK(sum.joined());
        CHECK_THROWS_AS(sum.sum(), edl::collective::broken);
      }
      group->abort();
      sum.leave();
      CHECK_FALSE(sum.joined());
      REQUIRE_FALSE(sum.enter(std::move(second[at])));
      brought[at] = step(*all.trainers[at], sum, r, 8, 0);
    });
    for (int r = 0; r < size - 1; ++r) {
      auto const at = std::size_t(r);
      CHECK(brought[at].size() == 2);
      std::vector<float> got(all.variables.size());
      all.trainers[at]->arena()->fetch(got, slots);
      CHECK(distance(got, expected) < 1e-6);
    }
    for (auto& s : sums) s->leave();
  }
}

TEST_CASE("members who share a GPU, have none, or are told not to, are not joined, and all hear why") {
  team all(2, 1);
  if (all.trainers.empty()) return;
  struct attempt {
    bool processor;
    std::string unable, unwanted, why;
    int rank;
  };
  for (auto const& [processor, unable, unwanted, why, rank] :
       {attempt{false, "", "", "it shares its GPU with another worker", 1},
        attempt{true, "", "", "it computes on the processor", 1},
        attempt{false, "its histories differ", "", "its GPU cannot keep the variables", 1},
        attempt{false, "", "told so", "told so", 0}}) {
    auto groups = connected(2);
    std::vector<gpu_sum::refusal> got(2);
    std::vector<std::unique_ptr<gpu_sum>> sums;
    for (int r = 0; r < 2; ++r) {
      auto o = all.options();
      o.unwanted = unwanted;
      sums.push_back(std::make_unique<gpu_sum>(
          r == 1 && processor ? nullptr : all.trainers[std::size_t(r)]->arena(), o));
    }
    side_by_side(2, [&](int r) {
      auto const at = std::size_t(r);
      auto const refused = sums[at]->enter(std::move(groups[at]), r == 1 ? unable : "");
      REQUIRE(refused);
      got[at] = *refused;
      CHECK_FALSE(sums[at]->joined());
    });
    CAPTURE(why);
    CHECK(got[0].rank == rank);
    CHECK(got[1].rank == rank);
    CHECK(got[0].why == why);
    CHECK(got[1].why == (unable.empty() ? why : unable));
    CHECK(got[0].with_gpu);
    CHECK(all.trainers[0]->train(batch_of(*all.trainers[0], 0, 8), 0, [](std::size_t) { FAIL("a sum"); }) >
          0);
  }
}

}  // namespace gpu_sum_test
