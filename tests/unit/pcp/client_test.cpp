// The client against a server that answers as told, and against the real one.
#include "pcp/client.hpp"

#include <catch2/catch.hpp>

#include "fixture.hpp"

namespace adit::pcp {
namespace {

using Kind = MappingState::Kind;

struct ClientFixture : ClientActions {
  FakeClock clock;
  Client client{clock, *this};
  Path path{address("10.10.0.2"), address("10.10.0.1")};
  std::vector<Request> sent;

  void send(const Path&, const Bytes& message) override {
    const auto parsed = parseRequest(message);
    REQUIRE(parsed.request);
    sent.push_back(*parsed.request);
  }
  [[nodiscard]] Nonce nonceFor(const WantedMapping& mapping) const override {
    Nonce nonce{};
    nonce[0] = static_cast<std::uint8_t>(mapping.firstInternal);
    nonce[1] = mapping.protocol;
    return nonce;
  }
  [[nodiscard]] double random() override { return 0; }

  static WantedMapping web(std::uint16_t external = 8080, std::uint16_t internal = 80) {
    WantedMapping wanted;
    wanted.label = "tcp/" + std::to_string(external);
    wanted.protocol = kTcp;
    wanted.firstExternal = external;
    wanted.firstInternal = internal;
    wanted.target = address("10.10.0.2");
    return wanted;
  }
  void want(const std::vector<WantedMapping>& wanted) {
    client.want(wanted, {path});
    client.poll();
  }
  /// Time goes on, to the next thing that the client has to do, and it does it.
  void next() {
    const auto when = client.nextPoll();
    REQUIRE(when);
    clock.time = std::max(clock.time, *when);
    client.poll();
  }
  void answer(ResultCode result, std::uint32_t lifetime, std::uint32_t epoch = 100,
              std::size_t which = SIZE_MAX) {
    const Request& request = sent.at(std::min(which, sent.size() - 1));
    Response response{.opcode = Opcode::Map,
                      .result = result,
                      .lifetime = lifetime,
                      .epoch = epoch,
                      .map = request.map};
    response.map->externalAddress = address("203.0.113.9");
    client.receive(build(response), path.server);
  }
  [[nodiscard]] MappingState only() const {
    REQUIRE(client.states().size() == 1);
    return client.states().front();
  }
};

TEST_CASE_METHOD(ClientFixture, "a mapping is asked for and granted") {
  want({web()});
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].client == path.self);
  CHECK(sent[0].lifetime == 3600);
  CHECK(sent[0].map->internalPort == 80);
  CHECK(sent[0].map->externalPort == 8080);
  CHECK(sent[0].map->preferFailure);
  CHECK_FALSE(sent[0].map->thirdParty);
  CHECK(only().kind == Kind::Asking);
  answer(ResultCode::Success, 3600);
  CHECK(only().kind == Kind::Granted);
  CHECK(only().remaining == 3600s);
  CHECK(only().externalAddress == address("203.0.113.9"));
}

TEST_CASE_METHOD(ClientFixture, "unanswered requests are sent again, ever more rarely") {
  want({web()});
  const BootTime start = clock.time;
  std::vector<long> at;
  while (sent.size() < 12) {
    next();
    at.push_back(std::chrono::duration_cast<std::chrono::seconds>(clock.time - start).count());
  }
  CHECK(at == std::vector<long>{3, 9, 21, 45, 93, 189, 381, 765, 1533, 2557, 3581});
}

TEST_CASE_METHOD(ClientFixture,
                 "renewed at half the lifetime, then at shorter and shorter intervals") {
  want({web()});
  answer(ResultCode::Success, 1024);
  const BootTime start = clock.time;
  next();
  const auto first = clock.time - start;
  CHECK(first >= 512s);
  CHECK(first <= 640s);
  CHECK(sent.size() == 2);
  answer(ResultCode::Success, 1024, 100 + static_cast<std::uint32_t>(first / 1s));
  const BootTime second = clock.time;
  next();
  next();
  CHECK(clock.time - second > 760s);
  CHECK(clock.time - second < 850s);
  while (clock.time - second < 1024s) {
    CHECK(only().kind == Kind::Granted);
    next();
  }
  CHECK(only().kind == Kind::Asking);
  CHECK(sent.size() < 16);
}

TEST_CASE_METHOD(ClientFixture, "refusals tell why and are not repeated before their time") {
  want({web()});
  answer(ResultCode::NotAuthorized, 1800);
  CHECK(only().kind == Kind::Refused);
  CHECK(only().reason == "NOT_AUTHORIZED: the server's AllowMaps for this peer do not hold it");
  CHECK(client.nextPoll() == clock.time + 1800s);
  SECTION("the server's own words") {
    next();
    auto response = Response{.opcode = Opcode::Map,
                             .result = ResultCode::NotAuthorized,
                             .lifetime = 0xffffffff,
                             .epoch = 1900,
                             .map = sent.back().map};
    response.map->extras->reason = "tcp/8080 is not yours";
    client.receive(build(response), path.server);
    CHECK(only().reason == "NOT_AUTHORIZED: tcp/8080 is not yours");
    CHECK(client.nextPoll() == clock.time + 3600s);
  }
  SECTION("an announcement is a reason to ask again") {
    client.receive(build(Response{.opcode = Opcode::Announce, .epoch = 100}), path.server);
    CHECK(client.nextPoll() == clock.time);
  }
}

