// SPDX-License-Identifier: Apache-2.0
// Convolutions and dense layers: what a GPU's libraries compute beside what the processor does.
#include "compute/device/draw.hpp"
#include "cuda/geometry.hpp"
#include "cuda/gpu.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace products_test {

using edl::activation, edl::conv_geometry, edl::cpu, edl::precision;

namespace {

/// Memory of the GPU, with room for numbers before its first, so that they are aligned as little as wanted.
class on_gpu {
 public:
  on_gpu(edl::accelerator& gpu, std::size_t size, std::size_t before = 0)
      : gpu_(gpu),
        memory_(gpu.allocate(before + size)),
        all_(memory_ + before, size),
        arena_(memory_, before + size) {}
  on_gpu(on_gpu const&) = delete;
  on_gpu& operator=(on_gpu const&) = delete;
  ~on_gpu() { gpu_.release(memory_, arena_.size()); }

  std::span<float> span() { return all_; }
  std::span<float> arena() { return arena_; }

  /// As float32 (variables and gradients), and as activations are kept.
  void upload(std::span<float const> numbers) { gpu_.upload(std::as_bytes(numbers), all_.data()); }
  void store(std::span<float const> numbers) {
    on_gpu plain(gpu_, numbers.size());
    plain.upload(numbers);
    gpu_.store(plain.span(), all_);
    gpu_.synchronize();
  }
  std::vector<float> download() {
    std::vector<float> numbers(all_.size());
    gpu_.download(all_.data(), std::as_writable_bytes(std::span(numbers)));
    gpu_.synchronize();
    return numbers;
  }
  std::vector<float> load() {
    on_gpu plain(gpu_, all_.size());
    gpu_.load(all_, plain.span());
    return plain.download();
  }

