// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "cuda/kernels/board.hpp"
#include "edl/compute/optim/optimizers.hpp"

namespace optimizer_test {

namespace {

struct state {
  std::vector<float> w, g, a, b, c;
};

state draw_state(std::size_t n) {
  state s{numbers<float>(n, 1), numbers<float>(n, 2), numbers<float>(n, 3), numbers<float>(n, 4),
          numbers<float>(n, 5)};
  for (auto* v : {&s.b, &s.c})
    for (float& x : *v) x = std::abs(x);
  return s;
}

/// The optimiser's step, and the kernel's on the same numbers: the same bits. `slots` of a, b and c.
template <class Optimizer, class Launch>
void check(Optimizer const& o, std::size_t n, std::vector<std::vector<float> state::*> slots, float rate,
           std::uint64_t step, Launch&& launch) {
  for (std::size_t const before : {0, 1})
    for (bool const rounds : {false, true}) {
      CAPTURE(n);
      CAPTURE(before);
      gpu g;
      state s = draw_state(n);
      float *const w = g.put(s.w, before), *const gradients = g.put(s.g, before);
      std::array<float*, 3> memory{};
      std::vector<std::span<float>> spans;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        memory[i] = g.put(s.*slots[i], before);
        spans.emplace_back(s.*slots[i]);
      }
      auto* const rounded = rounds ? g.room<std::uint16_t>(n, before) : nullptr;
      launch(g.q, w, gradients, memory, rounded);
      o.apply(std::span<float>(s.w), edl::view<float>(s.g), std::span<std::span<float> const>(spans), rate,
              step);
      auto const got = g.get(w, n);
      CHECK(got == s.w);
      for (std::size_t i = 0; i < slots.size(); ++i) CHECK(g.get(memory[i], n) == s.*slots[i]);
      if (!rounds) continue;
      std::vector<std::uint16_t> wanted(n);
      std::transform(got.begin(), got.end(), wanted.begin(), edl::to_bfloat16);
      CHECK(g.get(rounded, n) == wanted);
    }
}

}  // namespace

TEST_CASE("sgd") {
  for (std::size_t const n : {1, 10'003})
    for (edl::sgd const& o : {edl::sgd{}, edl::sgd{.weight_decay = 0.01f}, edl::sgd{.momentum = 0.9f},
                              edl::sgd{.momentum = 0.9f, .nesterov = true, .weight_decay = 0.01f}})
      check(o, n, o.momentum != 0 ? std::vector{&state::a} : std::vector<std::vector<float> state::*>{}, 0.1f,
            0, [&](auto const& q, float* w, float* g, auto const& s, std::uint16_t* rounded) {
              kernels::sgd(q, n, w, g, s[0], rounded, 0.1f, o.momentum, o.weight_decay, o.nesterov);
            });
}

TEST_CASE("adam") {
  for (std::size_t const n : {2, 10'003})
    for (edl::adam const& o : {edl::adam{}, edl::adam{.amsgrad = true, .weight_decay = 0.01f}}) {
      double const b1 = double(o.beta_1), b2 = double(o.beta_2), t = 5, rate = double(0.1f);
      auto const alpha = float(rate * (std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t))));
      std::vector slots{&state::a, &state::b};
      if (o.amsgrad) slots.push_back(&state::c);
      check(o, n, slots, 0.1f, 4,
            [&](auto const& q, float* w, float* g, auto const& s, std::uint16_t* rounded) {
              kernels::adam(q, n, w, g, s[0], s[1], s[2], rounded, alpha, 1 - 0.1f * o.weight_decay, o.beta_1,
                            o.beta_2, o.epsilon);
            });
    }
}

TEST_CASE("adagrad") {
  for (std::size_t const n : {3, 10'003}) {
    edl::adagrad const o{.weight_decay = 0.01f};
    check(o, n, {&state::b}, 0.1f, 0,
          [&](auto const& q, float* w, float* g, auto const& s, std::uint16_t* rounded) {
            kernels::adagrad(q, n, w, g, s[0], rounded, 0.1f, 1 - 0.1f * o.weight_decay, o.epsilon);
          });
  }
}

TEST_CASE("looking back at slow weights") {
  for (std::size_t const n : {1, 10'003}) {
    gpu g;
    state const s = draw_state(n);
    float *const w = g.put(s.w), *const slow = g.put(s.a);
    auto* const rounded = g.room<std::uint16_t>(n);
    kernels::look_back(g.q, n, w, slow, rounded, 0.75f);
    std::vector<float> wanted = s.w, kept = s.a;
    edl::detail::look_back<float>(wanted, kept, 0.75f);
    std::vector<std::uint16_t> halves(n);
    std::transform(wanted.begin(), wanted.end(), halves.begin(), edl::to_bfloat16);
    CHECK(g.get(w, n) == wanted);
    CHECK(g.get(slow, n) == wanted);
    CHECK(g.get(rounded, n) == halves);
  }
}

}  // namespace optimizer_test
