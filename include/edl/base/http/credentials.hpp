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

/// The first line of a file, as a token. Throws `edl::error` when it has no 16 characters, or is not there.
std::string token_in(std::string const& file);

/// A server's token and certificate, from files that may be replaced while it runs, as Kubernetes renews
/// those of a Secret. What two calls of `look` in a row are given the same is taken over, or told of once if
/// it cannot be used: then what was there stays. The token before a new one is taken for a while, as clients
/// read their own copy earlier or later, however often it changes meanwhile. Thread safety: unsafe, but for
/// `read`.
class credentials {
 public:
  /// What the files hold, or why they cannot be read.
  struct files {
    std::string token{}, token_failure{};
    std::optional<pem> chain{}, key{};
    std::string pem_failure{};
  };

  /// Reads the files. Throws `edl::error` that names a file that cannot be used, and its flag.
  explicit credentials(server_options const& o);

  bool has_files() const { return !token_file_.empty() || !certificate_file_.empty(); }

  /// Reads the files, and may wait for a disk. Thread safety: safe.
  files read() const;

  /// Takes over what has changed. Waits for nothing.
  void look(files const& now);

  bool wants_token() const { return !token_.empty(); }
  bool takes(std::string_view token) const;

  /// Of new connections; null: without TLS.
  server_certificate const* certificate() const { return certificate_ ? &*certificate_ : nullptr; }

 private:
  using clock = std::chrono::steady_clock;

  /// Files as they were found last, and whether that has been dealt with.
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
  std::vector<former> before_;  // that are still taken
  std::optional<server_certificate> certificate_;
  found token_found_, pems_found_;
};

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/credentials.ipp"
#endif
