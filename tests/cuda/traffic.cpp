// SPDX-License-Identifier: Apache-2.0
// Covers edl/compute/device/memory_traffic.hpp.
#include "compute/device/draw.hpp"
#include "cuda/gpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"

namespace traffic_test {

namespace nn = edl::nn;
using edl::activation;

namespace {

constexpr auto normalised = nn::sequential(
    nn::image{.height = 8, .width = 8, .channels = 4}, nn::conv2d{.filters = 8, .kernel = 3},
    nn::batch_norm{}, nn::relu{}, nn::conv2d{.filters = 8, .kernel = 3}, nn::dense{.units = 4});

}  // namespace

TEST_CASE("what operations read and write is counted: each operand once, and what is read again") {
  for (auto p : {edl::precision::float32, edl::precision::bfloat16}) {
    auto const gpu = gpu_or_skip({.precision = p, .measured = false});
    if (!gpu) return;
    std::size_t const element = p == edl::precision::bfloat16 ? 2 : 4;
    constexpr std::size_t batch = 3, pixels = batch * 36, x = pixels * 2, y = pixels * 4, w = 9 * 2 * 4;
    auto const memory = [&](std::size_t n) { return std::span(gpu->allocate(n), n); };
    auto const xs = memory(x), ys = memory(y), zs = memory(y), dys = memory(y), dxs = memory(x),
               weights = memory(w), dweights = memory(w), few = memory(4), kept = memory(8);
    edl::conv_geometry const g{{6, 6, 2}, {6, 6, 4}, 3, 1, 1, 1};
    edl::norm_chain const chain{.in = {6, 6, 4}};
    CHECK(gpu->take_traffic().empty());
    for (int i = 0; i < 2; ++i) gpu->conv2d_forward(g, batch, activation::none, xs, weights, {}, ys);
    gpu->batch_norm_train(chain, batch, 0.9f, 1e-3f, ys, few, few, {}, few, few, zs, kept);
    gpu->batch_norm_backward(chain, batch, true, ys, few, few, dys, kept, zs, few, few);
    gpu->conv2d_backward(g, batch, xs, weights, zs, dxs, dweights, {});
    gpu->sgd(weights, dweights, {}, 0.1f, 0, 0, false);
    auto const all = gpu->take_traffic();
    struct {
      std::string_view operation;
      std::uint64_t calls, least, again;
    } const expected[] = {{"conv2d forward", 2, 2 * (x + w + y) * element, 0},
                          {"batch_norm forward", 1, 2 * y * element, y * element},
                          {"batch_norm backward", 1, 3 * y * element, 2 * y * element},
                          {"conv2d to kernel", 1, (x + y) * element + 4 * w, 0},
                          {"conv2d to image", 1, (y + w + x) * element, 0},
                          {"optimiser", 1, 12 * w, 0}};
    REQUIRE(all.size() == std::size(expected));
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(all[i].operation);
      CHECK(all[i].operation == expected[i].operation);
      CHECK(all[i].calls == expected[i].calls);
      CHECK(all[i].least == expected[i].least);
      CHECK(all[i].again == expected[i].again);
    }
    CHECK(gpu->take_traffic().empty());
    for (auto each : {xs, ys, zs, dys, dxs, weights, dweights, few, kept})
      gpu->release(each.data(), each.size());
  }
}

TEST_CASE("a step that is replayed counts when it is recorded") {
  auto const gpu = gpu_or_skip();
  if (!gpu) return;
  auto const xs = std::span(gpu->allocate(64), 64), ys = std::span(gpu->allocate(64), 64);
  std::uint64_t calls[4] = {};
  for (std::uint64_t step = 0; step < 4; ++step) {
    gpu->replay(1, step, [&] { gpu->copy(xs, ys); });
    for (auto const& each : gpu->take_traffic()) calls[step] += each.calls;
  }
  CHECK(calls[0] == 1);
  CHECK(calls[1] == 1);
  CHECK(calls[2] == 0);
  CHECK(calls[3] == 0);
  for (auto each : {xs, ys}) gpu->release(each.data(), each.size());
}

TEST_CASE("results that can be computed again are kept where a GPU has room for them") {
  std::vector<float> gradients[2];
  auto const probe = gpu_or_skip();
  if (!probe || !std::getenv("EDL_CUDA_DOUBLE_DEVICES"))
    return;  // a card has more memory than a test may fill
  for (bool const room : {true, false}) {
    constexpr int batch = 64;
    std::size_t const all = std::size_t(8) << 30, used = all - probe->free_memory();
    if (!room) setenv("EDL_CUDA_DOUBLE_MEMORY", std::to_string(used + (400 << 10)).c_str(), 1);
    edl::model<normalised, edl::cuda> m({.max_batch = batch, .device = {.measured = false}});
    unsetenv("EDL_CUDA_DOUBLE_MEMORY");
    auto const gpu = m.device();
    edl::device_buffer<float> x(gpu, batch * m.input.size());
    gpu->write(numbers<float>(x.span().size(), 1), x.span());
    gpu->write(numbers<float>(m.output_gradient().size(), 2), m.output_gradient());
    m.forward(x.span(), batch, edl::mode::training);
    m.backward(x.span(), batch);
    auto const traffic = gpu->take_traffic();
    CHECK(std::ranges::count(traffic, "batch_norm again", &edl::memory_traffic::operation) == (room ? 0 : 1));
    gradients[room].resize(m.gradients().size());
    gpu->read(m.gradients(), gradients[room]);
  }
  CHECK(gradients[0] == gradients[1]);
}

}  // namespace traffic_test
