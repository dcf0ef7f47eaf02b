// SPDX-License-Identifier: Apache-2.0
#include "submit/train.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/text_file.hpp"
#include "edl/core/error.hpp"
#include "submit/job_file.hpp"
#include "submit/plain_job.hpp"
#include "submit/submission_flags.hpp"
#include "submit/submit_training_job.hpp"

namespace edl::tool {

int submit(std::string const& command, words const& line) {
  auto const known = submission_flags(command);
  command_line const given(command, known, line);
  if (!given.given("file")) return submit_plain(read_submission(command, line, stamp()));
  std::string const text = read_small_file("--file", given.text("file"));
  if (auto const documents = objects_in(text, "--file=" + given.text("file"))) {
    if (command == "train") return submit_objects(*documents, given);
    throw usage_error(
        fmt::format("--file={}: holds objects, which `edl submit` makes; `edl {}` takes a file of flags",
                    given.text("file"), command));
  }
  return submit_plain(read_submission(command, with_flags_of(command, known, line, text), stamp()));
}

}  // namespace edl::tool
