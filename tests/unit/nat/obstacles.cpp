// Other firewalls that drop what mappings need.
#include "nat/obstacles.hpp"

#include <catch2/catch.hpp>

#include "nat/firewall.hpp"
#include "nat/topology.hpp"

using namespace adit;
using namespace adit::nat;
using Catch::Matchers::Contains;

namespace {

RulesetSpec spec() {
  Mapping mapping;
  mapping.firstPort = mapping.lastPort = mapping.targetPort = 80;
  mapping.targetV4 = *IpAddress::parse("10.9.0.2");
  RulesetSpec result = test::Topology::serverSpec();
  result.publicInterfaces = {"eth0"};
  result.mappings = {mapping};
  return result;
}

/// The warnings on a host whose other firewall was set up by these commands.
std::vector<std::string> warningsAfter(const std::string& commands) {
  const test::Namespace host;
  host.shell(commands);
  std::vector<std::string> warnings;
  host.run([&] {
    auto firewall = KernelFirewall::open();
    REQUIRE_OK(firewall);
    const auto change = (*firewall)->apply(spec());
    REQUIRE_OK(change);
    warnings = change->warnings;
    REQUIRE((*firewall)->apply(spec())->warnings == warnings);
  });
  return warnings;
}

const std::string kEstablished =
    "iptables -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED "
    "-j ACCEPT;";
const std::string kDropping =
    "nft add table inet fw; nft 'add chain inet fw f { type filter hook forward priority 0; policy "
    "drop; }';";

}  // namespace

TEST_CASE("a chain that drops mapped packets is named, with the command that helps", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const auto [commands, expected] = GENERATE(table<std::string, std::string>({
      {kDropping,
       "chain f of table inet fw drops packets to mapped ports; to let them through: nft "
       "insert rule inet fw f iifname eth0 oifname tun accept comment '\"adit tun\"' && "},
      {"iptables -P FORWARD DROP",
       "iptables -I FORWARD -i eth0 -o tun -j ACCEPT && iptables -I "
       "FORWARD -i tun -o eth0 -m conntrack"},
      {"iptables -P FORWARD DROP;" + kEstablished, "drops packets to mapped ports"},
      {"iptables -P FORWARD DROP; iptables -A FORWARD -p icmp --icmp-type echo-request -j ACCEPT",
       "drops packets to mapped ports"},
      {kEstablished + "iptables -A FORWARD -j REJECT", "chain FORWARD of table ip filter"},
      {"iptables -P FORWARD DROP; iptables -A FORWARD -i eth0 -o tun -j ACCEPT",
       "drops answers of mapped ports"},
      {"iptables -P FORWARD DROP; iptables -N DOCKER-USER; iptables -A FORWARD -j DOCKER-USER; "
       "iptables -A FORWARD -o docker0 -j ACCEPT",
       "iptables -I DOCKER-USER -i eth0 -o tun -j ACCEPT"},
      {"iptables -P FORWARD DROP; iptables -N ufw-before-forward",
       "ufw route allow in on eth0 out on tun"},
      {"iptables -P INPUT DROP; iptables -A INPUT -p tcp --dport 51820 -j ACCEPT",
       "chain INPUT of table ip filter drops the tunnel's own packets (udp/51820); to let them "
       "through: iptables -I INPUT -i eth0 -p udp --dport 51820 -j ACCEPT"},
      {"iptables -P INPUT DROP; iptables -N early; iptables -A early -m addrtype --dst-type LOCAL "
       "-j RETURN; iptables -A early -j DROP; iptables -A INPUT -j early",
       "the tunnel's own packets"},
      {"nft add table inet fw; nft 'add chain inet fw i { type filter hook input priority 0; }'; "
       "nft add rule inet fw i udp dport != 53 reject",
       "nft insert rule inet fw i iifname eth0 udp dport 51820 accept"},
      {kDropping +
           "nft add rule inet fw f ct state vmap { established : accept, related : accept }",
       "packets to mapped ports"},
  }));
  CAPTURE(commands);
  const auto warnings = warningsAfter(commands);
  REQUIRE(warnings.size() == 1);
  REQUIRE_THAT(warnings.front(), Contains(expected));
}

TEST_CASE("a chain that lets mapped packets through is not blamed", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const std::string commands = GENERATE_COPY(
      std::string("true"), std::string("ip6tables -P FORWARD DROP"),
      std::string("iptables -P INPUT DROP; iptables -A INPUT -p udp --dport 51820 -j ACCEPT"),
      std::string("iptables -P INPUT DROP; iptables -A INPUT -p udp --dport 51000:52000 -i eth0 -j "
                  "ACCEPT"),
      std::string("iptables -P INPUT DROP; iptables -N early; iptables -A early -m addrtype "
                  "--dst-type LOCAL -j RETURN; iptables -A early -j DROP; iptables -A INPUT -j "
                  "early; iptables -A INPUT -p udp --dport 51820 -j ACCEPT"),
      "iptables -P FORWARD DROP; iptables -I FORWARD -i eth0 -o tun -j ACCEPT;" + kEstablished,
      "iptables -P FORWARD DROP;" + kEstablished +
          "iptables -N ufw-user-forward; iptables -A FORWARD -j ufw-user-forward; iptables -A "
          "ufw-user-forward -i eth0 -o tun -j ACCEPT",
      "iptables -P FORWARD DROP; iptables -I FORWARD -m comment --comment x -j ACCEPT",
      kDropping +
          "nft add rule inet fw f ct state established,related accept; nft add rule inet fw "
          "f ct status dnat accept",
      kDropping +
          "nft add rule inet fw f ip daddr 10.9.0.0/24 accept; nft add rule inet fw f ct "
          "state established accept");
  CAPTURE(commands);
  REQUIRE(warningsAfter(commands).empty());
}