TEST_CASE_METHOD(ClientFixture, "a server that lost its state is asked again at once") {
  want({web(), web(8081, 81)});
  answer(ResultCode::Success, 3600, 100, 0);
  answer(ResultCode::Success, 3600, 100, 1);
  clock.time += 600s;
  client.poll();
  CHECK(sent.size() == 2);
  SECTION("by an announcement with a younger epoch") {
    client.receive(build(Response{.opcode = Opcode::Announce, .epoch = 3}), path.server);
    client.poll();
    CHECK(sent.size() == 4);
  }
  SECTION("by an announcement whatever its epoch: it has a reason") {
    client.receive(build(Response{.opcode = Opcode::Announce, .epoch = 700}), path.server);
    client.poll();
    CHECK(sent.size() == 4);
  }
  SECTION("by any answer") {
    clock.time += 1400s;
    client.poll();
    REQUIRE(sent.size() == 4);
    answer(ResultCode::Success, 3600, 5, 2);
    client.poll();
    CHECK(sent.size() == 5);
  }
  SECTION("by an answer whose epoch has run more slowly than time, which is another epoch") {
    clock.time += 1400s;
    client.poll();
    REQUIRE(sent.size() == 4);
    answer(ResultCode::Success, 3600, 700, 2);
    client.poll();
    CHECK(sent.size() == 5);
  }
  SECTION("not by an answer of the same epoch") {
    clock.time += 1400s;
    client.poll();
    REQUIRE(sent.size() == 4);
    answer(ResultCode::Success, 3600, 2105, 2);
    client.poll();
    CHECK(sent.size() == 4);
  }
  SECTION("not by somebody else") {
    client.receive(build(Response{.opcode = Opcode::Announce, .epoch = 3}), address("10.10.0.9"));
    client.poll();
    CHECK(sent.size() == 2);
  }
}

TEST_CASE_METHOD(ClientFixture, "a mapping that the server takes back is asked for again") {
  want({web()});
  answer(ResultCode::Success, 3600);
  clock.time += 10s;
  answer(ResultCode::Success, 0, 110);
  CHECK(only().kind == Kind::Asking);
  client.poll();
  CHECK(sent.size() == 2);
}

TEST_CASE_METHOD(ClientFixture, "what is no longer wanted is withdrawn; the rest is left alone") {
  want({web(), web(8081, 81)});
  answer(ResultCode::Success, 3600, 100, 0);
  answer(ResultCode::Success, 3600, 100, 1);
  want({web(8081, 81)});
  REQUIRE(sent.size() == 3);
  CHECK(sent[2].lifetime == 0);
  CHECK(sent[2].map->internalPort == 80);
  CHECK(client.isLeaving());
  CHECK(only().label == "tcp/8081");
  answer(ResultCode::Success, 0);
  CHECK_FALSE(client.isLeaving());
  want({web(8081, 81)});
  CHECK(sent.size() == 3);
  SECTION("an unanswered withdrawal ends some time") {
    want({});
    for (int i = 0; i < 4; ++i)
      next();
    CHECK_FALSE(client.isLeaving());
    CHECK_FALSE(client.nextPoll());
    CHECK(sent.size() == 7);
  }
}

TEST_CASE_METHOD(ClientFixture,
                 "another public port for the same service: the old one goes first") {
  want({web()});
  answer(ResultCode::Success, 3600);
  want({web(8090)});
  REQUIRE(sent.size() == 2);
  CHECK(sent[1].lifetime == 0);
  client.poll();
  CHECK(sent.size() == 2);
  answer(ResultCode::Success, 0);
  client.poll();
  REQUIRE(sent.size() == 3);
  CHECK(sent[2].map->externalPort == 8090);
  CHECK(sent[2].lifetime == 3600);
}

TEST_CASE_METHOD(ClientFixture, "a mapping of before a crash is cleared away, once") {
  want({web()});
  answer(ResultCode::CannotProvideExternal, 30);
  REQUIRE(sent.size() == 2);
  CHECK(sent[1].lifetime == 0);
  answer(ResultCode::Success, 0);
  client.poll();
  REQUIRE(sent.size() == 3);
  answer(ResultCode::CannotProvideExternal, 30);
  CHECK(sent.size() == 3);
  CHECK(only().kind == Kind::Refused);
  CHECK(client.nextPoll() == clock.time + 30s);
}

TEST_CASE_METHOD(ClientFixture, "one service by two public ports is more than PCP can say") {
  want({web(), web(8081)});
  CHECK(sent.size() == 1);
  REQUIRE(client.states().size() == 2);
  CHECK(client.states()[1].kind == Kind::Refused);
  CHECK(client.states()[1].reason.find("tcp/8080 asks for the same one") != std::string::npos);
  want({web(8081)});
  answer(ResultCode::Success, 0);
  client.poll();
  CHECK(sent.back().map->externalPort == 8081);
}

