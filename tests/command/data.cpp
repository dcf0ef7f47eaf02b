// SPDX-License-Identifier: Apache-2.0
#include "data/data.hpp"

#include <sys/wait.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "command/tool.hpp"
#include "commands.hpp"
#include "compute/data/support.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/record_file.hpp"

namespace data_test {

TEST_CASE("inspect --verify tells a damaged chunk once, with the records that it takes along") {
  support::scratch const dir;
  std::string const path = dir / "a.recordio";
  {
    edl::data::recordio_writer out(path, {.with = edl::data::compressor::none});
    for (int i = 0; i < 150; ++i)
      out.write("not an example, but long enough for a chunk to be damaged inside");
    out.close();
  }
  std::string bytes = support::read(path);
  bytes[bytes.size() - 5] ^= 1;
  support::write(path, bytes);
  auto const [code, out, said] = tool_test::run({"data", "inspect", path, "--verify"});
  CAPTURE(said);
  CHECK(code == 1);
  CHECK(count(said, "edl: damaged: ") == 1);
  CHECK(support::has(said, "(the same for all records from 0 to 149)"));
}

TEST_CASE("inspect --columns shows what a file of columns makes of the first records") {
  support::scratch const dir;
  std::string const table = dir / "people.csv", columns = dir / "people.columns";
  support::write(table, "age,job,tags\n30,clerk,a;b\n50,cook,c\n");
  support::write(columns,
                 "age | normalization subtract=40 divide=10\njob | string_lookup words=cook,clerk\n"
                 "tags | pieces separator=; | string_lookup words=a,b,c\n");
  auto const [code, out, said] = tool_test::run({"data", "inspect", table, "--columns=" + columns});
  CAPTURE(said);
  CHECK(code == 0);
  CHECK(support::has(out, "record 0 becomes numbers [-1.0] ids [1.0] list [3,4]"));
  CHECK(support::has(out, "record 1 becomes numbers [1.0] ids [0.0] list [5]"));
  CHECK(support::has(out, "1 number and 1 id, of a vocabulary of 7"));
  support::write(columns, "age | normalization subtract=40\nheight | to_number\n");
  auto const wrong = tool_test::run({"data", "inspect", table, "--columns=" + columns});
  CHECK(wrong.code == 1);
  CHECK(support::has(wrong.err, "record 0"));
  CHECK(support::has(wrong.err, "'height'"));
}

TEST_CASE("numbers of seven digits and more are told with all of them") {
  support::scratch const dir;
  std::string const path =
      support::write(dir / "ids.csv", "id,price\n1234567,1234567.25\n1234569,0.1\n9007199254740993,0.5\n");
  auto const told = tool_test::run({"data", "inspect", path, "--first=3"});
  CAPTURE(told.out);
  CHECK(count(told.out, "1234567 ") > 0);
  CHECK(count(told.out, "id     1234569\n") == 1);
  CHECK(count(told.out, "9007199254740993") == 2);
  CHECK(count(told.out, "price  1234567.2\n") == 1);
  auto const statistics = tool_test::run({"data", "analyze", path});
  CAPTURE(statistics.out);
  CHECK(count(statistics.out, "9007199254740993") == 1);
  CHECK(count(statistics.out, "1234567 ") == 1);
}

TEST_CASE("values that are no finite numbers are counted, and are no part of a range") {
  support::scratch const dir;
  std::string const path =
      support::write(dir / "wages.csv", "wage,age\n1.5,20\nnan,30\n-inf,40\n7.5,50\ninf,60\n");
  for (char const* command : {"inspect", "analyze"}) {
    auto const told = tool_test::run({"data", command, path});
    CAPTURE(told.out);
    auto const heading = told.out.find("NOT FINITE"), row = told.out.find("\nwage ");
    REQUIRE(heading != std::string::npos);
    REQUIRE(row != std::string::npos);
    std::size_t const column = heading - told.out.rfind("FEATURE", heading);
    CHECK(told.out.substr(row + 1 + column, 2) == "3 ");
    auto const json =
        nlohmann::json::parse(tool_test::run({"data", command, path, "-o", "json"}).out)["features"];
    REQUIRE(json.size() == 2);
    CHECK_FALSE(json[0].contains("not_finite"));  // of whole numbers none can be
    CHECK(json[1]["not_finite"] == 3);
    CHECK(json[1]["min"] == 1.5);
    CHECK(json[1]["max"] == 7.5);
  }
  std::string const lists = dir / "lists.recordio";
  {
    std::vector<float> values{NAN, 5, 1, 2, 3, 4, 6, 7, 8, 9};
    edl::example record;
    edl::example_builder(record).floats("x", values);
    std::string text;
    edl::encode(record, text);
    edl::data::recordio_writer out(lists, {.with = edl::data::compressor::none});
    out.write(text);
    out.close();
  }
  auto const shown = tool_test::run({"data", "inspect", lists});
  CAPTURE(shown.out);
  CHECK(support::has(shown.out, "10 floats, 1 to 9, 1 not finite: nan, 5, 1"));
}

TEST_CASE("a table of results that cannot be printed is an error") {
  support::scratch const dir;
  std::string const path = support::write(dir / "a.csv", "x,y\n1,2\n");
  for (char const* command : {"inspect", "analyze"}) {
    std::fflush(stdout);
    pid_t const child = ::fork();
    if (child == 0) {
      ::dup2(::open("/dev/full", O_WRONLY), 1);
      ::dup2(::open("/dev/null", O_WRONLY), 2);
      ::_exit(edl::tool::run({"data", command, path}));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == 1);
  }
}

TEST_CASE("names of columns that are not UTF-8 do no harm to what is said") {
  support::scratch const dir;
  std::string const path = support::write(dir / "a.csv", "caf\xe9,y\n1,2\n");
  for (char const* command : {"inspect", "analyze"})
    for (char const* form : {"table", "json", "yaml"}) {
      auto const told = tool_test::run({"data", command, path, "-o", form});
      CHECK(told.code == 0);
      CHECK(support::has(told.out, "caf?"));
    }
}

}  // namespace data_test
