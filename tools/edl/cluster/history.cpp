// SPDX-License-Identifier: Apache-2.0
#include "cluster/history.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cluster/audit.hpp"
#include "edl/core/error.hpp"
#include "edl/job/app/history.hpp"

namespace edl::tool {
namespace {

app::history history_of_job(command_line const& l) {
  std::string const& job = l.arguments()[0];
  pod_answer const found = ask_pod(l, {"history"}, {"-o", "json"});
  if (!found.succeeded) throw error("job '" + job + "' tells no history: " + found.text);
  std::string lines;
  auto const all = nlohmann::ordered_json::parse(found.text, nullptr, false);
  if (!all.is_array()) throw error("job '" + job + "' tells no history, but: " + found.text.substr(0, 200));
  for (auto const& line : all) lines += line.dump() + "\n";
  return app::history_from(lines, job);
}

}  // namespace

std::vector<flag> history_flags() {
  auto all = audit_flags();
  for (flag& f : app::history_flags("output")) all.push_back(std::move(f));
  return all;
}

int print_history(words const& line) {
  command_line const l("history", history_flags(), line, 1, 1, "a directory of checkpoints, or a job's name");
  std::string const& what = l.arguments()[0];
  bool const is_job = what.find('/') == what.npos && !std::filesystem::exists(what);
  app::show(is_job ? history_of_job(l) : app::read_history(what), l.text("output"), l.text("plot"));
  return done;
}

}  // namespace edl::tool
