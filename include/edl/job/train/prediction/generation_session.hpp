// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edl/job/train/prediction/prediction_session.hpp"
#include "edl/job/train/prediction/sampling.hpp"

namespace edl {

/// A text that a model continues.
struct generation_options {
  sampling_options sampling{};
  int max_tokens = 256;           ///< at most so many new ones; 1 or more
  std::vector<std::string> stop;  ///< the text ends before any of these
};

enum class text_end {
  stop,        ///< one of the texts of `stop`, or the model's own end of a text
  max_tokens,  ///< it is as long as it may be
  caller       ///< the caller wants no more
};

struct generated_text {
  std::string text;                   ///< without the prompt
  int prompt_tokens = 0, tokens = 0;  ///< tokens: that the model made
  text_end end = text_end::max_tokens;
  bool forgot = false;  ///< it did not fit the model's places: the model went on with its last half
};

/// Receives a text piece by piece, each a whole number of UTF-8 characters where the text is UTF-8. False: no
/// more is wanted.
using text_sink = std::function<bool(std::string_view piece)>;

struct generator_options {
  prediction_options predicting{};
  int sequences = 1;  ///< texts at once: keys and values of so many are kept in memory
  /// A `tokenizer.json` or `tokenizer.model`, which says what the model's ids stand for; empty: bytes.
  std::string tokenizer = {};
};

/// A trained language model that continues texts in this process, on the processor. It finds and reads the
/// model as `prediction_session` does. Texts of several prompts are computed side by side.
///
/// Errors are edl::error. Thread safety: distinct objects: safe. Shared objects: unsafe.
class generation_session {
 public:
  /// Throws usage_error, which says why, if the model cannot say which token comes next.
  generation_session(train::program const& p, std::string const& path, generator_options const& o = {});
  ~generation_session();
  generation_session(generation_session const&) = delete;

  std::string const& path() const;  ///< of the checkpoint or file read
  int places() const;               ///< most tokens that the model sees at once
  std::size_t memory() const;       ///< bytes: the model's variables, keys and values of all sequences

  /// Continues a text. Throws usage_error for an option or a prompt that is out of range.
  generated_text operator()(std::string_view prompt, generation_options const& o = {},
                            text_sink const& hear = {});

  /// The same several times, side by side, each with the seed after the last one's: `hear` gets the number of
  /// the text, too.
  std::vector<generated_text> several(int texts, std::string_view prompt, generation_options const& o = {},
                                      std::function<bool(int text, std::string_view piece)> const& hear = {});

  /// For texts that begin and end at any time: begins one, and returns its number; empty if as many as may be
  /// go on. Throws as operator().
  std::optional<int> begin(std::string_view prompt, generation_options const& o, text_sink hear = {});
  bool idle() const;        ///< no text goes on
  void cancel(int number);  ///< ends a text, which nobody hears of

  /// Makes the next token of each text that goes on, and calls done(number, text) for each that ends. `done`
  /// must not call this session. Throws error, and all texts have then ended, if the model is at fault.
  void step(std::function<void(int number, generated_text text)> const& done);

 private:
  struct core;
  std::unique_ptr<core> core_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/generation_session.ipp"
#endif
