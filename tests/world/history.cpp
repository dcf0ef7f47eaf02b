// SPDX-License-Identifier: Apache-2.0
#include "world/history.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <thread>
#include <utility>

#include "world/counting.hpp"
#include "world/kernel/kernel.hpp"
#include "world/subject.hpp"

namespace simulation {
namespace {

using namespace std::chrono_literals;

// From the quiet on: what is under way is found to be lost (silence, connections, a hung pass: a minute each,
// at most two of them in a row), and what is left is trained.
constexpr auto recovery = 150s, farewell = 60s;

/// What stands before the tensors of a model's file; nothing: it is none.
nlohmann::json facts_of(std::string const& file) {
  std::uint64_t head = 0;
  if (file.size() < sizeof head) return {};
  std::memcpy(&head, file.data(), sizeof head);
  if (head > file.size() - sizeof head) return {};
  auto const begin = file.begin() + sizeof head;
  return nlohmann::json::parse(begin, begin + std::ptrdiff_t(head), nullptr, false);
}

/// What a valid checkpoint lacks of what its manifest says; empty: nothing, or it is none.
std::string damage_of(std::string const& checkpoint) {
  auto const text = world::read_file("master", checkpoint + "/manifest.json");
  if (!text) return {};
  auto const manifest = nlohmann::json::parse(*text, nullptr, false);
  if (!manifest.is_object()) return checkpoint + "/manifest.json is no manifest";
  for (auto const& f : manifest.at("checkpoint").at("files")) {
    std::string const path = checkpoint + "/" + std::string(f.at("name"));
    auto const file = world::read_file("master", path);
    if (!file || crc32_z(0, reinterpret_cast<Bytef const*>(file->data()), file->size()) != f.at("crc32"))
      return path + " is not what its manifest says";
  }
  return {};
}

world::duration work_of(plan const& p) {
  auto const all = p.record * (counting::records * p.epochs);
  int const evaluations = p.evaluation_steps ? 2 + counting::records / 4 * p.epochs / p.evaluation_steps : 0;
  return 2 * all + evaluations * p.record * counting::records * 2;
}

class checks {
 public:
  checks(history& h, job& j, timeline& lines) : h_(h), job_(j), lines_(lines) {}

  void drive() {
    for (fault const& f : h_.faults) job_.meet(f);
    job_.start();
    world::duration quiet = h_.job.quiet;
    for (fault const& f : h_.faults)
      quiet = std::max<world::duration>(quiet,
                                        f.what == fault::kind::hang ? f.at + h_.job.longest_hang() : f.end());
    auto const until = quiet + recovery + work_of(h_.job);
    while (!job_.over() && world::now() < until) {
      std::this_thread::sleep_for(100ms);
      job_.look();
    }
    if (!job_.over()) {
      find(fmt::format("the job has not ended {:.0f} s after the quiet began, its last step was at {:.1f} s",
                       std::chrono::duration<double>(until - quiet).count(),
                       std::chrono::duration<double>(job_.last_step()).count()));
      lines_.say("world", "threads: " + world::os->describe_threads());
    } else if (!job_.refused().empty()) {
      lines_.say("world", "the job may end so: " + job_.refused());
    } else if (!job_.failure().empty()) {
      find(job_.failure());
    } else {
      leave();
      account();
    }
    for (std::string const& one : job_.findings()) h_.findings.push_back(one);
    h_.steps = job_.steps();
    h_.met = job_.applied();
  }

 private:
  void find(std::string what) {
    lines_.say("world", "FOUND: " + what);
    h_.findings.push_back(std::move(what));
  }

  void leave() {
    if (h_.job.launched) job_.end();
    auto const until = world::now() + (h_.job.launched ? 5s : farewell);
    while (job_.anybody() && world::now() < until) std::this_thread::sleep_for(50ms);
    for (std::string const& name : job_.living()) find(name + " has not ended with its job");
  }

