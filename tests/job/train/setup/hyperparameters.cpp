// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/setup/hyperparameters.hpp"

#include <doctest/doctest.h>

#include <string>

#include "edl/core/error.hpp"

namespace hyperparameters_test {

namespace train = edl::train;

namespace {

train::hyperparameters example() {
  return {train::describe("rate", edl::hyperparameter<float>{0.1f, "the learning rate", 0, 1}),
          train::describe("patience", edl::hyperparameter<int>{3, "epochs without progress", 1}),
          train::describe("flip", edl::hyperparameter<bool>{true})};
}

std::string refusal(std::string const& text) {
  try {
    auto all = example();
    train::set(all, train::read_settings(text));
  } catch (edl::usage_error const& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("settings are read with semicolons, commas and blanks") {
  CHECK(train::read_settings("a=1; b = x,c=2;") == train::settings{{"a", "1"}, {"b", "x"}, {"c", "2"}});
  CHECK(train::read_settings("").empty());
  CHECK(train::write_settings({{"a", "1"}, {"b", "x"}}) == "a=1;b=x");
  CHECK(refusal("rate") == "--set=rate: expected name=value");
  CHECK(refusal("=1") == "--set==1: expected name=value");
  CHECK(refusal("rate=1;rate=0.5") == "--set: rate is set twice");
}

TEST_CASE("equal values have one text") {
  auto all = example();
  train::set(all, {{"rate", "5e-2"}, {"flip", "off"}});
  CHECK(train::write_settings(train::values_of(all)) == "rate=0.05;patience=3;flip=false");
  CHECK(train::value_of<float>(all[0]) == 0.05f);
  CHECK(train::value_of<int>(all[1]) == 3);
  CHECK(!train::value_of<bool>(all[2]));
}

TEST_CASE("a wrong value or name is refused with what is expected") {
  CHECK(refusal("rate=0.5") == "accepted");
  CHECK(refusal("rate=2") == "--set rate=2: expected a number from 0 to 1");
  CHECK(refusal("rate=nan") == "--set rate=nan: expected a number from 0 to 1");
  CHECK(refusal("patience=0").find("whole number from 1") != std::string::npos);
  CHECK(refusal("patience=2.5").find("whole number") != std::string::npos);
  CHECK(refusal("flip=maybe") == "--set flip=maybe: expected true or false");
  CHECK(refusal("rat=1") == "--set rat=1: this model has no such hyperparameter; did you mean rate?");
  CHECK(refusal("xyz=1").find("it has rate, patience, flip") != std::string::npos);
  train::hyperparameters none;
  CHECK_THROWS_WITH(train::set(none, {{"a", "1"}}), "--set a=1: this model has no hyperparameters");
}

TEST_CASE("bounds are those that stand in the struct, and no value is more than its type holds") {
  auto const refuses = [](edl::cli::flag f, std::string const& value) {
    train::hyperparameters all{std::move(f)};
    try {
      train::set(all, {{"x", value}});
    } catch (edl::usage_error const&) {
      return true;
    }
    return false;
  };
  auto const share = train::describe("x", edl::hyperparameter<float>{0.25f, "", 0.1f, 0.9f});
  CHECK(!refuses(share, "0.9"));
  CHECK(!refuses(share, "0.1"));
  CHECK(refuses(share, "0.91"));
  auto const open = train::describe("x", edl::hyperparameter<float>{0.25f});
  CHECK(!refuses(open, "3e38"));
  CHECK(refuses(open, "1e39"));
  CHECK(refuses(train::describe("x", edl::hyperparameter<int>{-5, "", -10, -1}), "7"));
}

TEST_CASE("the help lists name, description and value") {
  CHECK(train::help_text({}).empty());
  std::string const text = train::help_text(example());
  CHECK(text.find("--set rate") != std::string::npos);
  CHECK(text.find("the learning rate [0.1]") != std::string::npos);
  CHECK(text.find("epochs without progress [3]") != std::string::npos);
}

TEST_CASE("a model's values are taken where the user has set none, and differences are told") {
  auto all = example();
  auto const notes = train::set_trained(
      all, {{"rate", "0.2"}, {"patience", "3"}, {"flip", "false"}, {"gone", "7"}}, {{"flip", "true"}}, "m");
  CHECK(train::write_settings(train::values_of(all)) == "rate=0.2;patience=3;flip=true");
  REQUIRE(notes.size() == 3);
  CHECK(notes[0].taken);
  CHECK(notes[0].text == "hyperparameter rate is 0.2, as in the training of m: --set rate=VALUE changes it");
  CHECK_FALSE(notes[1].taken);
  CHECK(notes[1].text ==
        "hyperparameter flip is true here, and was false in the training of m: --set flip=false takes that");
  CHECK_FALSE(notes[2].taken);
  CHECK(notes[2].text == "m was trained with gone=7, and this program has no such hyperparameter");
  try {
    train::set_trained(all, {{"rate", "2"}}, {}, "m");
    FAIL("accepted");
  } catch (edl::error const& e) {
    std::string const why = e.what();
    CAPTURE(why);
    CHECK(why.starts_with("m was trained with a value that this program does not take: --set rate=2: "));
    CHECK(why.ends_with("; --set rate=VALUE gives another"));
  }
}

}  // namespace hyperparameters_test
