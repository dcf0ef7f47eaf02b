// SPDX-License-Identifier: Apache-2.0
#include "edl/job/config/monitor.hpp"

#include <doctest/doctest.h>

#include <string>

#include "edl/core/error.hpp"
#include "text.hpp"

namespace monitor_test {

namespace {

std::string refusal(std::string const& text) {
  return ::refusal([&] { edl::read_early_stopping(text); });
}

}  // namespace

TEST_CASE("a direction follows from the names of the metrics that come with edl") {
  for (char const* name : {"accuracy", "auc", "top_5_accuracy", "click/auc"})
    CHECK(edl::read_monitor("--save_best", name).higher);
  for (char const* name : {"loss", "mse", "rmse", "stars/loss"})
    CHECK(!edl::read_monitor("--save_best", name).higher);
  CHECK(!edl::read_monitor("--save_best", "accuracy:min").higher);
  CHECK(edl::read_monitor("--save_best", "own:max").higher);
  CHECK(edl::read_monitor("--save_best", "own:max").metric == "own");
  CHECK_THROWS_WITH(edl::read_monitor("--save_best", "own"),
                    "--save_best=own: which values are better? Write own:max or own:min");
  CHECK_THROWS_WITH(edl::read_monitor("--save_best", "own:up"),
                    "--save_best=own:up: expected own:max or own:min");
  CHECK_THROWS_WITH(edl::read_monitor("--save_best", ""), "--save_best=: expected METRIC[:max|min]");
}

TEST_CASE("early stopping has a patience and a least difference") {
  auto const s = edl::read_early_stopping("loss,patience=7,min_delta=1e-3");
  CHECK(s.monitor.metric == "loss");
  CHECK(s.patience == 7);
  CHECK(s.min_delta == 1e-3);
  CHECK(edl::read_early_stopping("auc").patience == 3);
  CHECK(refusal("loss,,patience=7") == "--early_stopping=loss,,patience=7: a part of the list is empty");
  for (char const* wrong : {"auc,patience=0", "auc,patience=1.5", "auc,patience=", "auc,patience",
                            "auc,min_delta=-1", "auc,min_delta=nan", "auc,x=1", "auc,patience=2x", ""})
    CHECK(refusal(wrong) != "accepted");
}

}  // namespace monitor_test
