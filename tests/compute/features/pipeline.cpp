// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/features/pipeline.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/features/id_ranges.hpp"
#include "edl/core/error.hpp"
#include "edl/core/storage_error.hpp"
#include "text.hpp"

namespace pipeline_test {

using namespace edl;
using features::pipeline;
using support::has;

namespace {

example person(float age, std::string const& education, std::string const& tags = "a;b") {
  example e;
  example_builder b(e);
  b.floating("age", age);
  b.integer("zip", 94110);
  b.bytes("education", education);
  b.bytes("job", "Sales");
  b.bytes("hours", " 38 ");
  b.bytes("nothing", "");
  b.bytes("tags", tags);
  return e;
}

struct row {
  std::vector<float> values;
  explicit row(std::size_t n) : values(n, -7) {}
  float& operator()(std::size_t i) { return values.at(i); }
};

std::vector<float> numbers(pipeline const& p, example const& e) {
  row out(p.numbers());
  p.write_numbers(e, out);
  return out.values;
}

std::vector<float> ids(pipeline const& p, example const& e) {
  row out(p.ids());
  p.write_ids(e, out);
  return out.values;
}

struct list {
  std::vector<std::int64_t> ids;
  void add(std::int64_t id) { ids.push_back(id); }
};

char const* nobody(char const*) { return nullptr; }

std::string refusal(std::string const& text) {
  return ::refusal([&] { pipeline(text, "p.columns", nobody); });
}

}  // namespace

TEST_CASE("each step gives what its function gives of the same input, and ids lie behind each other") {
  pipeline const p(
      "# of a person\n"
      "age | normalization subtract=38.6 divide=13.6\r\n"
      "\n"
      "age | discretization boundaries=20,35,40\n"
      "  age | log_round buckets=5 base=2 otherwise=4\n"
      "age | round_identity most=90\n"
      "zip | hashing buckets=50\n"
      "education | hashing buckets=60\n"
      "education | string_lookup words=\"HS-grad,Some college\" unknown=2\n"
      "education, job, zip | crossing buckets=70\n"
      "hours | to_number\n"
      "nothing | to_number otherwise=12 | normalization subtract=2 divide=5\n"
      "missing | to_number otherwise=3 | discretization boundaries=1,2\n",
      "p.columns");
  namespace f = features;
  for (auto const& [age, education] :
       {std::pair{35.0f, "Some college"}, {61.25f, "PhD"}, {-3.0f, "HS-grad"}}) {
    example const e = person(age, education);
    f::normalization const normal{.subtract = 38.6f, .divide = 13.6f};
    CHECK(numbers(p, e) == std::vector<float>{normal(age), 38, 2});
    f::discretization const by_age{{20, 35, 40}};
    f::log_round const log{.buckets = 5, .base = 2, .otherwise = 4};
    f::round_identity const rounded{.most = 90};
    f::hashing const zip{50}, school{60};
    f::string_lookup const known{{"HS-grad", "Some college"}, 2};
    f::crossing const cross{70};
    f::id_ranges const at{by_age, log, rounded, zip, school, known, cross, f::discretization{{1, 2}}};
    CHECK(ids(p, e) == std::vector<float>{float(at(0, by_age(age))), float(at(1, log(age))),
                                          float(at(2, rounded(age))), float(at(3, zip(std::int64_t(94110)))),
                                          float(at(4, school(education))), float(at(5, known(education))),
                                          float(at(6, cross({education, "Sales", "94110"}))),
                                          float(at(7, 2))});
    CHECK(p.size() == at.size());
  }
}

TEST_CASE("pieces of a text are a list of ids") {
  pipeline const p(
      "job | hashing buckets=10\n"
      "tags | pieces separator=; | string_lookup words=a,b,c unknown=0\n"
      "gone | pieces | hashing buckets=5\n",
      "p.columns");
  CHECK(p.ids() == 1);
  CHECK(p.size() == 18);
  list found;
  p.add_ids(person(1, "x", "c;z;;a"), found);
  CHECK(found.ids == std::vector<std::int64_t>{12, 10});  // z is none
  list one;
  pipeline("tags | pieces ignored=none | hashing buckets=5", "p").add_ids(person(1, "x", "none,k"), one);
  CHECK(one.ids == std::vector<std::int64_t>{features::hashing{5}("k")});
}

TEST_CASE("what a line leaves open is what the environment says of the column") {
  support::scratch const dir;
  std::ofstream(dir / "words") << "PhD\nHS-grad\n";
  std::map<std::string, std::string> const known{{"_age_avg", "30"},
                                                 {"_age_stddev", "10"},
                                                 {"_age_boundaries", "20,40"},
                                                 {"_education_vocab", dir / "words"}};
  pipeline const p("age | normalization\nage | discretization\neducation | string_lookup\n", "p",
                   [&](char const* name) {
                     auto const it = known.find(name);
                     return it == known.end() ? nullptr : it->second.c_str();
                   });
  CHECK(numbers(p, person(35, "HS-grad")) == std::vector<float>{0.5f});
  CHECK(ids(p, person(35, "HS-grad")) == std::vector<float>{1, 4});
  CHECK(refusal("x\nage | normalization") ==
        "p.columns:1: column 'x': the column has no step; expected COLUMN | STEP option=value …");
  CHECK(refusal("\nage | normalization") ==
        "p.columns:2: column 'age': normalization needs subtract and divide, or _age_avg and _age_stddev in "
        "the "
        "environment, which `edl data analyze` writes");
  CHECK(has(refusal("a-b | string_lookup"), "_a_b_vocab"));
}

TEST_CASE("a wrong line is named with its file, its number and its column, once each") {
  for (auto const& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "p.columns: no line"},
           {"# only\n", "no line"},
           {"age | hashin buckets=3", "did you mean hashing?"},
           {"age | hashing", "hashing needs buckets="},
           {"age | hashing buckets=0", "below 1"},
           {"age | hashing buckets=1.5", "no whole number"},
           {"age | hashing bucket=3", "hashing needs buckets="},
           {"age | hashing buckets=3 size=4", "no option 'size'"},
           {"age | hashing buckets=3 buckets=4", "given twice"},
           {"age | hashing 3", "not an option; expected option=value"},
           {"age | ha\x01sing 3", "ha sing: '3' is not an option"},
           {"age | hashing buckets=3 | log_round buckets=3", "last step"},
           {"age, b | hashing buckets=3", "takes one column"},
           {", b | crossing buckets=3", "no name"},
           {"age |", "a step has no name"},
           {"age | discretization boundaries=3,2", "not sorted"},
           {"age | discretization boundaries=3,x", "no number"},
           {"age | normalization subtract=inf", "no number"},
           {"age | pieces", "not ids yet"},
           {"age | pieces separator=ab | hashing buckets=3", "single character"},
           {"age | pieces | normalization subtract=1", "makes a number"},
           {"age | to_number | hashing buckets=3", "needs otherwise"},
           {"age | to_number otherwise=1 | hashing buckets=3", "reads a text"},
           {"age | string_lookup words=a,b,a", "occurs twice"},
           {"age | string_lookup words=a unknown=-1", "below 0"},
           {"age | string_lookup words=a file=b", "not both"},
           {"age | string_lookup file=/no/such", "/no/such"},
           {"a | pieces | hashing buckets=2000000000\nb | pieces | hashing buckets=2000000000",
            "p.columns:2: column 'b': more than"},
           {"a | hashing buckets=5\nb | pieces | hashing buckets=9223372036854775807",
            "p.columns:2: column 'b': more than"},
           {"a | hashing buckets=16777217",
            "p.columns:1: column 'a': its ids are up to 16777216, and a network's input is exact below "
            "16777216"},
           {"a | pieces | hashing buckets=16777216\nb | hashing buckets=1",
            "p.columns:2: column 'b': its ids"},
           {"age | round_identity most=9223372036854775807",
            "p.columns:1: column 'age': round_identity: most=9223372036854775807 is above 16777215"},
           {"age | round_identity most=10 otherwise=50",
            "p.columns:1: column 'age': round_identity: otherwise=50 is not an id of the line; expected 0 to "
            "10, or -1 for none"},
           {"age | round_identity most=10 otherwise=11", "otherwise=11 is not an id"},
           {"age | round_identity most=10 otherwise=-2", "otherwise=-2 is not an id"},
           {"age | log_round buckets=4 otherwise=99", "log_round: otherwise=99 is not an id"},
           {"age | log_round buckets=4 otherwise=4", "expected 0 to 3, or -1"},
           {"age | log_round buckets=4 base=1", "log_round: base=1 is not above 1"},
           {"age | log_round buckets=4 base=0.5", "base=0.5 is not above 1"},
           {"age | log_round buckets=4 base=-2", "base=-2 is not above 1"},
           {"thal | string_lookup words=\"normal,fixed unknown=1",
            "p.columns:1: column 'thal': a quote is opened and not closed"},
           {"\"age | log_round buckets=4", "not closed"},
           {"thal | string_lookup words=\"a,b\" unknown=1\"", "not closed"},
           {"age | hashing buckets=3\nage | log_round buckets=2\nage | hashing buckets=4",
            "p.columns:3: column 'age': line 1 has a hashing of it already"}}) {
    CAPTURE(text);
    std::string const said = refusal(text);
    CAPTURE(said);
    CHECK(has(said, part));
    CHECK(said.find("p.columns") == said.rfind("p.columns"));
  }
  CHECK(refusal("age | hashing buckets=3\n\nb | hashing buckets=3\n") == "accepted");
  CHECK(refusal("# it's a \" in a comment\nage | hashing buckets=16777216\n") == "accepted");
  CHECK(refusal("tags | pieces | round_identity most=16777215") == "accepted");
}

