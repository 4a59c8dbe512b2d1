// The JSON that a spec becomes, without a kernel.
#include "nat/ruleset.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "nat/addresses.hpp"
#include "nat/blame.hpp"
#include "nat/nft.hpp"

using namespace adit;
using namespace adit::nat;
using adit::test::ip;
using nlohmann::json;

namespace {

Mapping mapping(Protocol protocol, std::uint16_t first, std::uint16_t last, std::uint16_t target) {
  Mapping result;
  result.label = "web";
  result.protocol = protocol;
  result.firstPort = first;
  result.lastPort = last;
  result.targetV4 = ip("10.9.0.2");
  result.targetPort = target;
  return result;
}

RulesetSpec specOf(std::vector<Mapping> mappings) {
  RulesetSpec spec;
  spec.interface = "adit0";
  spec.publicInterfaces = {"eth0"};
  spec.ownPort = 51820;
  spec.mappings = std::move(mappings);
  return spec;
}

/// The bodies of all commands of one verb and kind, in order.
std::vector<json> bodies(const json& transaction, const char* verb, const char* kind) {
  std::vector<json> found;
  for (const json& command : transaction["nftables"]) {
    if (command.contains(verb) && command[verb].contains(kind)) {
      found.push_back(command[verb][kind]);
    }
  }
  return found;
}

std::vector<json> rulesOf(const json& transaction, const std::string& chain) {
  std::vector<json> found;
  for (const json& rule : bodies(transaction, "add", "rule")) {
    if (rule["chain"] == chain) {
      found.push_back(rule["expr"]);
    }
  }
  return found;
}

std::set<std::string> chains(const json& transaction) {
  std::set<std::string> names;
  for (const json& chain : bodies(transaction, "add", "chain")) {
    names.insert(chain["name"].get<std::string>());
  }
  return names;
}

json elementsIn(const json& transaction, const char* verb, const std::string& set) {
  for (const json& element : bodies(transaction, verb, "element")) {
    if (element["name"] == set) {
      return element["elem"];
    }
  }
  return json::array();
}

}  // namespace

TEST_CASE("a table is replaced whole, in one transaction") {
  const json commands = buildRuleset(specOf({mapping(Protocol::Tcp, 80, 80, 80)}))["nftables"];
  const json table = {{"table", {{"family", "inet"}, {"name", "adit_adit0"}}}};
  REQUIRE(commands[0] == json{{"add", table}});
  REQUIRE(commands[1] == json{{"delete", table}});
  REQUIRE(commands[2] == json{{"add", table}});
  for (const json& command : commands) {
    REQUIRE_FALSE(command.contains("flush"));
  }
}

TEST_CASE("packets are taken from the public NIC by name, to this host, never by port alone") {
  auto spec = specOf({mapping(Protocol::Tcp, 80, 80, 80)});
  spec.publicInterfaces = {"eth0", "eth1"};
  const auto rules = rulesOf(buildRuleset(spec), "translate_incoming");
  REQUIRE(rules.size() == 5);
  REQUIRE(rules[0] == json::parse(R"([{"match":{"op":"==","left":{"payload":{"protocol":"udp",
                "field":"dport"}},"right":51820}},{"return":null}])"));
  // Whoever claims to be behind the tunnel is not.
  REQUIRE(rules[1].back() == json{{"drop", nullptr}});
  REQUIRE(rules[2] == json::parse(R"([{"match":{"op":"==","left":{"meta":{"key":"iifname"}},
                "right":{"set":["eth0","eth1"]}}},
               {"match":{"op":"==","left":{"fib":{"result":"type","flags":["daddr"]}},
                "right":"local"}},
               {"goto":{"target":"translate"}}])"));
  // Whatever hooks in translates only by way of a test of the destination.
  for (const char* chain : {"translate_incoming", "translate_own"}) {
    for (const json& rule : rulesOf(buildRuleset(spec), chain)) {
      if (rule.back().contains("goto")) {
        REQUIRE(rule.dump().find("\"fib\"") != std::string::npos);
      }
    }
  }
}

