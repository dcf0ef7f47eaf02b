// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "edl/app/generating.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/log.hpp"
#include "edl/core/names.hpp"

namespace edl::app {
namespace detail {

constexpr std::array<std::string_view, 3> names(text_end) { return {"stop", "max_tokens", "caller"}; }

/// Whole texts, or a line of JSON for each.
inline void print_texts(generating const& what, std::vector<generated_text> const& all) {
  for (generated_text const& t : all)
    if (what.as_json)
      fmt::print("{}\n", nlohmann::json{{"text", t.text},
                                        {"prompt_tokens", t.prompt_tokens},
                                        {"tokens", t.tokens},
                                        {"forgot", t.forgot},
                                        {"end", names(t.end)[std::size_t(t.end)]}}
                             .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    else
      fmt::print("{}{}\n{}", what.prompt, t.text, &t == &all.back() ? "" : "---------------\n");
}

}  // namespace detail

EDL_INLINE std::vector<cli::flag> generating_flags() {
  using enum cli::flag::value_type;
  static constexpr auto all_kernels = names(kernels{});
  generation_options const o;
  auto const number_flag = [](std::string name, auto fallback, std::string help, double lowest,
                              double highest) {
    return cli::flag{.name = std::move(name),
                     .fallback = fmt::format("{}", fallback),
                     .help = std::move(help),
                     .type = number,
                     .lowest = lowest,
                     .highest = highest};
  };
  return {
      {.name = "model_path",
       .help = "the trained model: a job's directory of checkpoints, one checkpoint, or an exported "
               "model; each may be s3://BUCKET/KEY",
       .aliases = {"checkpoint_dir", "checkpoint", "checkpoint_dir_for_init"},
       .needed = true},
      {.name = "prompt", .help = "the text to continue; without it the model begins a text"},
      {.name = "tokenizer",
       .help =
           "a tokenizer.json or tokenizer.model, which says what the model's ids stand for; without it ids "
           "are bytes"},
      {.name = "max_tokens",
       .fallback = fmt::format("{}", o.max_tokens),
       .help = "most tokens of a text",
       .type = whole,
       .least = 1,
       .most = 1 << 24},
      number_flag("temperature", o.sampling.temperature,
                  "above 1: more varied texts; 0: always the likeliest token", 0, 100),
      {.name = "top_k",
       .fallback = "0",
       .help = "choose among so many of the likeliest tokens; 0: among all",
       .type = whole,
       .least = 0,
       .most = 1 << 24},
      {.name = "top_p",
       .fallback = "1",
       .help = "choose among the likeliest tokens that together have this probability",
       .type = share},
      number_flag("min_p", o.sampling.min_p,
                  "choose among tokens with at least this share of the likeliest one's probability", 0, 1),
      number_flag("repetition_penalty", o.sampling.repetition_penalty,
                  "above 1: less of tokens that the text already has", 0.01, 100),
      {.name = "seed",
       .fallback = "1",
       .help = "of the choices: the same seed gives the same text",
       .type = whole,
       .least = 0},
      {.name = "stop", .help = "a text before which the generated one ends", .repeats = true},
      {.name = "num_texts",
       .fallback = "1",
       .help = "texts to generate, with seeds from --seed on",
       .type = whole,
       .least = 1,
       .most = 10'000},
      {.name = "num_sequences",
       .fallback = "8",
       .help = "texts to compute side by side: keys and values of so many are in memory",
       .type = whole,
       .least = 1,
       .most = 4096},
      {.name = "output_format",
       .fallback = "text",
       .help = "json: a line for each text, with its numbers of tokens and why it ended",
       .choices = {"text", "json"}},
      {.name = "num_threads",
       .fallback = "1",
       .help = "threads that compute",
       .type = whole,
       .least = 1,
       .most = 1024},
      {.name = "kernels",
       .fallback = "fixed",
       .help = "choice of kernels; measured: the fastest on this machine; direct: none that multiplies less "
               "and rounds more",
       .choices = {all_kernels.begin(), all_kernels.end()}},
      {.name = "precision",
       .fallback = "float32",
       .help = "precision of products; bfloat16: with factors rounded to 8 bits; int8: with factors "
               "quantised to 8 bits",
       .choices = {"float32", "bfloat16", "int8"}},
      {.name = "set",
       .help = "hyperparameters NAME=VALUE of a model that does not list its own",
       .repeats = true}};
}

EDL_INLINE generating generating_of(cli::command_line const& l) {
  auto const real = [&](char const* name) { return cli::parse_number<float>(l.text(name)); };
  generating g{.model = l.text("model_path"),
               .prompt = l.text("prompt"),
               .texts = int(l.number("num_texts")),
               .as_json = l.text("output_format") == "json",
               .set = fmt::format("{}", fmt::join(l.all("set"), ";")),
               .with = {.predicting = {.threads = int(l.number("num_threads")),
                                       .kernels = *value_of<kernels>(l.text("kernels")),
                                       .precision = *value_of<precision>(l.text("precision")),
                                       .log = logger(severity::warning, "", log_target{.detailed = false})},
                        .sequences = int(std::min(l.number("num_sequences"), l.number("num_texts"))),
                        .tokenizer = l.text("tokenizer")},
               .options = {.sampling = {.temperature = real("temperature"),
                                        .top_k = int(l.number("top_k")),
                                        .top_p = real("top_p"),
                                        .min_p = real("min_p"),
                                        .repetition_penalty = real("repetition_penalty"),
                                        .seed = std::uint64_t(l.number("seed"))},
                           .max_tokens = int(l.number("max_tokens")),
                           .stop = l.all("stop")}};
  supported({.kernels = g.with.predicting.kernels, .precision = g.with.predicting.precision});
  g.options.sampling.check();
  return g;
}

EDL_INLINE int run_generating(train::program const& p, generating const& what) {
  generation_session session(p, what.model, what.with);
  auto const begin = clock::now();
  std::vector<generated_text> all;
  if (what.texts == 1 && !what.as_json) {
    bool begun = false;
    all.push_back(session(what.prompt, what.options, [&](std::string_view piece) {
      fmt::print("{}{}", std::exchange(begun, true) ? "" : what.prompt, piece);
      return std::fflush(stdout) == 0;  // a reader that is gone ends the text
    }));
    fmt::print("{}\n", begun ? "" : what.prompt);
    std::fflush(stdout);  // before the log's lines
  } else {
    all = session.several(what.texts, what.prompt, what.options);
    detail::print_texts(what, all);
  }
  double const seconds = std::chrono::duration<double>(clock::now() - begin).count();
  std::uint64_t tokens = 0;
  bool forgot = false;
  for (generated_text const& t : all) tokens += std::uint64_t(t.tokens), forgot = forgot || t.forgot;
  logger const log(severity::info, "", log_target{.detailed = false});
  if (forgot)
    log.warning(
        fmt::format("a text is longer than the {} tokens that the model sees: it went on with the last "
                    "half of them",
                    session.places()));
  log.info(fmt::format("{} in {:.3g} s, {:.1f} tokens/s, by {}", counted(tokens, "token"), seconds,
                       double(tokens) / seconds, session.path()));
  return 0;
}

}  // namespace edl::app
