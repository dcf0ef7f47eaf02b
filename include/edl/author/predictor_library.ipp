// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions of edl/predictor.h. No part of the library: edl_add_model compiles it into each
// libNAME-predictor.so, whose models it opens.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "edl/author/programs.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/device/cpu/options.hpp"
#include "edl/core/error.hpp"
#include "edl/job/train/prediction/generation_session.hpp"
#include "edl/job/train/prediction/prediction_session.hpp"
#include "edl/job/train/setup/hyperparameters.hpp"
#include "edl/predictor.h"

namespace edl::author {
namespace {

/// A session, and what of it is pointed to.
struct open_model {
  explicit open_model(std::unique_ptr<prediction_session> s)
      : session(std::move(s)), settings(train::write_settings(session->hyperparameters())) {
    for (record_feature const& f : session->inputs())
      input_extents.emplace_back(f.extents.begin(), f.extents.end());
    for (model_output const& o : session->outputs()) {
      auto const [height, width, channels] = o.extents;
      auto& e = output_extents.emplace_back();
      if (height > 1) e.push_back(std::uint64_t(height));
      if (height > 1 || width > 1) e.push_back(std::uint64_t(width));
      if (o.size() > 1) e.push_back(std::uint64_t(channels));
    }
    for (std::string const& name : session->classes()) classes.push_back(name.c_str());
  }

