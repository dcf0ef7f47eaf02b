// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "compute/device/draw.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace attention_test {

namespace {

template <class T>
struct course {
  std::vector<T> y, kept, qkv;

  course(edl::basic_cpu<T>& cpu, edl::attention_geometry const& g, int batch) {
    std::size_t const n = std::size_t(batch) * std::size_t(g.places) * g.channels();
    qkv = numbers<T>(3 * n, 1);
    y.resize(n);
    kept.resize(std::size_t(batch) * std::size_t(g.heads) * std::size_t(g.places));
    cpu.attention_forward(g, batch, qkv, y, kept);
    cpu.attention_backward(g, batch, y, numbers<T>(n, 2), kept, qkv);
  }
};

}  // namespace

TEST_CASE("attention has the same bits whatever the number of threads") {
  for (edl::kernels const kernels : {edl::kernels::own, edl::kernels::fixed}) {
    edl::attention_geometry const g{
        .places = 130, .heads = 3, .width = 16, .causal = true, .rotary_base = 100};
    edl::cpu one({.threads = 1, .kernels = kernels}), three({.threads = 3, .kernels = kernels});
    course<float> const a(one, g, 3), b(three, g, 3), again(three, g, 3);
    CHECK(a.y == b.y);
    CHECK(a.kept == b.kept);
    CHECK(a.qkv == b.qkv);
    CHECK(again.qkv == b.qkv);
  }
}

TEST_CASE("attention to other places has the same bits whatever the number of threads") {
  edl::cross_attention_geometry const g{.places = 70, .keys = 300, .heads = 3, .width = 16};
  auto const q = numbers<float>(2 * 70 * 48, 1), kv = numbers<float>(2 * 300 * 96, 2),
             dy = numbers<float>(q.size(), 3);
  auto const course = [&](int threads, edl::attention_mask const& mask) {
    edl::cpu cpu({.threads = threads});
    std::vector<float> y(q.size()), kept(2 * 3 * 70), dq(q.size()), dkv(kv.size());
    cpu.cross_attention_forward(g, 2, mask, q, kv, y, kept);
    cpu.cross_attention_backward(g, 2, mask, q, kv, y, dy, kept, dq, dkv);
    for (auto const* const more : {&kept, &dq, &dkv}) y.insert(y.end(), more->begin(), more->end());
    return y;
  };
  edl::attention_mask const drops{{}, 0.3f, {7, 1}};
  CHECK(course(1, {}) == course(3, {}));
  CHECK(course(1, drops) == course(3, drops));
  CHECK(course(1, {}) != course(1, drops));
}

TEST_CASE("attention in single precision is close to that in double") {
  for (bool const causal : {false, true}) {
    edl::attention_geometry const g{.places = 300, .heads = 2, .width = 32, .causal = causal};
    edl::cpu single;
    edl::basic_cpu<double> twice;
    course<float> const a(single, g, 2);
    course<double> const b(twice, g, 2);
    double most = 0;
    for (std::size_t i = 0; i < a.y.size(); ++i) most = std::max(most, std::abs(double(a.y[i]) - b.y[i]));
    for (std::size_t i = 0; i < a.qkv.size(); ++i)
      most = std::max(most, std::abs(double(a.qkv[i]) - b.qkv[i]));
    CHECK(most < 2e-5);
  }
}

}  // namespace attention_test