 private:
  edl::accelerator& gpu_;
  float* memory_;
  std::span<float> all_, arena_;
};

/// While it lives, the double of CUDA is unkind.
struct whims {
  explicit whims(char const* names) { setenv("EDL_CUDA_DOUBLE_WHIMS", names, 1); }
  whims(whims const&) = delete;
  whims& operator=(whims const&) = delete;
  ~whims() { unsetenv("EDL_CUDA_DOUBLE_WHIMS"); }
};

struct way {
  edl::precision precision = precision::float32;
  bool measured = true;
  int unaligned = 0;  ///< numbers before weights and biases; before activations, too, if three
  bool bound = true;  ///< weights are known to the GPU as variables
};

/// A layer's results and gradients.
struct results {
  std::vector<float> y, dx, dw, db;
};

/// Work that a graph repeats: as it comes, recorded, and replayed.
std::uint64_t next_key() {
  static std::uint64_t key = 0;
  return ++key;
}
template <class Work>
void thrice(edl::accelerator& gpu, Work&& work) {
  std::uint64_t const key = next_key();
  for (std::uint64_t step = 0; step < 3; ++step) gpu.replay(key, step, work);
}

/// forward(x, w, b, y) and backward(x, w, dy, dx, dw, db) of spans on the GPU.
template <class Forward, class Backward>
results on_gpu_with(edl::accelerator& gpu, way const& how, std::vector<float> const& x,
                    std::vector<float> const& w, std::vector<float> const& b, std::vector<float> const& dy,
                    Forward&& forward, Backward&& backward) {
  auto const before = std::size_t(how.unaligned), between = std::size_t(how.unaligned == 3);
  on_gpu gx(gpu, x.size(), between), gy(gpu, dy.size(), between), gdy(gpu, dy.size(), between),
      gdx(gpu, x.size(), between), variables(gpu, w.size() + b.size(), before),
      gradients(gpu, w.size() + b.size(), before);
  std::vector<float> all = w;
  all.insert(all.end(), b.begin(), b.end());
  gx.store(x), gdy.store(dy), variables.upload(all);
  if (how.bound) gpu.bind(variables.arena());
  auto const weights = variables.span().first(w.size()), bias = variables.span().subspan(w.size());
  auto const dw = gradients.span().first(w.size()), db = gradients.span().subspan(w.size());
  thrice(gpu, [&] {
    forward(gx.span(), weights, bias, gy.span());
    backward(gx.span(), weights, gdy.span(), gdx.span(), dw, db);
  });
  results r{gy.load(), gdx.load(), {}, {}};
  auto const both = gradients.download();
  r.dw.assign(both.begin(), both.begin() + std::ptrdiff_t(w.size()));
  r.db.assign(both.begin() + std::ptrdiff_t(w.size()), both.end());

  // What nobody needs is not computed, and nothing else changes.
  gradients.upload(std::vector<float>(both.size(), 7.0f));
  backward(gx.span(), weights, gdy.span(), {}, dw, {});
  auto const again = gradients.download();
  CHECK(distance(std::span(again).first(w.size()), r.dw) < 2 * bound(how.precision));
  for (std::size_t i = w.size(); i < again.size(); ++i) CHECK(again[i] == 7.0f);
  return r;
}

void compare(results const& gpu, results const& expected, edl::precision p) {
  CHECK(distance(gpu.y, expected.y) < bound(p));
  CHECK(distance(gpu.dx, expected.dx) < bound(p));
  CHECK(distance(gpu.dw, expected.dw) < bound(p));
  CHECK(distance(gpu.db, expected.db) < bound(p));
}

void compare_conv2d(edl::accelerator& gpu, way const& how, conv_geometry const& g, int batch, activation f,
                    bool with_bias) {
  std::string const text = text_of(g, batch);
  CAPTURE(text);
  CAPTURE(int(f));
  CAPTURE(with_bias);
  auto const n = std::size_t(batch), filters = std::size_t(g.out.channels);
  auto const x = numbers<float>(n * g.in.size(), 1), w = numbers<float>(g.patch() * filters, 2),
             b = numbers<float>(with_bias ? filters : 0, 3), dy = numbers<float>(n * g.out.size(), 4);
  results expected{std::vector<float>(dy.size()), std::vector<float>(x.size()), std::vector<float>(w.size()),
                   std::vector<float>(b.size())};
  cpu reference({.threads = 1, .kernels = edl::kernels::own});
  reference.conv2d_forward(g, batch, f, x, w, b, expected.y);
  reference.conv2d_backward(g, batch, x, w, dy, expected.dx, expected.dw, expected.db);
  using in = edl::accelerator::in;
  using out = edl::accelerator::out;
  results const found = on_gpu_with(
      gpu, how, x, w, b, dy, [&](in x, in w, in b, out y) { gpu.conv2d_forward(g, batch, f, x, w, b, y); },
      [&](in x, in w, in dy, out dx, out dw, out db) {
        gpu.conv2d_backward(g, batch, x, w, dy, dx, dw, db);
      });
  std::string const description = gpu.describe_conv2d(g, batch);
  CAPTURE(description);
  compare(found, expected, how.precision);
}

void compare_dense(edl::accelerator& gpu, way const& how, std::size_t rows, std::size_t inputs,
                   std::size_t outputs, activation f, bool with_bias) {
  CAPTURE(rows);
  CAPTURE(inputs);
  CAPTURE(outputs);
  CAPTURE(int(f));
  CAPTURE(with_bias);
  auto const x = numbers<float>(rows * inputs, 1), w = numbers<float>(inputs * outputs, 2),
             b = numbers<float>(with_bias ? outputs : 0, 3), dy = numbers<float>(rows * outputs, 4);
  results expected{std::vector<float>(dy.size()), std::vector<float>(x.size()), std::vector<float>(w.size()),
                   std::vector<float>(b.size())};
  cpu reference({.threads = 1});
  reference.dense_forward(rows, inputs, outputs, f, x, w, b, expected.y);
  reference.dense_backward(rows, inputs, outputs, x, w, dy, expected.dx, expected.dw, expected.db);
  using in = edl::accelerator::in;
  using out = edl::accelerator::out;
  results const found = on_gpu_with(
      gpu, how, x, w, b, dy,
      [&](in x, in w, in b, out y) { gpu.dense_forward(rows, inputs, outputs, f, x, w, b, y); },
      [&](in x, in w, in dy, out dx, out dw, out db) {
        gpu.dense_backward(rows, inputs, outputs, x, w, dy, dx, dw, db);
      });
  std::string const description = gpu.describe_dense(rows, inputs, outputs);
  CAPTURE(description);
  compare(found, expected, how.precision);
}

constexpr way ways[] = {
    {precision::float32, true},     {precision::float32, false, 3},
    {precision::tf32, true},        {precision::tf32, false, 1},
    {precision::bfloat16, true},    {precision::bfloat16, false},
    {precision::bfloat16, true, 3}, {precision::bfloat16, false, 0, false},
};

}  // namespace

