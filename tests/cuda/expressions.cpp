// SPDX-License-Identifier: Apache-2.0
// Layers and losses that are expressions, on a GPU beside the processor.
#include "cuda/expressions.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string_view>

#include "compute/nn/expression/composition.hpp"
#include "compute/nn/harness.hpp"
#include "cuda/gpu.hpp"
#include "edl/compute/device/device_buffer.hpp"
#include "edl/compute/nn/loss/on_accelerator.hpp"
#include "edl/core/bfloat16.hpp"

namespace expressions_test {

namespace expression = edl::nn::expression;
using edl::mode, edl::precision;

namespace {

using floats = std::vector<float>;

template <class T>
floats narrow(std::vector<T> const& of) {
  return {of.begin(), of.end()};
}

/// Memory of the GPU, of numbers or activations. What is not written is no number.
struct memory {
  edl::device_buffer<float> raw, held;
  std::shared_ptr<edl::accelerator> gpu;

  memory(std::shared_ptr<edl::accelerator> const& of, std::size_t n) : memory(of, floats(n, NAN)) {}
  memory(std::shared_ptr<edl::accelerator> const& of, floats const& values, bool activations = false)
      : raw(of, values.size()), held(of, values.size()), gpu(of) {
    if (values.empty()) return;
    gpu->write(values, activations ? raw.span() : held.span());
    if (activations) gpu->store(raw.span(), held.span());
  }
  std::span<float> span() { return held.span(); }
  floats get(bool activations = false) {
    floats all(held.span().size());
    if (all.empty()) return all;
    if (activations) gpu->load(held.span(), raw.span());
    gpu->read(activations ? raw.span() : held.span(), all);
    return all;
  }
};

/// Numbers that activations can hold.
void round(std::vector<double>& of, precision p) {
  for (double& v : of)
    v = double(p == precision::bfloat16 ? edl::from_bfloat16(edl::to_bfloat16(float(v))) : float(v));
}

/// Blocks, and threads, from the first to the last and the other way, where the GPU is the double.
template <class Work>
void in_both_orders(Work&& work) {
  for (char const* const order : {"", "backwards"}) {
    CAPTURE(order);
    ::setenv("EDL_CUDA_DOUBLE_WHIMS", order, 1);
    work();
  }
  ::unsetenv("EDL_CUDA_DOUBLE_WHIMS");
}

/// EDL_TEST_SEEDS in the environment: so many compositions, and each layer with every shape.
std::size_t more() {
  char const* const given = std::getenv("EDL_TEST_SEEDS");
  return given ? std::size_t(std::atoi(given)) : 0;
}

template <class L>
void check_layer(std::shared_ptr<edl::accelerator> const& gpu, precision p, edl::shape in, int batch,
                 mode how) {
  std::string_view const name = nn::derived<L>::name;
  CAPTURE(name);
  CAPTURE(in.channels);
  CAPTURE(batch);
  edl::nn::lone_layer<L> h{.l = {}, .in = in, .batch = batch, .mode = how};
  round(h.x, p), round(h.dy, p);
  for (double& v : h.parameters) v = double(float(1 + 0.3 * v));
  auto const before = narrow(h.state);
  h.forward();
  if (p == precision::bfloat16) round(h.y, p);
  h.backward();

  memory x(gpu, narrow(h.x), true), dy(gpu, narrow(h.dy), true), parameters(gpu, narrow(h.parameters)),
      y(gpu, h.y.size()), dx(gpu, h.dx.size()), gradients(gpu, h.gradients.size()),
      saved(gpu, h.saved.size()), state(gpu, before.size());
  nn::pass<edl::backend> pass{*gpu, how, h.random, {}};
  in_both_orders([&] {
    if (!before.empty()) gpu->write(before, state.span());
    h.whole.forward(pass,
                    {in, h.out, batch, x.span(), parameters.span(), state.span(), y.span(), saved.span()});
    auto const got = y.get(true);
    h.whole.backward(pass, {in,
                            h.out,
                            batch,
                            x.span(),
                            y.span(),
                            dy.span(),
                            parameters.span(),
                            {},
                            dx.span(),
                            gradients.span(),
                            saved.span()});
    double const most = p == precision::bfloat16 ? 1e-2 : 5e-5;
    CHECK(distance(got, narrow(h.y)) <= (p == precision::bfloat16 ? 2e-3 : most));  // both are rounded
    CHECK(distance(dx.get(true), narrow(h.dx)) <= most);
    CHECK(distance(state.get(), narrow(h.state)) <= 5e-5);
    auto const sums = gradients.get();
    CHECK(distance(sums, narrow(h.gradients)) <= most);
    // Without the gradient of the input, and the same bits.
    h.whole.backward(pass, {in,
                            h.out,
                            batch,
                            x.span(),
                            y.span(),
                            dy.span(),
                            parameters.span(),
                            {},
                            {},
                            gradients.span(),
                            saved.span()});
    CHECK(gradients.get() == sums);
  });
}

template <class L>
void check_loss(std::shared_ptr<edl::accelerator> const& gpu, precision p, edl::shape in, int batch) {
  auto const l = nn::as_loss(L{});
  using label = typename decltype(l)::label;
  std::string_view const name = expression::name_of_type<L>();
  CAPTURE(name);
  auto x = edl::nn::lone_layer<gain>::numbers(std::size_t(batch) * in.size(), 5);
  round(x, p);
  std::vector<label> labels(std::size_t(batch) * l.labels(in));
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = l.class_labels ? label(i % std::size_t(in.channels)) : label(float(i * 7 % 11) / 11);
  std::vector<double> slopes(x.size());
  double const mean = l(in, batch, edl::view<double>(x), edl::view<label>(labels), slopes);
  floats bits(labels.size());
  std::memcpy(bits.data(), labels.data(), bits.size() * sizeof(float));
  memory outputs(gpu, narrow(x), true), truth(gpu, bits), gradients(gpu, x.size()), loss(gpu, 1);
  in_both_orders([&] {
    nn::loss_on(*gpu, l, in, batch, outputs.span(), truth.span(), gradients.span(), loss.span());
    CHECK(loss.get()[0] == doctest::Approx(mean).epsilon(1e-5));
    CHECK(distance(gradients.get(true), narrow(slopes)) <= (p == precision::bfloat16 ? 1e-2 : 1e-5));
    nn::loss_on(*gpu, l, in, batch, outputs.span(), truth.span(), {}, loss.span());
    CHECK(loss.get()[0] == doctest::Approx(mean).epsilon(1e-5));
  });
}

}  // namespace

TEST_CASE("layers that are expressions compute what the processor does") {
  std::size_t which = 0;
  for (auto const p : {precision::float32, precision::bfloat16}) {
    auto const gpu = gpu_or_skip({.precision = p});
    if (!gpu) return;
    each_layer([&]<class L>(L const&) {
      for (std::size_t i = 0; i < (more() > 0 ? shapes.size() : 1); ++i, ++which)
        check_layer<L>(gpu, p, shapes[which % shapes.size()], which % 3 == 0 ? 37 : 5,
                       which % 4 == 3 ? mode::evaluation : mode::training);
    });
  }
}

TEST_CASE("losses that are expressions compute what the processor does") {
  std::size_t which = 0;
  for (auto const p : {precision::float32, precision::bfloat16}) {
    auto const gpu = gpu_or_skip({.precision = p});
    if (!gpu) return;
    each_loss([&]<class L>(L const&) { check_loss<L>(gpu, p, shapes[which++ % 5], 9); });
  }
}

TEST_CASE("random compositions compute what their operations define") {
  auto const gpu = gpu_or_skip();
  if (!gpu) return;
  std::deque<expression::program> programs;  // their addresses tell the GPU which is which
  for (std::size_t seed = 1; seed <= std::max(more(), std::size_t(8)); ++seed) {
    edl::shape const in =
        shapes[seed % shapes.size()].channels > 100 ? edl::shape{2, 1, 70} : shapes[seed % shapes.size()];
    CAPTURE(seed);
    constexpr int batch = 5;
    auto const form = expression::form_of(compositions_test::composition{seed}, in);
    auto const d = expression::deriver(form).result();
    auto const& backward = programs.emplace_back(expression::scheduler::backward(form, d));
    auto const& forward = programs.emplace_back(expression::scheduler::forward(form, backward));
    using lone = edl::nn::lone_layer<gain>;
    std::size_t const n = batch * in.size(), most = std::max(in.size(), std::size_t(10));
    compositions_test::by_definition<double> with{
        in, batch, lone::numbers(n, 1), lone::numbers(n, 2), std::vector<double>(8 * most), most};
    floats variables;
    auto drawn = lone::numbers(8 * most, 3);
    for (int v = 0; v < form.variable_count; ++v)
      for (std::size_t i = 0; i < form.variables[std::size_t(v)].dims.size(); ++i)
        variables.push_back(
            float(with.variables[std::size_t(v) * most + i] = 1 + 0.3 * drawn[variables.size()]));
    auto const values = with.values(d.nodes);
    memory x(gpu, narrow(with.x)), dy(gpu, narrow(with.dy)), given(gpu, variables), y(gpu, n), dx(gpu, n),
        gradients(gpu, variables.size()), kept(gpu, expression::kept_by(forward, in, batch));
    in_both_orders([&] {
      edl::view<float> const from = x.span();
      std::span<float> const to = dx.span();
      expression::call<float> call{.now = form,
                                   .in = in,
                                   .batch = batch,
                                   .x = std::span(&from, 1),
                                   .variables = given.span(),
                                   .y = y.span(),
                                   .kept = kept.span(),
                                   .name = "composition"};
      REQUIRE(expression::run_on_accelerator(*gpu, forward, call));
      call.dy = dy.span(), call.dx = std::span(&to, 1), call.gradients = gradients.span();
      REQUIRE(expression::run_on_accelerator(*gpu, backward, call));
      CHECK(distance(y.get(), narrow(values[std::size_t(form.result)])) <= 2e-5);
      CHECK(distance(dx.get(), narrow(values[std::size_t(d.inputs[0])])) <= 2e-5);
      auto const got = gradients.get();
      floats wanted;
      for (int v = 0; v < form.variable_count; ++v) {
        std::size_t const first = wanted.size(), size = form.variables[std::size_t(v)].dims.size();
        wanted.resize(first + size);
        for (std::size_t i = 0; i < n; ++i)
          wanted[first + with.index(i, form.variables[std::size_t(v)].over)] =
              float(values[std::size_t(d.variables[std::size_t(v)])][i]);
      }
      CHECK(distance(got, wanted) <= 2e-5);
    });
  }
}

TEST_CASE("an expression of several values computes what the processor does") {
  auto const gpu = gpu_or_skip();
  if (!gpu) return;
  using passes = expression::compiled<gate, 3>;
  constexpr int batch = 37;
  edl::shape const in{2, 3, 5};
  std::size_t const n = batch * in.size(), few = batch * 5;
  auto const form = expression::form_of<3>(gate{}, in);
  auto const draw = [](std::size_t size, std::uint64_t key) {
    return narrow(edl::nn::lone_layer<gain>::numbers(size, key));
  };
  std::array<floats, 3> const x{draw(n, 1), draw(n, 2), draw(few, 3)};
  floats const dy = draw(n, 4);
  auto const computed = [&](edl::backend& on) {
    std::array<edl::device_buffer<float>, 8> all;
    std::shared_ptr<edl::backend> const at(&on, [](edl::backend*) {});
    std::array<floats, 4> got{floats(n), floats(n), floats(n), floats(few)};  // y, dx
    for (std::size_t i = 0; i < 8; ++i) {
      floats const& of = i < 3 ? x[i] : i < 4 ? dy : got[i - 4];
      all[i] = {at, of.size()};
      on.write(of, all[i].span());
    }
    std::array<edl::view<float>, 3> const from{all[0].span(), all[1].span(), all[2].span()};
    std::array<std::span<float>, 3> const dx{all[5].span(), all[6].span(), all[7].span()};
    expression::call<float> call{
        .now = form, .in = in, .batch = batch, .x = from, .y = all[4].span(), .name = "gate"};
    expression::run<passes::forward, float>(on, call);
    call.dy = all[3].span(), call.dx = dx;
    expression::run<passes::backward, float>(on, call);
    for (std::size_t i = 0; i < 4; ++i) on.read(all[4 + i].span(), got[i]);
    return got;
  };
  edl::basic_cpu<float> processor;
  auto const want = computed(processor);
  in_both_orders([&] {
    auto const got = computed(*gpu);
    for (std::size_t i = 0; i < 4; ++i) CHECK(distance(got[i], want[i]) <= 1e-6);
  });
}

}  // namespace expressions_test
