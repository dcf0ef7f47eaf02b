// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/author/run.hpp"
#include "edl/job/train/prediction/generation_session.hpp"

namespace edl {

/// A trained language model that continues texts in your own program:
///
///     edl::generator<text> g("checkpoints");
///     g("ROMEO:", {.max_tokens = 200}, [](std::string_view piece) { std::cout << piece; return true; });
///
/// See its base, `generation_session`. Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class Model>
class generator : public generation_session {
 public:
  explicit generator(std::string const& path, generator_options const& o = {})
      : generation_session(author::make_program<Model>(), path, o) {}
};

}  // namespace edl
