// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

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
    bool const wrong_kind = !value.is_null() && !value.is_string() && !value.is_array();
    if (wrong_kind || all.size() > most)
      throw wrong(name, fmt::format("a text, or a list of up to {} texts", most));
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

/// A content: a text, or a list of parts that are texts.
inline std::string content_of(nlohmann::json const& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string all;
  bool good = value.is_array() && !value.empty();
  for (auto const& part : value) {
    auto const type = part.is_object() ? part.find("type") : part.end();
    good = good && part.is_object() && type != part.end() && *type == "text" && part.contains("text") &&
           part["text"].is_string();
    if (!good) break;
    all += part["text"].get<std::string>();
  }
  if (!good) throw request_fields::wrong("content", "a text, or a list of parts of the type 'text'");
  return all;
}

/// The messages of a chat as a prompt.
inline std::string prompt_of(nlohmann::json const& messages, std::optional<tokens::chat_style> const& style) {
  if (!style)
    throw http::failure(400, "this server knows no style of chats for its model: start it with --chat_style");
  if (messages.is_null()) throw http::failure(400, "the request has no 'messages'");
  if (!messages.is_array() || messages.empty() || messages.size() > 4096)
    throw request_fields::wrong("messages", "a list of 1 to 4096 messages");
  std::vector<tokens::chat_message> all;
  for (auto const& one : messages) {
    bool const good =
        one.is_object() && one.contains("role") && one["role"].is_string() && one.contains("content");
    if (!good) throw request_fields::wrong("messages", "a list of objects with 'role' and 'content'");
    for (auto const& [key, value] : one.items())
      if (key != "role" && key != "content" && !value.is_null())
        throw http::failure(400, fmt::format("unknown member '{}' of a message", printable(key, 64)));
    all.push_back({one["role"].get<std::string>(), content_of(one["content"])});
  }
  try {
    return tokens::chat_prompt(*style, all);
  } catch (usage_error const& e) {
    throw http::failure(400, e.what());
  }
}

inline char const* finish_reason(text_end why) { return why == text_end::max_tokens ? "length" : "stop"; }

inline std::string to_json(nlohmann::json const& of) {
  return of.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace detail

/// A request's texts. Whoever waits for them lets them go at the end, however it comes.
struct text_service::question {
  std::vector<std::shared_ptr<asked_text>> texts;  // `each` of the first prompt, then of the next one
  std::shared_ptr<net::event> changed;             // of all of them
  std::size_t each = 1;
  bool chats = false, streams = false, echoes = false, tells_usage = false;
  std::function<bool()> left;  // whether the client has
  nlohmann::json head;         // id, object, created, model

  question() = default;
  question(question const&) = delete;
  ~question() {
    for (auto const& t : texts) t->gone = true;
  }

  /// `first`: of a stream's pieces.
  nlohmann::json choice(std::size_t index, std::string text, nlohmann::json reason, bool first = true) const {
    nlohmann::json one;
    if (chats) {
      nlohmann::json& said = one[streams ? "delta" : "message"] = nlohmann::json::object();
      if (first) said["role"] = "assistant";
      if (!streams || !text.empty()) said["content"] = std::move(text);
    } else {
      one["text"] = std::move(text);
    }
    one["index"] = index;
    one["logprobs"] = nullptr;
    one["finish_reason"] = std::move(reason);
    return one;
  }
  nlohmann::json end_of(std::size_t index, std::string text, bool first = true) const {
    generated_text const& made = *texts[index]->result;
    nlohmann::json one = choice(index, std::move(text), detail::finish_reason(made.end), first);
    if (made.forgot) one["forgot"] = true;  // edl's own: the model saw only the last part of the text
    return one;
  }
  nlohmann::json usage() const {
    std::int64_t prompt = 0, made = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      made += texts[i]->result->tokens;
      if (i % each == 0) prompt += texts[i]->result->prompt_tokens;
    }
    return {{"prompt_tokens", prompt}, {"completion_tokens", made}, {"total_tokens", prompt + made}};
  }
  /// An event with a choice; null: with the usage.
  std::string event(nlohmann::json const& choice) const {
    nlohmann::json one = head;
    one["choices"] = nlohmann::json::array();
    if (choice.is_null())
      one["usage"] = usage();
    else
      one["choices"].push_back(choice);
    return "data: " + detail::to_json(one) + "\n\n";
  }
  /// Returns at the next change, or soon. Throws failure if the client has left.
  asio::awaitable<void> wait() {
    auto const now = clock::now();
    if (now >= look_) {
      if (left && left()) throw http::failure(499, "the client has left");
      look_ = now + detail::look_at_client;
    }
    co_await changed->wait_until(look_);
  }

 private:
  time_point look_ = clock::now() + detail::look_at_client;
};

