// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/compute/data/batch.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/random.hpp"
#include "edl/job/train/prediction/record_feature.hpp"
#include "edl/job/train/setup/feed_arithmetic.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::train {
namespace detail {

class fed_numbers {
 public:
  fed_numbers(program const& p, std::vector<record_feature> known)
      : variables_(p.layout.size()),
        trainer_(p.make_trainer({.max_batch = 1, .device = {.threads = 1}, .predicts_with = variables_})),
        batch_(trainer_->make_batch()) {
    auto found = features_read_by([&](example const& r) { feed(r); }, batch_.feature_size, std::move(known));
    features_ = std::move(found.all);
    unknown_ = std::move(found.unknown);
    for (record_feature const& f : features_)
      if (f.kind != example::kind::strings) total_ += values_of(f);
  }

  std::size_t total() const { return total_; }
  std::string const& unknown() const { return unknown_; }  ///< as found_features has it
  std::vector<record_feature> const& features() const { return features_; }

  /// What `feed` makes of a record with these numbers, feature by feature, and with `text` for each text.
  std::vector<float> of(std::function<double(std::size_t at, bool whole)> const& number,
                        std::string_view text) {
    example record;
    {
      example_builder to(record);
      std::size_t at = 0;
      for (record_feature const& f : features_) {
        std::size_t const n = values_of(f);
        if (f.kind == example::kind::strings) {
          std::string const own = f.text.empty() ? std::string(text) : text.empty() ? f.text : other(f.text);
          to.bytes(f.name, std::vector<std::string_view>(n, own));
        } else if (f.kind == example::kind::integers)
          for (std::int64_t& x : to.integers(f.name, n)) x = std::int64_t(number(at++, true));
        else
          for (float& x : to.floats(f.name, n)) x = float(number(at++, false));
      }
    }
    std::ranges::fill(batch_.features, std::numeric_limits<float>::quiet_NaN());
    why_.clear();
    try {
      feed(record);
    } catch (std::exception const& e) {
      why_ = e.what();  // perhaps because of an id, after it has written the numbers
    }
    return batch_.features;
  }
  /// Why `feed` refused the last record; empty: it accepted it.
  std::string const& why() const { return why_; }

  static std::size_t values_of(record_feature const& f) {
    return std::accumulate(f.extents.begin(), f.extents.end(), std::size_t(1), std::multiplies<>());
  }

 private:
  /// A different text with the same pattern, so that a date stays a date and a number a number.
  static std::string other(std::string text) {
    auto const at = text.find_last_of("1aA");
    if (at != text.npos) ++text[at];
    return text;
  }

  void feed(example const& record) { trainer_->feed(record, batch_, 0, mode::prediction); }

  std::vector<float> variables_;  // not used in any computation
  std::unique_ptr<worker::trainer> trainer_;
  data::batch batch_;
  std::vector<record_feature> features_;
  std::size_t total_ = 0;
  std::string why_, unknown_;
};

[[noreturn]] inline void refuse_arithmetic(std::string const& why) {
  throw usage_error(
      fmt::format("--export_preprocess: {}; without the flag the file takes the output of `feed`", why));
}

/// Probing records: zeros, a number large enough to show the factor, and each number's own position.
constexpr double large = 4096;
inline std::array<std::function<double(std::size_t, bool)>, 4> told() {
  constexpr std::size_t low = 4096;
  return {[](std::size_t, bool) { return 0.0; }, [](std::size_t, bool) { return large; },
          [](std::size_t at, bool) { return double(at % low + 1); },
          [](std::size_t at, bool) { return double(at / low + 1); }};
}

/// Varied numbers to verify a hypothesis: like pixels, below 1, large, and of either sign.
inline double drawn(std::size_t at, bool whole, std::size_t which) {
  constexpr std::array<double, 4> sizes{255, 1, 300, 1e5};
  double const share = double(random_stream{which}.uniform(at));
  double const x = which == 0 ? share * 256 : (2 * share - 1) * sizes[which];
  return whole || which == 0 ? std::floor(x) : x;
}

}  // namespace detail

