// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/wall_time.hpp"
#include "edl/job/serve/text_service.hpp"

namespace edl::serve {
namespace detail {

/// The members of a request's object. Each may be taken once; those that nobody takes are errors.
class request_fields {
 public:
  explicit request_fields(std::string const& body) : all_(parse_json(body)) {
    if (all_.is_discarded()) throw http::failure(400, "the body is " + why_no_json(body));
    if (!all_.is_object()) throw http::failure(400, "the body is not an object");
    std::erase_if(all_.get_ref<nlohmann::json::object_t&>(),
                  [](auto const& f) { return f.second.is_null(); });
  }

  /// The member, which is then taken; null if there is none.
  nlohmann::json take(char const* name) {
    auto const at = all_.find(name);
    if (at == all_.end()) return nullptr;
    nlohmann::json value = std::move(*at);
    all_.erase(at);
    return value;
  }
  bool truth(char const* name) {
    auto const value = take(name);
    if (value.is_null()) return false;
    if (!value.is_boolean()) throw wrong(name, "true or false");
    return value.get<bool>();
  }
  std::int64_t whole(char const* name, std::int64_t otherwise, std::int64_t least, std::int64_t most) {
    auto const value = take(name);
    if (value.is_null()) return otherwise;
    bool const good = value.is_number_integer() && (!value.is_number_unsigned() ||
                                                    std::in_range<std::int64_t>(value.get<std::uint64_t>()));
    if (!good || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
      throw wrong(name, fmt::format("a whole number from {} to {}", least, most));
    return value.get<std::int64_t>();
  }
  float number(char const* name, float otherwise) {
    auto const value = take(name);
    if (value.is_null()) return otherwise;
    if (!value.is_number()) throw wrong(name, "a number");
    return value.get<float>();
  }
  /// A text, or a list of up to `most` texts.
  std::vector<std::string> texts(char const* name, std::size_t most) {
    auto const value = take(name);
    std::vector<std::string> all;
    if (value.is_string()) all.push_back(value.get<std::string>());
    if (value.is_array())
      for (auto const& one : value) {
        if (!one.is_string()) throw wrong(name, "a text or a list of texts");
        all.push_back(one.get<std::string>());
      }
    if (!value.is_null() && (all.empty() || all.size() > most))
      throw wrong(name, fmt::format("a text, or a list of 1 to {} texts", most));
    return all;
  }
  /// A field that is not supported: its value has to be the one that changes nothing.
  void only(char const* name, nlohmann::json const& neutral) {
    auto const value = take(name);
    if (!value.is_null() && value != neutral)
      throw http::failure(400, fmt::format("'{}' is not supported: leave it out", name));
  }
  void refuse_others() const {
    if (!all_.empty())
      throw http::failure(400, fmt::format("unknown field '{}'", printable(all_.begin().key(), 64)));
  }
  static http::failure wrong(char const* name, std::string const& what) {
    return http::failure(400, fmt::format("'{}' is not {}", name, what));
  }

 private:
  nlohmann::json all_;
};

inline constexpr std::chrono::milliseconds look_at_client{250};

inline char const* finish_reason(text_end why) { return why == text_end::max_tokens ? "length" : "stop"; }

inline std::string to_json(nlohmann::json const& of) {
  return of.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace detail

/// A request's texts. Whoever waits for them lets them go at the end, however it comes.
struct text_service::question {
  std::vector<std::shared_ptr<asked_text>> texts;
  std::vector<std::string> prompts;  // of each text, if it is said again; otherwise empty
  bool streams = false;
  nlohmann::json head;  // id, object, created, model

  question() = default;
  question(question const&) = delete;
  ~question() {
    for (auto const& t : texts) t->gone = true;
  }

  nlohmann::json choice(std::size_t index, std::string text, nlohmann::json reason) const {
    return {{"text", std::move(text)},
            {"index", index},
            {"logprobs", nullptr},
            {"finish_reason", std::move(reason)}};
  }
  nlohmann::json usage() const {
    std::int64_t prompt = 0, made = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      made += texts[i]->result->tokens;
      if (i == 0 || texts[i]->prompt != texts[i - 1]->prompt) prompt += texts[i]->result->prompt_tokens;
    }
    return {{"prompt_tokens", prompt}, {"completion_tokens", made}, {"total_tokens", prompt + made}};
  }
};

EDL_INLINE text_service::text_service(std::string name, text_engine& engine)
    : name_(std::move(name)), engine_(engine) {}

EDL_INLINE text_service::asked text_service::read(std::string const& body) const {
  detail::request_fields f(body);
  auto const q = std::make_shared<question>();
  if (auto const model = f.take("model"); !model.is_null() && model != name_)
    throw http::failure(404, fmt::format("no model '{}': this server has '{}'",
                                         printable(detail::to_json(model), 64), name_));
  auto const prompts = f.texts("prompt", most_texts);
  if (prompts.empty()) throw http::failure(400, "the request has no 'prompt'");
  generation_options o;
  o.max_tokens = int(f.whole("max_tokens", 16, 1, 1 << 24));
  o.sampling.temperature = f.number("temperature", o.sampling.temperature);
  o.sampling.top_p = f.number("top_p", o.sampling.top_p);
  o.sampling.min_p = f.number("min_p", o.sampling.min_p);
  o.sampling.repetition_penalty = f.number("repetition_penalty", o.sampling.repetition_penalty);
  o.sampling.top_k = int(f.whole("top_k", 0, -1, 1 << 24));
  if (o.sampling.top_k < 0) o.sampling.top_k = 0;  // other servers write "all" so
  std::int64_t const unknown = std::random_device{}();
  o.sampling.seed = std::uint64_t(f.whole("seed", unknown, std::numeric_limits<std::int64_t>::min(),
                                          std::numeric_limits<std::int64_t>::max()));
  o.stop = f.texts("stop", 16);
  std::int64_t const each = f.whole("n", 1, 1, most_texts);
  q->streams = f.truth("stream");
  bool const echo = f.truth("echo");
  f.take("user");
  f.take("stream_options");  // the numbers of tokens come at the end of a stream in any case
  f.only("best_of", 1);
  f.only("logprobs", nullptr);
  f.only("suffix", "");
  f.only("presence_penalty", 0);
  f.only("frequency_penalty", 0);
  f.only("logit_bias", nlohmann::json::object());
  f.refuse_others();
  try {
    o.sampling.check();
  } catch (usage_error const& e) {
    throw http::failure(400, e.what());
  }
  if (prompts.size() * std::size_t(each) > most_texts)
    throw http::failure(400, fmt::format("{} texts are more than a request may ask for: {}",
                                         prompts.size() * std::size_t(each), most_texts));
  q->head = {{"id", fmt::format("cmpl-{:016x}", std::random_device{}() | std::uint64_t(unknown) << 32)},
             {"object", "text_completion"},
             {"created", std::int64_t(wall_seconds())},
             {"model", name_}};
  for (std::string const& prompt : prompts)
    for (std::int64_t i = 0; i < each; ++i) {
      generation_options own = o;
      own.sampling.seed += std::uint64_t(i);
      q->texts.push_back(engine_.ask(prompt, std::move(own)));
      q->prompts.push_back(echo ? prompt : std::string());
    }
  return q;
}

EDL_INLINE asio::awaitable<http::response> text_service::complete(http::request& r) {
  asked const q = read(r.body);
  // A text that cannot begin is an error of the request, with a status: so a stream begins with its first
  // piece.
  auto look = clock::now() + detail::look_at_client;
  for (auto const& t : q->texts)
    while (!t->ended() && (!q->streams || t->unread.empty())) {
      co_await t->changed.wait_until(look);
      if (clock::now() < look) continue;
      if (r.left && r.left()) throw http::failure(499, "the client has left");
      look = clock::now() + detail::look_at_client;
    }
  for (auto const& t : q->texts)
    if (t->failed) throw *t->failed;
  http::response answer;
  if (q->streams) {
    answer.type = "text/event-stream";
    answer.stream = [q](http::stream_writer& to) { return write_events(q, to); };
    co_return answer;
  }
  nlohmann::json body = q->head;
  body["choices"] = nlohmann::json::array();
  for (std::size_t i = 0; i < q->texts.size(); ++i) {
    generated_text const& made = *q->texts[i]->result;
    body["choices"].push_back(q->choice(i, q->prompts[i] + made.text, detail::finish_reason(made.end)));
  }
  body["usage"] = q->usage();
  answer.body = detail::to_json(body);
  co_return answer;
}

EDL_INLINE asio::awaitable<void> text_service::write_events(asked q, http::stream_writer& to) {
  std::vector<bool> said(q->texts.size(), false);
  for (std::size_t left = q->texts.size(); left > 0;) {
    std::string events;
    auto const event = [&](nlohmann::json const& choice) {
      nlohmann::json one = q->head;
      one["choices"] = nlohmann::json::array({choice});
      events += "data: " + detail::to_json(one) + "\n\n";
    };
    asked_text* waits_for = nullptr;
    for (std::size_t i = 0; i < q->texts.size(); ++i) {
      asked_text& t = *q->texts[i];
      if (said[i]) continue;
      std::string piece = std::exchange(q->prompts[i], {}) + std::exchange(t.unread, {});
      if (!piece.empty()) event(q->choice(i, std::move(piece), nullptr));
      if (t.failed) {
        nlohmann::json one;
        one["error"] = t.failed->what();
        events += "data: " + detail::to_json(one) + "\n\n";
        co_await to.write(events);
        co_return;
      }
      if (t.result) {
        event(q->choice(i, "", detail::finish_reason(t.result->end)));
        said[i] = true;
        --left;
      } else {
        waits_for = &t;
      }
    }
    if (left == 0) {
      nlohmann::json last = q->head;
      last["choices"] = nlohmann::json::array();
      last["usage"] = q->usage();
      events += "data: " + detail::to_json(last) + "\n\ndata: [DONE]\n\n";
    }
    if (!events.empty())
      co_await to.write(events);
    else
      co_await waits_for->changed.wait();
  }
}

EDL_INLINE std::vector<http::route> text_service::routes() {
  auto const models = [this](http::request const&) -> http::response {
    nlohmann::json const one{{"id", name_}, {"object", "model"}, {"created", 0}, {"owned_by", "edl"}};
    return {.body = nlohmann::json{{"object", "list"}, {"data", nlohmann::json::array({one})}}.dump()};
  };
  return {{"POST", "/v1/completions", [this](http::request& r) { return complete(r); }},
          {"GET", "/v1/models", http::at_once(models)}};
}

}  // namespace edl::serve
