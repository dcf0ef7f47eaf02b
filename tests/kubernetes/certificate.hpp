// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace edl::testing::kubernetes {

/// Writes ca.crt, and a server's and a client's certificate that it signs (server.crt, server.key;
/// client.crt, client.key), into `directory`. The server is 127.0.0.1, localhost and kubernetes.default.svc,
/// and the client is `user`. Valid for a day. Throws std::runtime_error.
void make_certificates(std::string const& directory, std::string const& user);

/// kubeconfig, for a client that shows a token, read from `token_file`; kubeconfig-certificate, for one that
/// shows the client's certificate. `url` of http needs neither.
void write_kubeconfigs(std::string const& directory, std::string const& url, std::string const& token_file,
                       std::string const& space);

void write_file(std::string const& path, std::string const& text);

}  // namespace edl::testing::kubernetes
