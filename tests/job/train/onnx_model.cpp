// SPDX-License-Identifier: Apache-2.0
// What is written is the matter of tests/onnx.sh.
#include "edl/job/train/onnx_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <edl/edl.hpp>
#include <vector>

#include "edl/compute/onnx/graph.hpp"
#include "edl/core/error.hpp"
#include "edl/job/checkpoint/model_file.hpp"
#include "scratch_directory.hpp"

namespace onnx_model_test {

namespace nn = edl::nn;

/// Kernels whose extents do not tell that they are turned.
struct turned {
  struct hyperparameters {
    edl::hyperparameter<float> slope{0.5f, "of what is below 0", 0, 1};
  };
  static constexpr auto network = nn::sequential(
      nn::image{.height = 4, .width = 4, .channels = 2}, nn::conv2d{.filters = 2, .kernel = 2},
      nn::leaky_relu{.slope = edl::set_by<&hyperparameters::slope>}, nn::batch_norm{}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<turned>& into, edl::mode) {
    into.features = record.floats("x", {4, 4, 2});
  }
};

TEST_CASE(
    "an exported model is taken back: predictions are the same bits, with hyperparameters and version") {
  scratch const dir;
  using network = edl::model<turned::network, edl::cpu>;
  auto const layout = network::layout();
  std::vector<float> values(layout.size());
  network::initialise(3, 0, values);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += float(i % 7) / 8;
  edl::checkpoint::export_model(dir / "m.safetensors", layout, values, {}, 17,
                                {.hyperparameters = "slope=0.25"});
  turned::hyperparameters const set{.slope = {0.25f}};
  auto const p = edl::author::make_program<turned>(set);
  edl::job j;
  j.hyperparameters = "slope=0.25";
  edl::train::export_onnx(p, j, dir / "m.safetensors", dir / "m.onnx", edl::logger(edl::severity::critical));

  edl::predictor<turned> const before(dir / "m.safetensors"), after(dir / "m.onnx");
  CHECK(after.version() == 17);
  CHECK(after.hyperparameters() == before.hyperparameters());
  edl::example record;
  auto const x = edl::example_builder(record).floats("x", 32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(float(i));
  auto const wanted = before(record), got = after(record);
  CHECK(std::vector(got.outputs().begin(), got.outputs().end()) ==
        std::vector(wanted.outputs().begin(), wanted.outputs().end()));
}

TEST_CASE(
    "before a job begins, a file that could not be written and a layer that cannot be exported are told") {
  edl::train::program p;
  p.to_onnx = [](edl::onnx::graph&) {};
  CHECK_NOTHROW(edl::train::check_onnx(p, "model.onnx"));
  CHECK_THROWS_WITH_AS(
      edl::train::check_onnx(p, "/nowhere/at/all/model.onnx"),
      "--export_onnx=/nowhere/at/all/model.onnx: there is no directory /nowhere/at/all; make it first",
      edl::error);
  p.to_onnx = [](edl::onnx::graph& g) { g.refuse("doubled"); };
  CHECK_THROWS_WITH_AS(edl::train::check_onnx(p, "model.onnx"), doctest::Contains("layer 'doubled'"),
                       edl::error);
}

}  // namespace onnx_model_test
