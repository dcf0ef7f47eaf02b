// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edl/base/http/server.hpp"
#include "edl/base/http/socket.hpp"
#include "edl/core/log.hpp"

namespace edl::http {

/// The first line of a file, as a token. Throws `edl::error` if it has fewer than 16 characters, or the file
/// does not exist.
std::string token_in(std::string const& file);

/// A server's token and certificate, from files that may be replaced while it runs, as Kubernetes renews
/// those of a Secret. It adopts new contents after two consecutive calls of `look` with the same; if they
/// cannot be used, it logs that once and keeps the old ones. Previous tokens stay valid for a while, because
/// clients read their own copy earlier or later. Thread safety: unsafe, except `read`.
class credentials {
 public:
  /// The files' contents, or why they cannot be read.
  struct files {
    std::string token{}, token_failure{};
    std::optional<pem> chain{}, key{};
    std::string pem_failure{};
  };

  /// Reads the files. Throws `edl::error`, which names a file that cannot be used, and its flag.
  explicit credentials(server_options const& o);

  bool has_files() const { return !token_file_.empty() || !certificate_file_.empty(); }

  /// Reads the files; may block on a disk. Thread safety: safe.
  files read() const;

  /// Adopts changes. Does not block.
  void look(files const& now);

  bool wants_token() const { return !token_.empty(); }
  bool takes(std::string_view token) const;

  /// The certificate of new connections; null: without TLS.
  server_certificate const* certificate() const { return certificate_ ? &*certificate_ : nullptr; }

 private:
  using clock = std::chrono::steady_clock;

  /// The files as last read, and whether they have been handled.
  struct found {
    std::string text{};
    bool done = true;
    bool again(std::string now);
  };
  void look_at_token(files const& now);
  void look_at_certificate(files const& now);

  std::string token_file_, certificate_file_, key_file_, flags_;
  std::chrono::milliseconds grace_;
  logger log_;
  struct former {
    std::string token;
    clock::time_point until;
  };
  std::string token_;
  std::vector<former> before_;  // that are still valid
  std::optional<server_certificate> certificate_;
  found token_found_, pems_found_;
};

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/credentials.ipp"
#endif
