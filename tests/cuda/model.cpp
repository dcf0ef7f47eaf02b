// SPDX-License-Identifier: Apache-2.0
// Whole networks: what a GPU computes beside what the processor does.
#include "edl/compute/nn/model.hpp"

#include <dlfcn.h>

#include <array>

#include "compute/device/draw.hpp"
#include "compute/nn/networks.hpp"
#include "cuda/expressions.hpp"
#include "cuda/gpu.hpp"
#include "edl/compute/nn/loss/on_accelerator.hpp"

namespace model_test {

namespace nn = edl::nn;
using edl::cuda, edl::mode, edl::precision, edl::view;

namespace {

constexpr auto dense = nn::sequential(nn::features{.count = 20}, nn::dense{.units = 33}, nn::relu{},
                                      nn::dropout{.rate = 0.3f}, nn::dense{.units = 10});

constexpr auto residual = nn::sequential(
    nn::image{.height = 8, .width = 8, .channels = 3},
    nn::conv2d{.filters = 8, .kernel = 3, .padding = nn::padding::same, .use_bias = false}, nn::batch_norm{},
    nn::relu{},
    nn::residual(
        nn::sequential(nn::conv2d{.filters = 8, .kernel = 3, .padding = nn::padding::same, .use_bias = false},
                       nn::batch_norm{}, nn::relu{},
                       nn::conv2d{.filters = 8, .kernel = 3, .padding = nn::padding::same, .use_bias = false},
                       nn::batch_norm{})),
    nn::relu{},
    nn::residual(
        nn::sequential(nn::conv2d{.filters = 16, .kernel = 3, .stride = 2, .padding = nn::padding::same},
                       nn::batch_norm{}),
        nn::conv2d{.filters = 16, .kernel = 1, .stride = 2, .padding = nn::padding::same}),
    nn::relu{}, nn::global_average_pool{}, nn::dense{.units = 10});

constexpr auto images =
    nn::sequential(nn::image{.height = 10, .width = 10, .channels = 1}, nn::conv2d{.filters = 8, .kernel = 3},
                   nn::relu{}, nn::conv2d{.filters = 16, .kernel = 3}, nn::relu{}, nn::batch_norm{},
                   nn::max_pool{.window = 2}, nn::dropout{.rate = 0.25f}, nn::dense{.units = 10});

/// Ids that bfloat16 would not tell from their neighbours.
constexpr auto of_ids = nn::sequential(
    nn::ids{.count = 6},
    nn::concat(nn::embedding{.vocabulary = 700, .width = 8}, nn::embedding{.vocabulary = 701, .width = 3}),
    nn::conv2d{.filters = 8, .kernel = {1, 2}}, nn::relu{}, nn::global_average_pool{},
    nn::dense{.units = 10});

/// Layers whose kernels are compiled when they are met, one of which draws random numbers.
constexpr auto expressions = nn::sequential(
    nn::image{.height = 6, .width = 5, .channels = 3}, nn::conv2d{.filters = 4, .kernel = 3},
    nn::layer_norm{}, expressions_test::trained_swish{}, nn::residual(expressions_test::own_dropout{}),
    expressions_test::all_axes{}, nn::dense{.units = 12}, nn::rms_norm{}, nn::mish{}, nn::dense{.units = 10});

/// The same of several results of a function.
constexpr auto gated = nn::graph(nn::image{.height = 6, .width = 5, .channels = 3}, [](auto x) {
  auto const a = x | nn::conv2d{.filters = 4, .kernel = 3};
  return nn::apply(expressions_test::gate{}, a | nn::sigmoid{}, a, a | nn::global_average_pool{}) |
         nn::dense{.units = 10};
});

/// One step's loss, results, gradients and state.
struct step {
  double loss = 0;
  std::vector<float> y, gradients, state;
};

/// In double it is what all would compute if they did not round.
template <auto const& Net, class T>
step on_cpu(int batch, std::vector<float> const& x, std::vector<std::int32_t> const& labels) {
  edl::model<Net, edl::basic_cpu<T>> m({.max_batch = batch, .seed = 3});
  std::vector<T> const wide(x.begin(), x.end());
  step s;
  auto const y = m.forward(wide, batch, mode::training, 5);
  s.loss = nn::softmax_cross_entropy{}(m.output, batch, y, view<std::int32_t>(labels), m.output_gradient());
  m.backward(wide, batch);
  s.y.assign(y.begin(), y.end());
  s.gradients.assign(m.gradients().begin(), m.gradients().end());
  s.state.assign(m.state().begin(), m.state().end());
  return s;
}

/// `times`: the step after the first is recorded, those after that are replayed.
template <auto const& Net>
step on_gpu(int batch, std::vector<float> const& x, std::vector<std::int32_t> const& labels, nn::storage keep,
            precision p, int times) {
  edl::model<Net, cuda> m({.max_batch = batch, .seed = 3, .device = {.precision = p}, .keep = keep});
  std::shared_ptr<edl::accelerator> const gpu = m.device();
  edl::device_buffer<float> raw(gpu, x.size()), given(gpu, x.size()), classes(gpu, labels.size()),
      loss(gpu, 1), out(gpu, std::size_t(batch) * m.output.size());
  gpu->write(x, raw.span());
  gpu->upload(std::as_bytes(std::span(labels)), classes.span().data());
  std::vector<float> state(m.state().size());
  gpu->read(m.state(), state);
  for (int i = 0; i < times; ++i) {
    gpu->write(state, m.state());
    gpu->replay(1, 5, [&] {
      if (Net.of_ids)
        gpu->move(raw.span(), given.span());
      else
        gpu->store(raw.span(), given.span());
      auto const y = m.forward(given.span(), batch, mode::training, 5);
      nn::compute_loss(*gpu, nn::softmax_cross_entropy{}, m.output, batch, y, classes.span(),
                       m.output_gradient(), loss.span());
      m.backward(given.span(), batch);
      gpu->load(y, out.span());
    });
  }
  step s{.y = std::vector<float>(out.span().size()),
         .gradients = std::vector<float>(m.gradients().size()),
         .state = std::vector<float>(m.state().size())};
  std::vector<float> mean(1);
  gpu->read(loss.span(), mean);
  s.loss = double(mean[0]);
  gpu->read(out.span(), s.y);
  gpu->read(m.gradients(), s.gradients);
  gpu->read(m.state(), s.state);
  return s;
}

template <auto const& Net>
void check_network(int batch) {
  if (!gpu_or_skip()) return;
  auto x = numbers<float>(std::size_t(batch) * Net.input.size(), 1);
  if (Net.of_ids)
    for (float& id : x) id = std::floor(std::abs(id) * float(nn::vocabulary_of(Net.body, Net.input)));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = std::int32_t(i * 7 % edl::model<Net, cuda>::output.size());
  step const want = on_cpu<Net, double>(batch, x, labels);
  double const rounding = distance(on_cpu<Net, float>(batch, x, labels).gradients, want.gradients);
  for (auto const keep : {nn::storage::recomputed, nn::storage::float32}) {
    for (auto const p : {precision::float32, precision::tf32, precision::bfloat16})
      for (int const times : {1, 3}) {
        CAPTURE(int(keep));
        CAPTURE(int(p));
        CAPTURE(times);
        step const got = on_gpu<Net>(batch, x, labels, keep, p, times);
        // Rounded activations turn some of a small batch's relus and greatest elements round, others with
        // other kernels, and time decides which those are: these bounds find gross errors. What rounding may
        // cost one operation, the tests of operations say.
        double const most = p == precision::float32 ? std::max(1e-5, 3 * rounding)
                            : p == precision::tf32  ? 6e-2
                                                    : 0.25;
        CHECK(std::abs(got.loss - want.loss) <= most * want.loss);
        CHECK(distance(got.y, want.y) <= most);
        CHECK(distance(got.gradients, want.gradients) <= most);
        CHECK(distance(got.state, want.state) <= most);
      }
  }
}

}  // namespace

TEST_CASE("the library refuses a program of another version") {
  char const* const path = std::getenv("EDL_CUDA_LIBRARY");
  if (!path || !gpu_or_skip()) return;
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library);
  auto const open =
      reinterpret_cast<edl::accelerator* (*)(char const*, edl::cuda_options const*, char*, std::size_t)>(
          ::dlsym(library, "edl_open_cuda"));
  REQUIRE(bool(open));
  edl::cuda_options const with;
  std::array<char, 200> why{};
  CHECK(!open("0.0.0", &with, why.data(), why.size()));
  CHECK(std::string(why.data()).find("the program of 0.0.0") != std::string::npos);
}

TEST_CASE("dense layers and dropout") { check_network<dense>(9); }
TEST_CASE("convolutions, pooling and what is done with them in one pass") { check_network<images>(5); }
TEST_CASE("residual blocks with batch normalisation") { check_network<residual>(4); }
TEST_CASE("embeddings of ids") { check_network<of_ids>(7); }
TEST_CASE("layers that are expressions") {
  check_network<expressions>(5);
  check_network<gated>(5);
}
TEST_CASE("one of every layer") {
  check_network<zoo>(3);
  check_network<fast>(7);
}

}  // namespace model_test