TEST_CASE("an equal range is one element; a shifted one has a port for each") {
  auto equal = mapping(Protocol::Tcp, 8000, 8100, 8000);
  auto shifted = mapping(Protocol::Udp, 5000, 5002, 6000);
  shifted.label = "games";
  const json built = buildRuleset(specOf({equal, shifted}));
  REQUIRE(elementsIn(built, "add", "target4") == json::parse(R"([
    [{"elem":{"val":{"concat":[{"range":[5000,5002]},17,{"prefix":{"addr":"0.0.0.0","len":0}}]},
              "comment":"games"}},"10.9.0.2"],
    [{"elem":{"val":{"concat":[{"range":[8000,8100]},6,{"prefix":{"addr":"0.0.0.0","len":0}}]},
              "comment":"web"}},"10.9.0.2"]])"));
  REQUIRE(elementsIn(built, "add", "port") == json::parse(R"([
    [{"concat":[5000,17]},6000],[{"concat":[5001,17]},6001],[{"concat":[5002,17]},6002]])"));
  REQUIRE(elementsIn(built, "add", "target6").empty());
}

TEST_CASE("a mapping on one address keys its ports by that address") {
  auto shifted = mapping(Protocol::Tcp, 443, 443, 8443);
  shifted.listenAddress = ip("203.0.113.9");
  const json built = buildRuleset(specOf({shifted}));
  REQUIRE(elementsIn(built, "add", "port").empty());
  REQUIRE(elementsIn(built, "add", "port_at4") ==
          json::parse(R"([[{"concat":[443,6,"203.0.113.9"]},8443]])"));
}

TEST_CASE("source, hairpin and allow list are elements of their own sets") {
  auto wanted = mapping(Protocol::Tcp, 80, 80, 80);
  wanted.targetV6 = ip("fd09::2");
  wanted.source = SourceMode::Masquerade;
  wanted.hairpin = true;
  wanted.allow = {*Prefix::parse("198.51.100.0/24"), *Prefix::parse("198.51.100.7/32"),
                  *Prefix::parse("2001:db8::/32")};
  const json built = buildRuleset(specOf({wanted}));
  const json key4 = json::parse(R"({"concat":[80,6,{"prefix":{"addr":"0.0.0.0","len":0}}]})");
  const json key6 = json::parse(R"({"concat":[80,6,{"prefix":{"addr":"::","len":0}}]})");
  for (const char* set : {"masquerade", "hairpin", "restricted"}) {
    REQUIRE(elementsIn(built, "add", std::string(set) + "4") == json::array({key4}));
    REQUIRE(elementsIn(built, "add", std::string(set) + "6") == json::array({key6}));
  }
  // The /32 lies in the /24: twice would be an overlap.
  REQUIRE(
      elementsIn(built, "add", "allowed4") ==
      json::parse(
          R"([{"concat":[80,6,{"prefix":{"addr":"0.0.0.0","len":0}},{"prefix":{"addr":"198.51.100.0","len":24}}]}])"));
  REQUIRE(elementsIn(built, "add", "allowed6").size() == 1);
}

TEST_CASE("a rate is a limit for each direction, shared by both families") {
  auto limited = mapping(Protocol::Tcp, 8000, 8100, 8000);
  limited.targetV6 = ip("fd09::2");
  limited.rate = 8'000'000;
  const auto transaction = buildRuleset(specOf({limited}));
  const auto limits = bodies(transaction, "add", "limit");
  REQUIRE(limits.size() == 2);
  REQUIRE(limits[0]["name"] == "rate_in_tcp_8000_8100_1000000");
  REQUIRE(limits[0]["rate"] == 1'000'000);
  REQUIRE(limits[0]["inv"] == true);
  for (const char* set : {"rate_in4", "rate_in6", "rate_out4", "rate_out6"}) {
    REQUIRE(elementsIn(transaction, "add", set).size() == 1);
  }
  // Every packet passes the limit before it can be accepted.
  const auto rules = rulesOf(transaction, "forward");
  REQUIRE(rules.size() == 9);
  for (std::size_t i = 0; i < 4; ++i) {
    REQUIRE(rules[i].back() == json{{"drop", nullptr}});
  }
  REQUIRE(rulesOf(buildRuleset(specOf({mapping(Protocol::Tcp, 1, 1, 1)})), "forward").size() == 5);
  auto slower = limited;
  slower.rate = 4'000'000;
  const auto update = buildElementUpdate(
      "adit_adit0", difference(elementsOf(specOf({limited})), elementsOf(specOf({slower}))));
  REQUIRE(bodies(update, "delete", "limit").size() == 2);
  REQUIRE(bodies(update, "add", "limit").size() == 2);
}

TEST_CASE("with the default route in the tunnel, everybody may seem to live behind it") {
  auto spec = specOf({mapping(Protocol::Tcp, 80, 80, 80)});
  const auto before = rulesOf(buildRuleset(spec), "translate_incoming").size();
  spec.guard = DefaultRouteGuard{.firewallMark = 1};
  REQUIRE(rulesOf(buildRuleset(spec), "translate_incoming").size() == before - 1);
}

