// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <utility>

/// Makes certificates for tests.
namespace test {

struct identity {
  std::shared_ptr<EVP_PKEY> secret;
  std::shared_ptr<X509> signed_by_issuer;
  std::string certificate, key;  ///< PEM
};

struct about {
  std::string name = "server";
  std::string alternatives;  ///< "DNS:localhost,IP:127.0.0.1"
  bool authority = false;
  long from = -3600, until = 3600;  ///< seconds from now
};

inline std::string text_of(BIO* bio) {
  char* data = nullptr;
  auto const size = BIO_get_mem_data(bio, &data);
  std::string text(data, std::size_t(size));
  BIO_free(bio);
  return text;
}

/// Signed by `issuer`, or by itself.
inline identity make_identity(about const& a, identity const* issuer = nullptr) {
  identity made;
  made.secret = {EVP_EC_gen("P-256"), EVP_PKEY_free};
  made.signed_by_issuer = {X509_new(), X509_free};
  auto* const x = made.signed_by_issuer.get();
  X509_set_version(x, X509_VERSION_3);
  static long serial = 1;
  ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(x), a.from);
  X509_gmtime_adj(X509_getm_notAfter(x), a.until);
  X509_set_pubkey(x, made.secret.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                             reinterpret_cast<unsigned char const*>(a.name.c_str()), -1, -1, 0);
  X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer->signed_by_issuer.get() : x));
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer ? issuer->signed_by_issuer.get() : x, x, nullptr, nullptr, 0);
  auto const extend = [&](int id, std::string const& value) {
    auto* const e = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
  };
  extend(NID_basic_constraints, a.authority ? "critical,CA:TRUE" : "CA:FALSE");
  if (!a.alternatives.empty()) extend(NID_subject_alt_name, a.alternatives);
  X509_sign(x, issuer ? issuer->secret.get() : made.secret.get(), EVP_sha256());
  auto* out = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(out, x);
  made.certificate = text_of(out);
  out = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(out, made.secret.get(), nullptr, nullptr, 0, nullptr, nullptr);
  made.key = text_of(out);
  return made;
}

/// An authority, and a server of it that is at 127.0.0.1, [::1] and "localhost".
struct authority {
  identity self = make_identity({.name = "test authority", .authority = true});
  identity server = make_identity({.alternatives = "DNS:localhost,IP:127.0.0.1,IP:::1"}, &self);
};

}  // namespace test