  void account() {
    world::set_disk("storage", {});  // it looks at what there is
    world::pid const audit =
        world::start({.name = "audit",
                      .host = "master",
                      .main = counting::main,
                      .arguments = {"counting", "audit", std::string(job::directory) + "/checkpoints"},
                      .environment = {}});
    if (!world::wait_for(audit, 60s) || world::ended(audit)->code != 0)
      find("the audit of the last checkpoint is not exact");
    std::string const checkpoints = std::string(job::directory) + "/checkpoints";
    for (std::string const& name : world::list("master", checkpoints))
      if (std::string const wrong = damage_of(checkpoints + "/" + name); !wrong.empty()) find(wrong);
    look_at_figures(checkpoints + "/history.jsonl");
    auto const model = world::read_file("master", std::string(job::directory) + "/model/model.safetensors");
    if (!model) return find("there is no exported model");
    if (std::string const wrong = miscounted(h_.job, *model); !wrong.empty()) find(wrong);
    auto const facts = facts_of(*model);
    std::string const version = facts.is_object() && facts.contains("__metadata__")
                                    ? facts["__metadata__"].value("version", std::string("0"))
                                    : "0";
    if (h_.job.evaluation_steps > 0 && !job_.evaluated().contains(std::stoull(version)))
      find("the last version, " + version + ", has not been evaluated");
  }

  /// What is told of the training is what was done: each record's loss is that of a label far away.
  void look_at_figures(std::string const& path) {
    auto const text = world::read_file("master", path);
    if (!text) return;  // this master has heard of no step, nor one before it
    std::uint64_t const all = std::uint64_t(counting::records) * std::uint64_t(h_.job.epochs);
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      auto const one = nlohmann::json::parse(line, nullptr, false);
      // The last one, if power was lost while it was written, and nobody has written since.
      bool const torn = lines.eof() && !text->ends_with('\n');
      if (!one.is_object()) return torn ? void() : find(path + " has a line that is none: " + line);
      if (!one.contains("loss")) continue;
      bool const right = one["loss"].is_number() && std::abs(one["loss"].get<double>() - 1e6) < 100;
      if (!right || one.value("records", all + 1) > all) find(path + " tells what was not: " + line);
    }
  }

  history& h_;
  job& job_;
  timeline& lines_;
};

}  // namespace

history run_history(std::uint64_t seed, std::optional<std::vector<fault>> faults, std::string const& trace) {
  history h{.job = draw_plan(seed)};
  h.faults = faults ? *std::move(faults) : draw_faults(h.job);
  timeline lines;
  auto const result = world::run({.seed = seed, .limit = 1h, .most_events = 20'000'000, .trace = trace}, [&] {
    auto& subject = *new job(h.job, lines);  // what is told of the last ends meets it
    checks(h, subject, lines).drive();
  });
  if (!result.failure.empty()) h.findings.push_back("the world: " + result.failure);
  h.hash = result.hash, h.events = result.events, h.virtual_time = result.virtual_time;
  h.timeline = lines.text();
  h.paths = lines.paths();
  return h;
}

std::string miscounted(plan const& p, std::string const& file) {
  auto const facts = facts_of(file);
  if (!facts.is_object()) return "the model is no file of tensors";
  std::vector<float> weights(counting::records);
  bool found = false;
  for (auto const& [name, one] : facts.items()) {
    if (!name.ends_with("weights")) continue;
    auto const at = std::size_t(one.at("data_offsets").at(0));
    std::uint64_t head = 0;
    std::memcpy(&head, file.data(), sizeof head);
    std::memcpy(weights.data(), file.data() + 8 + head + at, weights.size() * sizeof(float));
    found = true;
  }
  if (!found) return "the model has no weights: " + facts.dump();
  double const version = std::stod(facts.at("__metadata__").value("version", std::string("0")));
  // A minibatch adds 1, and less in a round that others overtook.
  double const sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (sum > version + 0.01 || (p.outer_steps == 1 && sum < version - 0.01))
    return fmt::format("the model is of version {}, and its weights are those of {:.3f} steps", version, sum);
  double const once = 1.0 / 4;  // of a minibatch of 4
  // A step of several minibatches adds less for each of their records. In a fixed order each has as many as
  // there are lanes, where these share an epoch evenly.
  bool const fixed = p.how == strategy::fixed && p.workers != 3,
             exact = fixed || (p.has_servers() && p.grads_to_wait == 1);
  double const most = once * p.epochs / (fixed ? p.workers : 1),
               least = exact ? most : most / (p.has_servers() ? p.grads_to_wait : 8);
  // Where a part of a round has been counted before, all of its records count for the other part.
  if (p.outer_steps > 1) {
    bool const all = std::ranges::all_of(weights, [](float w) { return w > 0; });
    return all ? "" : "a record has not counted";
  }
  for (int i = 0; i < counting::records; ++i)
    if (double const w = weights[std::size_t(i)]; w < least - 1e-3 || w > most + 1e-3)
      return fmt::format("record {} has counted {:.4f} times in {} epochs", i, w / once, p.epochs);
  return {};
}

}  // namespace simulation