TEST_CASE(
    "convolutions on a GPU agree with the processor's, whatever the stride, the border and the groups") {
  conv_geometry const cases[] = {
      {{7, 6, 3}, {5, 4, 4}, 3, 1, 0, 1},            // valid
      {{7, 6, 8}, {7, 6, 16}, 3, 1, 1, 1},           // same
      {{8, 6, 8}, {4, 3, 8}, 3, 2, {0, 0}, 1},       // same, strided, more after than before
      {{7, 6, 2}, {4, 3, 4}, 3, 2, {1, 0}, 1},       // one axis of that kind
      {{9, 5, 4}, {3, 2, 6}, {3, 2}, {3, 2}, 0, 2},  // oblong, in groups
      {{5, 5, 6}, {5, 5, 6}, 3, 1, 1, 6},            // depthwise
      {{3, 2, 2}, {3, 2, 3}, 5, 1, 2, 1},            // the kernel is larger than the input
      {{6, 6, 5}, {6, 6, 7}, 1, 1, 0, 1},            // pointwise
      {{6, 6, 8}, {6, 6, 16}, 1, 1, 0, 1},           // pointwise
      {{6, 6, 5}, {3, 3, 7}, 1, 2, 0, 1},            // pointwise, strided
      {{28, 28, 1}, {26, 26, 8}, 3, 1, 0, 1},        // one channel
      {{6, 6, 4}, {6, 6, 4}, 2, 1, 0, 1},            // an even kernel
      {{9, 8, 4}, {3, 3, 4}, 3, 2, 0, 1},            // places that the output leaves out
  };
  for (way const& how : ways) {
    CAPTURE(int(how.precision));
    CAPTURE(how.measured);
    CAPTURE(how.unaligned);
    CAPTURE(how.bound);
    auto const gpu = gpu_or_skip({.precision = how.precision, .measured = how.measured});
    if (!gpu) return;
    for (auto const& g : cases) {
      compare_conv2d(*gpu, how, g, 3, activation::relu, true);
      compare_conv2d(*gpu, how, g, 3, activation::none, false);
    }
    compare_conv2d(*gpu, how, cases[1], 2, activation::none, true);
    compare_conv2d(*gpu, how, cases[1], 2, activation::relu, false);
  }
}

TEST_CASE("any convolution on a GPU agrees with the processor's") {
  edl::random_stream const random(22, 0);
  std::uint64_t drawn = 0;
  auto const upto = [&](int n) { return int(random.below(std::uint64_t(n), drawn++)) + 1; };
  for (auto p : {precision::float32, precision::bfloat16}) {
    auto const gpu = gpu_or_skip({.precision = p});
    if (!gpu) return;
    for (int i = 0; i < 15; ++i) {
      int const groups = upto(2), own = upto(2) == 1 ? upto(20) : 4 * upto(5), filters = upto(20),
                kernel = upto(5), stride = upto(3), height = upto(12), width = upto(12),
                before = upto(kernel) - 1, batch = upto(9);
      auto const places = [&](int in) { return (std::max(in, kernel) - kernel + before) / stride + 1; };
      conv_geometry const g{{height, width, groups * own},
                            {places(height), places(width), groups * filters},
                            kernel,
                            stride,
                            before,
                            groups};
      compare_conv2d(*gpu, {.precision = p}, g, batch, upto(2) == 1 ? activation::relu : activation::none,
                     upto(2) == 1);
    }
  }
}

