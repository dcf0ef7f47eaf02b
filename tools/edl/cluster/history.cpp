// SPDX-License-Identifier: Apache-2.0
#include "cluster/history.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <sstream>

#include "cluster/audit.hpp"
#include "edl/app/history.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"

namespace edl::tool {
namespace {

/// A line of a history, as one of the lines of an array of JSON (`app::to_text`) has it; empty: it is another
/// line. A pod's log also has what the program says to people.
std::string_view element(std::string_view line) {
  if (!line.starts_with("[{") && !line.starts_with(" {")) return {};
  line.remove_prefix(1);
  if (line.ends_with(',') || line.ends_with(']')) line.remove_suffix(1);
  return line;
}

app::history history_of_job(command_line const& l) {
  std::string const& job = l.arguments()[0];
  pod_answer const found = ask_pod(l, {"history"}, {"-o", "json"});
  if (!found.succeeded) throw error("job '" + job + "' has no readable history: " + found.text);
  std::string lines;
  std::istringstream in(found.text);
  for (std::string text; std::getline(in, text);)
    if (std::string_view const line = element(text); !line.empty())
      lines.append(line) += '\n';
    else
      fmt::print(stderr, "{}\n", printable(text));
  if (lines.empty()) throw error("job '" + job + "' has no readable history");
  return app::history_from(lines, job);
}

}  // namespace

std::vector<flag> history_flags() {
  auto all = audit_flags();
  for (flag& f : app::history_flags("output")) all.push_back(std::move(f));
  return all;
}

int print_history(words const& line) {
  command_line const l("history", history_flags(), line, 1, app::most_histories,
                       "a directory of checkpoints, or a job's name, or several directories");
  std::string const &what = l.arguments()[0], &format = l.text("output"), &picture = l.text("plot");
  double const smooth = app::smoothing_of(l);
  if (l.arguments().size() > 1 || what.find('/') != what.npos || std::filesystem::exists(what)) {
    app::show({.paths = l.arguments(), .format = format, .picture = picture, .smooth = smooth});
  } else {
    app::history const one = history_of_job(l);
    app::show({&one, 1}, format, picture, smooth);
  }
  return done;
}

}  // namespace edl::tool
