// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/chain.hpp"

#include <algorithm>

#include "compute/nn/harness.hpp"
#include "compute/nn/networks.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"

namespace chain_test {

namespace nn = edl::nn;

namespace {

/// Everything whose results may be kept in another way: between layers, in containers, before a pooling.
constexpr auto several = nn::sequential(
    nn::conv2d{.filters = 4, .kernel = 3}, nn::batch_norm{}, nn::relu{}, nn::residual(block(4)), nn::relu{},
    nn::residual(block(6), nn::sequential(nn::conv2d{.filters = 6}, nn::batch_norm{})), nn::relu{},
    nn::batch_norm{}, nn::batch_norm{}, nn::dropout{.rate = 0.2f}, nn::batch_norm{}, nn::relu{},
    nn::max_pool{}, nn::dense{.units = 5}, nn::tanh{}, nn::dense{.units = 3});
constexpr edl::shape in{7, 8, 2};

auto after_both_passes(nn::storage keep, edl::mode m, int batch = 3) {
  lone_layer<std::remove_cvref_t<decltype(several)>> h{.l = several, .in = in, .batch = {batch, keep}};
  h.mode = m;
  h.forward();
  h.backward();
  return h;
}

}  // namespace

TEST_CASE("what is computed again, or kept in half the memory, gives the same gradients") {
  for (auto m : {edl::mode::training, edl::mode::evaluation}) {
    auto const whole = after_both_passes(nn::storage::float32, m, 32),
               again = after_both_passes(nn::storage::recomputed, m, 32),
               half = after_both_passes(nn::storage::bfloat16, m, 32),
               compact = after_both_passes(nn::storage::compact, m, 32);
    CHECK(again.y == whole.y);
    CHECK(again.dx == whole.dx);
    CHECK(again.gradients == whole.gradients);
    CHECK(again.state == whole.state);
    for (auto const* narrow : {&half, &compact}) {
      CHECK(narrow->y == whole.y);  // the way there never reads what was rounded
      CHECK(narrow->gradients != whole.gradients);
      double off = 0, all = 0;
      for (std::size_t i = 0; i < whole.gradients.size(); ++i) {
        off += std::pow(narrow->gradients[i] - whole.gradients[i], 2);
        all += std::pow(whole.gradients[i], 2);
      }
      CHECK(std::sqrt(off / all) < 4e-2);  // eight bits, and a relu that decides otherwise now and then
    }
  }
}

TEST_CASE("a pool finds what was the greatest, also where one of the two was rounded in between") {
  constexpr auto stem =
      nn::sequential(nn::conv2d{.filters = 4, .kernel = 3}, nn::batch_norm{}, nn::relu{},
                     nn::max_pool{.window = 3, .stride = 2, .padding = nn::padding::same},
                     nn::conv2d{.filters = 4}, nn::gelu{}, nn::max_pool{.window = 2}, nn::dense{.units = 3});
  auto const gradients = [&](nn::storage keep) {
    lone_layer<std::remove_cvref_t<decltype(stem)>> h{.l = stem, .in = {13, 13, 2}, .batch = {8, keep}};
    h.forward();
    h.backward();
    return h.gradients;
  };
  auto const whole = gradients(nn::storage::float32);
  for (auto const keep : {nn::storage::bfloat16, nn::storage::compact}) {
    auto const half = gradients(keep);
    double off = 0, all = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      off += std::pow(half[i] - whole[i], 2);
      all += std::pow(whole[i], 2);
    }
    CHECK(std::sqrt(off / all) < 2e-2);
  }
}

TEST_CASE("layer normalisations and gelus are computed again, with the same gradients") {
  constexpr auto block = nn::sequential(
      nn::residual(nn::sequential(nn::layer_norm{}, nn::dense{.units = 6, .each_place = true}, nn::gelu{},
                                  nn::gelu{}, nn::dense{.units = 3, .each_place = true})),
      nn::layer_norm{}, nn::dense{.units = 3, .each_place = true});
  auto const course = [&](nn::storage keep) {
    lone_layer<std::remove_cvref_t<decltype(block)>> h{.l = block, .in = {1, 5, 3}, .batch = {4, keep}};
    h.forward();
    h.backward();
    return h;
  };
  auto const whole = course(nn::storage::float32), again = course(nn::storage::recomputed);
  CHECK(again.y == whole.y);
  CHECK(again.dx == whole.dx);
  CHECK(again.gradients == whole.gradients);
  CHECK(again.saved.size() < whole.saved.size());
}

TEST_CASE("a device whose memory the host does not see keeps results whole where compact is asked for") {
  CHECK(nn::on_accelerator(nn::storage::compact) == nn::storage::recomputed);
  for (auto const s : {nn::storage::recomputed, nn::storage::float32, nn::storage::bfloat16})
    CHECK(nn::on_accelerator(s) == s);
}

TEST_CASE("memory shrinks in the order that one expects") {
  auto const of = [](nn::storage keep) { return nn::saved_by(several, in, {64, keep}); };
  CHECK(of(nn::storage::recomputed) < of(nn::storage::float32) * 9 / 10);
  CHECK(of(nn::storage::bfloat16) < of(nn::storage::float32) * 7 / 10);
  CHECK(of(nn::storage::compact) < of(nn::storage::bfloat16) * 9 / 10);
}

