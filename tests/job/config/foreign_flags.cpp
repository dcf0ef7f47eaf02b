// SPDX-License-Identifier: Apache-2.0
#include "edl/job/config/foreign_flags.hpp"

#include <doctest/doctest.h>

#include <set>

#include "job/config/resolved.hpp"
#include "text.hpp"

namespace foreign_flags_test {

using edl::foreign_flags, edl::why_not_here;

namespace {}  // namespace

TEST_CASE("a flag of another system is refused with its reason, wherever it stands") {
  std::set<std::string_view> names;
  for (auto const& f : foreign_flags()) {
    std::string const flag = "--" + std::string(f.name);
    CAPTURE(flag);
    CHECK(names.insert(f.name).second);
    std::string const value = flag + "=" + (f.fallback.empty() ? "x" : std::string(f.fallback));
    for (std::vector<std::string> const& line :
         {std::vector<std::string>{"train", "--training_data=d", value}, {"train", value}}) {
      std::string const said = refusal(line);
      CHECK(contains(said, flag + " has no meaning here: " + std::string(f.why)));
      CHECK(contains(said, "leave it out"));
    }
  }
  CHECK(contains(refusal({"train", "--training_data=d", "--image_name=x"}),
                 "--image_name is for a job in a cluster"));
  CHECK(contains(refusal({"train", "--model_def=x"}), "--model_def is not needed: this binary is the model"));
  CHECK(why_not_here("training_data").empty());
}

TEST_CASE("the reasons name what takes a flag's place") {
  CHECK(contains(why_not_here("callbacks"), "schedule"));
  CHECK(why_not_here("batch_size") == "is --minibatch_size here");
  CHECK(why_not_here("epochs") == "is --num_epochs here");
  CHECK(contains(why_not_here("learning_rate"), "--set NAME=VALUE"));
  CHECK(contains(why_not_here("custom_data_reader"), "the struct's `open` reads one of its own"));
  CHECK(why_not_here("eval_steps") == "is --evaluation_steps here");
  CHECK(contains(why_not_here("weight_decay"), "--set NAME=VALUE"));
  CHECK(contains(why_not_here("prediction_outputs_processor"), "on_predictions"));
}

}  // namespace foreign_flags_test
