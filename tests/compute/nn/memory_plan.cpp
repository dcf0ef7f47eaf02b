// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/memory_plan.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/nn/harness.hpp"
#include "compute/nn/networks.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
#include "edl/core/error.hpp"
#include "text.hpp"

namespace memory_plan_test {

namespace nn = edl::nn;

namespace {

/// A layer whose state goes into its result, and moves with each pass.
struct counting {
  static constexpr std::string_view name = "counting";
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  template <class Visit>
  constexpr void variables(edl::shape, Visit&& visit) const {
    visit(nn::variable_spec{"passes", {1}, nn::constant{0}, false});
  }
  template <class D>
  void forward(nn::pass<D>&, nn::forward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.y.size(); ++i) a.y[i] = a.x[i] * (1 + a.state[0]);
    a.state[0] += 1;
  }
  template <class D>
  void backward(nn::pass<D>&, nn::backward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.dx.size(); ++i) a.dx[i] = a.dy[i] * a.state[0];
  }
};

constexpr auto several =
    nn::sequential(nn::conv2d{.filters = 4, .kernel = 3}, nn::batch_norm{}, nn::relu{},
                   nn::residual(block(4)), nn::relu{}, nn::dropout{.rate = 0.3f}, counting{},
                   nn::residual(block(6), nn::sequential(nn::conv2d{.filters = 6}, nn::batch_norm{})),
                   nn::relu{}, nn::batch_norm{}, nn::dropout{.rate = 0.2f}, nn::max_pool{},
                   nn::dense{.units = 5}, nn::tanh{}, nn::dense{.units = 3});
constexpr edl::shape in{7, 8, 2};
constexpr std::size_t steps = decltype(several)::length;

auto after_both_passes(nn::storage keep, std::uint16_t const* again) {
  nn::pass_size size{3, keep};
  size.again = again;
  lone_layer<std::remove_cvref_t<decltype(several)>> h{.l = several, .in = in, .batch = size};
  h.saved.assign(several.workspace(in, size), lone_layer<nn::flatten>::poison);
  h.scratch.clear();
  h.forward();
  h.backward();
  return h;
}

constexpr auto deep = nn::sequential(
    nn::image{.height = 9, .width = 8, .channels = 2}, nn::conv2d{.filters = 8, .kernel = 3},
    nn::batch_norm{}, nn::relu{}, nn::residual(block(8)), nn::relu{}, nn::dropout{.rate = 0.2f},
    nn::residual(block(8)), nn::relu{}, nn::residual(block(8)), nn::relu{}, nn::residual(block(8)),
    nn::relu{}, nn::residual(block(8)), nn::relu{}, nn::max_pool{.window = 2}, nn::dense{.units = 3});
using network = edl::model<deep, edl::cpu>;

/// Everything that three steps leave, of which the last has fewer samples.
std::vector<float> course(network& m) {
  std::vector<float> all;
  for (int step = 0; step < 3; ++step) {
    int const batch = step < 2 ? 8 : 5;
    auto const x = numbers<float>(std::size_t(batch) * deep.input.size(), 1 + step),
               dy = numbers<float>(std::size_t(batch) * 3, 9);
    auto const y = m.forward(x, batch, edl::mode::training, std::uint64_t(step));
    all.insert(all.end(), y.begin(), y.end());
    std::ranges::copy(dy, m.output_gradient().begin());
    m.backward(x, batch);
    all.insert(all.end(), m.gradients().begin(), m.gradients().end());
    for (std::size_t i = 0; i < m.gradients().size(); ++i) m.parameters()[i] -= 0.1f * m.gradients()[i];
  }
  all.insert(all.end(), m.state().begin(), m.state().end());
  return all;
}

}  // namespace

TEST_CASE("any group of steps may be computed again, and changes no bit") {
  for (auto keep : {nn::storage::float32, nn::storage::recomputed, nn::storage::compact}) {
    auto const whole = after_both_passes(keep, nullptr);
    std::size_t groups = 0;
    for (std::size_t first = 0; first < steps; ++first)
      for (std::size_t end = first + 1; end <= steps; ++end) {
        CAPTURE(int(keep));
        CAPTURE(first);
        CAPTURE(end);
        std::vector<std::uint16_t> again(steps);
        std::fill(again.begin() + std::ptrdiff_t(first), again.begin() + std::ptrdiff_t(end),
                  std::uint16_t(end));
        auto const h = after_both_passes(keep, again.data());
        CHECK(h.y == whole.y);
        CHECK(h.state == whole.state);
        CHECK(h.dx == whole.dx);
        CHECK(h.gradients == whole.gradients);
        groups += several.memory(in, h.batch).begins(first) ? 1 : 0;
      }
    // A group lies between results that are found as they were: not rounded, not computed again by
    // themselves.
    std::size_t const plain = keep == nn::storage::float32 ? steps : keep == nn::storage::compact ? 1 : 10;
    CHECK(groups == plain * (plain - 1) / 2);
  }
}

TEST_CASE("groups side by side change no bit") {
  auto const whole = after_both_passes(nn::storage::float32, nullptr);
  for (std::size_t size = 1; size < 5; ++size) {
    std::vector<std::uint16_t> again(steps);
    for (std::size_t i = 0; i + 1 < steps; ++i)
      again[i] = std::uint16_t(std::min(steps - 1, (i / size + 1) * size));
    auto const h = after_both_passes(nn::storage::float32, again.data());
    CHECK(h.state == whole.state);
    CHECK(h.gradients == whole.gradients);
    CHECK(h.dx == whole.dx);
  }
}