TEST_CASE("convolutions before a normalisation, and with a gradient to add to, agree with the processor's") {
  conv_geometry const cases[] = {{{8, 8, 16}, {8, 8, 24}, 3, 1, 1, 1},     // within, maybe
                                 {{8, 6, 8}, {4, 3, 8}, 3, 2, {0, 0}, 1},  // more after than before
                                 {{6, 6, 8}, {6, 6, 16}, 1, 1, 0, 1}};     // a product of matrices
  for (auto const p : {precision::float32, precision::tf32, precision::bfloat16})
    for (char const* const names : {"", "count_work"}) {  // edl's own kernels then, on the double
      whims const with(names);
      auto const gpu = gpu_or_skip({.precision = p});
      if (!gpu) return;
      for (conv_geometry const& g : cases)
        for (bool const masked : {false, true}) {
          std::string const text = text_of(g, 3), description = gpu->describe_conv2d(g, 3);
          CAPTURE(text);
          CAPTURE(description);
          CAPTURE(int(p));
          auto const filters = std::size_t(g.out.channels), in = 3 * g.in.size(), out = 3 * g.out.size();
          auto const x = numbers<float>(in, 1), w = numbers<float>(g.patch() * filters, 2),
                     dy = numbers<float>(out, 3), more = numbers<float>(in, 4),
                     beta = numbers<float>(filters, 5);
          std::vector<float> y(out), z(out), dx(in), dw(w.size()), mean(filters), variance(filters),
              kept(2 * filters);
          edl::norm_chain const chain{.in = g.out, .f = activation::relu};
          cpu reference({.threads = 1, .kernels = edl::kernels::own});
          reference.conv2d_forward_to_norm(g, 3, x, w, {}, y);
          reference.batch_norm_train(chain, 3, 0.5f, 1e-3f, y, {}, beta, {}, mean, variance, z, kept);
          reference.conv2d_backward_onto(g, 3, x, w, dy, more, masked, false, dx, dw, {});
          on_gpu gx(*gpu, in), gw(*gpu, w.size()), gdy(*gpu, out), gmore(*gpu, in), gbeta(*gpu, filters),
              gy(*gpu, out), gz(*gpu, out), gdx(*gpu, in), gdw(*gpu, w.size()), gmean(*gpu, filters),
              gvariance(*gpu, filters), gkept(*gpu, 2 * filters);
          gx.store(x), gdy.store(dy), gmore.store(more), gw.upload(w), gbeta.upload(beta);
          thrice(*gpu, [&] {
            gpu->conv2d_forward_to_norm(g, 3, gx.span(), gw.span(), {}, gy.span());
            gpu->batch_norm_train(chain, 3, 0.0f, 1e-3f, gy.span(), {}, gbeta.span(), {}, gmean.span(),
                                  gvariance.span(), gz.span(), gkept.span());
            gpu->conv2d_backward_onto(g, 3, gx.span(), gw.span(), gdy.span(), gmore.span(), masked, false,
                                      gdx.span(), gdw.span(), {});
          });
          CHECK(distance(gz.load(), z) < 2 * bound(p));
          CHECK(distance(gkept.download(), kept) < bound(p));
          CHECK(distance(gdx.load(), dx) < bound(p));
          CHECK(distance(gdw.download(), dw) < bound(p));
        }
    }
}

