// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <new>
#include <string>

#include "edl/compute/tokens/pattern.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/printable.hpp"

#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <pcre2.h>

namespace edl::tokens {
namespace detail {

inline constexpr std::size_t longest_expression = 4096;
inline constexpr std::uint32_t most_steps = 10'000'000;  // of the search for one match
inline constexpr std::size_t jit_stack = 1u << 20;

EDL_INLINE std::string pcre2_message(int code) {
  PCRE2_UCHAR text[160] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<char const*>(text);
}

}  // namespace detail

struct pattern::code {
  pcre2_code* compiled = nullptr;
  std::string expression;

  code() = default;
  code(code const&) = delete;
  code& operator=(code const&) = delete;
  ~code() { pcre2_code_free(compiled); }
};

EDL_INLINE pattern::pattern(std::string_view expression) : pattern(expression, false) {}
EDL_INLINE pattern pattern::literal(std::string_view text) { return {text, true}; }

EDL_INLINE pattern::pattern(std::string_view expression, bool literal) {
  std::string const quoted = printable(expression, 200);
  if (expression.empty() || expression.size() > detail::longest_expression)
    throw error(fmt::format("the expression '{}' has {} bytes; 1 to {} are supported", quoted,
                            expression.size(), detail::longest_expression));
  if (!literal)
    for (char const* const other : {"\\h", "\\H", "\\K", "&&", "(?m", "(?x", "(*"})
      if (expression.find(other) != expression.npos)
        throw error(fmt::format("the expression '{}' has '{}', which is not supported", quoted, other));
  auto made = std::make_shared<code>();
  made->expression = quoted;
  int failure = 0;
  PCRE2_SIZE at = 0;
  // As in Oniguruma's syntax for Ruby, ^ and $ match at each line.
  std::uint32_t const options =
      PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C);
  made->compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(), options,
                                 &failure, &at, nullptr);
  if (made->compiled == nullptr)
    throw error(fmt::format("the expression '{}' cannot be compiled: byte {}: {}", quoted, at,
                            detail::pcre2_message(failure)));
  pcre2_jit_compile(made->compiled, PCRE2_JIT_COMPLETE);  // without it the search is slower, and the same
  code_ = std::move(made);
}

struct pattern::matcher::state {
  std::shared_ptr<code const> of;
  pcre2_match_data* found = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* stack = nullptr;

  ~state() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(found);
  }
};

EDL_INLINE pattern::matcher::matcher(pattern const& of) : state_(std::make_unique<state>()) {
  state_->of = of.code_;
  state_->found = pcre2_match_data_create(1, nullptr);
  state_->context = pcre2_match_context_create(nullptr);
  state_->stack = pcre2_jit_stack_create(32u << 10, detail::jit_stack, nullptr);
  if (state_->found == nullptr || state_->context == nullptr) throw std::bad_alloc();
  pcre2_set_match_limit(state_->context, detail::most_steps);
  pcre2_jit_stack_assign(state_->context, nullptr, state_->stack);
}

EDL_INLINE pattern::matcher::matcher(matcher&&) noexcept = default;
EDL_INLINE pattern::matcher::~matcher() = default;

EDL_INLINE bool pattern::matcher::next(std::string_view text, std::size_t& begin, std::size_t& end) {
  auto const search = [&](std::uint32_t options) {
    return pcre2_match(state_->of->compiled, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), begin,
                       PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | options, state_->found, state_->context);
  };
  int result = search(0);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = search(PCRE2_NO_JIT);
  if (result == PCRE2_ERROR_NOMATCH) {
    begin = end = text.size();
    return false;
  }
  if (result < 0)
    throw error(fmt::format("the expression '{}' cannot be searched from byte {} of a text of {}: {}",
                            state_->of->expression, begin, text.size(), detail::pcre2_message(result)));
  auto const* const places = pcre2_get_ovector_pointer(state_->found);
  // A caller goes on from `end`: a match that did not advance would never end.
  invariant(begin <= places[0] && places[0] < places[1] && places[1] <= text.size(),
            "a match has characters, and lies behind the last one");
  begin = places[0], end = places[1];
  return true;
}

}  // namespace edl::tokens
