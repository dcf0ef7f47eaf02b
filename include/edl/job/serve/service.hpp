// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/thread_pool.hpp>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "edl/base/http/router.hpp"
#include "edl/core/metric_registry.hpp"
#include "edl/job/serve/batcher.hpp"
#include "edl/job/serve/followed_model.hpp"
#include "edl/job/serve/protocol.hpp"

namespace edl::serve {

/// Serves one model, in the versions that are kept: the Open Inference Protocol 2, TensorFlow Serving's
/// predict, and /metrics. Every reply of the model gives its version, and how long a newer one has existed
/// (the fields Edl-Model-Version and Edl-Model-Lag-Seconds). A separate thread parses large JSON, so that the
/// node can answer others meanwhile. Its queue is limited in bytes (429) and in time (503, after the batch
/// timeout). Thread safety: `routes` are for one server on the node; the rest is safe.
class service {
 public:
  /// Runs functions soon on another thread, one after the other.
  using runner = std::function<void(std::function<void()>)>;

  /// `reader`: parses large JSON; empty: a thread.
  service(net::node& on, std::string name, followed_model& followed, batcher::options o, runner reader = {});

  std::vector<http::route> routes();

  /// Counts the requests of another route of the server as those of `routes`.
  http::route counted(http::route of);

  /// Also tells these numbers in /metrics. Call before the server is made.
  void measures(std::function<void(metric_registry& to)> more) { more_numbers_ = std::move(more); }

  /// Reports that it is not ready from now on, so that clients go elsewhere.
  void drain() { draining_ = true; }

 private:
  using model = followed_model::model;
  struct known_model {
    std::weak_ptr<prediction_session const> of;
    model_face face;
    inference_head last;
  };

  known_model& known(model const& m);
  model model_of(std::vector<std::string> const& arguments) const;
  std::vector<std::string> versions() const;
  asio::awaitable<http::response> infer(http::request& r);
  asio::awaitable<http::response> predict(http::request& r);
  asio::awaitable<std::shared_ptr<question const>> read_elsewhere(
      std::size_t bytes, std::function<std::shared_ptr<question const>()> read);
  void count(int status);
  http::handler counted(http::handler serve);
  http::response metrics(http::request const& r);

  net::node& node_;
  std::string name_;
  followed_model& model_;
  batcher::options options_;
  batcher batcher_;
  metric_registry numbers_;
  std::function<void(metric_registry& to)> more_numbers_;
  std::vector<known_model> known_;  // on the node's thread: of the existing models
  std::atomic<bool> draining_{false};
  std::shared_ptr<std::size_t> unread_ = std::make_shared<std::size_t>(0);  // bytes; on the node's thread
  asio::thread_pool thread_{1};
  runner reader_;
};

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/service.ipp"
#endif
