// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/train/prediction/generation_batch.hpp"
#include "edl/job/train/prediction/generation_session.hpp"
#include "edl/job/train/prediction/growing_text.hpp"
#include "edl/job/train/prediction/saved_model.hpp"
#include "edl/job/train/prediction/token_codec.hpp"
#include "edl/job/train/setup/start.hpp"
#include "edl/job/train/trainers/trainers.hpp"

namespace edl {

struct generation_session::core {
  static constexpr int rows_of_prompt = 64;  // in a pass

  core(train::program const& p, std::string const& given, generator_options const& o)
      : found(train::find_model(given, o.predicting.log,
                                o.predicting.verify ? checkpoint::check::checksums : checkpoint::check::sizes,
                                {})),
        path(found.path),
        program(train::trained_program(p, path, o.predicting.log)),
        tokens(o.tokenizer.empty() ? byte_codec() : file_codec(o.tokenizer)),
        model(program, path) {
    if (!program.make_decoder)
      throw usage_error(fmt::format("this model cannot continue a text: {}", program.why_no_decoder));
    int const rows = std::max(o.sequences, rows_of_prompt);
    auto const on = train::open_device({.max_batch = rows,
                                        .on = worker::device_kind::cpu,
                                        .device = {.threads = o.predicting.threads,
                                                   .kernels = o.predicting.kernels,
                                                   .precision = o.predicting.precision,
                                                   .keep_kernels = true}},
                                       false);
    auto made = program.make_decoder({.on = on,
                                      .rows = rows,
                                      .sequences = o.sequences,
                                      .variables = model.variables(),
                                      .frozen = program.adapted ? program.adapted->values() : view<float>()});
    if (int const ids = made->vocabulary(); o.tokenizer.empty() && ids != 256)
      throw usage_error(
          fmt::format("the model's vocabulary has {} ids, which are no bytes: --tokenizer names "
                      "the file that says what they stand for",
                      ids));
    else if (tokens->vocabulary() > ids)
      throw usage_error(
          fmt::format("--tokenizer={} has ids up to {}, and the model's vocabulary {}: it is "
                      "another model's",
                      o.tokenizer, tokens->vocabulary() - 1, ids));
    places = made->places();
    memory = model.variables().size_bytes() + made->cached() +
             (program.adapted ? program.adapted->values().size_bytes() : 0);
    batch.emplace(std::move(made), rows, o.sequences, tokens->vocabulary());
    texts.resize(std::size_t(o.sequences));
  }

  train::found_model found;
  std::string path;
  train::program program;
  std::unique_ptr<token_codec> tokens;
  train::saved_model model;
  int places = 0;
  std::size_t memory = 0;
  std::optional<train::generation_batch> batch;

  struct text {
    generation_options options;
    std::optional<detail::growing_text> grows;  // refers to the options
    std::unique_ptr<token_codec::text> decoded;
    generated_text result;
  };
  std::vector<std::unique_ptr<text>> texts;  // by their number
};

EDL_INLINE generation_session::generation_session(train::program const& p, std::string const& path,
                                                  generator_options const& o)
    : core_(std::make_unique<core>(p, path, o)) {}
EDL_INLINE generation_session::~generation_session() = default;

EDL_INLINE std::string const& generation_session::path() const { return core_->path; }
EDL_INLINE int generation_session::places() const { return core_->places; }
EDL_INLINE std::size_t generation_session::memory() const { return core_->memory; }

EDL_INLINE bool generation_session::idle() const { return core_->batch->idle(); }
EDL_INLINE void generation_session::cancel(int number) { core_->batch->end(number); }

EDL_INLINE std::optional<int> generation_session::begin(std::string_view prompt, generation_options const& o,
                                                        text_sink hear) {
  if (o.max_tokens < 1) throw usage_error(fmt::format("max_tokens={}: it is 1 or more", o.max_tokens));
  for (std::string const& s : o.stop)
    if (s.empty()) throw usage_error("a text of `stop` is empty: no text would begin");
  auto tokens = core_->tokens->encode(prompt);
  auto made = std::make_unique<core::text>();
  made->options = o;
  made->grows.emplace(made->options.stop, std::move(hear));
  made->decoded = core_->tokens->decode();
  made->result.prompt_tokens = int(tokens.size());
  auto const number = core_->batch->begin(std::move(tokens), o.sampling);
  if (number) core_->texts[std::size_t(*number)] = std::move(made);
  return number;
}

EDL_INLINE void generation_session::step(std::function<void(int number, generated_text text)> const& done) {
  train::generation_batch& batch = *core_->batch;
  auto const end = [&](int number, core::text& t, text_end why) {
    if (why != text_end::caller) t.grows->finish();
    t.result.end = why;
    t.result.forgot = batch.forgot(number);
    t.result.text = t.grows->text();
    batch.end(number);
    done(number, std::move(t.result));
  };
  try {
    batch.step([&](int number, std::int32_t id) {
      invariant(core_->texts[std::size_t(number)] != nullptr, "each sequence of the batch is a text");
      core::text& t = *core_->texts[std::size_t(number)];
      ++t.result.tokens;
      bool const last = core_->tokens->ends(id);
      if (!last)
        if (auto const why = t.grows->add(t.decoded->add(id))) return end(number, t, *why);
      if (!last && t.result.tokens < t.options.max_tokens) return;
      // What was held back may complete a text of `stop`.
      auto const why = t.grows->add(t.decoded->finish());
      end(number, t, why ? *why : last ? text_end::stop : text_end::max_tokens);
    });
  } catch (...) {
    for (int number = 0; number < batch.sequences(); ++number) batch.end(number);
    throw;
  }
}

EDL_INLINE generated_text generation_session::operator()(std::string_view prompt, generation_options const& o,
                                                         text_sink const& hear) {
  return std::move(
      several(1, prompt, o, [&](int, std::string_view piece) { return !hear || hear(piece); }).front());
}

EDL_INLINE std::vector<generated_text> generation_session::several(
    int texts, std::string_view prompt, generation_options const& o,
    std::function<bool(int text, std::string_view piece)> const& hear) {
  if (texts < 1 || texts > 1 << 20)
    throw usage_error(fmt::format("{} texts are out of range: 1 to {}", texts, 1 << 20));
  if (!idle()) throw error("a text goes on that `begin` began: this call would take it for its own");
  std::vector<generated_text> all(std::size_t(texts), generated_text{});
  std::vector<int> text_of(core_->texts.size(), -1);
  for (int next = 0; next < texts || !idle();) {
    for (; next < texts; ++next) {
      generation_options own = o;
      own.sampling.seed += std::uint64_t(next);
      auto const number =
          begin(prompt, own, [&hear, next](std::string_view piece) { return !hear || hear(next, piece); });
      if (!number) break;
      text_of[std::size_t(*number)] = next;
    }
    step([&](int number, generated_text text) {
      invariant(text_of[std::size_t(number)] >= 0, "each text that ends was begun here");
      all[std::size_t(text_of[std::size_t(number)])] = std::move(text);
    });
  }
  return all;
}

}  // namespace edl