EDL_INLINE text_service::text_service(net::node& on, std::string name, text_engine& engine,
                                      std::optional<tokens::chat_style> chats)
    : node_(on), name_(std::move(name)), engine_(engine), chats_(chats) {}

EDL_INLINE text_service::asked text_service::read(std::string const& body, bool chat) const {
  detail::request_fields f(body);
  auto const q = std::make_shared<question>();
  if (auto const model = f.take("model"); !model.is_null() && model != name_)
    throw http::failure(404, fmt::format("no model '{}': this server has '{}'",
                                         printable(detail::to_json(model), 64), name_));
  q->chats = chat;
  std::vector<std::string> prompts;
  if (chat)
    prompts.push_back(detail::prompt_of(f.take("messages"), chats_));
  else
    prompts = f.texts("prompt", most_texts);
  if (prompts.empty()) throw http::failure(400, "the request has no 'prompt'");
  for (std::string const& prompt : prompts)
    if (prompt.size() > most_prompt)
      throw http::failure(
          400, fmt::format("a prompt has {} bytes, and at most {} are taken", prompt.size(), most_prompt));
  generation_options o;
  // A chat's answer is as long as its model makes it.
  auto const most = f.whole("max_tokens", chat ? engine_.max_tokens() : 16, 1, engine_.max_tokens());
  o.max_tokens = int(chat ? f.whole("max_completion_tokens", most, 1, most) : most);
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
  for (std::string const& text : o.stop)
    if (text.empty() || text.size() > most_stop)
      throw http::failure(
          400, fmt::format("a text of 'stop' has {} bytes: it may have 1 to {}", text.size(), most_stop));
  if (chat) o.stop.emplace_back(chats_->end);
  q->each = std::size_t(f.whole("n", 1, 1, most_texts));
  q->streams = f.truth("stream");
  q->echoes = !chat && f.truth("echo");
  if (auto const options = f.take("stream_options"); !options.is_null()) {
    bool const good = options.is_object() && options.size() == 1 && options.contains("include_usage") &&
                      options["include_usage"].is_boolean();
    if (!good) throw http::failure(400, "'stream_options' is not {\"include_usage\": true} or false");
    q->tells_usage = options["include_usage"].get<bool>();
  }
  f.take("user");
  if (chat) {
    f.only("logprobs", false);
    f.only("top_logprobs", 0);
    f.only("tools", nlohmann::json::array());
    f.only("tool_choice", "none");
    f.only("response_format", {{"type", "text"}});
  } else {
    f.only("best_of", 1);
    f.only("logprobs", nullptr);
    f.only("suffix", "");
  }
  f.only("presence_penalty", 0);
  f.only("frequency_penalty", 0);
  f.only("logit_bias", nlohmann::json::object());
  f.refuse_others();
  try {
    o.sampling.check();
  } catch (usage_error const& e) {
    throw http::failure(400, e.what());
  }
  if (prompts.size() * q->each > most_texts)
    throw http::failure(400, fmt::format("{} texts are more than a request may ask for: {}",
                                         prompts.size() * q->each, most_texts));
  q->head = {{"id", fmt::format("{}-{:016x}", chat ? "chatcmpl" : "cmpl",
                                std::random_device{}() | std::uint64_t(unknown) << 32)},
             {"object", !chat        ? "text_completion"
                        : q->streams ? "chat.completion.chunk"
                                     : "chat.completion"},
             {"created", std::int64_t(wall_seconds())},
             {"model", name_}};
  q->changed = std::make_shared<net::event>(node_.executor());
  for (std::string const& prompt : prompts) {
    auto const shared = std::make_shared<std::string const>(prompt);
    for (std::size_t i = 0; i < q->each; ++i) {
      auto const t = std::make_shared<asked_text>();
      t->prompt = shared;
      t->options = o;
      t->options.sampling.seed += q->texts.size();
      t->streams = q->streams;
      t->changed = q->changed;
      q->texts.push_back(t);
    }
  }
  engine_.ask(q->texts);
  return q;
}

