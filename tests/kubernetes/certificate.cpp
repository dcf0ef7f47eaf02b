// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/certificate.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <fstream>
#include <memory>
#include <stdexcept>

namespace edl::testing::kubernetes {
namespace {

using key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using file = std::unique_ptr<std::FILE, decltype(&std::fclose)>;

key new_key() { return {EVP_EC_gen("P-256"), EVP_PKEY_free}; }

void extend(X509* c, X509* issuer, int what, std::string const& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, c, nullptr, nullptr, 0);
  X509_EXTENSION* e = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  X509_add_ext(c, e, -1);
  X509_EXTENSION_free(e);
}

// Signs itself without an issuer.
certificate new_certificate(long serial, std::string const& name, EVP_PKEY* of, X509* issuer,
                            EVP_PKEY* signer, std::string const& names) {
  certificate c(X509_new(), X509_free);
  X509_set_version(c.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(c.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(c.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(c.get()), 24 * 3600);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(c.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<unsigned char const*>(name.c_str()), -1, -1, 0);
  X509* const by = issuer ? issuer : c.get();
  X509_set_issuer_name(c.get(), X509_get_subject_name(by));
  X509_set_pubkey(c.get(), of);
  extend(c.get(), by, NID_basic_constraints, issuer ? "CA:FALSE" : "critical,CA:TRUE");
  extend(c.get(), by, NID_subject_key_identifier, "hash");
  extend(c.get(), by, NID_authority_key_identifier, "keyid:always");
  extend(c.get(), by, NID_key_usage,
         issuer ? "critical,digitalSignature" : "critical,keyCertSign,digitalSignature");
  if (!names.empty()) extend(c.get(), by, NID_subject_alt_name, names);
  if (!X509_sign(c.get(), signer, EVP_sha256())) throw std::runtime_error("cannot sign a certificate");
  return c;
}

void write(std::string const& directory, std::string const& name, X509* c, EVP_PKEY* k) {
  for (bool const secret : {false, true}) {
    if (secret && !k) continue;
    std::string const path = directory + "/" + name + (secret ? ".key" : ".crt");
    file const f(std::fopen(path.c_str(), "w"), std::fclose);
    if (!f || !(secret ? PEM_write_PrivateKey(f.get(), k, nullptr, nullptr, 0, nullptr, nullptr)
                       : PEM_write_X509(f.get(), c)))
      throw std::runtime_error("cannot write " + path);
  }
}

}  // namespace

void make_certificates(std::string const& directory, std::string const& user) {
  key const ca_key = new_key(), server_key = new_key(), client_key = new_key();
  certificate const ca = new_certificate(1, "kubernetes", ca_key.get(), nullptr, ca_key.get(), "");
  certificate const server = new_certificate(
      2, "kube-apiserver", server_key.get(), ca.get(), ca_key.get(),
      "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,IP:127.0.0.1");
  certificate const client = new_certificate(3, user, client_key.get(), ca.get(), ca_key.get(), "");
  write(directory, "ca", ca.get(), nullptr);
  write(directory, "server", server.get(), server_key.get());
  write(directory, "client", client.get(), client_key.get());
}

void write_file(std::string const& path, std::string const& text) {
  std::ofstream out(path, std::ios::trunc);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

void write_kubeconfigs(std::string const& directory, std::string const& url, std::string const& token_file,
                       std::string const& space) {
  auto const config = [&](std::string const& user) {
    return fmt::format(
        R"(apiVersion: v1
kind: Config
clusters:
- name: double
  cluster: {{server: "{0}"{1}}}
users:
- name: user
  user: {{{2}}}
contexts:
- name: double
  context: {{cluster: double, user: user, namespace: {3}}}
current-context: double
)",
        url, url.starts_with("https") ? fmt::format(", certificate-authority: {}/ca.crt", directory) : "",
        user, space);
  };
  write_file(directory + "/kubeconfig", config("tokenFile: " + token_file));
  write_file(
      directory + "/kubeconfig-certificate",
      config(fmt::format("client-certificate: {0}/client.crt, client-key: {0}/client.key", directory)));
}

}  // namespace edl::testing::kubernetes
