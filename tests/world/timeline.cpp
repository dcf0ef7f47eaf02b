// SPDX-License-Identifier: Apache-2.0
#include "world/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace simulation {
namespace {

/// A path, and the words by which a log tells of it.
constexpr std::pair<char const*, char const*> known_paths[]{
    {"a checkpoint was restored", "Going back to version"},
    {"servers went on with what they had", "Going on at version"},
    {"a world was formed again", "World "},
    {"a copy was taken from another worker", "took version"},
    {"a master took another's place", "the previous master ended before its job"},
    {"a journal was damaged", "goes by the journal before"},
    {"a journal was lost", "begins anew, as no journal of this run is whole"},
    {"a member knew a newer generation", "its journal was lost or is older"},
    {"a server was ahead of the master", "knows a newer generation than"},
    {"the master was cut off", "this master may be cut off"},
    {"members were heard again", "members are heard again"},
    {"silence", "it gave no sign of life"},
    {"a connection's end was a loss", "its connection has ended"},
    {"a pass hung", "has been at one minibatch"},
    {"a task took too long", "takes too long for its task"},
    {"a world was not come to", "does not come to the next world"},
    {"others could not reach a worker", "others cannot reach it"},
    {"a world did not begin", "does not begin"},
    {"two members did one minibatch", "two members did minibatch"},
    {"a backup was cut off", "the backup is cut off"},
    {"a lease was void", "the lease is void"},
    {"a minibatch was refused as stale", "was rejected as stale"},
    {"a task had gone to another worker", "had given task"},
    {"a member waited for the master", "waits for the master"},
    {"a member was refused", "is refused: it has been given up"},
    {"somebody came when the job was over", "it accepts no more members"},
    {"a lineage paused", "a replacement starts in"},
    {"a server heard that it was one too many", "this server is not needed any more"},
    {"a process was dropped", "is not needed any more"},
    {"the job was resized", "Scaling from"},
    {"a connection stood still", "no progress for"},
    {"a connection was half-dead", "nothing has come for"},
    {"a disk was slow", "the disk took"},
    {"a checkpoint could not be written", "cannot be written: "},
    {"old checkpoints stayed", "cannot be removed: "},
    {"the end was written again", "cannot be written yet, retrying"},
    {"a search for a checkpoint was repeated", "cannot search for checkpoints yet"},
    {"the journal was written again", "a successor of this master would know less"},
    {"an evaluation was given up", "is not evaluated: "},
    {"the job stood still", "the job has made no step"},
    {"a worker left", "has left; "},
    {"the master does not take a process", "is refused: "},
};

bool is_noise(std::string_view text) {
  static constexpr std::string_view noise[]{"Loss = ", "Task:", "tasks ", "Progress: ", "listens at "};
  return std::ranges::any_of(noise, [&](std::string_view n) { return text.starts_with(n); }) ||
         text.find(" tasks created with") != text.npos || text.find(" = ") < 40;
}

}  // namespace

log_line read_line(std::string_view text) {
  log_line l;
  std::string_view rest = text;
  // "[time] [LEVEL] [place] [process] text": the place and the process may lack.
  for (int part = 0; part < 4 && rest.starts_with('['); ++part) {
    auto const end = rest.find("] ");
    if (end == rest.npos) break;
    std::string_view const inside = rest.substr(1, end - 1);
    if (part == 1) l.level = inside;
    if (part > 1 && inside.find(' ') != inside.npos) break;  // a text that begins with a bracket
    rest.remove_prefix(end + 2);
  }
  l.text = l.level.empty() ? text : rest;
  return l;
}

void timeline::say(std::string who, std::string text) {
  entries_.push_back({world::now(), std::move(who), std::move(text)});
}

void timeline::hear(std::string const& who, log_line const& line) {
  for (auto const& [name, words] : known_paths)
    if (line.text.find(words) != line.text.npos) ++paths_[name];
  if (line.level == "DEBUG" || is_noise(line.text)) return;
  bool const told = line.level.empty() || line.level == "INFO";
  say(who, told ? line.text : line.level + ": " + line.text);
}

std::string timeline::text(std::size_t most) const {
  std::vector<std::string> lines;
  std::string last;
  std::size_t again = 0;
  auto const end_repetition = [&] {
    if (again > 0) lines.push_back(fmt::format("{:>22}  (the same {} times more)", "", again));
    again = 0;
  };
  for (entry const& e : entries_) {
    std::string const what =
        fmt::format("{:<10}  {}", e.who, e.text.substr(0, e.who == "world" ? 4000 : 220));
    if (what == last) {
      ++again;
      continue;
    }
    end_repetition();
    last = what;
    lines.push_back(fmt::format("{:>10.3f}  {}", std::chrono::duration<double>(e.when).count(), what));
  }
  end_repetition();
  std::string all;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines.size() > most && i == most / 4) {
      std::size_t const left_out = lines.size() - most;
      all += fmt::format("{:>22}  ({} lines are left out)\n", "", left_out);
      i += left_out;
    }
    all += lines[i] + '\n';
  }
  return all;
}

std::vector<std::string> timeline::all_paths() {
  std::vector<std::string> names;
  for (auto const& [name, words] : known_paths) names.emplace_back(name);
  return names;
}

}  // namespace simulation
