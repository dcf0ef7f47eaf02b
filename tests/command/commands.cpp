// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "command/tool.hpp"
#include "edl/app/arguments.hpp"
#include "edl/core/error.hpp"
#include "submit/submission_flags.hpp"

namespace commands_test {

using edl::tool::words;

TEST_CASE("no command lets a name, a path or a flag drive the terminal") {
  std::string const evil =
      "/none/\x1b]0;title\x07\x9b"
      "31m";
  ::setenv("KUBECONFIG", evil.c_str(), 1);
  for (edl::tool::command const& c : edl::tool::commands()) {
    // These write what they are told to, where they are told to.
    if (c.name.starts_with("zoo ") || c.name == "data make") continue;
    for (std::string const& word : {evil, "--" + evil, "--output=" + evil}) {
      words line;
      std::istringstream name(c.name);
      for (std::string w; name >> w;) line.push_back(w);
      if (c.name == "data convert") line.push_back("--to=/none/here");
      line.push_back(c.name == "data convert" && word == evil ? "--from=" + evil : word);
      auto const all = tool_test::run(line);
      std::string const said = all.out + all.err;
      CAPTURE(c.name);
      CAPTURE(word);
      CAPTURE(all.code);
      CHECK(said.find_first_of("\x1b\x07\x9b") == said.npos);
    }
  }
  ::unsetenv("KUBECONFIG");
}

TEST_CASE("each command, and each group of commands, has a help that ends well") {
  std::set<std::string> groups;
  for (edl::tool::command const& c : edl::tool::commands()) {
    CAPTURE(c.name);
    auto const space = c.name.find(' ');
    words line{c.name.substr(0, space)};
    if (space != c.name.npos) {
      groups.insert(line[0]);
      line.push_back(c.name.substr(space + 1));
    }
    line.push_back("--help");
    CHECK(edl::tool::run(line) == 0);
  }
  CHECK(groups == std::set<std::string>{"controller", "data", "zoo"});
  for (std::string const& group : groups) {
    CHECK(edl::tool::run({group, "--help"}) == 0);
    CHECK(edl::tool::run({group, "-h"}) == 0);
    CHECK(edl::tool::run({"help", group}) == 0);
    CHECK(edl::tool::run({group}) == 2);
    CHECK(edl::tool::run({group, "nothing", "--help"}) == 2);
  }
}

TEST_CASE("the table of docs/edl.md has each command") {
  std::istringstream page(support::read(std::string(EDL_MANIFESTS) + "/../docs/edl.md"));
  words rows;
  for (std::string line; std::getline(page, line) && !line.starts_with("A flag is written");)
    if (line.starts_with("| ")) rows.push_back(line);
  REQUIRE(rows.size() > 10);
  for (edl::tool::command const& c : edl::tool::commands()) {
    CAPTURE(c.name);
    auto const space = c.name.find(' ');
    // A group's name stands before the first of a row: `zoo init`, `build`, `push`.
    CHECK(std::ranges::any_of(rows, [&](std::string const& row) {
      return support::has(row, "`" + c.name + "`") || support::has(row, "`" + c.name + " ") ||
             (space != c.name.npos && support::has(row, "`" + c.name.substr(0, space) + " ") &&
              support::has(row, "`" + c.name.substr(space + 1) + "`"));
    }));
  }
}

TEST_CASE("a model's program knows each flag of edl's, or says why it has none") {
  for (char const* command : {"train", "evaluate", "predict"})
    for (edl::tool::flag const& f : edl::tool::submission_flags(command)) {
      CAPTURE(command);
      CAPTURE(f.name);
      std::string said;
      try {
        edl::app::parse("mnist", {command, "--" + f.name + "=1"});
      } catch (edl::usage_error const& e) {
        said = e.what();
      }
      CHECK_FALSE(support::has(said, "unknown flag"));
    }
}

}  // namespace commands_test
