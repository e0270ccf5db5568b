// SPDX-License-Identifier: Apache-2.0
// Goal: a container asks the API server of its own cluster, and no other, as its service account.
// Method: a server of https on this machine, with certificates made by the openssl command.
#include "strategies/cluster/resolvers/kubernetes_resolver.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/data/refusal.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

#include <atomic>
#include <cstdlib>
#include <fmt/format.h>
#include <thread>
#include <utility>

namespace kubernetes_https_test {

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using test::refusal;
namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto one_pod
  = R"({"items": [{"metadata": {"name": "a"}, "status": {"phase": "Running", "hostIP": "10.0.0.1"}}]})";

/// The certificates and the token of a container, and of the server of its cluster.
class service_account {
public:
  service_account() {
    run(fmt::format("req -x509 {} -keyout {} -out {} -subj /CN=kubernetes -days 10", new_key,
                    path("ca.key"), path("ca.crt")));
    test::write(folder_ / "token", "secret\n");
  }

  // @param name The server's name, "IP:127.0.0.1". @param days From now; below 0: it has expired.
  void sign(const std::string& name, int days = 10) {
    test::write(folder_ / "extensions", fmt::format("subjectAltName={}\n", name));
    run(fmt::format("req {} -keyout {} -out {} -subj /CN=server", new_key, path("server.key"),
                    path("server.csr")));
    run(fmt::format("x509 -req -in {} -CA {} -CAkey {} -CAcreateserial -days {} -extfile {} -out "
                    "{}",
                    path("server.csr"), path("ca.crt"), path("ca.key"), days, path("extensions"),
                    path("server.crt")));
  }

  [[nodiscard]] std::string path(const std::string& file) const {
    return (folder_.path() / file).string();
  }

  [[nodiscard]] std::string folder() const { return folder_.path().string(); }

private:
  static constexpr const char* new_key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";

  static void run(const std::string& words) {
    auto line = fmt::format("openssl {} 2>/dev/null", words);
    REQUIRE_MESSAGE(std::system(line.c_str()) == 0, line); // NOLINT(cert-env33-c): of ours
  }

  test::scratch_folder folder_;
};

/// Answers one request over TLS.
class api_server {
public:
  api_server(const service_account& account, std::string answer) : answer_(std::move(answer)) {
    tls_.use_certificate_chain_file(account.path("server.crt"));
    tls_.use_private_key_file(account.path("server.key"), ssl::context::pem);
    thread_ = std::thread{[this] { serve(); }};
  }

  api_server(const api_server&) = delete;
  api_server& operator=(const api_server&) = delete;

  ~api_server() {
    error_code ignored;
    tcp::socket last{context_}; // ends the wait of a server that was never asked
    if (!is_over_) last.connect(acceptor_.local_endpoint(), ignored);
    last.close(ignored);
    thread_.join();
  }

  [[nodiscard]] std::string port() const {
    return std::to_string(acceptor_.local_endpoint().port());
  }

  [[nodiscard]] std::string asked() const { return is_over_ ? asked_ : std::string{}; }

private:
  void serve() {
    error_code failed;
    tcp::socket socket{context_};
    acceptor_.accept(socket, failed);
    ssl::stream<tcp::socket> stream{std::move(socket), tls_};
    stream.handshake(ssl::stream_base::server, failed);
    if (!failed) asio::read_until(stream, asio::dynamic_buffer(asked_), "\r\n\r\n", failed);
    if (!failed) is_over_ = true;
    if (!failed) asio::write(stream, asio::buffer(answer_), failed);
    if (!failed) stream.shutdown(failed);
  }

  std::string answer_;
  std::string asked_;
  std::atomic<bool> is_over_ = false;
  asio::io_context context_;
  ssl::context tls_{ssl::context::tls_server};
  tcp::acceptor acceptor_{context_, {asio::ip::address_v4::loopback(), 0}};
  std::thread thread_;
};

std::string answer(const std::string& status, const std::string& body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body);
}

kubernetes_api api_of(const service_account& account, const api_server& server) {
  return kubernetes_within_cluster(fixed_environment({{"KUBERNETES_SERVICE_HOST", "127.0.0.1"},
                                                      {"KUBERNETES_SERVICE_PORT", server.port()}}),
                                   account.folder());
}

