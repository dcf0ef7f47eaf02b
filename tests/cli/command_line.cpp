// SPDX-License-Identifier: Apache-2.0
#include "edl/cli/command_line.hpp"

#include <doctest/doctest.h>

#include "text.hpp"

namespace command_line_test {

using namespace edl::cli;

namespace {

grammar any() {
  return {.command = "mnist train",
          .flags = {{.name = "job_name", .fallback = "mnist", .aliases = {"n", "name"}},
                    {.name = "use_async", .fallback = "false", .type = flag::value_type::truth},
                    {.name = "shuffle", .fallback = "true", .type = flag::value_type::truth},
                    {.name = "seed", .fallback = "1", .type = flag::value_type::whole, .least = 0}},
          .most = 2,
          .why_unknown = [](std::string const& name) {
            return name == "feed" ? std::string("is compiled in") : std::string();
          }};
}

std::string why(words const& line, grammar const& g = any()) {
  return refusal([&] { command_line(g, line); });
}

}  // namespace

TEST_CASE("flags are spelt in all the ways that people have") {
  for (words const& line : {words{"--job_name=a"},
                            {"--job_name", "a"},
                            {"--job-name=a"},
                            {"--name=a"},
                            {"-n", "a"},
                            {"-na"},
                            {"-n=a"}}) {
    CHECK(command_line(any(), line).text("job_name") == "a");
  }
  command_line const l(any(), {"x", "--use_async", "--", "--seed=3"});
  CHECK(l.truth("use_async"));
  CHECK(l.truth("shuffle"));
  CHECK(l.arguments() == words{"x", "--seed=3"});
  CHECK(l.number("seed") == 1);
  CHECK_FALSE(l.given("seed"));
  CHECK(command_line(any(), {"--shuffle"}).truth("shuffle"));
  CHECK(command_line(any(), {"--job_name=", "x"}).text("job_name").empty());
  CHECK(command_line(any(), {"--job_name=", "x"}).arguments() == words{"x"});
}

TEST_CASE("what neither a checkpoint nor the wire takes is refused at the start") {
  for (words const& line :
       {words{"--job_name=caf\xe9"}, {"--job_name", "caf\xe9"}, {"caf\xe9"}, {"--", "caf\xe9"}})
    CHECK(why(line).find("caf?' is not UTF-8; rename the file, or name a link to it") != std::string::npos);
  CHECK(command_line(any(), {"--job_name=caf\xc3\xa9"}).text("job_name") == "caf\xc3\xa9");
}

TEST_CASE("a value that is the default is given and changes nothing") {
  command_line const l(any(), {"--seed=1", "--use_async=no", "--job_name=a"});
  CHECK(l.given("seed"));
  CHECK_FALSE(l.changed("seed"));
  CHECK_FALSE(l.changed("use_async"));
  CHECK_FALSE(l.changed("shuffle"));
  CHECK(l.changed("job_name"));
  CHECK(l.in_order() == std::vector<std::pair<std::string, std::string>>{
                            {"seed", "1"}, {"use_async", "no"}, {"job_name", "a"}});
}

TEST_CASE("what cannot be is refused, with the way out") {
  CHECK(why({"--sede=3"}) == "unknown flag --sede: did you mean --seed?; `mnist train --help=all` lists all");
  CHECK(why({"--colour=3"}) == "unknown flag --colour; `mnist train --help=all` lists all");
  CHECK(why({"-x"}) == "unknown flag -x; `mnist train --help=all` lists all");
  CHECK(why({"--n=3"}).starts_with("unknown flag --n"));
  CHECK(why({"--feed=f"}) == "--feed is compiled in");
  CHECK(why({"--seed"}) == "--seed needs a value: --seed=…");
  CHECK(why({"--seed", "--use_async"}) == "--seed needs a value: --seed=…");
  CHECK(why({"--seed=1", "--seed=2"}) == "--seed is given twice (1 and 2): leave one out");
  CHECK(why({"--seed=x"}) == "--seed=x: expected a whole number of at least 0");
  CHECK(why({"--use_async=maybe"}) == "--use_async=maybe: expected true or false");
  CHECK(why({"a", "b", "c"}).starts_with("unexpected argument 'c': flags are --name=value"));
  grammar g = any();
  g.least = 1, g.arguments = "the job's name";
  CHECK(why({}, g) == "the job's name is missing; see `mnist train --help`");
  g = any();
  g.flags[0].needed = true;
  CHECK(why({"--seed=1"}, g) == "--job_name is missing; see `mnist train --help`");
}

TEST_CASE("a flag may have to say something where it is given") {
  CHECK_NOTHROW(edl::cli::refuse_empty({any(), {"--use_async", "--seed=1", "x"}}));
  CHECK_THROWS_WITH_AS(edl::cli::refuse_empty({any(), {"--seed=1", "--job_name="}}),
                       "--job_name= has no value: give one, or leave the flag out", edl::usage_error);
  CHECK_THROWS_WITH_AS(edl::cli::refuse_empty({any(), {"--seed=1", ""}}),
                       "an argument is empty (''): give one that is not, or leave it out", edl::usage_error);
}

TEST_CASE("help is asked for before the arguments of others") {
  CHECK(asks_for_help({"x", "--help"}));
  CHECK(asks_for_help({"-h"}));
  CHECK_FALSE(asks_for_help({"x", "--", "--help"}));
}

}  // namespace command_line_test