TEST_CASE("the number of rules does not grow with the mappings") {
  std::vector<Mapping> many;
  for (std::uint16_t i = 0; i < 1000; ++i) {
    many.push_back(mapping(Protocol::Tcp, static_cast<std::uint16_t>(10000 + i),
                           static_cast<std::uint16_t>(10000 + i), 80));
  }
  const json one = buildRuleset(specOf({mapping(Protocol::Tcp, 80, 80, 80)}));
  const json thousand = buildRuleset(specOf(many));
  REQUIRE(bodies(one, "add", "rule").size() == bodies(thousand, "add", "rule").size());
  REQUIRE(hashOfStatic(specOf(many)) == hashOfStatic(specOf({})));
}

TEST_CASE("reply marks touch only the bits of their mask") {
  RulesetSpec spec;
  spec.interface = "adit0";
  spec.reply = ReplyMarks{0x20000, 0x30000};
  const json built = buildRuleset(spec);
  REQUIRE(chains(built) == std::set<std::string>{"segment_size", "reply_incoming", "reply_own"});
  const auto incoming = rulesOf(built, "reply_incoming");
  REQUIRE(incoming.size() == 2);
  REQUIRE(incoming[0].back() == json::parse(R"({"mangle":{"key":{"ct":{"key":"mark"}},"value":
      {"|":[{"&":[{"ct":{"key":"mark"}},4294770687]},131072]}}})"));
  REQUIRE(incoming[1].back() == json::parse(R"({"mangle":{"key":{"meta":{"key":"mark"}},"value":
      {"|":[{"&":[{"meta":{"key":"mark"}},4294770687]},131072]}}})"));
  REQUIRE(rulesOf(built, "reply_own").size() == 1);
  for (const json& chain : bodies(built, "add", "chain")) {
    if (chain["name"] == "reply_own") {
      REQUIRE(chain["type"] == "route");
      REQUIRE(chain["hook"] == "output");
    }
  }
}

TEST_CASE("wg-quick's guard drops packets to the tunnel's addresses that come in elsewhere") {
  RulesetSpec spec;
  spec.interface = "adit0";
  spec.guard = DefaultRouteGuard{51820};
  spec.tunnelAddresses = {ip("10.9.0.2"), ip("fd09::2")};
  const auto drops = rulesOf(buildRuleset(spec), "guard_addresses");
  REQUIRE(drops.size() == 2);
  REQUIRE(drops[0] == json::parse(R"([
      {"match":{"op":"!=","left":{"meta":{"key":"iifname"}},"right":"adit0"}},
      {"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"daddr"}},
       "right":"10.9.0.2"}},
      {"match":{"op":"!=","left":{"fib":{"result":"type","flags":["saddr"]}},"right":"local"}},
      {"drop":null}])"));
  REQUIRE(rulesOf(buildRuleset(spec), "guard_restore").size() == 1);
  REQUIRE(rulesOf(buildRuleset(spec), "guard_save").size() == 1);
}

TEST_CASE("a changed mapping is a difference of its elements alone") {
  const auto web = mapping(Protocol::Tcp, 80, 80, 80);
  const auto games = mapping(Protocol::Udp, 5000, 5009, 5000);
  auto moved = games;
  moved.targetV4 = ip("10.9.0.3");
  const auto diff = difference(elementsOf(specOf({web, games})), elementsOf(specOf({web, moved})));
  REQUIRE(diff.removed.size() == 1);
  REQUIRE(diff.added.size() == 1);
  const json update = buildElementUpdate("adit_adit0", diff);
  REQUIRE(update["nftables"].size() == 2);
  // Removed first, so that both fit into one transaction.
  REQUIRE(update["nftables"][0].contains("delete"));
  REQUIRE(elementsIn(update, "delete", "target4") ==
          json::parse(
              R"([{"concat":[{"range":[5000,5009]},17,{"prefix":{"addr":"0.0.0.0","len":0}}]}])"));
  REQUIRE(elementsIn(update, "add", "target4")[0][1] == "10.9.0.3");

  REQUIRE(difference(elementsOf(specOf({web})), elementsOf(specOf({web}))).empty());
  const auto gone = difference(elementsOf(specOf({web, games})), elementsOf(specOf({web})));
  REQUIRE(gone.added.empty());
  REQUIRE(gone.removed.size() == 1);
  REQUIRE(gone.removed.begin()->second.firstPort == 5000);
  REQUIRE(gone.removed.begin()->second.lastPort == 5009);
  REQUIRE(gone.removed.begin()->second.protocol == IPPROTO_UDP);
}

