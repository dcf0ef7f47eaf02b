// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "edl/job/master/job_state.hpp"

/// A job's options and state, which each class of the coordinator's is made of.
struct stated_job {
  explicit stated_job(edl::master::job_options o) : options(std::move(o)) {}

  edl::master::job_options options;
  edl::master::job_state job;

  /// The commands of that kind since the last call.
  template <class C>
  std::vector<C> take() {
    std::vector<C> all;
    for (edl::master::command const& c : job.take_commands())
      if (auto const* one = std::get_if<C>(&c)) all.push_back(*one);
    return all;
  }
};
