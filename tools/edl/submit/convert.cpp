// SPDX-License-Identifier: Apache-2.0
#include "submit/convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/fields.hpp"
#include "common/text_file.hpp"
#include "common/yaml.hpp"
#include "edl/core/error.hpp"
#include "submit/job_file.hpp"
#include "submit/paddle.hpp"
#include "submit/paddle_line.hpp"
#include "submit/training_job_check.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;

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
  for (std::string const& t : job.submission.notes) note(t);
  choose_account(job.submission);
  return training_job_of(job.submission, job.options);
}

}  // namespace

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
    for (std::string const& text : job.submission.notes) note(text);
    choose_account(job.submission);
    all.push_back(training_job_of(job.submission, job.options));
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
