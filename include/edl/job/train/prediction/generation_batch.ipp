// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/train/prediction/generation_batch.hpp"

namespace edl::train {

EDL_INLINE generation_batch::generation_batch(std::unique_ptr<decoder> with, int rows, int sequences, int ids)
    : decoder_(std::move(with)),
      rows_(rows),
      ids_below_(std::min(ids, decoder_->vocabulary())),
      all_(std::size_t(sequences)) {
  invariant(sequences >= 1 && rows >= sequences, "each sequence has a row in each pass");
}

EDL_INLINE bool generation_batch::idle() const { return std::ranges::none_of(all_, &sequence::goes_on); }

EDL_INLINE std::optional<int> generation_batch::begin(std::vector<std::int32_t> text,
                                                      sampling_options const& by) {
  by.check();
  if (text.empty()) throw usage_error("there is no text to continue: it has to have a token at least");
  if (text.size() > std::size_t(decoder_->places()))
    throw usage_error(fmt::format("the text has {} tokens, and the model sees at most {}", text.size(),
                                  decoder_->places()));
  for (std::int32_t const id : text)
    if (id < 0 || id >= decoder_->vocabulary())
      throw error(
          fmt::format("token {} of the text is beyond the model's vocabulary of {}: the tokenizer is "
                      "another model's",
                      id, decoder_->vocabulary()));
  auto const free = std::ranges::find(all_, false, &sequence::goes_on);
  if (free == all_.end()) return std::nullopt;
  *free = {.goes_on = true, .text = std::move(text), .by = by};
  return int(free - all_.begin());
}

EDL_INLINE void generation_batch::end(int sequence) {
  invariant(sequence >= 0 && std::size_t(sequence) < all_.size(), "a sequence has a number of the batch");
  all_[std::size_t(sequence)].goes_on = false;
}

EDL_INLINE void generation_batch::step(std::function<void(int sequence, std::int32_t id)> const& hear) {
  ids_.clear();
  places_.clear();
  asked_.clear();
  auto const places = std::size_t(decoder_->places());
  auto waiting = std::size_t(std::ranges::count(all_, true, &sequence::goes_on));
  turn_ = (turn_ + 1) % all_.size();
  for (std::size_t i = 0; i < all_.size(); ++i) {
    std::size_t const number = (turn_ + i) % all_.size();
    sequence& s = all_[number];
    if (!s.goes_on) continue;
    --waiting;
    if (s.text.size() - s.first > places) {
      s.first = s.read = s.text.size() - (places + 1) / 2;
      s.forgot = true;
    }
    invariant(s.first <= s.read && s.read < s.text.size(), "a sequence that goes on has a token to read");
    // Each of those that are still to come needs a row.
    std::size_t const room = std::size_t(rows_) - ids_.size() - waiting,
                      n = std::min(room, s.text.size() - s.read);
    for (std::size_t k = 0; k < n; ++k, ++s.read) {
      ids_.push_back(s.text[s.read]);
      places_.push_back({int(number), int(s.read - s.first)});
      asked_.push_back(s.read + 1 == s.text.size() ? int(number) : -1);
    }
  }
  invariant(ids_.size() <= std::size_t(rows_), "a pass has as many rows as the decoder supports");
  view<float> const numbers = decoder_->decode(ids_, places_);
  std::size_t const vocabulary = std::size_t(decoder_->vocabulary());
  invariant(numbers.size() >= ids_.size() * vocabulary, "a decoder says a number for each id");
  for (std::size_t row = 0; row < asked_.size(); ++row) {
    if (asked_[row] < 0) continue;
    sequence& s = all_[std::size_t(asked_[row])];
    // A stream of its own for each seed; the draw depends on the number of ids alone.
    float const draw = random_stream{mix(s.by.seed, 0x746578740a), s.drawn++}.uniform(0);
    std::int32_t const id =
        choose_(numbers.subspan(row * vocabulary, std::size_t(ids_below_)), s.text, s.by, draw);
    s.text.push_back(id);
    hear(asked_[row], id);
  }
}

}  // namespace edl::train
