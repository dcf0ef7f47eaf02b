// SPDX-License-Identifier: Apache-2.0
#include "submit/paddle_line.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "edl/core/error.hpp"
#include "submit/job_file.hpp"
#include "submit/paddle.hpp"

namespace edl::tool {

using nlohmann::json;

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
      throw usage_error(
          fmt::format("{}: its volumes and selectors conflict with --cluster_spec: leave the flag out, and "
                      "change the output of `edl convert`",
                      origin));
    if (name == "image_name")
      out.notes.push_back(
          given.given(name)
              ? fmt::format("spec.image: --image_name={} replaces '{}'", given.text(name),
                            word.substr(word.find('=') + 1))
              : "spec.image: is kept; it must hold the model as a program of edl (`edl zoo build`)");
    if (!given.given(name)) out.line.push_back(word);
  }
  std::string const entry = "spec.trainer.entrypoint", &theirs_is = theirs.entrypoint;
  if (given.given("model_def")) {
    if (!theirs_is.empty())
      out.notes.push_back(fmt::format("{}: '{}' is not run; --model_def={} takes its place", entry, theirs_is,
                                      given.text("model_def")));
  } else if (program == without_program::refused) {
    throw usage_error(
        fmt::format("{}: {}: edl runs a program of its own instead of '{}': --model_def names it", origin,
                    entry, theirs_is));
  } else {
    out.line.push_back("--model_def=" + program_of_entrypoint(theirs_is));
    out.notes.push_back(
        fmt::format("{}: '{}' is not run; {} takes its place: name the program of edl in the image", entry,
                    theirs_is, out.line.back()));
  }
  out.needs_data = program == without_program::guessed && !given.given("training_data");
  if (out.needs_data) {
    out.line.push_back("--training_data=later");
    out.notes.push_back(
        "spec.flags: --training_data is missing, as PaddlePaddle's jobs have no such flag: give it, or write "
        "it in");
  }
  return out;
}

training_job_line from_paddle(json const& document, std::string const& origin, command_line const& given,
                              without_program program) {
  paddle_line theirs = line_from_paddle(document, origin, given, program);
  training_job_line job = read_training_job_line("train", theirs.line, "1");
  if (theirs.needs_data) std::erase(job.submission.spec.command, "--training_data=later");
  job.options.labels = std::move(theirs.labels);
  job.options.annotations = std::move(theirs.annotations);
  job.submission.notes.insert(job.submission.notes.begin(), theirs.notes.begin(), theirs.notes.end());
  return job;
}

}  // namespace edl::tool
