// SPDX-License-Identifier: Apache-2.0
// What is written is the matter of tests/onnx.sh.
#include "edl/job/train/setup/onnx_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <edl/edl.hpp>
#include <filesystem>
#include <fstream>
#include <vector>

#include "edl/base/checkpoint/model_file.hpp"
#include "edl/compute/onnx/graph.hpp"
#include "edl/core/error.hpp"
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

struct folds {
  static constexpr auto network = nn::sequential(nn::features{.count = 2}, nn::dense{.units = 3},
                                                 nn::batch_norm{}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<folds>& into, edl::mode) {
    into.features = record.floats("x", {2});
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
  j.outputs.export_onnx = dir / "m.onnx";
  edl::logger const quiet(edl::severity::critical);
  edl::train::export_onnx(p, j, dir / "m.safetensors", quiet);

  edl::predictor<turned> const before(dir / "m.safetensors"), after(dir / "m.onnx");
  CHECK(after.version() == 17);
  CHECK(after.hyperparameters() == before.hyperparameters());
  edl::example record;
  auto const x = edl::example_builder(record).floats("x", 32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(float(i));
  auto const wanted = before(record), got = after(record);
  CHECK(std::vector(got.outputs().begin(), got.outputs().end()) ==
        std::vector(wanted.outputs().begin(), wanted.outputs().end()));

  // What feed does to a record, and rows, are no weights.
  j.outputs.export_preprocess = true;
  edl::train::export_onnx(p, j, dir / "m.safetensors", quiet);
  CHECK(edl::predictor<turned>(dir / "m.onnx").version() == 17);
}

TEST_CASE(
    "weights that batch normalisation is folded into are not taken back, and the error names the flag") {
  scratch const dir;
  using network = edl::model<folds::network, edl::cpu>;
  auto const layout = network::layout();
  std::vector<float> const values(layout.size(), 1);
  edl::checkpoint::export_model(dir / "m.safetensors", layout, values, {}, 3, {});
  auto const p = edl::author::make_program<folds>();
  edl::job j;
  j.outputs.export_onnx = dir / "m.onnx";
  j.outputs.export_fold_batch_norm = true;
  for (int time = 0; time < 2; ++time) {  // a model may be replaced
    CHECK(edl::train::check_onnx(p, j).empty());
    edl::train::export_onnx(p, j, dir / "m.safetensors", edl::logger(edl::severity::critical));
  }
  CHECK_THROWS_WITH_AS(edl::predictor<folds>(dir / "m.onnx"),
                       doctest::Contains("without --export_fold_batch_norm"), edl::error);
}

TEST_CASE(
    "before a job begins, a file that could not be written and a layer that cannot be exported are told") {
  edl::train::program p;
  edl::job j;
  p.to_onnx = [](edl::onnx::graph&) {};
  auto const check = [&](std::string const& file) {
    j.outputs.export_onnx = file;
    return edl::train::check_onnx(p, j);
  };
  CHECK(check("model.onnx").empty());
  CHECK_THROWS_WITH_AS(
      check("/nowhere/at/all/model.onnx"),
      "--export_onnx=/nowhere/at/all/model.onnx: no directory /nowhere/at/all; create it first", edl::error);
  CHECK_THROWS_WITH_AS(check("/tmp"), "--export_onnx=/tmp: that is a directory; name a file in it",
                       edl::error);
  CHECK_THROWS_WITH_AS(check("new/"), doctest::Contains("that is a directory"), edl::error);
  j.outputs.output = "no/./out";
  j.checkpoints.checkpoint_dir = std::filesystem::current_path() / "no/checkpoints";
  CHECK(check("no/out/model.onnx").empty());
  CHECK(check(std::filesystem::current_path() / "no/out/model.onnx").empty());
  CHECK_THROWS_WITH_AS(check("no/out"), doctest::Contains("that is the directory of --output"), edl::error);
  CHECK_THROWS_WITH_AS(check("no/checkpoints"),
                       doctest::Contains("that is the directory of --checkpoint_dir"), edl::error);
  CHECK_THROWS_WITH_AS(check("no/out/" + std::string(250, 'n')), doctest::Contains("may have 220 bytes"),
                       edl::error);
  j.outputs.output = j.checkpoints.checkpoint_dir = {};
  CHECK_THROWS_WITH_AS(check("/dev/full"),
                       "--export_onnx=/dev/full: cannot replace /dev/full: it is not a regular file",
                       edl::error);
  CHECK_THROWS_WITH_AS(check("/proc/model.onnx"),  // where even root makes no file
                       "--export_onnx=/proc/model.onnx: cannot create /proc/model.onnx: No such file or "
                       "directory",
                       edl::error);
  scratch const dir;
  CHECK(check(dir / "model.onnx").empty());
  CHECK(std::filesystem::is_empty(dir.path()));
  std::ofstream(dir / "empty");
  CHECK(check(dir / "empty").empty());
  for (char const* text : {"a,b\n1,2\n", "\x08\x08", "\x08\x08x", "\x08\x01\x12"}) {
    std::ofstream(dir / "data.csv") << text;
    CHECK_THROWS_WITH_AS(check(dir / "data.csv"),
                         doctest::Contains("would overwrite a file that is not an ONNX model"), edl::error);
  }
  std::filesystem::create_symlink("empty", dir / "link");
  CHECK_THROWS_WITH_AS(check(dir / "link"), doctest::Contains("link: that is a link; name its target, "),
                       edl::error);
  std::filesystem::create_symlink("nowhere", dir / "broken");
  CHECK_THROWS_WITH_AS(check(dir / "broken"), doctest::Contains("that is a link"), edl::error);
  j.outputs.output = dir / "made later";
  CHECK(check(dir / "made later/model.onnx").empty());
  p.to_onnx = [](edl::onnx::graph& g) { g.refuse("doubled"); };
  CHECK_THROWS_WITH_AS(check("model.onnx"), doctest::Contains("layer 'doubled'"), edl::error);
}

TEST_CASE("flags of a file that do nothing for a model are told before a job begins") {
  edl::job j;
  j.outputs.export_onnx = "model.onnx";
  j.outputs.export_fold_batch_norm = j.outputs.export_rows_as_inputs = true;
  CHECK(edl::train::check_onnx(edl::author::make_program<turned>(), j) ==
        std::vector<std::string>{
            "--export_rows_as_inputs does nothing here: the model has no embedding tables",
            "--export_fold_batch_norm does nothing here: 'batch_normalization' (behind 'leaky_relu', no "
            "convolution or dense layer) stays"});
  edl::train::program p;
  p.to_onnx = [](edl::onnx::graph&) {};
  CHECK(edl::train::check_onnx(p, j).back() ==
        "--export_fold_batch_norm does nothing here: the model has no batch normalisation");
}

}  // namespace onnx_model_test
