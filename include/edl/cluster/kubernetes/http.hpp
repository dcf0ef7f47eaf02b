// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/cluster/kubernetes/errors.hpp"

namespace edl::kubernetes {

/// Reads one HTTP/1.1 answer (RFC 9112) out of bytes as they come. Takes chunked bodies, sized ones, and
/// those that end with the connection; skips interim answers (1xx). A head is at most 64 KiB long.
class response {
 public:
  /// Gets pieces of the body; false: no more of it.
  using sink = std::function<bool(std::string_view)>;

  /// Throws untrusted that says what is wrong with them, when the bytes are no answer, and what `take`
  /// throws.
  void feed(std::string_view bytes, sink const& take);

  /// The server has ended the connection: whether that was the answer's end.
  bool end();

  bool started() const { return started_; }  ///< a byte has come
  bool headed() const { return state_ > state::head; }
  bool done() const { return state_ == state::done; }

  int code() const { return code_; }
  /// The value of the first field of that name (lower case); empty: there is none.
  std::string_view field(std::string_view name) const;
  /// Done, and the connection can serve the next request.
  bool reusable() const { return done() && keep_; }

 private:
  enum class state { head, size, piece, piece_end, trailer, sized, rest, done };
  std::string_view line(std::string_view& bytes, std::size_t longest);
  void head(std::string_view line);
  void begin_body();

  state state_ = state::head;
  bool started_ = false, keep_ = true, whole_line_ = false;
  int code_ = 0;
  std::size_t head_size_ = 0;
  std::uint64_t left_ = 0;  // of the piece, or of the body
  std::string line_;        // the beginning of one that has not ended yet
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// `text` with all but unreserved characters as %XX (RFC 3986).
std::string percent_encoded(std::string_view text);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/http.ipp"
#endif