TEST_CASE_METHOD(ClientFixture, "another port or a smaller set is given back") {
  auto range = web(6000, 6000);
  range.size = 10;
  want({range});
  CHECK_FALSE(sent[0].map->preferFailure);
  CHECK(sent[0].map->portSet == PortSet{10, 6000, false});
  auto map = *sent[0].map;
  map.portSet->size = 5;
  client.receive(build(Response{.opcode = Opcode::Map, .lifetime = 600, .epoch = 100, .map = map}),
                 path.server);
  REQUIRE(sent.size() == 2);
  CHECK(sent[1].lifetime == 0);
  CHECK(only().kind == Kind::Refused);
  CHECK(only().reason == "the server offers tcp/6000-6004 instead");
  answer(ResultCode::Success, 0);
  client.poll();
  CHECK(sent.size() == 2);
}

TEST_CASE_METHOD(ClientFixture, "hosts behind this one, filters and the rest go along") {
  auto wanted = web();
  wanted.target = address("192.168.50.20");
  wanted.allow = {network("198.51.100.0/24")};
  wanted.masquerade = true;
  want({wanted});
  CHECK(sent[0].map->thirdParty == address("192.168.50.20"));
  CHECK(sent[0].map->filters == std::vector<Filter>{{}, {network("198.51.100.0/24"), 0}});
  CHECK(sent[0].map->extras->masquerade);
  auto map = *sent[0].map;
  map.extras.reset();
  client.receive(build(Response{.opcode = Opcode::Map, .lifetime = 600, .epoch = 100, .map = map}),
                 path.server);
  CHECK(only().kind == Kind::Granted);
  CHECK_FALSE(only().reason.empty());
}

TEST_CASE_METHOD(ClientFixture, "a server that speaks no PCP is one trouble") {
  want({web(), web(8081, 81)});
  CHECK(client.trouble().empty());
  SECTION("silence") {
    while (clock.time < 1021s)
      next();
    CHECK(client.trouble().starts_with("the server at 10.10.0.1 takes no requests"));
  }
  SECTION("a closed port") {
    client.unreachable(path.server);
    CHECK(client.trouble().starts_with("the server at 10.10.0.1 takes no requests"));
  }
  SECTION("only the older protocol") {
    client.receive(Bytes{0, 0x81, 0, 1, 0, 0, 0, 9}, path.server);
    CHECK(client.trouble() == "the server at 10.10.0.1 speaks no PCP that this version knows");
  }
  next();
  answer(ResultCode::Success, 600);
  CHECK(client.trouble().empty());
}

TEST_CASE_METHOD(ClientFixture, "answers to nobody's question change nothing") {
  want({web()});
  auto map = *sent[0].map;
  map.nonce[3] = 77;
  client.receive(build(Response{.opcode = Opcode::Map, .lifetime = 600, .map = map}), path.server);
  CHECK(only().kind == Kind::Asking);
  client.receive(Bytes(5, 2), path.server);
  client.receive({}, path.server);
  CHECK(only().kind == Kind::Asking);
}

TEST_CASE_METHOD(ClientFixture, "many mappings are spread over time") {
  std::vector<WantedMapping> many;
  for (std::uint16_t i = 0; i < 100; ++i) {
    many.push_back(web(static_cast<std::uint16_t>(8000 + i), static_cast<std::uint16_t>(1000 + i)));
  }
  want(many);
  CHECK(sent.size() == 8);
  next();
  CHECK(sent.size() == 16);
  CHECK(clock.time == 1000s + 250ms);
}

TEST_CASE_METHOD(ClientFixture, "client and server, over a restart of either") {
  ServerFixture net;
  net.clock.time = clock.time;
  std::vector<Bytes> wire;
  const auto serve = [&] {
    while (!sent.empty()) {
      const Request request = sent.front();
      sent.erase(sent.begin());
      net.clock.time = clock.time;
      if (const auto reply = net.server.receive(build(request), net.nas)) {
        client.receive(*reply, path.server);
      }
    }
  };
  want({web(), web(22, 22)});
  serve();
  CHECK(client.states()[0].kind == Kind::Granted);
  CHECK(client.states()[1].kind == Kind::Refused);
  CHECK(client.states()[1].reason.starts_with("NOT_AUTHORIZED: tcp/22 is not within AllowMaps"));
  // The server starts anew, without its leases, and says so.
  clock.time += 60s;
  net.clock.time = clock.time;
  net.restart(net.limits);
  client.receive(net.server.announcement(), path.server);
  client.poll();
  serve();
  REQUIRE(net.server.leases().size() == 1);
  // The client starts anew, and knows its nonces.
  Client again(clock, *this);
  again.want({web()}, {path});
  again.poll();
  REQUIRE(sent.size() == 1);
  const auto reply = net.server.receive(build(sent[0]), net.nas);
  REQUIRE(reply);
  CHECK(parseResponse(*reply)->result == ResultCode::Success);
  CHECK(net.server.leases().size() == 1);
}

}  // namespace
}  // namespace adit::pcp
