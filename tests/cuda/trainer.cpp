// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "cuda/gpu.hpp"
#include "edl/app/cuda_trainer.hpp"
#include "edl/edl.hpp"

namespace nn = edl::nn;

namespace {

struct normalised {
  static constexpr auto network =
      nn::sequential(nn::features{.count = 2}, nn::batch_norm{}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::sgd optimizer{.learning_rate = 0.1f, .momentum = 0.9f};
  static void feed(edl::example const&, edl::sample<normalised>&, edl::mode) {}
};

edl::data::batch batch_of(edl::worker::trainer const& t, std::vector<float> const& features) {
  auto b = t.make_batch();
  std::ranges::copy(features, b.features.begin());
  b.rows = int(features.size() / 2);
  return b;
}

}  // namespace

TEST_CASE("a pass without a loss leaves what is kept on the GPU as it was") {
  if (!gpu_or_skip()) return;
  edl::app::cuda_trainer<normalised> t({.max_batch = 2});
  edl::arena* const there = t.arena();
  REQUIRE(there);
  std::vector<float> variables(t.variables().begin(), t.variables().end());
  std::size_t const parameters = t.gradients().size();
  std::vector<float> slots(parameters), after(variables.size()), after_slots(parameters);
  there->place(variables, slots, parameters);
  float const none = std::numeric_limits<float>::quiet_NaN();
  auto const good = batch_of(t, {1, 2, 3, 5}), bad = batch_of(t, {1, none, 3, 5});
  for (int times : {1, 2, 3}) {  // as they come, recorded, replayed
    CAPTURE(times);
    CHECK(std::isfinite(t.train(good, 1, {})));
    there->fetch(variables, slots);
    CHECK_FALSE(std::isfinite(t.train(bad, 1, {})));
    there->fetch(after, after_slots);
    CHECK(after == variables);
    CHECK(after_slots == slots);
  }
  CHECK(variables[parameters] > 0);  // the good ones have moved a mean
}
