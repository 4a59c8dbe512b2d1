#include "nat/prerequisites.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "nat/addresses.hpp"

#include "netlink/test_namespace.hpp"

using namespace adit;
using namespace adit::nat;
using adit::test::ip;
namespace fs = std::filesystem;

namespace {

RulesetSpec serverSpec(Protocol protocol, std::uint16_t first, std::uint16_t last) {
  Mapping mapping;
  mapping.location = "x.conf:7:1";
  mapping.protocol = protocol;
  mapping.firstPort = first;
  mapping.lastPort = last;
  mapping.targetPort = first;
  mapping.targetV4 = ip("10.9.0.2");
  RulesetSpec spec;
  spec.interface = "tun";
  spec.publicInterfaces = {"eth0"};
  spec.ownPort = 51820;
  spec.tunnelAddresses = {ip("10.9.0.1")};
  spec.mappings = {mapping};
  return spec;
}

std::vector<std::string> paths(const std::vector<SysctlNeed>& needs) {
  std::vector<std::string> result;
  for (const SysctlNeed& need : needs) {
    result.push_back(need.path + "=" + need.value);
  }
  return result;
}

/// A recorded /proc: sshd (process 812) on tcp 22, a resolver on loopback, the tunnel's own port.
class Proc {
 public:
  Proc() {
    std::string name = (fs::temp_directory_path() / "adit-proc-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root_ = name;
    fs::create_directories(root_ / "net");
    fs::create_directories(root_ / "812/fd");
    std::ofstream(root_ / "812/comm") << "sshd\n";
    fs::create_symlink("socket:[1001]", root_ / "812/fd/3");
    const std::string head = "  sl  local_address rem_address   st tx_queue rx_queue tr\n";
    std::ofstream(root_ / "net/tcp")
        << head
        << "   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0   "
           "     0 1001 1 0000 100 0 0 10 0\n"
        << "   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0   "
           "     0 1002 1 0000 100 0 0 10 0\n"
        << "   2: 097100CB:D431 026433C6:0050 01 00000000:00000000 00:00000000 00000000     0   "
           "     0 1003 1 0000 100 0 0 10 0\n"
        << "garbage\n";
    std::ofstream(root_ / "net/udp")
        << head
        << "   0: 00000000:CA6C 00000000:0000 07 00000000:00000000 00:00000000 00000000     0   "
           "     0 1004 2 0000 0\n"
        << "   1: 0100090A:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0   "
           "     0 1005 2 0000 0\n";
    std::ofstream(root_ / "net/tcp6")
        << head
        << "   0: B80D0120000000000000000001000000:01BB 00000000000000000000000000000000:0000 0A "
           "00000000:00000000 00:00000000 00000000     0        0 1006 1 0000 100 0 0 10 0\n";
  }
  ~Proc() { fs::remove_all(root_); }
  Proc(const Proc&) = delete;
  Proc& operator=(const Proc&) = delete;
  [[nodiscard]] const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

}  // namespace

TEST_CASE("listeners are read, with the process that holds them") {
  const Proc proc;
  const auto listeners = localListeners(proc.root());
  REQUIRE(listeners);
  REQUIRE(listeners->size() == 5);
  const auto& ssh = listeners->front();
  REQUIRE(ssh.protocol == Protocol::Tcp);
  REQUIRE(ssh.port == 22);
  REQUIRE(ssh.address.isUnspecified());
  REQUIRE(ssh.toString() == "tcp/22 of sshd (process 812)");
  REQUIRE((*listeners)[1].address == ip("127.0.0.1"));
  REQUIRE((*listeners)[2].address == ip("2001:db8::1"));
  REQUIRE((*listeners)[2].port == 443);
  REQUIRE((*listeners)[4].address == ip("10.9.0.1"));
}

TEST_CASE("case 37: a mapping over a listener needs Override") {
  const Proc proc;
  const auto listeners = *localListeners(proc.root());
  auto spec = serverSpec(Protocol::Tcp, 1, 65535);
  const auto conflicts = listenerConflicts(spec, listeners);
  REQUIRE(conflicts.size() == 1);
  REQUIRE(conflicts.front().message ==
          "x.conf:7:1: mapping tcp/1-65535 would take tcp/22 of sshd (process 812) away from this "
          "host; choose another port, or write Override = yes if that is meant");
  spec.mappings.front().overrideListener = true;
  REQUIRE(listenerConflicts(spec, listeners).empty());
}

TEST_CASE("listeners that are not in the way") {
  const Proc proc;
  const auto listeners = *localListeners(proc.root());
  // Loopback, the tunnel's own port, a listener on the tunnel's address, a free port.
  REQUIRE(listenerConflicts(serverSpec(Protocol::Tcp, 8080, 8080), listeners).empty());
  REQUIRE(listenerConflicts(serverSpec(Protocol::Udp, 51000, 52000), listeners).empty());
  REQUIRE(listenerConflicts(serverSpec(Protocol::Udp, 53, 53), listeners).empty());
  REQUIRE(listenerConflicts(serverSpec(Protocol::Tcp, 80, 80), listeners).empty());
  auto elsewhere = serverSpec(Protocol::Tcp, 443, 443);
  REQUIRE(listenerConflicts(elsewhere, listeners).size() == 1);
  elsewhere.mappings.front().listenAddress = ip("203.0.113.9");
  REQUIRE(listenerConflicts(elsewhere, listeners).empty());
  auto wildcard = serverSpec(Protocol::Tcp, 22, 22);
  wildcard.mappings.front().listenAddress = ip("203.0.113.9");
  REQUIRE(listenerConflicts(wildcard, listeners).size() == 1);
}

TEST_CASE("a /proc without sockets is an error") {
  REQUIRE_FALSE(localListeners("/nonexistent"));
}

TEST_CASE("listeners of the calling thread's namespace, found with this process", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const test::Namespace host;
  host.run([] {
    const UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(2222);
    REQUIRE(::bind(socket.get(), static_cast<sockaddr*>(static_cast<void*>(&any)), sizeof(any)) ==
            0);
    REQUIRE(::listen(socket.get(), 1) == 0);
    const auto listeners = localListeners();
    REQUIRE(listeners);
    REQUIRE(listeners->size() == 1);
    REQUIRE(listeners->front().port == 2222);
    REQUIRE(listeners->front().pid == static_cast<std::uint32_t>(::getpid()));
  });
}

TEST_CASE("a server forwards on its two interfaces and counts, and nothing else changes") {
  auto spec = serverSpec(Protocol::Tcp, 80, 80);
  const auto needs = neededSysctls(spec);
  REQUIRE(paths(needs) == std::vector<std::string>{"net/ipv4/conf/eth0/forwarding=1",
                                                   "net/ipv4/conf/tun/forwarding=1",
                                                   "net/netfilter/nf_conntrack_acct=1"});
  REQUIRE_FALSE(needs.back().required);
}

TEST_CASE("router advertisements are kept before IPv6 forwarding is switched on") {
  auto spec = serverSpec(Protocol::Tcp, 80, 80);
  spec.mappings.front().targetV4.reset();
  spec.mappings.front().targetV6 = ip("fd09::2");
  const auto needs = neededSysctls(spec, {"eth0", "eth1"});
  REQUIRE(paths(needs) == std::vector<std::string>{"net/ipv6/conf/eth0/accept_ra=2",
                                                   "net/ipv6/conf/eth1/accept_ra=2",
                                                   "net/ipv6/conf/all/forwarding=1",
                                                   "net/netfilter/nf_conntrack_acct=1"});
  // Only where advertisements are followed today; 0 and 2 stay.
  REQUIRE(needs.front().onlyWhen == std::vector<std::string>{"1"});
  REQUIRE_FALSE(needs.front().required);
}

TEST_CASE("a NAS that forwards keeps the router advertisements of its own interfaces", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const test::Namespace host;
  host.shell("ip link add lan type veth peer name other");
  host.run([] {
    RulesetSpec spec;
    spec.interface = "tun";
    spec.reply = ReplyMarks{};
    spec.forwards = true;
    const auto needed = paths(neededSysctls(spec));
    const auto position = [&](const char* text) { return std::ranges::find(needed, text); };
    REQUIRE(position("net/ipv6/conf/lan/accept_ra=2") < position("net/ipv6/conf/all/forwarding=1"));
    REQUIRE(position("net/ipv4/ip_forward=1") != needed.end());
    REQUIRE(position("net/ipv6/conf/lo/accept_ra=2") == needed.end());
  });
}

TEST_CASE("a NAS needs loose reverse path filtering on the tunnel alone") {
  RulesetSpec spec;
  spec.interface = "tun";
  spec.reply = ReplyMarks{};
  REQUIRE(paths(neededSysctls(spec)) == std::vector<std::string>{"net/ipv4/conf/tun/rp_filter=2"});
  spec.guard = DefaultRouteGuard{};
  spec.reply.reset();
  REQUIRE(paths(neededSysctls(spec)) ==
          std::vector<std::string>{"net/ipv4/conf/all/src_valid_mark=1"});
  for (const SysctlNeed& need : neededSysctls(spec)) {
    REQUIRE_FALSE(need.why.empty());
  }
}
