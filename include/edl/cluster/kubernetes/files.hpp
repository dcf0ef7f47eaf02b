// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace edl::kubernetes {

/// The text of a file of at most 16 MiB. Throws error, with the reason, if it cannot be read; `what`: for the
/// message.
std::string read_text(std::string const& path, std::string const& what);

/// A small file that another process replaces: read when it has changed. Thread safety: one thread at a time.
class watched_file {
 public:
  /// `what` it contains, for messages.
  watched_file(std::string path, std::string what);

  /// Its current text; while it cannot be read, the last one. Throws error if there never was one.
  std::string const& text();

  /// Whether the last call of `text` has read it anew.
  bool changed() const { return changed_; }

 private:
  std::string path_, description_, text_;
  std::array<std::int64_t, 4> state_{};  // device, inode, size, time of the last change
  bool read_ = false, changed_ = false;
};

/// The bytes that `text` encodes (RFC 4648, line breaks allowed). Throws error; `what`: for the message.
std::string base64_decoded(std::string const& text, std::string const& what);
std::string base64_encoded(std::string const& bytes);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/files.ipp"
#endif
