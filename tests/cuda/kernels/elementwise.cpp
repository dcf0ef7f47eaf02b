// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string_view>

#include "cuda/kernels/board.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace elementwise_test {

namespace {

double const no_number = std::numeric_limits<double>::quiet_NaN();

/// Sizes with and without tails, of one thread and of more than all have at a time; starts that are aligned
/// and not.
template <class Work>
void for_all_sizes(Work&& work) {
  for (std::size_t const n : {1, 3, 8, 16, 1000, 4099, 100'003})
    for (std::size_t const before : {0, 1, 4}) {
      CAPTURE(n);
      CAPTURE(before);
      work(n, before);
    }
}

}  // namespace

TEST_CASE("activations and their gradients") {
  using enum edl::elementwise;
  in_all_ways([](bool half) {
    edl::basic_cpu<double> cpu;
    gpu g(half);
    for (std::size_t const n : {1, 8, 4099}) {
      auto x = g.draw(n, 1), dy = g.draw(n, 2);
      x[n / 2] = no_number;
      std::vector<double> y(n), dx(n);
      for (std::size_t const before : {0, 1})
        for (auto const f : {relu, leaky_relu, sigmoid, tanh, gelu, scale, silu, elu, softplus}) {
          CAPTURE(n);
          CAPTURE(before);
          CAPTURE(int(f));
          auto *const device_y = g.activations(n, before), *const device_dx = g.put_activations(dy);
          kernels::forward(g.q, f, 0.25f, g.put_activations(x, before), device_y, n);
          cpu.elementwise_forward(f, 0.25, x, y);
          auto const got = g.get_activations(device_y, n);
          CHECK(close(got, y, half));
          std::copy(got.begin(), got.end(), y.begin());
          kernels::backward(g.q, f, 0.25f, edl::slope_of_x(f) ? g.put_activations(x, before) : device_y,
                            device_dx, device_dx, n);  // in place
          cpu.elementwise_backward(f, 0.25, edl::slope_of_x(f) ? x : y, dy, dx);
          CHECK(close(g.get_activations(device_dx, n), dx, half));
        }
    }
  });
}

TEST_CASE("sums, of which one may be the result") {
  in_all_ways([](bool half) {
    edl::basic_cpu<double> cpu;
    gpu g(half);
    for_all_sizes([&](std::size_t n, std::size_t before) {
      auto a = g.draw(n, 1), b = g.draw(n, 2), x = g.draw(n, 3);
      a[0] = no_number;
      std::vector<double> y(n);
      void *const da = g.put_activations(a, before), *const db = g.put_activations(b),
                  *const dy = g.activations(n);
      kernels::add(g.q, edl::activation::none, da, db, dy, n);
      cpu.add(edl::activation::none, a, b, y);
      CHECK(close(g.get_activations(dy, n), y, half));
      kernels::add_masked(g.q, da, db, g.put_activations(x), dy, n);
      cpu.add_masked(a, b, x, y);
      CHECK(close(g.get_activations(dy, n), y, half));
      kernels::add(g.q, edl::activation::relu, da, db, da, n);
      cpu.add(edl::activation::relu, a, b, y);
      CHECK(close(g.get_activations(da, n), y, half));
    });
  });
}

TEST_CASE("numbers change their precision, and stay what they are") {
  in_all_ways([](bool half) {
    gpu g(half);
    for_all_sizes([&](std::size_t n, std::size_t before) {
      auto full = numbers<float>(n, 1);
      full[n - 1] = std::numeric_limits<float>::infinity();
      if (n > 1) full[0] = float(no_number);
      std::vector<std::uint16_t> small(n);
      std::transform(full.begin(), full.end(), small.begin(), edl::to_bfloat16);
      auto rounded = full;
      std::transform(small.begin(), small.end(), rounded.begin(), edl::from_bfloat16);
      auto const& kept = half ? rounded : full;  // what activations hold of it

      void *const y = g.activations(n, before), *const copy = g.activations(n),
                  *const back = g.activations(n, 1);
      auto* const loaded = g.room<float>(n, before);
      auto* const bfloat16 = g.room<std::uint16_t>(n, before);
      kernels::store(g.q, g.put(full), y, n);
      CHECK(close(g.get_activations(y, n), kept, false, 0));
      kernels::copy(g.q, y, copy, n);
      CHECK(close(g.get_activations(copy, n), kept, false, 0));
      kernels::load(g.q, copy, loaded, n);
      CHECK(close(g.get(loaded, n), kept, false, 0));
      kernels::store_bfloat16(g.q, y, bfloat16, n);
      kernels::load_bfloat16(g.q, bfloat16, back, n);
      CHECK(close(g.get_activations(back, n), rounded, false, 0));
      auto* const master = g.room<std::uint16_t>(n, before);
      kernels::round(g.q, g.put(full), master, n);
      auto got = g.get(master, n);
      if (n > 1) got[0] = small[0];  // another NaN
      CHECK(got == small);
    });
  });
}

TEST_CASE("columns from one matrix to another") {
  in_all_ways([](bool half) {
    gpu g(half);
    struct geometry {
      std::size_t rows, columns, x_first, x_stride, y_first, y_stride;
    };
    for (auto const [rows, columns, x_first, x_stride, y_first, y_stride] :
         {geometry{5, 16, 0, 16, 8, 32}, geometry{700, 24, 8, 40, 0, 24}, geometry{7, 3, 1, 5, 2, 9},
          geometry{1, 1, 0, 1, 0, 1}, geometry{4, 8, 3, 16, 0, 8}}) {
      auto const x = g.draw(rows * x_stride, 1), before = g.draw(rows * y_stride, 2);
      auto y = before;
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t k = 0; k < columns; ++k)
          y[i * y_stride + y_first + k] = x[i * x_stride + x_first + k];
      void* const to = g.put_activations(before);
      kernels::copy_columns(g.q, rows, columns, g.put_activations(x), x_first, x_stride, to, y_first,
                            y_stride);
      CHECK(close(g.get_activations(to, y.size()), y, false, 1e-7));
    }
  });
}

TEST_CASE("dropout draws what the processor draws, element by element") {
  in_all_ways([](bool half) {
    edl::basic_cpu<float> cpu;
    gpu g(half);
    edl::random_stream const random{0x123456789abcdef0, 0xfedcba9876543210};
    for_all_sizes([&](std::size_t n, std::size_t before) {
      auto const x = g.draw<float>(n, 1);
      std::vector<float> y(n), dx(n);
      std::vector<std::byte> mask(n);
      for (float const rate : {0.0f, 0.3f}) {
        cpu.dropout_forward(rate, random, x, y, mask);
        cpu.dropout_backward(rate, mask, x, dx);
        void *const from = g.put_activations(x, before), *const to = g.activations(n, before),
                    *const back = g.activations(n, before);
        auto* const kept = g.room<std::byte>(n, before);
        kernels::dropout_forward(g.q, rate, random, from, to, kept, n);
        kernels::dropout_backward(g.q, rate, kept, from, back, n);
        CHECK(close(g.get_activations(to, n), y, half, 0));
        CHECK(g.get(kept, n) == mask);
        CHECK(close(g.get_activations(back, n), dx, half, 0));
      }
    });
  });
}

TEST_CASE("dropout reads the step when it runs") {
  gpu g;
  std::size_t const n = 100;
  auto const x = std::vector<float>(n, 1);
  auto* const step = g.room<std::uint64_t>(1);
  g.q.step = step;
  edl::random_stream random{7, 1000};
  auto* const y = g.activations(n);
  auto* const mask = g.room<std::byte>(n);
  auto* const from = g.put_activations(x);
  cudaStreamSynchronize(g.q.stream);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t again = nullptr;
  REQUIRE(cudaStreamBeginCapture(g.q.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  kernels::dropout_forward(g.q, 0.5f, random, from, y, mask, n);
  REQUIRE(cudaStreamEndCapture(g.q.stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&again, graph) == cudaSuccess);
  edl::basic_cpu<float> cpu;
  std::vector<float> wanted(n);
  std::vector<std::byte> kept(n);
  for (std::uint64_t const now : {3, 4}) {
    cudaMemcpyAsync(step, &now, sizeof(now), cudaMemcpyDefault, g.q.stream);
    REQUIRE(cudaGraphLaunch(again, g.q.stream) == cudaSuccess);
    random.step = now;
    cpu.dropout_forward(0.5f, random, x, wanted, kept);
    CHECK(g.get_activations(y, n) == wanted);
  }
  cudaGraphExecDestroy(again);
  cudaGraphDestroy(graph);
}

}  // namespace elementwise_test
