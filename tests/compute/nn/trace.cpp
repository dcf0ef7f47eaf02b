// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/trace.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "compute/device/draw.hpp"
#include "compute/nn/networks.hpp"

namespace trace_test {

namespace nn = edl::nn;
using way = nn::trace::direction;

TEST_CASE("a trace knows who was called within whom, how often and for how long") {
  nn::trace t(3);
  for (int i = 0; i < 2; ++i) {
    nn::trace::scope const outer(&t, way::forward, [] { return "residual"; }, {8, 8, 3}, {8, 8, 6});
    nn::trace::scope const inner(&t, way::forward, [] { return "dense"; }, {1, 1, 3}, {1, 1, 6});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  {
    nn::trace::scope const none(nullptr, way::forward, [] { return "nobody"; }, {}, {});
  }
  {
    nn::trace::scope const back(&t, way::backward, [] { return "residual"; }, {8, 8, 3}, {8, 8, 6});
  }
  REQUIRE(t.entries().size() == 3);
  CHECK(t.entries()[0].name == "residual");
  CHECK(t.entries()[1].name == "residual/dense");
  CHECK(t.entries()[0].calls == 2);
  CHECK(t.entries()[0].first >= t.entries()[1].first);
  CHECK(t.entries()[1].later >= std::chrono::milliseconds(1));
  CHECK(t.entries()[2].way == way::backward);

  std::ostringstream table, events;
  t.write_table(table);
  CHECK(table.str().find("residual/dense") != std::string::npos);
  CHECK(table.str().find("8x8x3") != std::string::npos);
  t.write_events(events);
  auto const json = nlohmann::json::parse(events.str());
  CHECK(json["traceEvents"].size() == 3);  // of five
  CHECK(json["traceEvents"][0]["name"] == "residual/dense");
  CHECK(json["traceEvents"][0]["ph"] == "X");
  CHECK(json["traceEvents"][0]["dur"] > 900);
}

TEST_CASE("the first call, which measures kernels, is no part of what a call takes") {
  nn::trace t;
  for (int i = 0; i < 3; ++i) {
    nn::trace::scope const call(&t, way::forward, [] { return "dense"; }, {}, {});
    if (i == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  auto const& e = t.entries()[0];
  CHECK(e.calls == 3);
  CHECK(e.first >= std::chrono::milliseconds(20));
  CHECK(e.milliseconds() == doctest::Approx(double(e.later.count()) / 2e6));
}

TEST_CASE("a model tells where its time goes, and what is computed as one is one entry") {
  edl::model<mnist, edl::cpu> m({.max_batch = 2});
  nn::trace t;
  m.set_trace(&t);
  auto const x = numbers<float>(2 * m.input.size(), 1);
  m.forward(x, 2, edl::mode::training);
  m.backward(x, 2);
  m.set_trace(nullptr);
  m.forward(x, 2, edl::mode::evaluation);
  std::vector<std::string> names;
  for (auto const& e : t.entries()) names.push_back(e.name);
  CHECK(names == std::vector<std::string>{"conv2d", "conv2d_1", "batch_normalization", "dropout", "dense",
                                          "dense", "dropout", "batch_normalization", "conv2d_1", "conv2d"});
  for (auto const& e : t.entries()) CHECK(e.calls == 1);
}

}  // namespace trace_test