TEST_CASE("dense layers on a GPU agree with the processor's") {
  for (way const& how : ways) {
    CAPTURE(int(how.precision));
    CAPTURE(how.measured);
    CAPTURE(how.unaligned);
    CAPTURE(how.bound);
    auto const gpu = gpu_or_skip({.precision = how.precision, .measured = how.measured});
    if (!gpu) return;
    for (auto const& [rows, inputs, outputs] : {std::array<std::size_t, 3>{64, 48, 32},
                                                {5, 7, 3},
                                                {4, 9, 1},
                                                {33, 20, 10},
                                                {128, 16, 8},
                                                {3, 130, 65}})
      for (activation f : {activation::none, activation::relu})
        for (bool with_bias : {false, true}) compare_dense(*gpu, how, rows, inputs, outputs, f, with_bias);
  }
}

TEST_CASE("kernels of libraries by their rule give the same bits in every process") {
  conv_geometry const g{{9, 9, 8}, {9, 9, 16}, 3, 1, 1, 1};
  auto const x = numbers<float>(4 * g.in.size(), 1), w = numbers<float>(g.patch() * 16, 2),
             b = numbers<float>(16, 3), dy = numbers<float>(4 * g.out.size(), 4);
  for (auto p : {precision::float32, precision::tf32, precision::bfloat16}) {
    results runs[2];
    for (auto& run : runs) {
      auto const gpu = gpu_or_skip({.precision = p, .measured = false});
      if (!gpu) return;
      using in = edl::accelerator::in;
      using out = edl::accelerator::out;
      run = on_gpu_with(
          *gpu, {p}, x, w, b, dy,
          [&](in x, in w, in b, out y) { gpu->conv2d_forward(g, 4, activation::relu, x, w, b, y); },
          [&](in x, in w, in dy, out dx, out dw, out db) {
            gpu->conv2d_backward(g, 4, x, w, dy, dx, dw, db);
          });
    }
    CHECK(runs[0].y == runs[1].y);
    CHECK(runs[0].dx == runs[1].dx);
    CHECK(runs[0].dw == runs[1].dw);
    CHECK(runs[0].db == runs[1].db);
  }
}

TEST_CASE("a kernel of a library that computes something else is left out, which is told once") {
  for (bool measured : {true, false}) {
    CAPTURE(measured);
    std::vector<std::string> told;
    edl::cuda_options with{.precision = precision::tf32, .measured = measured};
    with.warn = [&](std::string const& text) { told.push_back(text); };
    auto const gpu = gpu_or_skip(with);
    if (!gpu) return;
    way const how{precision::tf32, measured};
    for (int batch : {2, 3})
      compare_conv2d(*gpu, how, {{8, 6, 8}, {4, 3, 8}, 3, 2, {0, 0}, 1}, batch, activation::relu, true);
    for (int batch : {2, 3})
      compare_conv2d(*gpu, how, {{7, 6, 4}, {7, 6, 4}, 3, 1, 1, 2}, batch, activation::none, false);
    for (std::size_t rows : {4, 5}) compare_dense(*gpu, how, rows, 8, 7, activation::none, false);
    if (!std::getenv("EDL_CUDA_DOUBLE_DEVICES")) continue;  // a card's libraries may be without such a kernel
    for (auto const& [engine, times] : {std::pair("engine 18 is left out", 1),
                                        {"engine 50 is left out", 1},
                                        {"engine 20 is left out", 3},
                                        {"algorithm 72", 1}})
      CHECK(std::ranges::count_if(
                told, [&](std::string const& t) { return t.find(engine) != std::string::npos; }) == times);
    CHECK(told.size() == 6);
  }
}

