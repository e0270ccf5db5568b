// SPDX-License-Identifier: Apache-2.0
// Goal: with TLS only nodes talk that the same authority has signed. Method: certificates made by
// the openssl command, and nodes of this machine.
#include "tests/actors/net/hostile_peer.hpp"
#include "tests/actors/net/station.hpp"
#include "tests/scratch_folder.hpp"

#include <array>
#include <cstdlib>
#include <fmt/format.h>

namespace tls_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// Signs certificates, and keeps them in a folder of its own.
class authority {
public:
  explicit authority(const std::string& name = "ours") {
    run(fmt::format("req -x509 {} -keyout {} -out {} -subj /CN={} -days 10", new_key,
                    path("ca.key"), path("ca.pem"), name));
  }

  // @param days From now; below 0: it has expired.
  tls_files sign(const std::string& name, int days = 10) {
    run(fmt::format("req {} -keyout {} -out {} -subj /CN={}", new_key, path(name + ".key"),
                    path(name + ".csr"), name));
    run(fmt::format("x509 -req -in {} -CA {} -CAkey {} -CAcreateserial -days {} -out {}",
                    path(name + ".csr"), path("ca.pem"), path("ca.key"), days,
                    path(name + ".pem")));
    return {path("ca.pem"), path(name + ".pem"), path(name + ".key")};
  }

  // @returns The same key with a pass phrase.
  [[nodiscard]] std::string encrypt(const std::string& key) const {
    auto encrypted = key + ".encrypted";
    run(fmt::format("pkey -in {} -aes128 -passout pass:x -out {}", key, encrypted));
    return encrypted;
  }

  [[nodiscard]] std::string path(const std::string& file) const {
    return (folder_.path() / file).string();
  }

private:
  static constexpr const char* new_key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";

  static void run(const std::string& words) {
    auto line = fmt::format("openssl {} 2>/dev/null", words);
    REQUIRE_MESSAGE(std::system(line.c_str()) == 0, line); // NOLINT(cert-env33-c): of ours
  }

  scratch_folder folder_;
};

socket_network_options with(socket_network_options options, const tls_files& files) {
  options.tls = files;
  return options;
}

// The error at the second of two nodes that do not trust each other.
error refusal(const tls_files& first, const tls_files& second) {
  station chief{with(options_of(0), first)};
  station worker{with(options_of(1, chief.network->listening_at()), second)};
  auto arrival = worker.network->arrival(0);
  REQUIRE(arrival.wait_for(30s) == std::future_status::ready);
  auto refused = arrival.get();
  CHECK(chief.network->arrival(1).wait_for(0s) != std::future_status::ready);
  return refused ? error{} : refused.error();
}

} // namespace

TEST_SUITE("actors/net/sockets/tls") {
  TEST_CASE("nodes of one authority talk, with messages of any length") {
    authority ours;
    station chief{with(options_of(0), ours.sign("chief"))};
    station worker{with(options_of(1, chief.network->listening_at()), ours.sign("worker"))};
    auto near = chief.publish("successor", successor);
    auto far = worker.find(0, "successor");
    auto answer = ask<msg<wire::Token>>(worker.world, far, make_token(7));
    REQUIRE(answer);
    CHECK(answer->reader().getStep() == 8);
    auto push = make_push_gradient({.replica = 3}, zeros({3'000'000}));
    CHECK(ask<msg<wire::PushReply>>(worker.world, far, push));
    caf::anon_send_exit(near, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("a certificate of another authority is refused, and the reason named") {
    authority ours;
    authority theirs{"theirs"};
    auto reason = refusal(ours.sign("chief"), theirs.sign("worker"));
    CHECK(reason.code == errc::failed_precondition);
    CHECK(reason.message.find("TLS: its certificate is refused: ") != std::string::npos);
    // A peer that trusts us, but that we do not trust.
    auto spy = theirs.sign("spy");
    spy.authority = ours.path("ca.pem");
    reason = refusal(ours.sign("chief"), spy);
    CHECK(reason.code == errc::failed_precondition);
    CHECK(reason.message.ends_with("TLS: it says: tlsv1 alert unknown ca"));
  }

  TEST_CASE("an expired certificate is refused, on either side") {
    authority ours;
    auto reason = refusal(ours.sign("chief"), ours.sign("worker", -1));
    CHECK(reason.code == errc::failed_precondition);
    CHECK(reason.message.ends_with("TLS: it says: sslv3 alert certificate expired"));
    reason = refusal(ours.sign("chief", -1), ours.sign("worker"));
    CHECK(reason.code == errc::failed_precondition);
    CHECK(reason.message.ends_with("TLS: its certificate is refused: certificate has expired"));
  }

  TEST_CASE("a node without TLS finds no way in, and is told where to look") {
    authority ours;
    station chief{with(options_of(0), ours.sign("chief"))};
    station worker{options_of(1, chief.network->listening_at())};
    CHECK(worker.warning.wait().ends_with(
      "; it has ended, or is no task of this job, or only one of the two uses TLS"));
  }

  TEST_CASE(
    "an answer without TLS, of a program that was there before, ends no wait for the peer") {
    using boost::asio::ip::tcp;
    authority ours;
    boost::asio::io_context io;
    tcp::acceptor before{io, {boost::asio::ip::address_v4::loopback(), 0}};
    auto address = fmt::format("127.0.0.1:{}", before.local_endpoint().port());
    station worker{with(options_of(1, address), ours.sign("worker"))};
    {
      auto dialed = before.accept();
      std::array<char, 1> begun{};
      boost::asio::read(dialed, boost::asio::buffer(begun));
      boost::asio::write(dialed, boost::asio::buffer(std::string{"HTTP/1.1 400 Bad Request\r\n"}));
      CHECK(worker.warning.wait().find("TLS: it says: wrong version number; ")
            != std::string::npos);
    }
    before.close();
    station chief{with(options_of(0, address), ours.sign("chief"))};
    auto arrival = worker.network->arrival(0);
    REQUIRE(arrival.wait_for(30s) == std::future_status::ready);
    CHECK(arrival.get());
  }

  TEST_CASE("a file that is missing, no PEM, or another's key is named") {
    authority ours;
    auto files = ours.sign("chief");
    auto other = ours.sign("other");
    auto reason_of = [](tls_files given) {
      auto loaded = load_tls_identity(given);
      return loaded ? error{} : loaded.error();
    };
    CHECK(reason_of(files).code == errc::none);
    auto missing = files;
    missing.authority = ours.path("nowhere.pem");
    CHECK(reason_of(missing).code == errc::not_found);
    CHECK(reason_of(missing).message.find("nowhere.pem") != std::string::npos);
    auto garbage = files;
    garbage.certificate = files.key;
    CHECK(reason_of(garbage).code == errc::malformed);
    auto mixed = files;
    mixed.key = other.key;
    CHECK(reason_of(mixed).code == errc::invalid_argument);
    CHECK(reason_of(mixed).message.find("other.key") != std::string::npos);
    auto encrypted = files;
    encrypted.key = ours.encrypt(files.key);
    CHECK(reason_of(encrypted).message.find("is encrypted") != std::string::npos);
  }
}

} // namespace tls_test