// Asks a server that gives the answer `said`.
expected<std::string> ask(const service_account& account, const std::string& said) {
  api_server server{account, said};
  return kubernetes_over_http(api_of(account, server))("/api/v1/pods");
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_SUITE("strategies/cluster/resolvers/kubernetes_https") {
  TEST_CASE("a container asks its API server over https, as its service account") {
    service_account account;
    account.sign("IP:127.0.0.1");
    api_server server{account, answer("200 OK", one_pod)};
    kubernetes_resolver resolver{{.name_space = "train"},
                                 kubernetes_over_http(api_of(account, server))};
    CHECK(resolver.cluster_spec()
          == cluster_spec{{"worker", std::vector<std::string>{"10.0.0.1:8470"}}});
    CHECK(has(server.asked(), "GET /api/v1/namespaces/train/pods?labelSelector="));
    CHECK(has(server.asked(), "Authorization: Bearer secret\r\n"));
  }

  TEST_CASE("a server with another certificate than the cluster's is not told the token") {
    service_account account;
    service_account other;
    other.sign("IP:127.0.0.1");
    api_server server{other, answer("200 OK", one_pod)};
    auto asked = kubernetes_over_http(api_of(account, server))("/api/v1/pods");
    REQUIRE_FALSE(asked);
    CHECK(asked.error().code == errc::failed_precondition);
    CHECK(
      has(asked.error().message, "127.0.0.1:" + server.port() + ": its certificate is refused"));
    CHECK(server.asked().empty());
  }

  TEST_CASE("a certificate that has expired, or is of another host, is refused") {
    service_account account;
    account.sign("IP:127.0.0.1", -1);
    auto expired = ask(account, answer("200 OK", one_pod));
    REQUIRE_FALSE(expired);
    CHECK(expired.error().code == errc::failed_precondition);
    CHECK(expired.error().message.ends_with("its certificate is refused: certificate has expired"));
    account.sign("IP:10.96.0.1,DNS:kubernetes.default.svc");
    auto elsewhere = ask(account, answer("200 OK", one_pod));
    REQUIRE_FALSE(elsewhere);
    CHECK(elsewhere.error().message.ends_with("its certificate is refused: IP address mismatch"));
  }

  TEST_CASE("a host by name is checked by that name") {
    service_account account;
    account.sign("DNS:localhost");
    api_server server{account, answer("200 OK", one_pod)};
    auto api = api_of(account, server);
    api.where.host = "localhost";
    CHECK(kubernetes_over_http(api)("/api/v1/pods"));
  }

  TEST_CASE("an account that may not ask is told which permission is missing") {
    service_account account;
    account.sign("IP:127.0.0.1");
    auto forbidden = ask(
      account, answer("403 Forbidden", R"({"kind": "Status", "message": "pods is forbidden"})"));
    REQUIRE_FALSE(forbidden);
    CHECK(forbidden.error().code == errc::failed_precondition);
    CHECK(has(forbidden.error().message, "with status 403: pods is forbidden; give the service "
                                         "account a Role with the verb \"list\" for \"pods\""));
    auto unknown = ask(account, answer("401 Unauthorized", "{}"));
    REQUIRE_FALSE(unknown);
    CHECK(unknown.error().code == errc::failed_precondition);
    CHECK(unknown.error().message.ends_with("with status 401; it does not take the token of "
                                            + account.path("token")));
    auto absent = ask(account, answer("404 Not Found", "<html>"));
    REQUIRE_FALSE(absent);
    CHECK(absent.error().code == errc::not_found);
  }

  TEST_CASE("garbage, half an answer and one that is too long are refused") {
    service_account account;
    account.sign("IP:127.0.0.1");
    CHECK(ask(account, "SSH-2.0-OpenSSH\r\n\r\n").error().code == errc::malformed);
    CHECK(ask(account, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}").error().code
          != errc::none);
    api_server server{account, answer("200 OK", std::string(1001, ' '))};
    auto api = api_of(account, server);
    api.answer_bytes_max = 1000;
    auto asked = kubernetes_over_http(api)("/api/v1/pods");
    REQUIRE_FALSE(asked);
    CHECK(asked.error().code == errc::limit_exceeded);
    CHECK(asked.error().message.ends_with(": it answers with more than 1000 bytes"));
  }

  TEST_CASE("a server without TLS, or a silent one, is not waited for longer than the deadline") {
    service_account account;
    asio::io_context context;
    tcp::acceptor silent{context, {asio::ip::address_v4::loopback(), 0}};
    auto port = silent.local_endpoint().port();
    kubernetes_api api{{"127.0.0.1", port}, account.path("token"), account.path("ca.crt"), 50ms};
    CHECK(kubernetes_over_http(api)("/api/v1/pods").error().code == errc::deadline_exceeded);
  }

  TEST_CASE("files of the account that are missing or no certificates are named") {
    service_account account;
    account.sign("IP:127.0.0.1");
    auto asked = [&](kubernetes_api api) {
      return kubernetes_over_http(std::move(api))("/api/v1/pods").error();
    };
    CHECK(asked({.authority_file = "none.crt"})
          == error{errc::not_found, "the authority's certificate none.crt cannot be read"});
    CHECK(asked({.authority_file = account.path("token")}).code == errc::malformed);
    CHECK(asked({.token_file = "none", .authority_file = account.path("ca.crt")})
          == error{errc::not_found, "cannot read a token from none"});
  }

  TEST_CASE("knows by the variables of a container that it is in one") {
    auto api
      = kubernetes_within_cluster(fixed_environment({{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}}));
    CHECK(to_string(api.where) == "10.96.0.1:443");
    CHECK(api.token_file == "/var/run/secrets/kubernetes.io/serviceaccount/token");
    CHECK(api.authority_file == "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt");
    CHECK(
      refusal([] {
        return kubernetes_within_cluster(fixed_environment({}));
      }).starts_with("failed_precondition: kubernetes_resolver: KUBERNETES_SERVICE_HOST is not"));
    CHECK(refusal([] {
            return kubernetes_within_cluster(fixed_environment(
              {{"KUBERNETES_SERVICE_HOST", "a"}, {"KUBERNETES_SERVICE_PORT", "tcp"}}));
          })
          == "invalid_argument: KUBERNETES_SERVICE_PORT is 'tcp', which is no port");
  }
}

} // namespace kubernetes_https_test