TEST_CASE("where a trial finds no memory, the layer's own numbers are tried") {
  auto const gpu = gpu_or_skip({.measured = false});
  if (!gpu || !std::getenv("EDL_CUDA_DOUBLE_DEVICES")) return;  // a card has more than a test may fill
  conv_geometry const g{{64, 64, 16}, {64, 63, 4}, {1, 2}, 1, 0, 1};
  auto const x = numbers<float>(4 * g.in.size(), 1), w = numbers<float>(g.patch() * 4, 2);
  std::vector<float> expected(4 * g.out.size());
  cpu({.threads = 1}).conv2d_forward(g, 4, activation::none, x, w, {}, expected);
  on_gpu gx(*gpu, x.size()), gw(*gpu, w.size()), gy(*gpu, expected.size());
  gx.store(x), gw.upload(w);
  conv_geometry const first{{8, 8, 16}, {8, 7, 4}, {1, 2}, 1, 0, 1};  // scratch memory is had from now on
  gpu->conv2d_forward(first, 4, activation::none, gx.span(), gw.span(), {}, gy.span());
  gpu->synchronize();
  std::size_t const all = std::size_t(8) << 30, used = all - gpu->free_memory();
  setenv("EDL_CUDA_DOUBLE_MEMORY", std::to_string(used + (256 << 10)).c_str(), 1);
  gpu->conv2d_forward(g, 4, activation::none, gx.span(), gw.span(), {}, gy.span());
  gpu->synchronize();
  unsetenv("EDL_CUDA_DOUBLE_MEMORY");
  CHECK(distance(gy.load(), expected) < bound(precision::float32));
}

TEST_CASE("a step that meets a layer while it is recorded is done as it comes, and recorded the next time") {
  std::vector<std::string> told;
  edl::cuda_options with;
  with.warn = [&](std::string const& text) { told.push_back(text); };
  auto const gpu = gpu_or_skip(with);
  if (!gpu) return;
  conv_geometry const g{{7, 6, 4}, {5, 4, 4}, 3, 1, 0, 1};
  auto const x = numbers<float>(2 * g.in.size(), 1), w = numbers<float>(g.patch() * 4, 2);
  std::vector<float> expected(2 * g.out.size()), product(2 * 4), bias(4);
  cpu reference({.threads = 1});
  reference.conv2d_forward(g, 2, activation::none, x, w, {}, expected);
  reference.dense_forward(2, 8, 4, activation::none, std::span(x).first(16), std::span(w).first(32), {},
                          product);
  on_gpu gx(*gpu, x.size()), gw(*gpu, w.size()), gy(*gpu, expected.size()), gz(*gpu, product.size()),
      gb(*gpu, 4);
  gx.store(x), gw.upload(w);
  int calls = 0;
  for (std::uint64_t step = 0; step < 5; ++step) {
    gpu->replay(1'000'000, step, [&] {
      ++calls;
      if (step == 0) return;
      // Nothing has taken scratch memory yet, which the first gradient of a bias needs.
      gpu->conv2d_backward(g, 2, gx.span(), gw.span(), gy.span(), {}, {}, gb.span());
      gpu->conv2d_forward(g, 2, activation::none, gx.span(), gw.span(), {}, gy.span());
      gpu->dense_forward(2, 8, 4, activation::none, gx.span().first(16), gw.span().first(32), {}, gz.span());
    });
    CHECK(calls == std::array{1, 3, 4, 4, 4}[step]);
  }
  CHECK(distance(gy.load(), expected) < bound(precision::float32));
  CHECK(distance(gz.load(), product) < bound(precision::float32));
  for (int n = 0; n < 40; ++n)
    for (std::size_t i = 0; i < 4; ++i) bias[i] += expected[std::size_t(n) * 4 + i];
  CHECK(distance(gb.download(), bias) < bound(precision::float32));
  CHECK(told.empty());
}

