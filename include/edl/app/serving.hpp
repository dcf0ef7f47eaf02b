// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "edl/app/signals.hpp"
#include "edl/base/http/server.hpp"
#include "edl/cli/command_line.hpp"
#include "edl/job/serve/batcher.hpp"
#include "edl/job/serve/followed_model.hpp"
#include "edl/job/serve/text_engine.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::app {

/// The arguments of `serve`.
struct serving {
  std::string model_name;
  std::string set;  ///< hyperparameters, as in --set
  serve::followed_model::options model;
  serve::batcher::options batching;
  std::string tokenizer;   ///< of a language model; empty: ids are bytes
  std::string chat_style;  ///< likewise; empty: as the file beside the tokenizer tells
  serve::text_engine::options texts;
  http::server_options listening;
  std::chrono::milliseconds drain_delay{5'000};  ///< it continues, but is not ready, after SIGTERM
  std::chrono::milliseconds drain{20'000};       ///< for pending replies after that
};

std::vector<cli::flag> serving_flags(std::string const& program);
/// Throws usage_error.
serving serving_of(cli::command_line const& l);

/// Serves until a signal arrives, then answers the pending requests. After SIGTERM it first continues for
/// `drain_delay`. Returns the exit code.
int run_serving(train::program const& p, serving const& what, signals const& stop);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/serving.ipp"
#endif
