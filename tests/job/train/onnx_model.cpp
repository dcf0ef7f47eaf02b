// SPDX-License-Identifier: Apache-2.0
// What is written is the matter of tests/onnx.sh.
#include "edl/job/train/onnx_model.hpp"

#include <doctest/doctest.h>

#include "edl/compute/onnx/graph.hpp"
#include "edl/core/error.hpp"

namespace onnx_model_test {

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
