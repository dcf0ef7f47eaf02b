// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "edl/base/net/security/certificates.hpp"
#include "edl/base/net/security/openssl.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::net {
namespace detail {

inline std::string text_of(X509_NAME const* name) {
  openssl_ptr<BIO, BIO_free> const out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  char* data = nullptr;
  auto const size = BIO_get_mem_data(out.get(), &data);
  return printable({data, std::size_t(size)}, 200);
}

inline std::string text_of(ASN1_TIME const* time) {
  std::tm t{};
  if (!ASN1_TIME_to_tm(time, &t)) return "an unknown time";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
                     t.tm_hour, t.tm_min);
}

inline std::string names_of(X509 const* certificate) {
  std::string text;
  openssl_ptr<GENERAL_NAMES, GENERAL_NAMES_free> const names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < std::min(sk_GENERAL_NAME_num(names.get()), 20); ++i) {
    auto const* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS && name->type != GEN_IPADD) continue;  // other kinds hold no string
    auto const* const bytes = ASN1_STRING_get0_data(name->d.ia5);
    int const size = ASN1_STRING_length(name->d.ia5);
    char number[INET6_ADDRSTRLEN] = "";
    if (name->type == GEN_DNS)
      text += fmt::format("{}{}", text.empty() ? "" : ", ",
                          printable({reinterpret_cast<char const*>(bytes), std::size_t(size)}, 200));
    else if ((size == 4 || size == 16) &&
             ::inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, number, sizeof number))
      text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  }
  return text.empty() ? "no name" : text;
}

