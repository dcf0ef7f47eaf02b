// SPDX-License-Identifier: Apache-2.0
// Single operations on one thread, beside oneDNN's primitives for them in whichever layouts oneDNN likes
// best. To bring numbers into those layouts is not counted there, as its own benchdnn does not. It is counted
// here. `derived [PEER…]`: instead derived layers and losses beside the same by hand, and a layer beside
// peer.py's.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <dnnl.hpp>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "../contestant.hpp"
#include "derived.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layer/conv2d.hpp"

namespace {

using dnnl::memory;
using clock_type = std::chrono::steady_clock;
using work = std::function<void()>;

double milliseconds(work const& once) {
  auto const begin = clock_type::now();
  once();
  return std::chrono::duration<double, std::milli>(clock_type::now() - begin).count();
}

/// The least times of both, which take turns.
std::array<double, 2> contest(work const& ours, work const& bare) {
  std::array<double, 2> least{1e9, 1e9};
  for (work const* of : {&ours, &bare}) (*of)();
  auto const end = clock_type::now() + std::chrono::milliseconds(400);
  for (int turn = 0; turn < 5 || clock_type::now() < end; ++turn)
    least = {std::min(least[0], milliseconds(ours)), std::min(least[1], milliseconds(bare))};
  return least;
}

/// A primitive with memory of its own.
class bare_primitive {
 public:
  bare_primitive(dnnl::engine const& on, dnnl::primitive const& of,
                 std::unordered_map<int, memory::desc> const& arguments)
      : stream_(on), primitive_(of) {
    for (auto const& [name, description] : arguments)
      if (description.get_size() > 0) arguments_.emplace(name, memory(description, on));
  }
  void operator()() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
};

struct line {
  std::string name;
  double multiplications;
  work ours, bare;
};

void print(line const& l) {
  auto const [ours, bare] = contest(l.ours, l.bare);
  auto const rate = [&](double ms) { return 2 * l.multiplications / (ms * 1e6); };
  std::printf("| %s | %.3f | %.0f | %.3f | %.0f | %.2f |\n", l.name.c_str(), ours, rate(ours), bare,
              rate(bare), ours / bare);
  std::fflush(stdout);
}

void convolutions(dnnl::engine const& on, edl::cpu& cpu, bool narrow, int batch, edl::shape in, int filters,
                  edl::nn::padding padding) {
  edl::nn::conv2d const layer{.filters = filters, .kernel = 3, .padding = padding};
  auto const g = layer.geometry(in, {narrow, narrow});
  auto const n = std::size_t(batch);
  auto const numbers = [](std::size_t size) { return std::vector<float>(size); };
  auto x = numbers(n * in.size()), y = numbers(n * g.out.size()), dx = x, dy = y,
       kernel = numbers(g.patch() * std::size_t(filters)), dkernel = kernel,
       bias = numbers(std::size_t(filters));
  auto const ours = [&](std::vector<float>& of) {
    return std::span(of).first(edl::scalars_of(of.size(), narrow));
  };

  auto const type = narrow ? memory::data_type::bf16 : memory::data_type::f32;
  auto const any = [&](memory::dims const& dims) {
    return memory::desc(dims, type, memory::format_tag::any);
  };
  memory::dims const stride{1, 1}, before{g.before.height, g.before.width};
  auto const xs = any({batch, in.channels, in.height, in.width}), ws = any({filters, in.channels, 3, 3}),
             ys = any({batch, filters, g.out.height, g.out.width});
  memory::desc const bs({filters}, memory::data_type::f32, memory::format_tag::x);
  // Winograd's algorithm has kernels of float32, for some processors.
  for (auto const how : {dnnl::algorithm::convolution_direct, dnnl::algorithm::convolution_winograd}) {
    bool const winograd = how == dnnl::algorithm::convolution_winograd;
    if (winograd && narrow) continue;
    std::string const name = std::to_string(in.height) + " x " + std::to_string(in.width) + ", " +
                             std::to_string(in.channels) + " to " + std::to_string(filters) + ", batch " +
                             std::to_string(batch) + (narrow ? ", bfloat16" : ", float32") +
                             (winograd ? ", oneDNN's Winograd" : "") + " | ";
    double const all = double(n) * double(g.positions()) * double(g.patch()) * filters;
    try {
      dnnl::convolution_forward::primitive_desc const f(
          {dnnl::prop_kind::forward_training, how, xs, ws, bs, ys, stride, before, before}, on);
      bare_primitive forward(on, dnnl::convolution_forward(f),
                             {{DNNL_ARG_SRC, f.src_desc()},
                              {DNNL_ARG_WEIGHTS, f.weights_desc()},
                              {DNNL_ARG_BIAS, f.bias_desc()},
                              {DNNL_ARG_DST, f.dst_desc()}});
      print({name + "forward", all,
             [&] { cpu.conv2d_forward(g, batch, edl::activation::none, ours(x), kernel, bias, ours(y)); },
             std::ref(forward)});
      dnnl::convolution_backward_data::primitive_desc const d({how, xs, ws, ys, stride, before, before}, on,
                                                              f);
      bare_primitive data(on, dnnl::convolution_backward_data(d),
                          {{DNNL_ARG_DIFF_SRC, d.diff_src_desc()},
                           {DNNL_ARG_WEIGHTS, d.weights_desc()},
                           {DNNL_ARG_DIFF_DST, d.diff_dst_desc()}});
      print({name + "to the input", all,
             [&] { cpu.conv2d_backward(g, batch, ours(x), kernel, ours(dy), ours(dx), {}, {}); },
             std::ref(data)});
      dnnl::convolution_backward_weights::primitive_desc const w(
          {how, xs, any({filters, in.channels, 3, 3}), bs, ys, stride, before, before}, on, f);
      bare_primitive weights(on, dnnl::convolution_backward_weights(w),
                             {{DNNL_ARG_SRC, w.src_desc()},
                              {DNNL_ARG_DIFF_WEIGHTS, w.diff_weights_desc()},
                              {DNNL_ARG_DIFF_BIAS, w.diff_bias_desc()},
                              {DNNL_ARG_DIFF_DST, w.diff_dst_desc()}});
      print({name + "to the kernel", all,
             [&] { cpu.conv2d_backward(g, batch, ours(x), kernel, ours(dy), {}, dkernel, bias); },
             std::ref(weights)});
    } catch (dnnl::error const&) {
      std::fprintf(stderr, "oneDNN has no kernel: %s\n", name.c_str());
    }
  }
}

void dense(dnnl::engine const& on, edl::cpu& cpu, bool narrow, int rows, int inputs, int outputs) {
  auto const numbers = [](int a, int b) { return std::vector<float>(std::size_t(a) * std::size_t(b)); };
  auto x = numbers(rows, inputs), y = numbers(rows, outputs), dx = x, dy = y,
       kernel = numbers(inputs, outputs), dkernel = kernel;
  auto const m = std::size_t(rows), k = std::size_t(inputs), n = std::size_t(outputs);
  auto const type = narrow ? memory::data_type::bf16 : memory::data_type::f32;
  auto const product = [&](int a, int b, int c) {
    auto const any = [&](int down, int across) {
      return memory::desc({down, across}, type, memory::format_tag::any);
    };
    memory::desc const sums({a, c}, memory::data_type::f32, memory::format_tag::ab);
    dnnl::matmul::primitive_desc const d({any(a, b), any(b, c), sums}, on);
    return bare_primitive(
        on, dnnl::matmul(d),
        {{DNNL_ARG_SRC, d.src_desc()}, {DNNL_ARG_WEIGHTS, d.weights_desc()}, {DNNL_ARG_DST, d.dst_desc()}});
  };
  std::string const name = std::to_string(rows) + " x " + std::to_string(inputs) + " to " +
                           std::to_string(outputs) + (narrow ? ", bfloat16 | " : ", float32 | ");
  double const all = double(m) * double(k) * double(n);
  auto forward = product(rows, inputs, outputs), data = product(rows, outputs, inputs),
       weights = product(inputs, rows, outputs);
  print({name + "forward", all, [&] { cpu.dense_forward(m, k, n, edl::activation::none, x, kernel, {}, y); },
         std::ref(forward)});
  print({name + "both gradients", 2 * all,
         [&] { cpu.dense_backward(m, k, n, x, kernel, dy, dx, dkernel, {}); },
         [&] {
           data();
           weights();
         }});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 2 && std::string(argv[1]) == "derived") {
    std::printf("| operation | pass | derived, ms | by hand, ms | derived takes |\n|---|---|---|---|---|\n");
    bench::compare_derived([](std::string const& name, work const& derived, work const& by_hand) {
      auto const [ours, other] = contest(derived, by_hand);
      std::printf("| %s | %.3f | %.3f | %.2f |\n", name.c_str(), ours, other, ours / other);
      std::fflush(stdout);
    });
    if (argc == 2) return 0;
    bench::contestant peer("peer", {argv + 2, argv + argc});
    if (peer.line() != "ready") return 1;
    double ours = 1e9;
    auto const own = bench::own_swish();
    for (int turn = 0; turn < 20; ++turn) {
      for (int i = 0; i < 20; ++i) ours = std::min(ours, milliseconds(own));
      peer.measure(20);
    }
    double const other = peer.quantile(0);
    std::printf("\nown swish, 3,072 x 384, both passes: %.3f ms, the peer's %.3f ms, %.2f times as long\n",
                ours, other, other / ours);
    return 0;
  }
  dnnl::engine const on(dnnl::engine::kind::cpu, 0);
  std::printf(
      "| operation | pass | edl, ms | GFLOP/s | oneDNN, ms | GFLOP/s | edl takes |\n"
      "|---|---|---|---|---|---|---|\n");
  for (auto const precision : {edl::precision::float32, edl::precision::bfloat16}) {
    bool const narrow = precision == edl::precision::bfloat16;
    if (narrow && !edl::multiplies(precision)) continue;
    edl::cpu cpu({.precision = precision});
    for (int const rows : {64, 256}) dense(on, cpu, narrow, rows, 784, 512);
    using enum edl::nn::padding;
    convolutions(on, cpu, narrow, 64, {26, 26, 32}, 64, valid);  // MNIST
    convolutions(on, cpu, narrow, 128, {32, 32, 32}, 32, same);  // CIFAR-10
    convolutions(on, cpu, narrow, 128, {8, 8, 128}, 128, same);  // CIFAR-10
    convolutions(on, cpu, narrow, 128, {32, 32, 16}, 16, same);  // ResNet-20
    convolutions(on, cpu, narrow, 128, {8, 8, 64}, 64, same);    // ResNet-20
    convolutions(on, cpu, narrow, 64, {32, 32, 64}, 64, same);   // ResNet-18
    convolutions(on, cpu, narrow, 64, {4, 4, 512}, 512, same);   // ResNet-18
  }
}