TEST_CASE("edl's own convolutions by tensor cores compute where they are faster, or nothing else does") {
  if (!std::getenv("EDL_CUDA_DOUBLE_DEVICES")) return;  // a card's cuDNN is as fast as it is
  constexpr conv_geometry g{{6, 6, 16}, {6, 6, 16}, 3, 1, 1, 1};
  std::string const own = "edl's own, tensor cores", gradient = own + ", to float32";
  auto const computed_by = [&](precision p, bool measured, char const* names) {
    whims const with(names);
    auto const gpu = gpu_or_skip({.precision = p, .measured = measured});
    REQUIRE(gpu);
    compare_conv2d(*gpu, {p, measured}, g, 3, activation::relu, true);
    return gpu->describe_conv2d(g, 3);
  };
  for (auto p : {precision::tf32, precision::bfloat16}) {
    CAPTURE(int(p));
    for (bool measured : {true, false})
      CHECK(computed_by(p, measured, "no_engines") == own + " | " + gradient + " | " + own);
    // One kernel each, where cuDNN's order of weights takes another one. A gradient of a kernel takes two.
    std::string const beside = computed_by(p, true, "count_work");
    CAPTURE(beside);
    CHECK(beside.starts_with(own + " | cuDNN engine 38"));
    CHECK(beside.ends_with(" | " + own));
    CHECK(computed_by(p, true, "count_work,engine_tires=38").find("engine 38") == std::string::npos);
    CHECK(computed_by(p, false, "count_work").find("own") == std::string::npos);
  }
  CHECK(computed_by(precision::float32, true, "no_engines").find("tensor cores") == std::string::npos);
}

TEST_CASE("whatever libraries do, results are right") {
  if (!std::getenv("EDL_CUDA_DOUBLE_DEVICES")) return;
  constexpr conv_geometry lopsided{{8, 6, 8}, {4, 3, 8}, 3, 2, {0, 0}, 1};
  enum { never, by_rule, among_several, always };  // which are measured: in bfloat16 there are
  struct {
    std::string whims, told;
    int when = always;  // it is told
  } const cases[] = {{"engines_forget", "some of its results are no numbers"},
                     {"engines_fail=0", "it has had enough"},
                     {"engines_fail=2", "from now on", by_rule},
                     {"engines_fail=3", "", never},
                     {"engines_fail=5", "from now on", among_several},
                     {"no_engines,no_algorithms", "it has no algorithm"},
                     {"captures_fail", "operation by operation"},
                     {"graphs_fail", "operation by operation"}};
  for (auto const& [names, words, when] : cases)
    for (auto const p : {precision::float32, precision::bfloat16})
      for (bool const measured : {true, false}) {
        CAPTURE(names);
        CAPTURE(int(p));
        CAPTURE(measured);
        whims const with(names.c_str());
        std::vector<std::string> told;
        auto const gpu =
            gpu_or_skip({.precision = p, .measured = measured, .warn = [&](std::string const& text) {
                           told.push_back(text);
                         }});
        REQUIRE(gpu);
        way const how{p, measured};
        for (int batch : {3, 2}) compare_conv2d(*gpu, how, lopsided, batch, activation::relu, true);
        compare_dense(*gpu, how, 5, 8, 6, activation::relu, true);
        bool const several = measured && p == precision::bfloat16;
        if (when == always || (when == by_rule && !measured) || (when == among_several && several))
          CHECK(std::ranges::any_of(told, [&](std::string const& t) { return t.find(words) != t.npos; }));
      }
}

TEST_CASE("it is told which kernels compute, before and after they were asked for") {
  auto const gpu = gpu_or_skip();
  if (!gpu) return;
  conv_geometry const g{{8, 8, 8}, {8, 8, 8}, 3, 1, 1, 1};
  CHECK(gpu->describe_conv2d(g, 2).find("cuDNN engine") == 0);
  CHECK(gpu->describe_dense(16, 8, 8).find("cuBLASLt algorithm") == 0);
  CHECK(gpu->describe_conv2d({{8, 8, 8}, {8, 8, 8}, 1, 1, 0, 1}, 2).find("cuBLASLt algorithm") == 0);
}

}  // namespace products_test