inline std::string why_untrusted(int code, X509* certificate, verification const& v) {
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("the certificate of {} expired on {}: it must be renewed",
                         text_of(X509_get_subject_name(certificate)),
                         text_of(X509_get0_notAfter(certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("the certificate of {} is not valid before {}: is this machine's clock right?",
                         text_of(X509_get_subject_name(certificate)),
                         text_of(X509_get0_notBefore(certificate)));
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format("its certificate is for {}, not for {}: use one of these names{}",
                         names_of(certificate), v.name, v.other_name);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return fmt::format(
          "its certificate is signed by {}, an authority that this process does not trust: is this the right "
          "server{}?",
          text_of(X509_get_issuer_name(certificate)), v.other_authority);
    default:
      return fmt::format("its certificate cannot be verified: {}", X509_verify_cert_error_string(code));
  }
}

// OpenSSL reports each problem before it gives up; the first one is kept.
inline int on_certificate(int ok, X509_STORE_CTX* context) {
  if (ok) return 1;
  auto const* const tls =
      static_cast<SSL const*>(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* const v = static_cast<verification*>(SSL_get_app_data(tls));
  if (v && v->problem.empty())
    v->problem =
        why_untrusted(X509_STORE_CTX_get_error(context), X509_STORE_CTX_get_current_cert(context), *v);
  return 0;
}

// OpenSSL's own sockets write without MSG_NOSIGNAL: writing to a closed connection would kill the process by
// SIGPIPE.
inline int socket_of(BIO* bio) { return int(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

inline int bio_write(BIO* bio, char const* data, int size) {
  BIO_clear_retry_flags(bio);
  auto const n = ::send(socket_of(bio), data, std::size_t(size), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return int(n);
}

inline int bio_read(BIO* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  auto const n = ::recv(socket_of(bio), into, std::size_t(size), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return int(n);
}

inline long bio_control(BIO* bio, int what, long, void*) {
  if (what == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
  return what == BIO_CTRL_FLUSH;
}

inline BIO* socket_bio(int fd) {
  static openssl_ptr<BIO_METHOD, BIO_meth_free> const method = [] {
    auto* const m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without signals");
    BIO_meth_set_write(m, bio_write);
    BIO_meth_set_read(m, bio_read);
    BIO_meth_set_ctrl(m, bio_control);
    return openssl_ptr<BIO_METHOD, BIO_meth_free>(m);
  }();
  auto* const bio = BIO_new(method.get());
  BIO_set_data(bio, reinterpret_cast<void*>(std::intptr_t(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

inline bool is_address(std::string const& host) {
  unsigned char bytes[16];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

inline openssl_ptr<BIO, BIO_free> bio_of(std::string const& text) {
  return openssl_ptr<BIO, BIO_free>(BIO_new_mem_buf(text.data(), int(text.size())));
}

// Calls `each` with every certificate.
template <class F>
void each_certificate(pem const& from, F&& each) {
  auto const in = bio_of(from.text);
  for (int n = 0;; ++n) {
    ERR_clear_error();
    openssl_ptr<X509, X509_free> const c(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
    if (c) {
      each(c.get(), n);
      continue;
    }
    bool const end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    if (end && n > 0) return;
    throw error(fmt::format("{}: {}", from.name, end ? "no certificates in PEM" : "it is damaged"));
  }
}

// Without this callback OpenSSL prompts on the terminal.
inline int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

}  // namespace detail

EDL_INLINE std::shared_ptr<ssl_ctx_st> make_tls_context(bool of_server) {
  std::shared_ptr<ssl_ctx_st> context(SSL_CTX_new(of_server ? TLS_server_method() : TLS_client_method()),
                                      SSL_CTX_free);
  if (!context) throw error("TLS cannot be used: " + openssl_errors());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  return context;
}

EDL_INLINE void use_certificate(ssl_ctx_st& c, pem const& chain, pem const& key) {
  detail::each_certificate(chain, [&](X509* x, int i) {
    if (i == 0)
      SSL_CTX_use_certificate(&c, x);
    else
      SSL_CTX_add1_chain_cert(&c, x);
  });
  bool asked = false;
  openssl_ptr<EVP_PKEY, EVP_PKEY_free> const secret(
      PEM_read_bio_PrivateKey(detail::bio_of(key.text).get(), nullptr, detail::no_passphrase, &asked));
  bool const fits =
      secret && SSL_CTX_use_PrivateKey(&c, secret.get()) == 1 && SSL_CTX_check_private_key(&c) == 1;
  std::string const why = openssl_errors("");
  if (asked)
    throw error(
        fmt::format("{}: the private key is encrypted, and edl does not prompt for a passphrase: decrypt it "
                    "(openssl pkey -in FILE -out NEW)",
                    key.name));
  if (!fits)
    throw error(
        fmt::format("{}: no private key of {}{}{}", key.name, chain.name, why.empty() ? "" : ": ", why));
}

EDL_INLINE std::shared_ptr<ssl_ctx_st> load_trust(trust const& t) {
  auto context = make_tls_context(false);
  auto* const c = context.get();
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(c, t.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
                     t.insecure ? nullptr : detail::on_certificate);
  if (t.authorities.text.empty()) {
    SSL_CTX_set_default_verify_paths(c);
  } else {
    auto* const store = SSL_CTX_get_cert_store(c);
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    detail::each_certificate(t.authorities, [&](X509* x, int) { X509_STORE_add_cert(store, x); });
  }
  if (!t.certificate.text.empty()) use_certificate(*c, t.certificate, t.key);
  return context;
}

EDL_INLINE ssl_st* start_tls(ssl_ctx_st& context, int fd, verification& v) {
  auto* const tls = SSL_new(&context);
  if (!tls) throw error("TLS cannot be used: " + openssl_errors());
  auto* const bio = detail::socket_bio(fd);
  SSL_set_bio(tls, bio, bio);
  auto* const parameters = SSL_get0_param(tls);
  X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (detail::is_address(v.name)) {
    X509_VERIFY_PARAM_set1_ip_asc(parameters, v.name.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(parameters, v.name.c_str(), v.name.size());
    SSL_set_tlsext_host_name(tls, v.name.c_str());
  }
  SSL_set_app_data(tls, &v);
  return tls;
}

EDL_INLINE void end_verification(ssl_st& session) { SSL_set_app_data(&session, nullptr); }

}  // namespace edl::net
