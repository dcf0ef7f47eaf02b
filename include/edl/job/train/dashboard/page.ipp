// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include "edl/core/inline.hpp"
#include "edl/job/train/dashboard/page.hpp"

namespace edl::train {
namespace detail {

/// A digest in the notation of Content-Security-Policy.
inline std::string digest_of(std::string const& text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<unsigned char const*>(text.data()), text.size(), digest);
  char base64[64];
  int const n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(base64), digest, sizeof digest);
  return fmt::format("'sha256-{}'", std::string_view(base64, std::size_t(n)));
}

}  // namespace detail

EDL_INLINE dashboard_page make_dashboard_page() { return make_page(dashboard_body(), dashboard_script()); }

EDL_INLINE dashboard_page make_page(std::string_view body, std::string_view of_its_own) {
  std::string const style(dashboard_style());
  // After the first paint, which a page that is not seen never has.
  std::string const script = fmt::format(
      "let begun = false;\nfunction begin() {{\nif (begun) return;\nbegun = true;\n{}{}{}{}}}\n"
      "requestAnimationFrame(() => setTimeout(begin));\nsetTimeout(begin, 200);\n",
      dashboard_curves(), dashboard_runs(), dashboard_live(), of_its_own);
  return {
      .text = fmt::format("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                          "<meta name=\"color-scheme\" content=\"light dark\">\n<title>edl</title>\n"
                          "<link rel=\"icon\" href=\"data:,\">\n<style>{}</style>\n</head>\n{}"
                          "<script>{}</script>\n</html>\n",
                          style, body, script),
      .policy = fmt::format("default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src "
                            "data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                            detail::digest_of(script), detail::digest_of(style))};
}

}  // namespace edl::train
