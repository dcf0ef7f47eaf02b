// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>

#include "edl/app/serving.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/base/http/credentials.hpp"
#include "edl/compute/tokens/chat.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/names.hpp"
#include "edl/job/serve/service.hpp"
#include "edl/job/serve/text_service.hpp"

namespace edl::app {
namespace detail {

/// Longer than load balancers and clients keep connections (Google's 600 s), so that they close them first: a
/// request that a client sends while the server closes is lost.
inline constexpr std::chrono::seconds idle_limit{620};
/// A search there is a request that costs money.
inline constexpr std::chrono::seconds bucket_interval{10};

}  // namespace detail

EDL_INLINE std::vector<cli::flag> serving_flags(std::string const& program) {
  using enum cli::flag::value_type;
  static constexpr auto all_kernels = names(kernels{});
  auto const number_flag = [](std::string name, std::string fallback, std::string help, std::int64_t least,
                              std::uint64_t most) {
    return cli::flag{.name = std::move(name),
                     .fallback = std::move(fallback),
                     .help = std::move(help),
                     .type = whole,
                     .least = least,
                     .most = most};
  };
  return {
      {.name = "model_path",
       .help = "a job's directory of checkpoints, to serve the newest one; one checkpoint; or an exported "
               "model; each may be s3://BUCKET/KEY",
       .aliases = {"checkpoint_dir", "checkpoint"},
       .needed = true},
      {.name = "model_name", .fallback = program, .help = "name of the model in URLs"},
      {.name = "host", .fallback = "127.0.0.1", .help = "address to listen on; 0.0.0.0: all interfaces"},
      number_flag("port", "8080", "port; 0: any free one", 0, 65535),
      {.name = "tls_certificate", .help = "PEM file with a certificate and its chain; without it: HTTP"},
      {.name = "tls_key", .help = "PEM file with its private key"},
      {.name = "token_file",
       .help = "file with the token, as its first line, that 'Authorization: Bearer' must carry; probes need "
               "none"},
      number_flag("num_threads", "1", "threads that compute a batch", 1, 1024),
      {.name = "kernels",
       .fallback = "fixed",
       .help = "choice of kernels; measured: the fastest on this machine, so that the last bits of a reply "
               "may differ from start to start; direct: none that multiplies less and rounds more",
       .choices = {all_kernels.begin(), all_kernels.end()}},
      {.name = "precision",
       .fallback = "float32",
       .help = "precision of products; bfloat16: with factors rounded to 8 bits; int8: with factors "
               "quantised to 8 bits",
       .choices = {"float32", "bfloat16", "int8"}},
      number_flag("max_batch", "64", "records in a batch, and in a request", 1, 1 << 16),
      number_flag("max_wait_us", "0",
                  "microseconds that a record waits for others; 0: the waiting records form the next batch",
                  0, 10'000'000),
      number_flag("max_queue", "4096", "most records that may wait; the reply to more is 429", 1, 1 << 24),
      number_flag("max_tokens", "4096", "most tokens of a text that a language model generates", 1, 1 << 24),
      {.name = "tokenizer",
       .help = "of a language model: a tokenizer.json or tokenizer.model, which says what its ids stand for; "
               "without it ids are bytes"},
      {.name = "chat_style",
       .help = "how a language model was trained to chat; without it as the chat_template in the folder of "
               "--tokenizer tells, if it is one of these",
       .choices = {"", "chatml", "llama3"}},
      number_flag("num_sequences", "8",
                  "texts that a language model generates side by side: keys and values of so many are in "
                  "memory; 0: it generates none",
                  0, 4096),
      number_flag("max_body_mib", "16", "MiB of a request, at most", 1, 1024),
      number_flag("max_connections", "1024", "most clients at once; the reply to more is 503", 1, 1 << 16),
      number_flag("timeout_ms", "30000", "milliseconds that a request may wait before the reply is 503", 1,
                  86'400'000),
      number_flag("poll_interval_ms", "250",
                  "milliseconds between two searches for a newer model; 0: never; in a bucket 10000, unless "
                  "the flag is given",
                  0, 86'400'000),
      number_flag("keep_versions", "1",
                  "newest versions that requests may name, including the current one; each is a whole model "
                  "in memory",
                  1, 64),
      number_flag("drain_delay_ms", "5000",
                  "milliseconds to go on serving after SIGTERM, while the server reports that it is not "
                  "ready and closes each connection after its next reply",
                  0, 86'400'000),
      number_flag("drain_ms", "20000", "milliseconds after that to finish pending replies", 0, 86'400'000),
      {.name = "set",
       .help = "hyperparameters NAME=VALUE of a model that does not list its own",
       .repeats = true}};
}

EDL_INLINE serving serving_of(cli::command_line const& l) {
  auto const whole = [&](char const* name) { return l.number(name); };
  auto const ms = [&](char const* name) { return std::chrono::milliseconds(whole(name)); };
  serving s{
      .model_name = l.text("model_name"),
      .set = fmt::format("{}", fmt::join(l.all("set"), ";")),
      .model = {.path = l.text("model_path"),
                .predicting = {.threads = int(whole("num_threads")),
                               .kernels = *value_of<kernels>(l.text("kernels")),
                               .precision = *value_of<precision>(l.text("precision"))},
                .max_batch = int(whole("max_batch")),
                .interval = bucket::names_objects(l.text("model_path")) && !l.given("poll_interval_ms")
                                ? detail::bucket_interval
                                : ms("poll_interval_ms"),
                .keep = int(whole("keep_versions")),
                .wait = true},
      .batching = {.max_batch = int(whole("max_batch")),
                   .max_wait = std::chrono::microseconds(whole("max_wait_us")),
                   .max_queue = std::size_t(whole("max_queue")),
                   .timeout = ms("timeout_ms")},
      .tokenizer = l.text("tokenizer"),
      .chat_style = l.text("chat_style"),
      .texts = {.sequences = int(whole("num_sequences")),
                .max_queue = std::size_t(whole("max_queue")),
                .timeout = ms("timeout_ms"),
                .max_tokens = int(whole("max_tokens"))},
      .listening = {.host = l.text("host"),
                    .port = std::uint16_t(whole("port")),
                    .token_file = l.text("token_file"),
                    .certificate = l.text("tls_certificate"),
                    .key = l.text("tls_key"),
                    .bounds = {.body = std::size_t(whole("max_body_mib")) << 20,
                               .bodies = std::size_t(std::max<std::int64_t>(16 * whole("max_body_mib"), 64))
                                         << 20,
                               .connections = std::size_t(whole("max_connections")),
                               .idle = detail::idle_limit}},
      .drain_delay = ms("drain_delay_ms"),
      .drain = ms("drain_ms")};
  supported({.kernels = s.model.predicting.kernels, .precision = s.model.predicting.precision});
  if (!s.listening.token_file.empty()) try {
      http::token_in(s.listening.token_file);
    } catch (error const& e) {
      throw usage_error(e.what());
    }
  if (s.batching.max_queue < std::size_t(s.batching.max_batch))
    throw usage_error(fmt::format(
        "--max_queue={} is less than --max_batch={}: a request of a full batch would always be rejected",
        s.batching.max_queue, s.batching.max_batch));
  if (s.batching.max_wait >= s.batching.timeout)
    throw usage_error(
        fmt::format("--max_wait_us={} is not less than --timeout_ms={}: the reply to a record that waits for "
                    "a batch would come too late",
                    s.batching.max_wait.count(), s.batching.timeout.count()));
  if (s.listening.certificate.empty() != s.listening.key.empty())
    throw usage_error("--tls_certificate and --tls_key belong together: give both, or none");
  return s;
}

namespace detail {

/// Raises the limit of descriptors to what this many clients need, as far as the system allows.
inline void allow_clients(std::size_t most) {
  ::rlimit now{};
  if (::getrlimit(RLIMIT_NOFILE, &now) != 0) return;
  rlim_t const wanted = std::min<rlim_t>(now.rlim_max, 2 * most + 256);
  if (now.rlim_cur >= wanted) return;
  now.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &now);
}

/// The style of chats, if it is known.
inline std::optional<tokens::chat_style> chats_of(serving const& what, logger const& log) {
  bool const guessed = what.chat_style.empty() && !what.tokenizer.empty();
  try {
    std::string const name = guessed ? tokens::chat_style_beside(what.tokenizer) : what.chat_style;
    auto const style = tokens::chat_style_of(name);
    if (style && !what.tokenizer.empty())
      tokens::check_chat_style(*style, tokens::tokenizer::from_file(what.tokenizer));
    if (style)
      log.info(fmt::format("chats are in the style {} (--chat_style)", name));
    else if (guessed)
      log.info("chats are not answered (/v1/chat/completions): give --chat_style");
    return style;
  } catch (error const& e) {
    if (!guessed) throw;
    log.warning(fmt::format("chats are not answered (/v1/chat/completions): {}", e.what()));
    return std::nullopt;
  }
}

}  // namespace detail

