// A client on the Internet, a public server, a NAS behind it, and a host on the NAS's LAN.
//
//   client --- pub [server] tun --- tun [nas] lan --- [lanHost]
//   198.51.100.2  .1 (and .9)  10.9.0.1  10.9.0.2  192.168.50.1  192.168.50.20
//   2001:db8:1::2      ::1      fd09::1   fd09::2     fd50::1       fd50::20
//
// The "tunnel" is a veth: what is under test routes and translates, it does not encrypt. The
// NAS's own default route leads into its LAN, where nobody forwards: a reply that takes it is lost.
#pragma once

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <optional>
#include <string>

#include "nat/firewall.hpp"
#include "nat/prerequisites.hpp"
#include "netlink/test_namespace.hpp"
#include "util/address.hpp"
#include "util/unique_fd.hpp"

namespace adit::test {

/// What a client's attempt came to.
struct Contact {
  /// The source address and port that the service saw.
  Endpoint seenSource;
  /// The client got the service's answer.
  bool answered = false;
};

constexpr int kPatience = 2000;   // ms, for what must come
constexpr int kImpatience = 250;  // ms, for what must not

inline bool readable(int descriptor, int milliseconds) {
  pollfd poll{descriptor, POLLIN, 0};
  return ::poll(&poll, 1, milliseconds) == 1 && (poll.revents & POLLIN) != 0;
}

inline Endpoint endpoint(const char* text) {
  return *Endpoint::parse(text);
}

/// A bound (and for TCP listening) socket in a namespace.
class Service {
 public:
  Service(const Namespace& where, nat::Protocol protocol, const Endpoint& local)
      : protocol_(protocol) {
    where.run([&] {
      socket_ = open(protocol, local);
      REQUIRE((protocol == nat::Protocol::Udp || ::listen(socket_.get(), 8) == 0));
    });
  }

  /// Takes one connection or datagram and answers it; nothing when none came in time.
  std::optional<Endpoint> serve(int patience) {
    if (!readable(socket_.get(), patience)) {
      return std::nullopt;
    }
    sockaddr_storage source{};
    socklen_t length = sizeof(source);
    auto* address = static_cast<sockaddr*>(static_cast<void*>(&source));
    if (protocol_ == nat::Protocol::Tcp) {
      connection_ = UniqueFd(::accept4(socket_.get(), address, &length, SOCK_CLOEXEC));
      REQUIRE(connection_);
      REQUIRE(::send(connection_.get(), "hello", 5, MSG_NOSIGNAL) == 5);
    } else {
      char byte = 0;
      REQUIRE(::recvfrom(socket_.get(), &byte, 1, 0, address, &length) >= 0);
      static_cast<void>(::sendto(socket_.get(), "hello", 5, 0, address, length));
    }
    return Endpoint::fromSockaddr(address);
  }

  /// TCP_MAXSEG of the connection that was served last.
  [[nodiscard]] int segmentSize() const { return maximumSegment(connection_.get()); }

  static int maximumSegment(int socket) {
    int size = 0;
    socklen_t length = sizeof(size);
    REQUIRE(::getsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &size, &length) == 0);
    return size;
  }

