// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"

namespace edl::tool {

/// An image that is to be made before the job is submitted.
struct image_build {
  std::string zoo;   ///< directory
  std::string base;  ///< image to build in; empty: the zoo's own choice
  bool push = false;
};

/// What `edl train`, `evaluate` or `predict` is asked to do.
struct submission {
  platform::kubernetes::job_spec spec;
  std::optional<image_build> build;  ///< makes spec.image
  words notes;                       ///< what was accepted and does not do what it says, a line each
  command_line line;
};

/// Reads and checks a command line, and the files that it names (-f, --cluster_spec). `stamp` becomes the tag
/// of an image that is built. Throws usage_error, one line that says what to change.
submission read_submission(std::string const& command, words const& line, std::string const& stamp);

/// A command line whose -f may name a YAML or JSON file with more of the flags, as `name: value`; what the
/// line gives wins. Lists and maps are joined as the flags' texts are: {cpu: 1, memory: 1Gi}. Throws
/// usage_error, which says `why_unknown` of a flag that the command does not have.
command_line read_with_file(std::string const& command, std::vector<flag> const& known, words line,
                            reason_of_flag const& why_unknown = {});

/// "mnist.mnist_functional_api.custom_model", "zoo/mnist_functional_api.py", "dir/mnist_functional_api" and
/// "mnist_functional_api": mnist_functional_api. Throws usage_error.
std::string program_of(std::string const& model_def);

/// "k=v; k=v" of --aux_params: whether lost pods are replaced. Throws usage_error.
bool relaunches(std::string const& aux_params);

}  // namespace edl::tool