TEST_CASE("gradients lie where results are not needed any more") {
  constexpr nn::dense wide{.units = 1024}, narrow{.units = 256};
  constexpr nn::tanh f{};
  constexpr auto net = nn::sequential(wide, f, narrow, f, narrow, f, narrow, f, narrow, f, narrow, f, narrow);
  constexpr edl::shape row{1, 1, 16};
  constexpr std::size_t saved = nn::saved_by(net, row, 64);
  CHECK(saved == 64 * (2 * 1024 + 10 * 256));
  CHECK(nn::scratch_of(net, row, 64) == 64 * 2 * 1024);   // what comes and what goes, anywhere
  CHECK(net.workspace(row, 64) == saved + 64 * 2 * 256);  // at the end, where nothing is used up yet
}

TEST_CASE("a gradient lies over its result where that is read for the last time") {
  static constexpr auto body = block(4);
  constexpr auto memory_of = [](nn::storage keep, bool tight) {
    nn::pass_size size{8, keep, true};
    size.sides = {true, true};
    size.tight = tight;
    return body.memory({9, 8, 4}, size);
  };
  auto const over = [](auto const& m) {
    return std::ranges::count_if(m.between, [](auto const& b) { return b.over_result; });
  };
  constexpr auto apart = memory_of(nn::storage::recomputed, true),
                 compact = memory_of(nn::storage::compact, false),
                 tight = memory_of(nn::storage::compact, true);
  CHECK(over(apart) == 0);
  CHECK(over(compact) == 2);  // what goes into the two normalisations
  CHECK(over(tight) == 3);
  CHECK(compact.scratch < apart.scratch);
  CHECK(tight.scratch < compact.scratch);
}

TEST_CASE("a pass in one piece of memory gives what a pass in two gives") {
  for (auto keep :
       {nn::storage::float32, nn::storage::bfloat16, nn::storage::recomputed, nn::storage::compact}) {
    auto const apart = after_both_passes(keep, edl::mode::training);
    lone_layer<std::remove_cvref_t<decltype(several)>> h{.l = several, .in = in, .batch = {3, keep}};
    h.saved.assign(several.workspace(in, h.batch), lone_layer<nn::flatten>::poison);
    h.scratch.clear();
    h.forward();
    CHECK(h.y == apart.y);
    h.backward();
    CHECK(h.dx == apart.dx);
    CHECK(h.gradients == apart.gradients);
  }
}

TEST_CASE("a network of convolutions has no float32 between its first convolution and its dense layer") {
  constexpr auto kept = nn::sequential(
      nn::conv2d{.filters = 4, .kernel = 3}, nn::relu{}, nn::batch_norm{}, nn::relu{}, nn::max_pool{},
      nn::dropout{}, nn::residual(block(4)), nn::relu{}, nn::average_pool{.window = 1},
      nn::conv2d{.filters = 6}, nn::batch_norm{}, nn::relu{}, nn::max_pool{.window = 3, .stride = 1},
      nn::gelu{}, nn::residual(nn::sequential(nn::conv2d{.filters = 6}, nn::tanh{})),
      nn::max_pool{.window = 1}, nn::flatten{}, nn::dropout{}, nn::dense{.units = 4}, nn::relu{},
      nn::dropout{}, nn::dense{.units = 3});
  constexpr edl::shape of{13, 13, 3};
  constexpr nn::pass_size size{8, nn::storage::recomputed, true};
  auto const narrow = kept.memory(of, size), wide = kept.memory(of, {8});
  std::size_t const steps = narrow.between.size() - 1;
  for (std::size_t i = 1; i + 2 < steps - 1; ++i) {
    CAPTURE(i);
    CHECK(narrow.between[i].narrow);
    CHECK_FALSE(wide.between[i].narrow);
  }
  CHECK_FALSE(narrow.between[0].narrow);
  CHECK_FALSE(narrow.between[steps - 2].narrow);  // behind the dense layer
  CHECK(narrow.between[steps - 1].narrow);        // before the next one
  CHECK_FALSE(narrow.between[steps].narrow);
  CHECK(double(narrow.workspace) < 0.6 * double(wide.workspace));

  static constexpr auto net = nn::sequential(nn::image{.height = 13, .width = 13, .channels = 3}, kept);
  auto const gradients = [](edl::cpu_options const& o, nn::storage keep) {
    edl::model<net, edl::cpu> m({.max_batch = 8, .device = o, .keep = keep});
    auto const x = numbers<float>(8 * net.input.size(), 1), dy = numbers<float>(8 * 3, 2);
    auto const y = m.forward(x, 8, edl::mode::training);
    std::vector<float> all(y.begin(), y.end());
    std::ranges::copy(dy, m.output_gradient().begin());
    m.backward(x, 8);
    all.insert(all.end(), m.gradients().begin(), m.gradients().end());
    return all;
  };
  edl::cpu_options const rounds{
      .threads = 2, .kernels = edl::kernels::own, .precision = edl::precision::bfloat16};
  auto const exact = gradients({}, nn::storage::float32), some = gradients(rounds, nn::storage::float32);
  auto const off = [&](std::vector<float> const& found) {
    double difference = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) difference += std::pow(double(found[i]) - exact[i], 2);
    return std::sqrt(difference);
  };
  for (auto const keep : {nn::storage::recomputed, nn::storage::bfloat16, nn::storage::compact}) {
    CAPTURE(int(keep));
    auto const found = gradients(rounds, keep);
    CHECK(found != some);
    CHECK(off(found) < 4 * off(some));
  }
}

}  // namespace chain_test
