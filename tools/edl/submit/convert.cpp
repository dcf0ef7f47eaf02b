// SPDX-License-Identifier: Apache-2.0
#include "submit/convert.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "cluster/cluster.hpp"
#include "edl/core/error.hpp"
#include "submit/job_file.hpp"
#include "submit/paddle.hpp"
#include "submit/submission_flags.hpp"
#include "submit/training_job_check.hpp"
#include "yaml.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;

/// What of a command line is said beside the file that it names, as words.
words beside_file(command_line const& given) {
  words line;
  for (auto const& [name, value] : given.in_order())
    if (name != "file" && name != "output_file") line.push_back("--" + name + "=" + value);
  return line;
}

bool is_object_of_api(json const& document) {
  return document.is_object() && document.contains("apiVersion") && document.contains("kind");
}

std::string name_in(json const& document) {
  return fmt::format("{} '{}'", text_at(document, "/kind", "?"), text_at(document, "/metadata/name", "?"));
}

/// The account that `edl rbac` makes; which of them a cluster has is not asked.
void choose_account(submission& s) {
  if (s.spec.service_account.empty()) s.spec.service_account = "edl";
}

/// Whether the program is told where its records are, without which it does not begin.
bool has_data(json const& job) {
  return std::ranges::any_of(job.at("spec").at("flags"), [](json const& flag) {
    return flag.get_ref<std::string const&>().starts_with("--training_data=");
  });
}

json convert_flags(command_line const& given, std::string const& path, std::string const& text) {
  auto const known = training_job_flags("train");
  words line = beside_file(given);
  line.push_back("--file=" + path);
  training_job_line job = read_training_job_line("train", with_flags_of("train", known, line, text), "1");
  for (std::string const& t : job.of.notes) note(t);
  choose_account(job.of);
  return training_job_of(job.of, job.options);
}

}  // namespace

void write_output(std::string const& flag, std::string const& path, std::string const& text, bool secret) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  int const file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, secret ? 0600 : 0666);
  if (file < 0) throw usage_error(fmt::format("{}={}: {}", flag, path, std::strerror(errno)));
  std::FILE* out = ::fdopen(file, "w");
  std::fwrite(text.data(), 1, text.size(), out);
  if (std::fclose(out) != 0) throw error(fmt::format("{}={}: {}", flag, path, std::strerror(errno)));
}

std::optional<std::vector<json>> objects_in(std::string const& text, std::string const& origin) {
  auto all = from_yaml_documents(text, origin);
  if (std::ranges::none_of(all, is_object_of_api)) return std::nullopt;
  for (json const& one : all)
    if (!is_object_of_api(one))
      throw usage_error(
          fmt::format("{}: a document has no apiVersion and kind, which the others have", origin));
  return all;
}

paddle_line line_from_paddle(json const& document, std::string const& origin, command_line const& given,
                             without_program program) {
  paddle_job theirs = read_paddle_job(document, origin);
  paddle_line out{.line = beside_file(given),
                  .notes = std::move(theirs.notes),
                  .min = theirs.min,
                  .labels = std::move(theirs.labels),
                  .annotations = std::move(theirs.annotations)};
  theirs.line.push_back(fmt::format("--min_workers={}", theirs.min));
  theirs.line.push_back(fmt::format("--max_workers={}", theirs.max));
  for (std::string const& word : theirs.line) {
    std::string const name = word.substr(2, word.find('=') - 2);
    if (name == "cluster_spec_json" && (given.given("cluster_spec") || given.given("cluster_spec_json")))
      throw usage_error(fmt::format(
          "{}: its volumes and selectors stand where --cluster_spec would: leave the flag out, and "
          "change what `edl convert` prints",
          origin));
    if (!given.given(name)) out.line.push_back(word);
  }
  std::string const entry = "spec.trainer.entrypoint", &theirs_is = theirs.entrypoint;
  if (given.given("model_def")) {
    if (!theirs_is.empty())
      out.notes.push_back(fmt::format("{}: '{}' is not run; --model_def={} takes its place", entry, theirs_is,
                                      given.text("model_def")));
  } else if (program == without_program::refused) {
    throw usage_error(
        fmt::format("{}: {}: edl runs a program of its own in the place of '{}': --model_def names it",
                    origin, entry, theirs_is));
  } else {
    out.line.push_back("--model_def=" + program_of_entrypoint(theirs_is));
    out.notes.push_back(
        fmt::format("{}: '{}' is not run; {} takes its place: name the program of edl in the image", entry,
                    theirs_is, out.line.back()));
  }
  out.lacks_data = program == without_program::guessed && !given.given("training_data");
  if (out.lacks_data) {
    out.line.push_back("--training_data=later");
    out.notes.push_back(
        "spec.flags: lacks --training_data, which PaddlePaddle's jobs do not say: give it, or write it in");
  }
  return out;
}

training_job_line from_paddle(json const& document, std::string const& origin, command_line const& given,
                              without_program program) {
  paddle_line theirs = line_from_paddle(document, origin, given, program);
  training_job_line job = read_training_job_line("train", theirs.line, "1");
  if (theirs.lacks_data) std::erase(job.of.spec.command, "--training_data=later");
  job.options.labels = std::move(theirs.labels);
  job.options.annotations = std::move(theirs.annotations);
  job.of.notes.insert(job.of.notes.begin(), theirs.notes.begin(), theirs.notes.end());
  return job;
}

std::vector<flag> convert_job_flags() {
  auto all = training_job_flags("train");
  std::erase_if(all, [](flag const& f) { return f.name == "file" || f.name == "yaml"; });
  for (flag& f : all)
    if (f.name == "detach" || f.name == "wait" || f.name == "follow" || f.name == "dry_run" ||
        f.name == "start_timeout")
      f.help.clear();
  all.push_back({.name = "output_file",
                 .fallback = "-",
                 .help = "write the TrainingJobs into this file; - for standard output",
                 .aliases = {"o"}});
  return all;
}

int convert_job(words const& line) {
  command_line const given("convert", convert_job_flags(), line, 1, 1, "a file");
  std::string const path = given.arguments()[0];
  std::string const content = read_small_file("FILE", path);
  auto const documents = objects_in(content, path);
  std::vector<json> all;
  if (!documents) {
    all.push_back(convert_flags(given, path, content));
    check_training_job(all.back(), path);
  }
  bool any = !documents;
  for (json const& one : documents.value_or(std::vector<json>{})) {
    if (!is_paddle_job(one)) {
      if (is_training_job(one)) check_training_job(one, path);
      note(fmt::format("{}: is {}: printed as it is", name_in(one),
                       is_training_job(one) ? "edl's already" : "no TrainingJob"));
      all.push_back(one);
      continue;
    }
    any = true;
    training_job_line job = from_paddle(one, path, given, without_program::guessed);
    for (std::string const& text : job.of.notes) note(text);
    choose_account(job.of);
    all.push_back(training_job_of(job.of, job.options));
    if (has_data(all.back())) check_training_job(all.back(), path);
  }
  if (!any) throw usage_error(fmt::format("{}: holds no TrainingJob of paddlepaddle.org/v1", path));
  std::string text =
      "# `edl submit -f` or `kubectl apply -f` makes it; `edl rbac --apply` makes the account of its "
      "master.\n";
  for (json const& one : all) text += (&one == &all.front() ? "" : "---\n") + to_yaml(one);
  write_output("--output_file", given.text("output_file"), text, false);
  return done;
}

}  // namespace edl::tool
