// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/post.hpp>
#include <future>
#include <optional>
#include <string>

#include "edl/base/http/message.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/serve/batcher.hpp"

namespace edl::serve {

EDL_INLINE http::failure too_late(std::chrono::milliseconds bound) {
  return {
      503, fmt::format("the request has waited for more than {} ms", bound.count()), {{"Retry-After", "1"}}};
}

struct batcher::request {
  request(asio::any_io_executor const& on, std::shared_ptr<question const> q, model m)
      : query(std::move(q)), by(std::move(m)), done(on) {}
  std::shared_ptr<question const> query;
  model by;
  clock::time_point since = clock::now();
  net::event done;
  bool ended = false;
  std::vector<float> said;
  std::optional<http::failure> failed;
};

EDL_INLINE batcher::batcher(net::node& on, options o) : node_(on), options_(o), thread_([this] { work(); }) {}

EDL_INLINE batcher::~batcher() {
  {
    std::lock_guard const lock(mutex_);
    over_ = true;
  }
  more_.notify_all();
  thread_.join();
  // Wait until the node has run everything posted so far, because it uses this object.
  std::promise<void> done;
  if (!node_.post([&done] { done.set_value(); }))
    node_.stop();
  else if (!node_.on_thread())
    done.get_future().wait();
}

EDL_INLINE asio::awaitable<std::vector<float>> batcher::predict(std::shared_ptr<question const> q, model by) {
  // Only the node's thread adds to `waiting_`, so nothing comes between the check and the addition.
  if (waiting_ + q->rows > options_.max_queue)
    throw http::failure(429, fmt::format("{} records wait already", waiting_.load()), {{"Retry-After", "1"}});
  waiting_ += q->rows;
  auto const r = std::make_shared<request>(node_.executor(), std::move(q), std::move(by));
  {
    std::lock_guard const lock(mutex_);
    queue_.push_back(r);
  }
  // Look later on this thread, so that requests that arrive at the same moment share a batch.
  if (!std::exchange(looking_, true)) asio::post(node_.executor(), [this] { look(); });
  while (!r->ended) co_await r->done.wait();
  if (r->failed) throw *r->failed;
  invariant(r->said.size() == r->query->rows * r->by->output_size(), "each record has its outputs");
  co_return std::move(r->said);
}

EDL_INLINE void batcher::look() {
  looking_ = false;
  std::vector<std::shared_ptr<request>> batch;
  {
    std::lock_guard const lock(mutex_);
    if (queue_.empty() || computing_) return;
    double const expected = seconds_ * double(std::min(waiting_.load(), std::size_t(options_.max_batch)));
    if (options_.max_wait.count() > 0 || expected > std::chrono::duration<double>(options_.quick).count()) {
      more_.notify_one();
      return;
    }
    batch = take();
  }
  compute(batch);
  for (auto const& r : batch) {
    invariant(!r->ended, "a request is answered once");
    r->ended = true;
    r->done.notify_here();
  }
  // Requests that arrived meanwhile woke no thread.
  std::lock_guard const lock(mutex_);
  if (!queue_.empty()) more_.notify_one();
}

EDL_INLINE void batcher::work() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (queue_.empty()) {
      more_.wait(lock);
      continue;
    }
    auto const until = queue_.front()->since + options_.max_wait;
    if (options_.max_wait.count() > 0 && waiting_ < std::size_t(options_.max_batch) && clock::now() < until) {
      more_.wait_until(lock, until);
      continue;
    }
    invariant(!computing_, "the batcher's own thread computes one batch at a time");
    auto batch = take();
    computing_ = true;
    lock.unlock();
    compute(batch);
    node_.post([batch = std::move(batch)] {
      for (auto const& r : batch) {
        invariant(!r->ended, "a request is answered once");
        r->ended = true;
        r->done.notify_here();
      }
    });
    lock.lock();
    computing_ = false;
  }
}

EDL_INLINE std::vector<std::shared_ptr<batcher::request>> batcher::take() {
  invariant(!queue_.empty(), "a batch is taken only if a request waits");
  std::vector<std::shared_ptr<request>> batch;
  std::size_t rows = 0;
  model const by = queue_.front()->by;
  for (auto next = queue_.begin(); next != queue_.end();) {
    if ((*next)->by != by) {
      ++next;
      continue;
    }
    if (!batch.empty() && rows + (*next)->query->rows > std::size_t(options_.max_batch)) break;
    rows += (*next)->query->rows;
    batch.push_back(std::move(*next));
    next = queue_.erase(next);
  }
  invariant(!batch.empty(), "the request that has waited longest is in the next batch");
  invariant(rows <= std::size_t(options_.max_batch) || batch.size() == 1,
            "a batch is no larger than is allowed, unless by a single request");
  invariant(rows <= waiting_, "no more records are taken than wait");
  waiting_ -= rows;
  return batch;
}

EDL_INLINE void batcher::compute(std::vector<std::shared_ptr<request>> const& batch) {
  thread_local example record;  // its memory is reused
  auto const began = clock::now();
  try {
    auto const& by = *batch.front()->by;
    std::size_t rows = 0;
    for (auto const& r : batch) rows += r->query->rows;
    auto at_work = by.take(int(std::max<std::size_t>(rows, 1)));
    std::vector<int> first;
    for (auto const& r : batch) {
      first.push_back(at_work.rows());
      if (began - r->since > options_.timeout) {
        r->failed = too_late(options_.timeout);
        continue;
      }
      question const& q = *r->query;
      for (std::size_t i = 0; i < q.rows && !r->failed; ++i) try {
          to_record(q.inputs, q.rows, i, record);
          at_work.add(record);
        } catch (error const& e) {
          // Records already added for this request stay in the batch, and their outputs are discarded.
          r->failed.emplace(400,
                            q.rows == 1 ? std::string(e.what()) : fmt::format("record {}: {}", i, e.what()));
        }
    }
    at_work.run();
    std::size_t const each = by.output_size();
    invariant(first.size() == batch.size(), "each request has its place in the batch");
    for (std::size_t k = 0; k < batch.size(); ++k) {
      request& r = *batch[k];
      if (r.failed) continue;
      invariant((std::size_t(first[k]) + r.query->rows) * each <= at_work.outputs().size(),
                "the outputs of a request lie within those of its batch");
      auto const part = at_work.outputs().subspan(std::size_t(first[k]) * each, r.query->rows * each);
      r.said.assign(part.begin(), part.end());
    }
    ++batches_;
    records_ += rows;
    double const took =
        std::chrono::duration<double>(clock::now() - began).count() / double(std::max<std::size_t>(rows, 1));
    // Forget a long time only slowly, because the next batch may take as long.
    seconds_ = std::exchange(measured_, true) ? std::max(took, 0.98 * seconds_) : took;
  } catch (std::exception const& e) {
    for (auto const& r : batch)
      if (!r->failed) r->failed.emplace(500, e.what());
  }
}

}  // namespace edl::serve