TEST_CASE("a listing is read in whatever form nft prints it") {
  const auto wanted = elementsOf(specOf({mapping(Protocol::Tcp, 8000, 8100, 8000)}));
  const json element = json::parse(R"(["10.9.0.2"])");
  for (const char* key :
       {R"({"concat":[{"range":[8000,8100]},"tcp",{"prefix":{"addr":"0.0.0.0","len":0}}]})",
        R"({"concat":[{"range":[8000,8100]},6,{"range":["0.0.0.0","255.255.255.255"]}]})"}) {
    const json listing = {
        {"nftables",
         {{{"metainfo", {{"version", "1.0.6"}}}},
          {{"map",
            {{"name", "target4"},
             {"elem",
              json::array({json::array({{{"elem", {{"val", json::parse(key)}, {"comment", "web"}}}},
                                        "10.9.0.2"})})}}}}}}};
    REQUIRE(difference(elementsOfListing(listing), wanted).empty());
  }
}

TEST_CASE("a listing of an unexpected shape differs and does no harm") {
  const auto wanted = elementsOf(specOf({mapping(Protocol::Tcp, 80, 80, 80)}));
  for (const char* text :
       {R"({})", R"({"nftables":[]})", R"({"nftables":[{"map":{"name":"target4"}}]})",
        R"({"nftables":[{"map":{"name":"target4","elem":[1]}}]})",
        R"({"nftables":[{"map":{"name":"target4","elem":[[{"elem":{}},"10.9.0.2"]]}}]})",
        R"({"nftables":[{"map":{"name":"target4","elem":[[{"concat":[1]},"10.9.0.2"]]}}]})",
        R"({"nftables":[{"set":{"name":"hairpin4","elem":[{"concat":[80,6,{"prefix":3}]}]}}]})",
        R"({"nftables":[{"map":{"name":"target4","elem":[[{"concat":[{"range":[80]},"tcp",{"prefix":
              {"addr":"0.0.0.0","len":99}}]},"10.9.0.2"]]}}]})"}) {
    CAPTURE(text);
    const json listing = json::parse(text);
    REQUIRE_FALSE(difference(elementsOfListing(listing), wanted).empty());
    REQUIRE(markOfListing(listing) == TableMark{});
    REQUIRE_FALSE(hashOfListing(listing).empty());
  }
}

TEST_CASE("the mark of a table is read back, and its listing's hash ignores elements and handles") {
  const TableMark mark{hashOfStatic(specOf({})), std::string(32, 'a')};
  const json written = elementsIn(buildMark("adit_adit0", mark), "add", "state");
  const json listing = {
      {"nftables", json::array({{{"set", {{"name", "state"}, {"elem", written}}}}})}};
  REQUIRE(markOfListing(listing) == mark);
  REQUIRE(written[0]["elem"]["comment"].get<std::string>().size() <= 128);

  const json a = json::parse(R"({"nftables":[{"rule":{"chain":"x","handle":1}},
                                {"map":{"name":"m","elem":[1]}}]})");
  const json b = json::parse(R"({"nftables":[{"metainfo":{"version":"2"}},
                                {"rule":{"chain":"x","handle":9}},{"map":{"name":"m"}}]})");
  const json c = json::parse(R"({"nftables":[{"rule":{"chain":"y"}},{"map":{"name":"m"}}]})");
  REQUIRE(hashOfListing(a) == hashOfListing(b));
  REQUIRE(hashOfListing(a) != hashOfListing(c));
}

TEST_CASE("a comment fits, and can be printed and read again") {
  REQUIRE(commentText("a \"quoted\"\nname\x01") == "a 'quoted' name ");
  REQUIRE(commentText(std::string(500, 'x')).size() == 128);
  // 127 bytes, then a character of two.
  REQUIRE(commentText(std::string(127, 'x') + "\xc3\xa9") == std::string(127, 'x'));
  REQUIRE(commentText("m\xc3\xa9"
                      "dia") ==
          "m\xc3\xa9"
          "dia");
}

TEST_CASE("bytes of a label that are not UTF-8 do no harm") {
  REQUIRE(commentText("a\xff"
                      "b\xc3") == "a?b?");
  REQUIRE(commentText("\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80") == "?? ??? ????");
  auto wanted = mapping(Protocol::Tcp, 80, 80, 80);
  wanted.label = "\xff\xfe";
  REQUIRE_FALSE(buildRuleset(specOf({wanted})).dump().empty());
}