EDL_INLINE asio::awaitable<http::response> text_service::complete(http::request& r, bool chat) {
  asked const q = read(r.body, chat);
  q->left = r.left;
  // A text that cannot begin is an error of the request, with a status: so a stream begins with its first
  // piece.
  for (;;) {
    bool all = true, any = false;
    for (auto const& t : q->texts) {
      if (t->failed) throw *t->failed;
      all = all && t->ended();
      any = any || t->ended() || !t->unread.empty();
    }
    if (q->streams ? any : all) break;
    co_await q->wait();
  }
  http::response answer;
  if (q->streams) {
    answer.type = "text/event-stream";
    answer.stream = [q](http::stream_writer& to) { return write_events(q, to); };
    answer.ends = true;
    co_return answer;
  }
  nlohmann::json body = q->head;
  body["choices"] = nlohmann::json::array();
  for (std::size_t i = 0; i < q->texts.size(); ++i)
    body["choices"].push_back(
        q->end_of(i, (q->echoes ? *q->texts[i]->prompt : std::string()) + q->texts[i]->result->text));
  body["usage"] = q->usage();
  answer.body = detail::to_json(body);
  co_return answer;
}

EDL_INLINE asio::awaitable<void> text_service::write_events(asked q, http::stream_writer& to) {
  std::vector<bool> echoed(q->texts.size(), !q->echoes), said(q->texts.size(), false), begun = said;
  for (std::size_t left = q->texts.size(); left > 0;) {
    std::string events;
    bool failed = false;
    for (std::size_t i = 0; i < q->texts.size() && !failed; ++i) {
      asked_text& t = *q->texts[i];
      if (said[i]) continue;
      std::string piece = std::exchange(t.unread, {});
      if ((!piece.empty() || t.result) && !echoed[i]) {
        piece.insert(0, *t.prompt);
        echoed[i] = true;
      }
      if (!piece.empty()) {
        events += q->event(q->choice(i, std::move(piece), nullptr, !begun[i]));
        begun[i] = true;
      }
      if (t.failed) {
        nlohmann::json one;
        one["error"] = t.failed->what();
        events += "data: " + detail::to_json(one) + "\n\n";
        failed = true;
      } else if (t.result) {
        events += q->event(q->end_of(i, "", !begun[i]));
        said[i] = true;
        --left;
      }
    }
    if (left == 0 && q->tells_usage) events += q->event(nullptr);
    if (left == 0) events += "data: [DONE]\n\n";
    if (!events.empty()) co_await to.write(events);
    if (failed) co_return;
    if (events.empty()) co_await q->wait();
  }
}

EDL_INLINE std::vector<http::route> text_service::routes() {
  auto const models = [this](http::request const&) -> http::response {
    nlohmann::json const one{{"id", name_}, {"object", "model"}, {"created", 0}, {"owned_by", "edl"}};
    return {.body = nlohmann::json{{"object", "list"}, {"data", nlohmann::json::array({one})}}.dump()};
  };
  return {{"POST", "/v1/completions", [this](http::request& r) { return complete(r, false); }},
          {"POST", "/v1/chat/completions", [this](http::request& r) { return complete(r, true); }},
          {"GET", "/v1/models", http::at_once(models)}};
}

}  // namespace edl::serve