EDL_INLINE std::map<std::string, onnx::preprocessing> arithmetic_of_feed(program const& p,
                                                                         record_facts const& known) {
  using detail::refuse_arithmetic;
  if (p.numbers.empty())
    refuse_arithmetic("the network takes only ids, which arithmetic cannot compute from a record");
  detail::fed_numbers fed(p, known.inputs);
  if (fed.total() == 0 && !fed.unknown().empty())
    refuse_arithmetic(fmt::format(
        "the model does not list its inputs, and `feed` refuses zeros and empty texts ({}); a model trained "
        "by this version lists them",
        fed.unknown()));
  if (fed.total() == 0) refuse_arithmetic("`feed` reads only strings or bytes of a record, not numbers");
  std::array<std::vector<float>, 4> told;
  for (std::size_t i = 0; auto const& number : detail::told()) told[i++] = fed.of(number, "");
  auto const name_of = [](number_input const& in) {
    return in.name.empty() ? std::string("input") : std::string(in.name);
  };
  auto const refuse = [&](number_input const& in, std::size_t i) {
    std::string const which = in.count == 1 ? "" : fmt::format("value {} of ", i);
    if (!fed.why().empty())
      refuse_arithmetic(
          fmt::format("numeric records are used to find out the arithmetic of `feed`, and it rejects one: {}",
                      fed.why()));
    refuse_arithmetic(fmt::format(
        "`feed` computes {}input '{}' by more than a factor and a constant from one number of the record",
        which, name_of(in)));
  };

  // For each number of the row: its source, and how it is computed.
  struct origin {
    std::size_t at = 0;
    double factor = 0, offset = 0;
  };
  std::vector<origin> origins(told[0].size());
  for (number_input const& in : p.numbers)
    for (std::size_t i = 0; i < in.count; ++i) {
      std::size_t const n = in.first + i;
      origin& o = origins[n];
      o.offset = double(told[0][n]);
      o.factor = (double(told[1][n]) - o.offset) / detail::large;
      if (!std::isfinite(o.factor)) refuse(in, i);
      if (o.factor == 0) continue;
      auto const number = [&](float y) {
        double const x = (double(y) - o.offset) / o.factor, whole = std::round(x);
        return std::abs(x - whole) < 0.05 && whole >= 1 && whole <= detail::large ? std::size_t(whole) : 0;
      };
      std::size_t const low = number(told[2][n]), high = number(told[3][n]);
      if (low == 0 || high == 0 || (high - 1) * 4096 + low > fed.total()) refuse(in, i);
      o.at = (high - 1) * 4096 + low - 1;
    }
  for (std::size_t which = 0; which < 4; ++which) {
    auto const number = [&](std::size_t at, bool whole) { return detail::drawn(at, whole, which); };
    auto const row = fed.of(number, which == 0 ? "" : which == 1 ? "7" : "ab");
    std::vector<bool> whole;
    for (record_feature const& f : fed.features())
      if (f.kind != example::kind::strings)
        whole.insert(whole.end(), detail::fed_numbers::values_of(f), f.kind == example::kind::integers);
    for (number_input const& in : p.numbers)
      for (std::size_t i = 0; i < in.count; ++i) {
        origin const& o = origins[in.first + i];
        double const part = o.factor * double(float(number(o.at, whole[o.at]))), y = part + o.offset;
        double const off = std::abs(double(row[in.first + i]) - y);
        if (!(off <= 2e-6 * (std::abs(part) + std::abs(o.offset)))) refuse(in, i);
      }
  }

  std::map<std::string, onnx::preprocessing> all;
  for (number_input const& in : p.numbers) {
    onnx::preprocessing& made = all[name_of(in)];
    std::vector<bool> used(fed.total());
    for (std::size_t i = 0; i < in.count; ++i)
      if (origins[in.first + i].factor != 0) used[origins[in.first + i].at] = true;
    std::vector<std::int64_t> place(fed.total());  // among the used features
    std::int64_t next = 0;
    for (std::size_t at = 0; record_feature const& f : fed.features()) {
      if (f.kind == example::kind::strings) continue;
      std::size_t const n = detail::fed_numbers::values_of(f);
      auto const first = used.begin() + std::ptrdiff_t(at);
      if (std::find(first, first + std::ptrdiff_t(n), true) != first + std::ptrdiff_t(n)) {
        made.from.push_back({f.name, f.extents});
        for (std::size_t i = 0; i < n; ++i) place[at + i] = next++;
      }
      at += n;
    }
    if (made.from.empty())
      refuse_arithmetic(fmt::format("input '{}' does not depend on any number of a record", name_of(in)));
    for (std::size_t i = 0; i < in.count; ++i) {
      auto const& o = origins[in.first + i];
      made.places.push_back(o.factor != 0 ? place[o.at] : 0);
      made.factors.push_back(float(o.factor));
      made.offsets.push_back(float(o.offset));
    }
  }
  return all;
}

}  // namespace edl::train