TEST_CASE("what is otherwise no id may be the last of the line's, or none") {
  pipeline const p(
      "zip | round_identity most=10 otherwise=10\n"
      "zip | log_round buckets=4 base=1.5 otherwise=-1\n",
      "p.columns");
  CHECK(ids(p, person(3, "PhD")) == std::vector<float>{10, -1});
}

TEST_CASE("a value that a line cannot read is named with it") {
  auto const failure = [](std::string const& text) -> std::string {
    try {
      pipeline const p("\n" + text, "p.columns");
      example const e = person(3, "PhD");
      numbers(p, e);
      ids(p, e);
      return "accepted";
    } catch (data_error const& bad) {
      return bad.what();
    }
  };
  CHECK(failure("education | to_number") == "p.columns:2: column 'education': 'PhD' is no number");
  CHECK(has(failure("nothing | to_number"), "column 'nothing': an empty value"));
  CHECK(has(failure("gone | hashing buckets=3"), "'gone'"));
}

TEST_CASE("a file takes the place of what the model says, where it fits") {
  support::scratch const dir;
  std::ofstream(dir / "words") << "PhD\n";
  std::string const path = dir / "own.columns";
  char const* const built_in = "age | normalization subtract=1 divide=2\neducation | hashing buckets=10\n";
  features::pipeline_room const room{.numbers = 1, .ids = 1, .vocabulary = 10};
  ::unsetenv("EDL_COLUMNS");
  CHECK(numbers(pipeline::chosen(built_in, room), person(5, "PhD")) == std::vector<float>{2});
  std::ofstream(path) << "education | string_lookup file=words\nage | normalization subtract=3\n";
  ::setenv("EDL_COLUMNS", path.c_str(), 1);
  pipeline const own = pipeline::chosen(built_in, room);
  CHECK(numbers(own, person(5, "PhD")) == std::vector<float>{2});
  CHECK(ids(own, person(5, "PhD")) == std::vector<float>{0});
  auto const refused = [&](std::string const& text, features::pipeline_room const& has_room) -> std::string {
    std::ofstream(path) << text;
    try {
      pipeline::chosen(built_in, has_room);
    } catch (error const& bad) {
      return bad.what();
    }
    return "accepted";
  };
  CHECK(refused("age | to_number\n", room) ==
        path + " makes 1 numbers and 0 ids, and the model takes 1 and 1");
  CHECK(has(refused("age | to_number\njob | hashing buckets=11\n", room), "ids below 11"));
  std::filesystem::remove(path);
  CHECK_THROWS_AS(pipeline::chosen(built_in, room), storage_error);
  ::unsetenv("EDL_COLUMNS");
}

}  // namespace pipeline_test
