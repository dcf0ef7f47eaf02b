// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/trainers/trainers.hpp"

#include <doctest/doctest.h>

#include "edl/author/model_learner.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/core/error.hpp"

namespace trainers_test {

namespace nn = edl::nn;

namespace {

/// Touches elements itself.
struct doubled {
  static constexpr std::string_view name = "doubled";
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  template <class D>
  void forward(nn::pass<D>&, nn::forward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.x.size(); ++i) a.y[i] = 2 * a.x[i];
  }
  template <class D>
  void backward(nn::pass<D>&, nn::backward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.dx.size(); ++i) a.dx[i] = 2 * a.dy[i];
  }
};

struct unportable {
  static constexpr auto network =
      nn::sequential(nn::features{.count = 2}, nn::dense{.units = 3}, doubled{}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<unportable>&, edl::mode) {}
};

}  // namespace

TEST_CASE("a network with a layer that touches elements itself is computed on the processor, or not at all") {
  using enum edl::worker::device_kind;
  static_assert(!edl::author::is_portable<unportable>);
  for (auto const on : {any, cpu}) {
    auto const t = edl::author::make_trainer<unportable>({.max_batch = 2, .on = on});
    CHECK(t->device() == "");
    auto b = t->make_batch();
    b.rows = 2;
    b.features = {1, 2, 3, 4};
    CHECK(t->train(b, 0, {}) > 0);
    CHECK(edl::train::open_device({.on = on}, false)->in_host_memory());
  }
  CHECK_THROWS_WITH_AS(edl::author::make_trainer<unportable>({.on = cuda}),
                       doctest::Contains("portable = true"), edl::error);
  CHECK_THROWS_AS(edl::train::open_device({.on = cuda}, false), edl::error);
}

}  // namespace trainers_test
