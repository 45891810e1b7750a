// The processes that may take part in a training, and their proofs. Needs OpenSSL.
// needs: openssl
#pragma once
#include <arpa/inet.h>
#include <openssl/evp.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/control/membership.hpp>
#include <strata/io/open_file.hpp>
#include <strata/net/dial.hpp>
#include <strata/net/endpoint.hpp>
#include <strata/net/same_user.hpp>
#include <strata/net/tls_stream.hpp>
#include <strata/net/training_secret.hpp>
#include <string>

namespace strata {

/// PEM files: the trusted authority, and the certificate and key of this process. Both sides present their certificates. The
/// certificate of a server has to have the host or address by which the others reach it.
struct mutual_tls {
  std::string authority, certificate, key;
};

/// Connections are encrypted, with certificates or with the secret of the training, where there are any; also on one machine,
/// because `ssh -L`, `kubectl port-forward` or socat connect others as a process of this user. Without them, only processes of
/// the same user of this machine are let in.
struct control_options {
  std::optional<mutual_tls> tls{};
  std::optional<training_secret> secret{};  // left out: that of STRATA_SECRET, or of the file that STRATA_SECRET_FILE names
  bool unprotected = false;                 // lets any process in, without encryption: only on a network that you trust
  int connections = 512;                    // that a server keeps open, of about 60 KB each. At least one per process
  heartbeat_options heartbeat{};
  /// The coordinator calls it, on a thread of its own, with a message about the process for which the others wait.
  std::function<void(const std::string&)> on_slow_process = [](const std::string& what) {
    std::clog << detail::visible(what) + '\n';
  };
  /// Every process calls it while it waits for others before a training begins: after 2, 4, 8, ... s.
  std::function<void(const std::string&)> on_waiting = [](const std::string& what) { std::clog << detail::visible(what) + '\n'; };
};

namespace detail {

/// How a connection is protected.
enum class protection : std::uint8_t { none, tls, refused };

/// The proofs that the processes of a training present and require.
class admission {
  std::optional<tls_identity> identity_;
  bool needs_certificate_ = false, lets_all_in_ = false;

 public:
  /// Throws strata_error if a certificate or the secret is of no use.
  explicit admission(const control_options& options) : lets_all_in_(options.unprotected) {
    const auto secret = options.tls || options.secret ? options.secret : secret_of_environment();
    if (options.tls) {
      needs_certificate_ = true;
      for (const std::string* path : {&options.tls->authority, &options.tls->certificate})
        check_pem(*path, io::content_of(*path));
      check_pem(options.tls->key, io::secret_content_of(options.tls->key));
      identity_.emplace(pem_files{options.tls->authority, options.tls->certificate, options.tls->key});
    } else if (secret) {
      identity_.emplace(key_of(*secret));
    }
  }

  /// True if all messages to other machines are encrypted.
  bool encrypts() const { return identity_.has_value(); }
  bool needs_certificate() const { return needs_certificate_; }
  const tls_identity& identity() const { return *identity_; }

  /// The protection of a connection with an address of this machine or another one. `is_own` returns true if the other side
  /// belongs to the same user; it is only called without an identity, and for this machine.
  template <class IsOwn>
  protection of(const socket_address& other, IsOwn&& is_own) const {
    if (identity_) return protection::tls;
    if (other.is_loopback() && is_own().value_or(false)) return protection::none;
    return lets_all_in_ ? protection::none : protection::refused;
  }

  /// Throws strata_error if processes of other machines could come in without a proof. Its text also has why the host has
  /// no address, if so: its name may be misspelt.
  void refuse_if_open(const endpoint& where) const {
    if (identity_ || lets_all_in_ || is_loopback(where.host)) return;
    std::string unknown;
    try {
      (void)addresses_of(where, 0, std::chrono::steady_clock::now() + std::chrono::seconds(2));
    } catch (const communication_error& e) {
      unknown = text_of({"; and ", e.what()});
    }
    throw_error({"the control plane at ", to_string(where),
                 " can be reached from other machines: give all processes the same secret in STRATA_SECRET (openssl rand -hex 16 "
                 "makes one), or certificates in control_options.tls, or set control_options.unprotected on a network that "
                 "you trust",
                 unknown});
  }
  /// True if any process that reaches this address is admitted.
  bool is_open(const endpoint& where) const { return !identity_ && lets_all_in_ && !is_loopback(where.host); }

  /// Parses addresses instead of comparing prefixes of names: 127.0.0.1.example.org is another machine.
  static bool is_loopback(const std::string& host) {
    socket_address a;
    if (::inet_pton(AF_INET, host.c_str(), &reinterpret_cast<::sockaddr_in&>(a.bytes).sin_addr) == 1)
      a.bytes.ss_family = AF_INET;
    else if (::inet_pton(AF_INET6, host.c_str(), &reinterpret_cast<::sockaddr_in6&>(a.bytes).sin6_addr) == 1)
      a.bytes.ss_family = AF_INET6;
    return a.is_loopback() || same_host(host, "localhost");
  }

 private:
  /// OpenSSL's reasons do not describe what is wrong with a file.
  static void check_pem(const std::string& path, const std::string& text) {
    if (text.empty()) throw_error({path, " is empty"});
    if (text.find("-----BEGIN ") == text.npos || text.find("-----END ") == text.npos)
      throw_error({path, " is not a PEM file, or is truncated"});
  }
  static shared_key key_of(const training_secret& secret) {
    const std::string text = "strata training " + lower_case(secret.digits());
    shared_key key{};
    unsigned bytes = 0;
    if (::EVP_Digest(text.data(), text.size(), key.data(), &bytes, ::EVP_sha256(), nullptr) != 1 || bytes != key.size())
      throw_error("OpenSSL has no SHA-256");
    return key;
  }
};

}  // namespace detail
}  // namespace strata