  static UniqueFd open(nat::Protocol protocol, const Endpoint& local) {
    const int type = protocol == nat::Protocol::Tcp ? SOCK_STREAM : SOCK_DGRAM;
    UniqueFd socket(::socket(local.address.family(), type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    REQUIRE(socket);
    const int on = 1;
    REQUIRE(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
    sockaddr_storage address{};
    const socklen_t length = local.toSockaddr(address);
    REQUIRE(::bind(socket.get(), static_cast<sockaddr*>(static_cast<void*>(&address)), length) ==
            0);
    return socket;
  }

 private:
  nat::Protocol protocol_;
  UniqueFd socket_;
  UniqueFd connection_;
};

/// A client's socket, connected (for UDP: with its peer set) but not yet answered.
class Client {
 public:
  Client(const Namespace& where, nat::Protocol protocol, const Endpoint& local,
         const Endpoint& remote) {
    where.run([&] {
      socket_ = Service::open(protocol, local);
      sockaddr_storage address{};
      const socklen_t length = remote.toSockaddr(address);
      static_cast<void>(
          ::connect(socket_.get(), static_cast<sockaddr*>(static_cast<void*>(&address)), length));
    });
    if (protocol == nat::Protocol::Udp) {
      send();
    }
  }

  /// The first call may only report the port-unreachable that answered an earlier datagram.
  void send() const {
    REQUIRE((::send(socket_.get(), "x", 1, MSG_NOSIGNAL) == 1 ||
             ::send(socket_.get(), "x", 1, MSG_NOSIGNAL) == 1));
  }
  [[nodiscard]] int segmentSize() const { return Service::maximumSegment(socket_.get()); }
  [[nodiscard]] bool answered(int patience) const {
    char text[5];
    return readable(socket_.get(), patience) && ::recv(socket_.get(), text, 5, 0) == 5;
  }

 private:
  UniqueFd socket_;
};

class Topology {
 public:
  Topology() {
    for (const Namespace* host : {&client, &server, &nas, &lanHost}) {
      // Without it the link-local addresses are tentative for a second or two.
      host->shell("for f in /proc/sys/net/ipv6/conf/*/accept_dad; do echo 0 > $f; done");
    }
    link(client, "pub", server, "pub");
    link(server, "tun", nas, "tun");
    link(nas, "lan", lanHost, "lan");
    for (const Namespace* host : {&client, &server, &nas, &lanHost}) {
      host->shell("ip link set lo up");
    }
    address(client, "pub", "198.51.100.2/24", "2001:db8:1::2/64");
    address(server, "pub", "198.51.100.1/24", "2001:db8:1::1/64");
    address(server, "pub", "198.51.100.9/24", "2001:db8:1::9/64");
    address(server, "tun", "10.9.0.1/24", "fd09::1/64");
    address(nas, "tun", "10.9.0.2/24", "fd09::2/64");
    address(nas, "lan", "192.168.50.1/24", "fd50::1/64");
    address(lanHost, "lan", "192.168.50.20/24", "fd50::20/64");
    server.shell("ip route add 192.168.50.0/24 via 10.9.0.2; ip route add fd50::/64 via fd09::2");
    nas.shell("ip route add default via 192.168.50.20; ip route add default via fd50::20 dev lan");
    lanHost.shell("ip route add default via 192.168.50.1; ip route add default via fd50::1");
    // As strict as distributions come, so that what a ruleset asks for is shown to be enough.
    nas.shell("for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 1 > $f; done");
    nas.shell(
        "ip route add default via 10.9.0.1 table 1000; ip rule add fwmark 0x1000000/0x1000000 "
        "table "
        "1000; ip -6 route add default via fd09::1 table 1000; ip -6 rule add fwmark "
        "0x1000000/0x1000000 table 1000");
  }

  /// The server's spec without mappings.
  static nat::RulesetSpec serverSpec() {
    nat::RulesetSpec spec;
    spec.interface = "tun";
    spec.publicInterfaces = {"pub"};
    spec.ownPort = 51820;
    spec.tunnelAddresses = {*IpAddress::parse("10.9.0.1"), *IpAddress::parse("fd09::1")};
    spec.tunnelMtu = 1420;
    return spec;
  }

  static nat::RulesetSpec nasSpec() {
    nat::RulesetSpec spec;
    spec.interface = "tun";
    spec.reply = nat::ReplyMarks{};
    spec.forwards = true;
    spec.tunnelMtu = 1420;
    return spec;
  }

  /// As aditd does it: the parameters that the spec asks for, then the table.
  static nat::FirewallChange apply(const Namespace& host, const nat::RulesetSpec& spec) {
    host.run([&] {
      for (const nat::SysctlNeed& need : nat::neededSysctls(spec)) {
        write(need);
      }
    });
    return install(host, spec);
  }

  /// The table alone.
  static nat::FirewallChange install(const Namespace& host, const nat::RulesetSpec& spec) {
    nat::FirewallChange change;
    host.run([&] {
      auto firewall = nat::KernelFirewall::open();
      REQUIRE_OK(firewall);
      const auto result = (*firewall)->apply(spec);
      REQUIRE_OK(result);
      change = *result;
      REQUIRE(change.warnings.empty());
    });
    return change;
  }

  /// One attempt of a client in `from`, from an address of its own choice, to a service on `to`.
  Contact contact(const Namespace& from, const Endpoint& local, nat::Protocol protocol,
                  const Endpoint& dialled, const Namespace& to, const Endpoint& serviceAddress,
                  int patience = kPatience) const {
    Service service(to, protocol, serviceAddress);
    const Client caller(from, protocol, local, dialled);
    Contact result;
    if (const auto source = service.serve(patience)) {
      result.seenSource = *source;
      result.answered = caller.answered(patience);
    }
    return result;
  }

  Namespace client, server, nas, lanHost;

 private:
  static void link(const Namespace& a, const std::string& nameA, const Namespace& b,
                   const std::string& nameB) {
    a.shell("ip link add " + nameA + " type veth peer name " + nameB + " netns " + b.path());
    a.shell("ip link set " + nameA + " up");
    b.shell("ip link set " + nameB + " up");
  }

  static void address(const Namespace& host, const std::string& interface, const std::string& v4,
                      const std::string& v6) {
    host.shell("ip address add " + v4 + " dev " + interface + " && ip address add " + v6 + " dev " +
               interface + " nodad");
  }

  static void write(const nat::SysctlNeed& need) {
    const std::string path = "/proc/sys/" + need.path;
    if (!need.onlyWhen.empty()) {
      std::string now;
      std::ifstream(path) >> now;
      if (std::ranges::find(need.onlyWhen, now) == need.onlyWhen.end()) {
        return;
      }
    }
    INFO(path);
    std::ofstream file(path);
    file << need.value << std::endl;
    REQUIRE(file.good());
  }
};

}  // namespace adit::test
