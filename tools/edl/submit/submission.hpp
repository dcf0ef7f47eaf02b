// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/command_line.hpp"
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
  kubernetes::job_spec spec;
  std::optional<image_build> build;  ///< makes spec.image
  words notes;                       ///< what was accepted and does not do what it says, a line each
  command_line line;
};

/// Reads and checks a command line, and the files that it names (-f, --cluster_spec). `stamp` becomes the tag
/// of an image that is built. Throws usage_error, one line that says what to change.
submission read_submission(std::string const& command, words const& line, std::string const& stamp);

/// "mnist.mnist_functional_api.custom_model", "zoo/mnist_functional_api.py", "dir/mnist_functional_api" and
/// "mnist_functional_api": mnist_functional_api. Throws usage_error.
std::string program_of(std::string const& model_def);

/// "k=v; k=v" of --aux_params: whether lost pods are replaced. Throws usage_error.
bool relaunches(std::string const& aux_params);

}  // namespace edl::tool
