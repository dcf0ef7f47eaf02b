// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/post.hpp>
#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"
#include "edl/job/serve/service.hpp"
#include "edl/version.hpp"

namespace edl::serve {
namespace detail {

/// A request body that another thread parses. GCC warns about a local type in a coroutine's frame.
struct elsewhere_read {
  explicit elsewhere_read(asio::any_io_executor on) : done(std::move(on)) {}
  net::event done;
  bool ended = false;
  std::shared_ptr<question const> q{};
  std::exception_ptr failed{};
};

inline constexpr std::size_t much_json = 64 << 10;    // bytes; parsing this takes a processor about 10 ms
inline constexpr std::size_t most_unread = 16 << 20;  // bytes of JSON waiting, if of several bodies

inline void tell_model(http::response& r, prediction_session const& by, double lag) {
  r.headers.emplace_back("Edl-Model-Version", std::to_string(by.version()));
  r.headers.emplace_back("Edl-Model-Lag-Seconds", lag == 0 ? "0.000" : fmt::format("{:.3f}", lag));
}

inline void check_encoding(http::request const& r) {
  if (auto const how = r.field("content-encoding"); !how.empty() && how != "identity")
    throw http::failure(415, "the body is compressed: send it uncompressed");
}

}  // namespace detail

EDL_INLINE service::service(net::node& on, std::string name, followed_model& followed, batcher::options o,
                            runner reader)
    : node_(on),
      name_(std::move(name)),
      model_(followed),
      options_(o),
      batcher_(on, o),
      reader_(reader ? std::move(reader)
                     : [this](std::function<void()> work) { asio::post(thread_, std::move(work)); }) {
  using enum metric_type;
  numbers_.describe("edl_serve_requests_total", counter,
                    "Requests for predictions, by the status code of their replies.");
  numbers_.describe("edl_serve_request_seconds", histogram, "Time that requests spent in this process.",
                    {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5});
  numbers_.describe("edl_serve_records_total", counter, "Predicted records.");
  numbers_.describe("edl_serve_batches_total", counter, "Computed batches.");
  numbers_.describe("edl_serve_waiting_records", gauge, "Records waiting for a batch.");
  numbers_.describe("edl_serve_model_version", gauge, "Version of the current model.");
  numbers_.describe("edl_serve_lag_seconds", gauge,
                    "Time since a newer model than the current one appeared.");
  numbers_.describe("edl_serve_waiting_texts", gauge, "Texts of a language model that wait to begin.");
  numbers_.describe("edl_serve_running_texts", gauge, "Texts that are generated now.");
  numbers_.describe("edl_serve_texts_total", counter, "Texts that have been generated.");
  numbers_.describe("edl_serve_tokens_total", counter, "Tokens of these texts.");
  numbers_.describe("edl_serve_models_total", counter, "Attempts to replace the current model, by result.");
}

EDL_INLINE service::known_model& service::known(model const& m) {
  for (known_model& k : known_)
    if (!k.of.owner_before(m) && !m.owner_before(k.of)) return k;
  std::erase_if(known_, [](known_model const& k) { return k.of.expired(); });
  return known_.emplace_back(
      known_model{m,
                  {name_, m->version(), m->inputs(), answers_of(m->outputs(), m->classes()), m->classes(),
                   m->inputs_unknown().empty()},
                  {}});
}

EDL_INLINE std::vector<std::string> service::versions() const {
  std::vector<std::string> all;
  for (model const& m : model_.kept()) all.push_back(std::to_string(m->version()));
  return all;
}

EDL_INLINE service::model service::model_of(std::vector<std::string> const& arguments) const {
  std::string const& name = arguments.at(0);
  if (name != name_)
    throw http::failure(404, fmt::format("no model '{}': this server has '{}'", name, name_));
  auto const now = model_.now();
  if (!now) throw http::failure(503, model_.missing(), {{"Retry-After", "1"}});
  if (arguments.size() < 2) return now;
  std::string const& version = arguments[1];
  for (model const& m : model_.kept())
    if (std::to_string(m->version()) == version) return m;
  throw http::failure(404,
                      fmt::format("no version {}: this server has {}", version, fmt::join(versions(), ", ")));
}

EDL_INLINE asio::awaitable<std::shared_ptr<question const>> service::read_elsewhere(
    std::size_t bytes, std::function<std::shared_ptr<question const>()> read) {
  if (*unread_ > 0 && *unread_ + bytes > detail::most_unread)
    throw http::failure(429, fmt::format("{} bytes of JSON are already waiting to be parsed", *unread_),
                        {{"Retry-After", "1"}});
  *unread_ += bytes;
  auto const r = std::make_shared<detail::elsewhere_read>(node_.executor());
  reader_([r, read = std::move(read), &node = node_, bytes, unread = unread_, timeout = options_.timeout,
           since = std::chrono::steady_clock::now()] {
    try {
      if (std::chrono::steady_clock::now() - since > timeout) throw too_late(timeout);
      r->q = read();
    } catch (...) {
      r->failed = std::current_exception();
    }
    node.post([r, bytes, unread] {
      invariant(*unread >= bytes, "no more bytes are parsed than are waiting");
      *unread -= bytes;
      invariant(!r->ended, "a request is parsed once");
      r->ended = true;
      r->done.notify_here();
    });
  });
  while (!r->ended) co_await r->done.wait();
  if (r->failed) std::rethrow_exception(r->failed);
  invariant(r->q != nullptr, "a parsed request exists");
  co_return r->q;
}

EDL_INLINE asio::awaitable<http::response> service::infer(http::request& r) {
  detail::check_encoding(r);
  model const by = model_of(r.arguments);
  std::optional<std::size_t> header;
  if (auto const text = r.field("inference-header-content-length"); !text.empty()) {
    header = number_from<std::size_t>(text);
    if (!header) throw http::failure(400, "Inference-Header-Content-Length is not a number");
  }
  std::size_t const most(options_.max_batch);
  std::shared_ptr<question const> q;
  std::size_t const bytes = std::min(header.value_or(r.body.size()), r.body.size());
  if (bytes <= detail::much_json) {
    known_model& k = known(by);
    q = read_inference(std::move(r.body), header, k.face, most, k.last);
  } else {  // GCC 12 destroys a lambda made in a co_await twice
    std::function<std::shared_ptr<question const>()> read = [body = std::move(r.body), header,
                                                             of = known(by).face, most]() mutable {
      inference_head once;
      return read_inference(std::move(body), header, of, most, once);
    };
    q = co_await read_elsewhere(bytes, std::move(read));
  }
  std::vector<float> const outputs = co_await batcher_.predict(q, by);
  http::response answer = write_inference(*q, known(by).face, outputs);
  detail::tell_model(answer, *by, model_.lag(by.get()));
  co_return answer;
}

EDL_INLINE asio::awaitable<http::response> service::predict(http::request& r) {
  detail::check_encoding(r);
  model const by = model_of(r.arguments);
  std::size_t const most(options_.max_batch);
  std::shared_ptr<question const> q;
  std::size_t const bytes = r.body.size();
  if (bytes <= detail::much_json) {
    q = read_predict(r.body, known(by).face, most);
  } else {
    std::function<std::shared_ptr<question const>()> read = [body = std::move(r.body), of = known(by).face,
                                                             most] { return read_predict(body, of, most); };
    q = co_await read_elsewhere(bytes, std::move(read));
  }
  std::vector<float> const outputs = co_await batcher_.predict(q, by);
  http::response answer = write_predict(*q, known(by).face, outputs);
  detail::tell_model(answer, *by, model_.lag(by.get()));
  co_return answer;
}

EDL_INLINE void service::count(int status) {
  numbers_.add("edl_serve_requests_total", "code=\"" + std::to_string(status) + '"');
}

EDL_INLINE http::handler service::counted(http::handler serve) {
  return [this, serve = std::move(serve)](http::request& r) -> asio::awaitable<http::response> {
    auto const began = std::chrono::steady_clock::now();
    http::response answer;
    try {
      answer = co_await serve(r);
    } catch (http::failure const& f) {
      answer = http::to_response(f);
    }
    count(answer.status);
    numbers_.observe("edl_serve_request_seconds",
                     std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    co_return answer;
  };
}

EDL_INLINE http::route service::counted(http::route of) {
  of.serve = counted(std::move(of.serve));
  of.refused = [this](int code) { count(code); };
  return of;
}

EDL_INLINE http::response service::metrics(http::request const& r) {
  if (more_numbers_) more_numbers_(numbers_);
  numbers_.set("edl_serve_records_total", double(batcher_.records()));
  numbers_.set("edl_serve_batches_total", double(batcher_.batches()));
  numbers_.set("edl_serve_waiting_records", double(batcher_.waiting()));
  if (auto const now = model_.now()) numbers_.set("edl_serve_model_version", double(now->version()));
  numbers_.set("edl_serve_lag_seconds", model_.lag());
  numbers_.set("edl_serve_models_total", double(model_.loaded()), "result=\"served\"");
  numbers_.set("edl_serve_models_total", double(model_.failed()), "result=\"failed\"");
  return http::metrics_response(r, numbers_.text());
}

EDL_INLINE std::vector<http::route> service::routes() {
  using http::at_once, http::request, http::response;
  auto const ready = [this](request const& r) -> response {
    bool const of_model = !r.arguments.empty();
    if (of_model) model_of(r.arguments);
    if (draining_) throw http::failure(503, "the server is shutting down");
    if (!model_.now()) throw http::failure(503, model_.missing());
    return {.body = of_model ? nlohmann::json{{"name", name_}, {"ready", true}}.dump() : "{\"ready\":true}"};
  };
  auto const about = [this](auto describe) {
    return at_once([this, describe](request const& r) -> response {
      model const by = model_of(r.arguments);
      response answer{.body = describe(known(by).face)};
      detail::tell_model(answer, *by, model_.lag(by.get()));
      return answer;
    });
  };
  auto const unlabelled = [](std::vector<std::string> const& arguments) {
    throw http::failure(404, fmt::format("no label '{}': leave the label out to get the newest version",
                                         printable(arguments.at(1))));
  };
  auto const labelled = [unlabelled](request const& r) -> response {
    unlabelled(r.arguments);
    return {};
  };
  auto const status = [this](request const& r) -> response {
    model const asked = model_of(r.arguments);
    auto all = nlohmann::json::array();
    for (std::string const& v :
         r.arguments.size() > 1 ? std::vector{std::to_string(asked->version())} : versions())
      all.push_back({{"version", v},
                     {"state", "AVAILABLE"},
                     {"status", {{"error_code", "OK"}, {"error_message", ""}}}});
    return {.body = nlohmann::json{{"model_version_status", all}}.dump()};
  };
  auto const described = [this](model_face const& of) { return metadata(of, versions()); };
  auto const server = [](request const&) -> response {
    return {.body = nlohmann::json{{"name", "edl"},
                                   {"version", package_version},
                                   {"extensions", nlohmann::json::array({"binary_tensor_data"})}}
                        .dump()};
  };
  auto const live = [](request const&) -> response { return {.body = "{\"live\":true}"}; };
  auto const infer_of = counted([this](request& r) { return infer(r); });
  auto const predict_of = counted([this](request& r) { return predict(r); });
  auto const exists = [this](std::vector<std::string> const& arguments) { model_of(arguments); };
  auto const called = [this](std::vector<std::string> const& arguments) {
    bool const method = arguments.back().find(':') != std::string::npos;
    if (method && (arguments.size() > 1 || arguments.front() != name_))
      throw http::failure(404, "of TensorFlow Serving's methods only NAME:predict is supported");
    model_of(arguments);
  };
  auto const refused = [this](int code) { count(code); };
  // The most frequent request comes first.
  return {{"POST", "/v2/models/{}/infer", infer_of, false, exists, refused},
          {"POST", "/v1/models/{}:predict", predict_of, false, exists, refused},
          {"POST", "/v2/models/{}/versions/{}/infer", infer_of, false, exists, refused},
          {"POST", "/v1/models/{}/versions/{}:predict", predict_of, false, exists, refused},
          {"GET", "/v2", at_once(server)},
          {"GET", "/v2/health/live", at_once(live), true},
          {"GET", "/v2/health/ready", at_once(ready), true},
          {"GET", "/v2/models/{}", about(described), false, exists},
          {"GET", "/v2/models/{}/ready", at_once(ready), false, exists},
          {"GET", "/v2/models/{}/versions/{}", about(described), false, exists},
          {"GET", "/v2/models/{}/versions/{}/ready", at_once(ready), false, exists},
          {"GET", "/v1/models/{}", at_once(status), false, called},
          {"GET", "/v1/models/{}/versions/{}", at_once(status), false, called},
          {"GET", "/v1/models/{}/metadata", about(signature), false, exists},
          {"GET", "/v1/models/{}/versions/{}/metadata", about(signature), false, exists},
          {"GET", "/v1/models/{}/labels/{}", at_once(labelled), false, unlabelled},
          {"GET", "/v1/models/{}/labels/{}/metadata", at_once(labelled), false, unlabelled},
          {"GET", "/metrics", at_once([this](request const& r) { return metrics(r); })}};
}

}  // namespace edl::serve