EDL_INLINE int run_serving(train::program const& p, serving const& what, signals const& stop) {
  ::signal(SIGPIPE, SIG_IGN);  // the reader of its log may be gone
  detail::allow_clients(what.listening.bounds.connections);
  logger const log(severity::info, "serve", log_target{.detailed = false});
  net::node node({.job = "serve", .secret = net::token::random(), .log = log});
  serve::followed_model::options following = what.model;
  following.predicting.log = logger(severity::warning, "serve", log_target{.detailed = false});
  // Signals must work while a large model loads and warms up, which may take long.
  std::optional<early_stop> early;
  early.emplace(stop, log, [](int) { return 0; }, "it serves");
  serve::followed_model model(p, following, log);
  serve::service service(node, what.model_name, model, what.batching);
  std::optional<serve::text_engine> engine;
  std::optional<serve::text_service> texts;
  std::vector<http::route> routes = service.routes();
  if (what.texts.sequences > 0 && p.make_decoder) try {
      serve::text_engine::source const from{
          .now = [&model]() -> std::shared_ptr<void const> { return model.now(); },
          .open =
              [&p, &what, &model] {
                generator_options o{.predicting = what.model.predicting,
                                    .sequences = what.texts.sequences,
                                    .tokenizer = what.tokenizer};
                o.predicting.log = logger(severity::warning, "serve", log_target{.detailed = false});
                return std::make_unique<generation_session>(p, model.now()->path(), o);
              }};
      engine.emplace(node, from, what.texts, log);
      std::optional<tokens::chat_style> const chats = detail::chats_of(what, log);
      texts.emplace(node, what.model_name, *engine, chats);
      for (http::route& r : texts->routes()) routes.push_back(service.counted(std::move(r)));
      service.measures([&of = *engine](metric_registry& to) {
        to.set("edl_serve_waiting_texts", double(of.waiting()));
        to.set("edl_serve_running_texts", double(of.running()));
        to.set("edl_serve_texts_total", double(of.texts()));
        to.set("edl_serve_tokens_total", double(of.tokens()));
      });
    } catch (usage_error const& e) {
      if (!what.tokenizer.empty()) throw;
      log.info(fmt::format("texts are not completed (/v1/completions): {}", e.what()));
    }
  http::server_options listening = what.listening;
  listening.log = log;
  http::server server(node, listening, std::move(routes));
  if (auto const now = model.now())
    log.info(fmt::format("serves version {} of {} as '{}' at {}", now->version(), now->path(),
                         what.model_name, server.address()));
  else
    log.info(
        fmt::format("waits for a model, and is not ready, as '{}' at {}", what.model_name, server.address()));
  early.reset();
  std::optional<int> signal;
  while (!signal) signal = stop.wait(std::chrono::hours(1));
  service.drain();
  server.part();
  // Load balancers learn later than this process that it ends. A person at the terminal does not route
  // requests.
  if (*signal == SIGTERM && what.drain_delay.count() > 0) {
    log.info(
        fmt::format("shutting down: serving for {:.3g} s more, so that load balancers notice that this "
                    "server is not ready",
                    std::chrono::duration<double>(what.drain_delay).count()));
    stop.wait(what.drain_delay);  // a second signal ends the wait
  }
  bool const all = server.drain(what.drain);
  log.info(all ? "shut down: all requests have replies" : "shut down: some replies took too long");
  return all ? 0 : 1;
}

}  // namespace edl::app