  std::unique_ptr<prediction_session> session;
  std::string settings;
  std::vector<std::vector<std::uint64_t>> input_extents, output_extents;
  std::vector<char const*> classes;
};

struct open_texts {
  std::unique_ptr<generation_session> session;
  std::mutex busy{};
};

struct open_models {
  std::shared_mutex mutex;
  std::unordered_map<edl_predictor, std::shared_ptr<open_model const>> all;
  std::unordered_map<edl_predictor, std::shared_ptr<open_texts>> texts;
  edl_predictor next = 1;
};

/// Never destroyed: threads may predict while the process ends.
open_models& models() {
  static auto& all = *new open_models;
  return all;
}

std::shared_ptr<open_model const> find(edl_predictor p) {
  open_models& m = models();
  std::shared_lock const lock(m.mutex);
  if (auto const at = m.all.find(p); at != m.all.end()) return at->second;
  if (m.texts.contains(p))
    throw error(fmt::format("predictor {} continues texts: edl_predictor_open opens what predicts", p));
  throw error(fmt::format("predictor {} is not open", p));
}

std::shared_ptr<open_texts> find_texts(edl_predictor p) {
  open_models& m = models();
  std::shared_lock const lock(m.mutex);
  if (auto const at = m.texts.find(p); at != m.texts.end()) return at->second;
  if (m.all.contains(p))
    throw error(fmt::format("predictor {} predicts: edl_predictor_open_texts opens what continues texts", p));
  throw error(fmt::format("predictor {} is not open", p));
}

thread_local char last_error[4096] = "";

/// Room of a fixed size, for memory may be what is lacking.
void note(std::string_view text) {
  text = text.substr(0, sizeof last_error - 1);
  *std::ranges::copy(text, last_error).out = '\0';
}

template <class Result, class Act>
Result guarded(Result failed, Act act) noexcept {
  try {
    return act();
  } catch (std::bad_alloc const&) {
    note("out of memory; predict fewer records at once");
  } catch (std::exception const& e) {
    note(e.what());
  } catch (...) {
    note("the model threw something other than a std::exception");
  }
  return failed;
}

template <class T>
void need(T const* p, char const* what) {
  if (!p) throw error(fmt::format("no {} is given: a null pointer", what));
}

/// That `all` numbers rise from 0 to `end`.
void check_rising(edl_values const& v, std::uint64_t const* first, std::uint64_t all, std::uint64_t end,
                  char const* what) {
  if (first[0] != 0 || first[all - 1] != end || !std::is_sorted(first, first + all))
    throw error(fmt::format("'{}': its {} do not rise from 0 to {}", v.name, what, end));
}

void check(edl_values const& v, std::uint64_t records) {
  constexpr std::uint64_t most = std::uint64_t(1) << 48;
  need(v.name, "name of an input");
  if (v.kind < edl_texts || v.kind > edl_integers)
    throw error(
        fmt::format("'{}' has kind {} instead of edl_texts, edl_floats or edl_integers", v.name, v.kind));
  if (v.count > most || v.bytes > most) throw error(fmt::format("'{}' has more than memory holds", v.name));
  if (v.starts)
    check_rising(v, v.starts, records + 1, v.count, "starts");
  else if (v.count % records != 0)
    throw error(fmt::format("'{}' has {} values, which {} records cannot share", v.name, v.count, records));
  bool const texts = v.kind == edl_texts;
  if (texts) {
    need(v.offsets, "offset of a text");
    check_rising(v, v.offsets, v.count + 1, v.bytes, "offsets");
  }
  if ((texts ? v.bytes : v.count) > 0) need(v.values, "value of an input");
  if (v.rank < 0 || v.rank > 8)
    throw error(fmt::format("'{}' has {} extents: expected 0 to 8", v.name, v.rank));
  if (v.rank == 0) return;
  need(v.extents, "extent of an input");
  std::uint64_t each = 1;
  for (std::uint64_t const e : std::span(v.extents, std::size_t(v.rank))) {
    if (e > most / std::max<std::uint64_t>(each, 1))
      throw error(fmt::format("'{}' has more than memory holds", v.name));
    each *= e;
  }
  if (v.starts) {
    for (std::uint64_t i = 0; v.rank > 1 && i < records; ++i)
      if (std::uint64_t const n = v.starts[i + 1] - v.starts[i]; n != 0 && n != each)
        throw error(
            fmt::format("'{}' has {} values of record {}, and its extents make {}", v.name, n, i, each));
    return;
  }
  if (each * records != v.count)
    throw error(fmt::format("'{}' has {} values, and its extents make {} of each of {} records", v.name,
                            v.count, each, records));
}

template <class T>
void copy_values(std::span<T> to, void const* values, std::uint64_t first) {  // which need not be aligned
  if (!to.empty())
    std::memcpy(to.data(), static_cast<char const*>(values) + first * sizeof(T), to.size_bytes());
}

void build(example_builder& to, edl_values const& v, bool may_be_empty, std::uint64_t record,
           std::uint64_t records, std::vector<std::string_view>& texts) {
  std::uint64_t const each = v.count / records, first = v.starts ? v.starts[record] : record * each,
                      n = v.starts ? v.starts[record + 1] - first : each;
  std::uint64_t none = 0;
  if (v.kind == edl_floats) {
    float x = 0;
    for (; none < n; ++none) {
      copy_values(std::span(&x, 1), v.values, first + none);
      if (!std::isnan(x)) break;
    }
  }
  if (n > 0 ? none == n : !may_be_empty) return;  // the record lacks it
  auto const in = [&](auto values) {
    copy_values(values, v.values, first);
    if (v.rank > 1) to.extents({v.extents, std::size_t(v.rank)});
  };
  if (v.kind == edl_floats) return in(to.floats(v.name, n));
  if (v.kind == edl_integers) return in(to.integers(v.name, n));
  texts.clear();
  for (std::uint64_t i = first; i < first + n; ++i)
    texts.emplace_back(static_cast<char const*>(v.values) + v.offsets[i], v.offsets[i + 1] - v.offsets[i]);
  to.bytes(v.name, texts);
  if (v.rank > 1) to.extents({v.extents, std::size_t(v.rank)});
}

template <class T>
T const& one_of(std::vector<T> const& all, std::int32_t which, char const* what) {
  if (which < 0 || std::size_t(which) >= all.size())
    throw error(fmt::format("no {} {}: the model has {}", what, which, all.size()));
  return all[std::size_t(which)];
}

edl_feature feature_of(std::string const& name, std::vector<std::uint64_t> const& extents) {
  edl_feature f{};
  f.name = name.c_str();
  f.extents = extents.data();
  f.rank = std::int32_t(extents.size());
  f.kind = edl_floats;
  return f;
}

/// A session of the model of this library that a file is of.
template <class Session, class Options>
std::unique_ptr<Session> open(char const* path, int threads, Options const& options) {
  check_processor();
  need(path, "path");
  if (threads < 1 || threads > 1024) throw error(fmt::format("{} threads: expected 1 to 1024", threads));
  std::size_t const n = programs().size();
  if (n == 0) throw error("this library has no model: its sources do not call edl::run");
  std::unique_ptr<Session> found;
  for (std::size_t i = 0; i < n; ++i) {
    std::unique_ptr<Session> fits;
    try {
      fits = std::make_unique<Session>(programs()[i](), path, options);
    } catch (error const&) {
      if (i + 1 == n && !found) throw;
      continue;
    }
    if (found) throw error(fmt::format("{} fits several models of this library: make one of each", path));
    found = std::move(fits);
  }
  return found;
}

}  // namespace

extern "C" {

std::int32_t edl_predictor_abi_version() { return edl_predictor_abi; }

edl_predictor edl_predictor_open(char const* path, std::int32_t threads) {
  return guarded(edl_predictor(0), [&] {
    auto made = std::make_shared<open_model const>(
        open<prediction_session>(path, threads, prediction_options{.threads = threads}));
    open_models& m = models();
    std::unique_lock const lock(m.mutex);
    m.all.emplace(m.next, std::move(made));
    return m.next++;
  });
}

edl_predictor edl_predictor_open_texts(char const* path, char const* tokenizer, std::int32_t threads) {
  return guarded(edl_predictor(0), [&] {
    generator_options const o{.predicting = {.threads = threads}, .tokenizer = tokenizer ? tokenizer : ""};
    auto made = std::make_shared<open_texts>(open<generation_session>(path, threads, o));
    open_models& m = models();
    std::unique_lock const lock(m.mutex);
    m.texts.emplace(m.next, std::move(made));
    return m.next++;
  });
}

std::int32_t edl_predictor_close(edl_predictor p) {
  return guarded(-1, [&] {
    std::shared_ptr<void const> last;  // destroyed without the lock
    open_models& m = models();
    std::unique_lock const lock(m.mutex);
    auto const take = [&](auto& all) {
      auto const at = all.find(p);
      if (at == all.end()) return false;
      last = std::move(at->second);
      all.erase(at);
      return true;
    };
    if (!take(m.all) && !take(m.texts)) throw error(fmt::format("predictor {} is not open", p));
    return 0;
  });
}

std::int32_t edl_predictor_describe(edl_predictor p, edl_model* into) {
  return guarded(-1, [&] {
    need(into, "place for the description");
    auto const of = find(p);
    auto const& s = *of->session;
    *into = {.path = s.path().c_str(),
             .hyperparameters = of->settings.c_str(),
             .version = s.version(),
             .outputs_size = s.output_size(),
             .inputs = std::int32_t(s.inputs().size()),
             .outputs = std::int32_t(s.outputs().size()),
             .reserved = {}};
    return 0;
  });
}

std::int32_t edl_predictor_input(edl_predictor p, std::int32_t which, edl_feature* into) {
  return guarded(-1, [&] {
    need(into, "place for the description");
    auto const of = find(p);
    record_feature const& f = one_of(of->session->inputs(), which, "input");
    *into = feature_of(f.name, of->input_extents[std::size_t(which)]);
    into->kind = std::int32_t(f.kind);
    return 0;
  });
}

std::int32_t edl_predictor_output(edl_predictor p, std::int32_t which, edl_feature* into) {
  return guarded(-1, [&] {
    need(into, "place for the description");
    auto const of = find(p);
    model_output const& o = one_of(of->session->outputs(), which, "output");
    *into = feature_of(o.name, of->output_extents[std::size_t(which)]);
    into->first = o.first;
    into->meaning = std::int32_t(o.meaning);
    if (o.meaning == output_meaning::classes && of->classes.size() == o.size())
      into->classes = of->classes.data();
    return 0;
  });
}

std::int32_t edl_predictor_predict(edl_predictor p, edl_values const* inputs, std::uint64_t inputs_count,
                                   std::uint64_t records, float* outputs, std::uint64_t capacity) {
  return guarded(-1, [&] {
    static thread_local example record;
    static thread_local std::vector<std::string_view> texts;
    auto const of = find(p);
    if (records < 1 || records > std::uint64_t(1) << 30)
      throw error(fmt::format("a batch for {} records: expected 1 or more, below 2^30", records));
    if (inputs_count > 0) need(inputs, "input");
    std::span const all(inputs, inputs_count);
    static thread_local std::vector<bool> empty;
    static thread_local std::vector<std::string_view> names;
    empty.clear(), names.clear();
    for (edl_values const& v : all) {
      check(v, records);
      auto const& known = of->session->inputs();
      auto const f = std::ranges::find(known, std::string_view(v.name), &record_feature::name);
      empty.push_back(f == known.end() || edl::may_be_empty(*f));
      names.emplace_back(v.name);
    }
    need(outputs, "place for outputs");
    std::uint64_t const each = of->session->output_size();
    if (capacity / each < records)
      throw error(fmt::format("the buffer has room for {} numbers, but {} records have {} outputs", capacity,
                              records, records * each));
    auto batch = of->session->take(int(records));
    for (std::uint64_t i = 0; i < records; ++i) {
      {
        example_builder to(record);
        for (std::size_t k = 0; k < all.size(); ++k) build(to, all[k], empty[k], i, records, texts);
      }
      try {
        batch.add(record);
      } catch (data_error const& e) {
        if (records == 1) throw;
        throw data_error(fmt::format("record {}: {}", i, e.what()));
      }
    }
    if (of->session->inputs_unknown().empty())
      if (std::string const stray = stray_feature(names, of->session->inputs()); !stray.empty())
        throw error(stray);
    batch.run();
    std::ranges::copy(batch.outputs(), outputs);
    return 0;
  });
}

std::int32_t edl_predictor_generate(edl_predictor p, char const* prompt, std::uint64_t bytes,
                                    edl_generation const* how, edl_text_sink hear, void* context,
                                    edl_text* made) {
  return guarded(-1, [&] {
    auto const of = find_texts(p);
    need(how, "description of the text");
    if (!hear) throw error("no function that takes the text is given: a null pointer");
    if (bytes > 0) need(prompt, "prompt");
    if (bytes > std::uint64_t(1) << 32) throw error("a prompt has more than 4 GiB");
    if (how->stop_count > 0) need(how->stop, "list of texts to stop at");
    generation_options o{.sampling = {.temperature = how->temperature,
                                      .top_k = how->top_k,
                                      .top_p = how->top_p,
                                      .min_p = how->min_p,
                                      .repetition_penalty = how->repetition_penalty,
                                      .seed = how->seed},
                         .max_tokens = how->max_tokens,
                         .stop = {}};
    for (std::uint64_t i = 0; i < how->stop_count; ++i) {
      need(how->stop[i], "text to stop at");
      o.stop.emplace_back(how->stop[i]);
    }
    std::lock_guard const alone(of->busy);
    auto const text =
        (*of->session)(bytes > 0 ? std::string_view(prompt, bytes) : "", o, [&](std::string_view piece) {
          return piece.empty() || hear(context, piece.data(), piece.size()) != 0;
        });
    if (made) *made = {text.prompt_tokens, text.tokens, std::int32_t(text.end), text.forgot};
    return 0;
  });
}

char const* edl_predictor_error() { return last_error; }

}  // extern "C"

}  // namespace edl::author