TEST_CASE("the mapping to blame is found by bisection") {
  for (std::size_t culprit = 0; culprit < 9; ++culprit) {
    std::size_t asked = 0;
    const auto found = firstRefused(9, [&](std::size_t count) {
      ++asked;
      return count <= culprit;
    });
    REQUIRE(found == culprit);
    REQUIRE(asked <= 6);
  }
  REQUIRE_FALSE(firstRefused(9, [](std::size_t) { return true; }));
  REQUIRE_FALSE(firstRefused(9, [](std::size_t) { return false; }));
  REQUIRE_FALSE(firstRefused(0, [](std::size_t) { return true; }));
}

TEST_CASE("cases 39 and 40: what nftables would refuse late or not at all") {
  const auto messages = [](const Mapping& wanted) {
    std::vector<std::string> all;
    for (const Error& error : validate(specOf({wanted}))) {
      all.push_back(error.message);
    }
    return all;
  };
  auto good = mapping(Protocol::Tcp, 65000, 65535, 65000);
  REQUIRE(messages(good).empty());
  good.location = "x.conf:3:1";
  auto bad = good;
  bad.targetPort = 65001;
  REQUIRE(messages(bad) == std::vector<std::string>{
                               "x.conf:3:1: mapping tcp/65000-65535: the target range 65001-65536 "
                               "passes 65535"});
  bad = good;
  bad.firstPort = 0;
  REQUIRE(messages(bad).size() == 1);
  bad = good;
  bad.targetPort = 0;
  REQUIRE(messages(bad).size() == 1);
  bad = good;
  std::swap(bad.firstPort, bad.lastPort);
  REQUIRE(messages(bad).size() == 1);
  bad = good;
  bad.targetV4.reset();
  REQUIRE(messages(bad).size() == 1);
  bad = good;
  bad.targetV4 = ip("fd09::2");
  REQUIRE(messages(bad).size() == 1);
  bad = good;
  bad.listenAddress = ip("2001:db8::1");
  REQUIRE(messages(bad).size() == 1);
  REQUIRE(messages(mapping(Protocol::Udp, 51820, 51820, 51820)).size() == 1);
  REQUIRE(messages(mapping(Protocol::Udp, 1, 65535, 1)).empty());
  REQUIRE(messages(mapping(Protocol::Tcp, 51820, 51820, 51820)).empty());
}

TEST_CASE("case 40: overlaps are per protocol and address, and name both") {
  const auto a = mapping(Protocol::Tcp, 8000, 8100, 8000);
  auto b = mapping(Protocol::Tcp, 8080, 8080, 80);
  auto c = mapping(Protocol::Tcp, 8080, 8080, 80);
  b.location = "x.conf:20:1";
  c.location = "x.conf:30:1";
  REQUIRE(validate(specOf({a, b})).size() == 1);
  REQUIRE(validate(specOf({a, b, c})).size() == 3);
  REQUIRE(validate(specOf({b, c})).front().message ==
          "x.conf:30:1: mapping tcp/8080: it overlaps tcp/8080 of x.conf:20:1");
  c.protocol = Protocol::Udp;
  REQUIRE(validate(specOf({a, c})).empty());
  b.listenAddress = ip("203.0.113.9");
  REQUIRE(validate(specOf({a, b})).size() == 1);
  c = b;
  c.listenAddress = ip("203.0.113.10");
  REQUIRE(validate(specOf({b, c})).empty());
}

TEST_CASE("mappings without a public interface are refused") {
  auto spec = specOf({mapping(Protocol::Tcp, 80, 80, 80)});
  spec.publicInterfaces.clear();
  REQUIRE(validate(spec).size() == 1);
}

TEST_CASE("the flow table's commands are in nft's grammar, whatever the kernel can do") {
  auto nft = Nft::open();
  REQUIRE(nft);
  const auto spec = specOf({mapping(Protocol::Tcp, 80, 80, 80)});
  for (const std::string& commands :
       {flowTableProbe(), offloadCommands(spec), offloadRenewal(spec)}) {
    const auto done = nft->dryRun(commands);
    INFO(commands);
    const std::string said = done ? "" : done.error().message;
    REQUIRE(said.find("syntax error") == std::string::npos);
  }
}

TEST_CASE("rules that keep paced mappings out of the flow table are accepted", "[root]") {
  auto nft = Nft::open();
  REQUIRE(nft);
  auto paced = mapping(Protocol::Tcp, 80, 80, 80);
  paced.rate = 1000000;
  paced.targetV6 = ip("fd09::2");
  auto spec = specOf({paced, mapping(Protocol::Udp, 90, 99, 90)});
  spec.offload = true;
  const auto done = nft->dryRun(buildRuleset(spec));
  INFO((done ? "" : done.error().message));
  REQUIRE(done);
}
