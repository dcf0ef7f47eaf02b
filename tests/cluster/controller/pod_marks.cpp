// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/controller/pod_marks.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace pod_marks_test {

using namespace edl::autoscaler;
using namespace edl::controller;
using nlohmann::json;

TEST_CASE("a pod bears the marks of those selectors that select it, and equal pods share a shape") {
  pod_shape shy;
  shy.apart = {
      {pod_selector::text_of(R"({"labelSelector": {"matchLabels": {"app": "web"}}})"_json, "team"), "zone"}};
  shared<pod_shape> const plain{pod_shape{}};
  pod_marks marks;
  CHECK(marks.marked(plain, "team", {{"app", "web"}}).same(plain));  // nobody asks
  marks.look_at(shy);
  auto const web = marks.marked(plain, "team", {{"app", "web"}});
  CHECK(web->marks == std::vector<std::string>{shy.apart[0].mark});
  CHECK(marks.marked(plain, "team", {{"app", "web"}, {"pod", "7"}}).same(web));
  CHECK(marks.marked(plain, "other", {{"app", "web"}}).same(plain));
  CHECK(marks.marked(plain, "team", {{"app", "db"}}).same(plain));
}

}  // namespace pod_marks_test
