// SPDX-License-Identifier: Apache-2.0
#include "edl/base/http/credentials.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "scratch_directory.hpp"
#include "text.hpp"

namespace credentials_test {

using edl::http::credentials;

struct lines final : edl::line_sink {
  void write(std::string_view some) override { text += some; }
  std::string text;
};

void write(std::string const& path, std::string const& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// As Kubernetes puts the next version of a Secret into its place.
void swap(std::string const& link, std::string const& to) {
  std::filesystem::create_symlink(to, link + ".new");
  std::filesystem::rename(link + ".new", link);
}

void make_pems(std::string const& directory, std::string const& how = "-nodes") {
  std::filesystem::create_directory(directory);
  REQUIRE(std::system(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 " + how +
                       " -days 2 -subj /CN=localhost -keyout " + directory + "/key -out " + directory +
                       "/chain >/dev/null 2>&1")
                          .c_str()) == 0);
}

struct fixture {
  edl::http::server_options options() const {
    return {.log = edl::logger(edl::severity::info, "", {.detailed = false, .to = said})};
  }
  scratch dir;
  std::shared_ptr<lines> said = std::make_shared<lines>();
};

std::string const one = "one-secret-token-1", two = "two-secret-token-2", three = "three-secret-token";

TEST_CASE("a new token is taken at the second look, and the one before for a while") {
  fixture f;
  write(f.dir / "token", one + "\n");
  auto o = f.options();
  o.token_file = f.dir / "token";
  credentials c(o);
  CHECK(c.wants_token());
  CHECK(c.takes(one));
  CHECK_FALSE(c.takes(two));
  write(f.dir / "token", " " + two + " \nwhat follows is none\n");
  c.look(c.read());
  CHECK_FALSE(c.takes(two));  // it may be about to be written
  for (int i = 0; i < 3; ++i) c.look(c.read());
  CHECK(count(f.said->text, "a new token; the previous one is accepted for 120 s more") == 1);
  CHECK(c.takes(two));
  CHECK(c.takes(one));
  write(f.dir / "token", three);
  for (int i = 0; i < 3; ++i) c.look(c.read());
  CHECK(c.takes(three));
  CHECK(c.takes(two));
  CHECK(c.takes(one));  // each for as long as was said
  CHECK_FALSE(c.takes(""));
  o.token_grace = {};
  credentials strict(o);
  write(f.dir / "token", one);
  for (int i = 0; i < 2; ++i) strict.look(strict.read());
  CHECK(strict.takes(one));
  CHECK_FALSE(strict.takes(three));
}

TEST_CASE("a token file that is broken is told once, and the token stays") {
  fixture f;
  auto o = f.options();
  o.token_file = f.dir / "token";
  CHECK(complaint([&] { credentials{o}; }) ==
        "--token_file=" + (f.dir / "token") + ": No such file or directory");
  write(f.dir / "token", "short");
  CHECK(complaint([&] { credentials{o}; }) ==
        "--token_file=" + (f.dir / "token") + ": its first line is not a token of 16 characters or more");
  write(f.dir / "token", one);
  credentials c(o);
  write(f.dir / "token", "");
  c.look(c.read());
  CHECK(f.said->text.empty());  // it may be about to be written
  for (int i = 0; i < 5; ++i) c.look(c.read());
  CHECK(count(f.said->text, "; keeping the previous token") == 1);
  CHECK(c.takes(one));
  std::filesystem::remove(f.dir / "token");
  for (int i = 0; i < 5; ++i) c.look(c.read());
  CHECK(count(f.said->text, "No such file or directory; keeping the previous token") == 1);
  CHECK(c.takes(one));
  write(f.dir / "token", two);
  for (int i = 0; i < 2; ++i) c.look(c.read());
  CHECK(c.takes(two));
}

TEST_CASE("a new certificate takes the place of the one before, and a broken one does not") {
  fixture f;
  make_pems(f.dir / "a");
  make_pems(f.dir / "b");
  swap(f.dir / "now", "a");
  auto o = f.options();
  o.certificate = f.dir / "now/chain";
  o.key = f.dir / "now/key";
  credentials c(o);
  REQUIRE(c.certificate());
  swap(f.dir / "now", "b");
  for (int i = 0; i < 3; ++i) c.look(c.read());
  CHECK(count(f.said->text,
              "--tls_certificate=" + o.certificate + ": a new certificate, for new connections") == 1);
  std::filesystem::copy_file(f.dir / "a/key", f.dir / "b/key",
                             std::filesystem::copy_options::overwrite_existing);
  for (int i = 0; i < 3; ++i) c.look(c.read());
  CHECK(count(f.said->text, "--tls_key=" + o.key + ": no private key of --tls_certificate=") == 1);
  CHECK(count(f.said->text, "; keeping the previous certificate") == 1);
  CHECK(c.certificate());
  std::filesystem::remove(f.dir / "now");
  for (int i = 0; i < 3; ++i) c.look(c.read());
  CHECK(count(f.said->text, "No such file or directory; keeping the previous certificate") == 1);
  swap(f.dir / "now", "a");
  for (int i = 0; i < 3; ++i) c.look(c.read());
  CHECK(count(f.said->text, "a new certificate") == 2);
}

TEST_CASE("nobody is asked for a passphrase, and what cannot be used is named with its flag") {
  fixture f;
  make_pems(f.dir / "e", "-passout pass:secret");
  make_pems(f.dir / "p");
  auto o = f.options();
  o.flags = "--dashboard_";
  o.certificate = f.dir / "e/chain";
  o.key = f.dir / "e/key";
  CHECK(contains(complaint([&] { credentials{o}; }),
                 "--dashboard_key=" + o.key + ": the private key is encrypted, and edl does not prompt"));
  // As older versions of OpenSSL encrypt one.
  REQUIRE(std::system(("openssl ec -in " + (f.dir / "p/key") + " -aes128 -passout pass:secret -out " +
                       (f.dir / "e/old") + " >/dev/null 2>&1")
                          .c_str()) == 0);
  o.certificate = f.dir / "p/chain";
  o.key = f.dir / "e/old";
  CHECK(contains(complaint([&] { credentials{o}; }), "the private key is encrypted"));
  o.key = f.dir / "e/chain";
  CHECK(contains(complaint([&] { credentials{o}; }),
                 "--dashboard_key=" + o.key + ": no private key of --dash"));
  o.certificate = f.dir / "p/key";
  CHECK(contains(complaint([&] { credentials{o}; }),
                 "--dashboard_certificate=" + o.certificate + ": no certif"));
  o.certificate = f.dir.path();
  CHECK(contains(complaint([&] { credentials{o}; }), "--dashboard_certificate=" + o.certificate + ": "));
}

}  // namespace credentials_test
