// SPDX-License-Identifier: Apache-2.0
#include "completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cluster/cluster.hpp"
#include "cluster/training_jobs.hpp"
#include "commands.hpp"
#include "edl/core/error.hpp"

namespace edl::tool {
namespace {

// A word such as --role=wo is one word to edl and three to bash, which splits at "=".
char const* const bash = R"(_edl() {
  local line="${COMP_LINE:0:COMP_POINT}" words
  read -ra words <<<"$line"
  [[ "$line" == *[[:space:]] ]] && words+=("")
  local last="${words[-1]}"
  mapfile -t COMPREPLY < <(edl __complete "${words[@]:1}" 2>/dev/null)
  [[ "$last" == *=* ]] && COMPREPLY=("${COMPREPLY[@]#"${last%%=*}="}")
  [[ ${#COMPREPLY[@]} == 1 && "${COMPREPLY[0]}" == *= ]] && compopt -o nospace
}
complete -o default -F _edl edl elasticdl
)";

char const* const zsh = R"(#compdef edl elasticdl
_edl() {
  local -a found
  found=("${(@f)$(edl __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found[1]" ]]; then
    local -a open=(${(M)found:#*=}) whole=(${found:#*=})
    compadd -S '' -- $open
    compadd -- $whole
  else
    _files
  fi
}
compdef _edl edl elasticdl
)";

char const* const fish = R"(function __edl_complete
    set -l words (commandline -opc) (commandline -ct)
    edl __complete $words[2..-1] 2>/dev/null
end
complete -c edl -a '(__edl_complete)'
complete -c elasticdl -a '(__edl_complete)'
)";

words starting_with(std::string const& prefix, words const& all) {
  words some;
  for (std::string const& w : all)
    if (w.rfind(prefix, 0) == 0) some.push_back(w);
  return some;
}

flag const* find_flag(std::vector<flag> const& flags, std::string spelt) {
  spelt = spelt.substr(std::min(spelt.size(), spelt.find_first_not_of('-')));
  std::replace(spelt.begin(), spelt.end(), '-', '_');
  for (flag const& f : flags)
    if (f.name == spelt || std::ranges::find(f.aliases, spelt) != f.aliases.end()) return &f;
  return nullptr;
}

words values_of(flag const& f) {
  return f.type == flag::value_type::truth ? words{"true", "false"} : f.choices;
}

}  // namespace

words complete(words const& line, std::function<words()> const& jobs) {
  std::string const last = line.empty() ? "" : line.back();
  command const* c = nullptr;
  std::size_t named = 0;
  try {
    std::tie(c, named) = find_command({line.begin(), line.end() - (line.empty() ? 0 : 1)});
  } catch (usage_error const&) {
    std::set<std::string> names;
    if (line.size() < 2) names = {"help"};
    for (command const& k : commands()) {
      auto const space = k.name.find(' ');
      if (line.size() < 2)
        names.insert(k.name.substr(0, space));
      else if (line.size() == 2 && space != k.name.npos && k.name.substr(0, space) == line[0])
        names.insert(k.name.substr(space + 1));
    }
    return starting_with(last, {names.begin(), names.end()});
  }
  auto const flags = c->flags();
  if (last.rfind('-', 0) == 0) {
    if (auto const equals = last.find('='); equals != last.npos) {
      flag const* f = find_flag(flags, last.substr(0, equals));
      words all;
      if (f != nullptr)
        for (std::string const& v : values_of(*f)) all.push_back(last.substr(0, equals + 1) + v);
      return starting_with(last, all);
    }
    words all{"--help"};
    for (flag const& f : flags) all.push_back("--" + f.name + (f.type == flag::value_type::truth ? "" : "="));
    return starting_with(last, all);
  }
  if (std::string const& before = line[line.size() - 2]; line.size() - 1 > named && before.rfind('-', 0) == 0)
    if (flag const* f = find_flag(flags, before); f != nullptr && f->type == flag::value_type::text)
      return starting_with(last, f->choices);
  std::size_t arguments = 0;
  for (std::size_t i = named; i + 1 < line.size(); ++i) arguments += line[i].rfind('-', 0) != 0;
  if (arguments == 0 && !c->choices.empty()) return starting_with(last, c->choices);
  if (arguments == 0 && c->is_job_argument) return starting_with(last, jobs());
  return {};
}

std::vector<flag> completion_flags() { return {}; }

int completion(words const& line) {
  command_line const l("completion", completion_flags(), line, 1, 1, "a shell (bash, zsh or fish)");
  std::string const& shell = l.arguments()[0];
  if (shell != "bash" && shell != "zsh" && shell != "fish")
    throw usage_error(fmt::format("edl completion {}: expected bash, zsh or fish", shell));
  fmt::print("{}", shell == "bash" ? bash : shell == "zsh" ? zsh : fish);
  return done;
}

int print_completions(words const& line) try {
  auto const jobs = [] {
    cluster c = connect(command_line("get", cluster_flags(), {"--request_timeout=2"}));
    words names;
    nlohmann::json const pods =
        c.api.get(c.path("pods"), {{"labelSelector", "app=elasticdl,elasticdl-replica-type=master"}});
    for (auto const& pod : pods.at("items"))
      names.push_back(text_at(pod, "/metadata/labels/elasticdl-job-name"));
    for (live_job const& job : list_training_jobs(c, false).list)
      if (std::ranges::find(names, job.resource.name) == names.end()) names.push_back(job.resource.name);
    return names;
  };
  for (std::string const& word : complete(line, jobs)) fmt::print("{}\n", word);
  return done;
} catch (std::exception const&) {
  return done;  // a shell has no place for an error in the middle of a line
}

}  // namespace edl::tool
