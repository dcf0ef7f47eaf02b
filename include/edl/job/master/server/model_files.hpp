// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>

#include "edl/base/net/disk.hpp"
#include "edl/base/net/node.hpp"
#include "edl/core/log.hpp"
#include "edl/job/master/server/decision_loop.hpp"
#include "edl/job/master/server/model_keepers.hpp"
#include "edl/job/master/server/model_source.hpp"
#include "edl/job/master/server/orders.hpp"
#include "edl/job/master/server/server_options.hpp"

namespace edl::master {

/// Writes a job's files: its checkpoints, and its models. Its arguments must outlive it. Thread safety: only
/// on the node's thread; other threads read and write files.
class model_files {
 public:
  model_files(net::node& on, server_options const& options, decision_loop& loop, model_keepers const& keepers,
              orders& orders, model_source& source, logger log)
      : options_(options),
        loop_(loop),
        coordinator_(loop.decisions()),
        keepers_(keepers),
        orders_(orders),
        source_(source),
        log_(std::move(log)),
        models_(on),
        checkpoints_(on) {}

  /// Finds the newest checkpoint, and passes it to the coordinator.
  asio::awaitable<void> find(find_restore_point c);

  /// Has a checkpoint written, and passes the result to the coordinator.
  asio::awaitable<void> checkpoint(write_checkpoint c);

  /// Writes the trained model, and the best one. Throws error.
  asio::awaitable<void> write_last();
  asio::awaitable<void> write_best(evaluated_version of);

  /// Calls `work`, which writes the file of evaluations.
  asio::awaitable<void> keep_evaluation(std::function<void()> work);

 private:
  /// The result of a search for a checkpoint.
  struct finding {
    std::optional<restore_point> point;
    std::string warning, unusable;  // why the job cannot go on
    std::string why;                // the file system would not say
  };
  finding look_for_checkpoint(std::optional<std::uint64_t> newest) const;  // on the disk's thread
  asio::awaitable<std::string> write(write_checkpoint c);
  asio::awaitable<void> write_model(std::string directory, model_source::model const& m);

  server_options const& options_;
  decision_loop& loop_;
  coordinator& coordinator_;
  model_keepers const& keepers_;
  orders& orders_;
  model_source& source_;
  logger log_;
  net::disk models_, checkpoints_;  // for files of models and of evaluations; for checkpoints
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server/model_files.ipp"
#endif