TEST_CASE("a network keeps to a bound of memory, and computes the same bits") {
  for (auto p : {edl::precision::float32, edl::precision::bfloat16}) {
    bool const narrow = p == edl::precision::bfloat16;
    network::options o{.max_batch = 8,
                       .seed = 3,
                       .device = {.threads = 2, .kernels = edl::kernels::own, .precision = p},
                       .keep = narrow ? nn::storage::compact : nn::storage::recomputed};
    network whole(o);
    auto const expected = course(whole);
    if (narrow) {  // nothing is rounded in between, and so gradients that lie over results are all that
                   // differs
      network::options apart = o;
      apart.keep = nn::storage::recomputed;
      network other(apart);
      CHECK(other.memory().total() > whole.memory().total());
      CHECK(course(other) == expected);
    }
    std::size_t const most = whole.memory().total();
    double work = 0;
    for (double share : {1.0, 0.9, 0.8, 0.7}) {
      CAPTURE(narrow);
      CAPTURE(share);
      o.memory_budget = std::size_t(double(most) * share);
      network bounded(o);
      CHECK(bounded.memory().total() <= o.memory_budget);
      CHECK((bounded.plan().steps > 0) == (share < 1));
      CHECK(bounded.plan().work >= work);
      work = bounded.plan().work;
      CHECK(course(bounded) == expected);
    }
  }
}

TEST_CASE("a bound that no plan keeps to is refused with one that is kept to") {
  network::options o{.max_batch = 8, .memory_budget = 1000};
  std::string said;
  try {
    network const none(o);
  } catch (edl::error const& e) {
    said = e.what();
  }
  CAPTURE(said);
  auto const at = said.find("takes ");
  REQUIRE(at != std::string::npos);
  CHECK(said.find("--memory_budget=0.001: ") == 0);
  CHECK(said.ends_with(", or lower --minibatch_size, or keep less by --activations=compact, which rounds"));
  o.memory_budget = std::size_t(std::stod(said.substr(at + 6)) * 1e6);
  network const least(o);
  CHECK(least.plan().steps > 0);
  CHECK(least.memory().total() <= o.memory_budget);
}

TEST_CASE("a bound is refused with one number where to compute again saves nothing") {
  nn::planned_chain const one{0, 1, {{0, 1, false, 10, 10, 0}}};
  CHECK(complaint([&] {
          nn::choose_plan({one}, {.bytes = 1, .fixed = 0, .scalar = 1'000'000, .keep = nn::storage::compact},
                          [](nn::memory_plan const&) { return std::size_t(10); });
        }) ==
        "--memory_budget=1e-06: the network takes 10.00 MB, and less by no result that is computed again: "
        "raise the budget, or lower --minibatch_size");
}

TEST_CASE("a chain within is planned, too") {
  static constexpr auto repeated = nn::sequential(
      nn::image{.height = 8, .width = 8, .channels = 2}, nn::conv2d{.filters = 4}, nn::dropout{.rate = 0.1f},
      nn::repeat<6>(nn::sequential(nn::residual(block(4)), nn::dropout{.rate = 0.1f})),
      nn::dense{.units = 3});
  using model = edl::model<repeated, edl::cpu>;
  auto const gradients = [](std::size_t budget) {
    model m({.max_batch = 4, .memory_budget = budget});
    auto const x = numbers<float>(4 * repeated.input.size(), 1), dy = numbers<float>(4 * 3, 2);
    m.forward(x, 4, edl::mode::training);
    std::ranges::copy(dy, m.output_gradient().begin());
    m.backward(x, 4);
    CHECK((m.plan().inner == 3) == (budget > 0));
    CHECK((budget == 0 || m.memory().total() <= budget));
    std::vector<float> all(m.gradients().begin(), m.gradients().end());
    all.insert(all.end(), m.state().begin(), m.state().end());
    return all;
  };
  std::size_t const whole = model::memory({4}).total();
  CHECK(gradients(whole * 8 / 10) == gradients(0));
}

TEST_CASE("the plan of the least work is taken") {
  // Two steps of 10, of which one is dear to compute again, and a last one.
  nn::planned_chain const all{0,
                              3,
                              {{0, 1, false, 10, 12, 0},
                               {0, 1, true, 1, 13, 0.5},
                               {1, 2, false, 10, 12, 0},
                               {1, 2, true, 1, 13, 0.2},
                               {0, 2, true, 1, 23, 0.7},
                               {2, 3, false, 2, 5, 0}}};
  auto const plan = [&](std::size_t most) { return nn::cheapest_plan(all, most); };
  CHECK(plan(25)->work == 0);
  CHECK(plan(25)->steps == 0);
  CHECK(plan(24)->work == doctest::Approx(0.2));
  CHECK(plan(24)->again == std::vector<std::uint16_t>{0, 2, 0});
  CHECK(plan(22)->again == std::vector<std::uint16_t>{1, 0, 0});
  CHECK(plan(14)->again == std::vector<std::uint16_t>{1, 2, 0});
  CHECK_FALSE(plan(13));
}

}  // namespace memory_plan_test
