#include "dataplane/user/udp_socket.hpp"

#include <poll.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <numeric>

#include "namespaces.hpp"
#include "skip.hpp"
#include "udp_peer.hpp"

using namespace adit;
using namespace adit::dataplane::user;
using test::UdpPeer;

namespace {

SocketSettings onLoopback(std::uint16_t port = 0) {
  SocketSettings settings;
  settings.port = port;
  settings.bindAddress = *IpAddress::parse("127.0.0.1");
  return settings;
}

std::vector<std::uint8_t> counting(std::size_t length) {
  std::vector<std::uint8_t> bytes(length);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  return bytes;
}

}  // namespace

TEST_CASE("port 0 lets the system choose one port for both families", "[udp]") {
  const auto sockets = UdpSockets::open({});
  REQUIRE(sockets);
  CHECK(sockets->port() != 0);
  sockaddr_storage address{};
  for (const int fd : {sockets->v4(), sockets->v6()}) {
    if (fd < 0) continue;  // a machine without that family
    socklen_t length = sizeof(address);
    REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    CHECK(Endpoint::fromSockaddr(reinterpret_cast<sockaddr*>(&address)).port == sockets->port());
  }
}

TEST_CASE("a taken port is an error that names it", "[udp]") {
  const auto first = UdpSockets::open(onLoopback());
  REQUIRE(first);
  const auto second = UdpSockets::open(onLoopback(first->port()));
  REQUIRE_FALSE(second);
  CHECK(second.error().code == EADDRINUSE);
  CHECK(second.error().message.find(std::to_string(first->port())) != std::string::npos);
  CHECK(second.error().message.find("address in use") != std::string::npos);
}

TEST_CASE("an address that is not ours is an error that names it", "[udp]") {
  SocketSettings settings;
  settings.bindAddress = *IpAddress::parse("192.0.2.1");
  const auto sockets = UdpSockets::open(settings);
  REQUIRE_FALSE(sockets);
  CHECK(sockets.error().message.find("192.0.2.1") != std::string::npos);
}

TEST_CASE("a bound address leaves the other family alone", "[udp]") {
  const auto sockets = UdpSockets::open(onLoopback());
  REQUIRE(sockets);
  CHECK(sockets->v4() >= 0);
  CHECK(sockets->v6() < 0);
}

TEST_CASE("segments arrive as separate datagrams, with and without offload", "[udp]") {
  const auto sockets = UdpSockets::open(onLoopback());
  REQUIRE(sockets);
  const auto data = counting(2 * 1000 + 17);
  for (const bool offload : {true, false}) {
    UdpPeer peer;
    const auto outcome = sendDatagrams(*sockets, peer.destination(), data, 1000, 0, offload);
    CHECK(outcome.error == 0);
    CHECK(outcome.sent == 3);
    CHECK_FALSE(outcome.segmentationRefused);
    const auto received = peer.receive(3);
    REQUIRE(received.size() == 3);
    CHECK(received[0] == std::vector(data.begin(), data.begin() + 1000));
    CHECK(received[1] == std::vector(data.begin() + 1000, data.begin() + 2000));
    CHECK(received[2] == std::vector(data.begin() + 2000, data.end()));
  }
}

TEST_CASE("the traffic class goes out and is read on arrival, with the local address", "[udp]") {
  const auto sender = UdpSockets::open(onLoopback());
  const auto receiver = UdpSockets::open(onLoopback());
  REQUIRE(sender);
  REQUIRE(receiver);
  Destination destination;
  destination.length =
      Endpoint{*IpAddress::parse("127.0.0.1"), receiver->port(), 0}.toSockaddr(destination.address);
  const auto data = counting(100);
  REQUIRE(sendDatagrams(*sender, destination, data, 100, 0x8a, true).sent == 1);
  pollfd ready{receiver->v4(), POLLIN, 0};
  REQUIRE(::poll(&ready, 1, 1000) == 1);
  std::vector<std::uint8_t> buffer(2000);
  ReceiveControl control;
  iovec piece{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  REQUIRE(::recvmsg(receiver->v4(), &message, 0) == 100);
  const ReceiveInfo info = parseReceiveInfo(message);
  CHECK(info.tos == 0x8a);
  CHECK(info.local.address.toString() == "127.0.0.1");
  CHECK(info.local.interfaceIndex == 1);
}

TEST_CASE("the source address that was contacted is used", "[udp]") {
  SocketSettings any;
  const auto sockets = UdpSockets::open(any);
  REQUIRE(sockets);
  UdpPeer peer;
  Destination destination = peer.destination();
  destination.source.address = *IpAddress::parse("127.0.0.77");
  const auto data = counting(2500);
  for (const bool offload : {true, false}) {
    const auto outcome = sendDatagrams(*sockets, destination, data, 1000, 0, offload);
    CHECK(outcome.sent == 3);
    CHECK_FALSE(outcome.sourceRefused);
    REQUIRE(peer.receive(3).size() == 3);
    CHECK(peer.lastSource().address.toString() == "127.0.0.77");
  }
}

TEST_CASE("a source address that has vanished is given up, and nothing is lost", "[udp]") {
  SocketSettings any;
  const auto sockets = UdpSockets::open(any);
  REQUIRE(sockets);
  UdpPeer peer;
  Destination destination = peer.destination();
  destination.source.address = *IpAddress::parse("192.0.2.1");
  const auto data = counting(2500);
  for (const bool offload : {true, false}) {
    const auto outcome = sendDatagrams(*sockets, destination, data, 1000, 0, offload);
    CHECK(outcome.sent == 3);
    CHECK(outcome.error == 0);
    CHECK(outcome.sourceRefused);
    CHECK_FALSE(outcome.segmentationRefused);
    CHECK(peer.receive(3).size() == 3);
  }
}

TEST_CASE("a path that refuses offload gets single datagrams", "[udp]") {
  const auto sockets = UdpSockets::open(onLoopback());
  REQUIRE(sockets);
  UdpPeer peer;
  // Without checksums UDP_SEGMENT is refused with EIO, as on devices that cannot compute them.
  const int on = 1;
  REQUIRE(::setsockopt(sockets->v4(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)) == 0);
  const auto data = counting(2500);
  const auto outcome = sendDatagrams(*sockets, peer.destination(), data, 1000, 0, true);
  CHECK(outcome.segmentationRefused);
  CHECK(outcome.sent == 3);
  CHECK(peer.receive(3).size() == 3);
}

TEST_CASE("a group of sockets sorts what arrives by the receiver index", "[udp]") {
  const auto group = UdpSockets::openGroup(onLoopback(), 3);
  REQUIRE(group);
  REQUIRE(group->size() == 3);
  UdpPeer peer;
  const Endpoint there{*IpAddress::parse("127.0.0.1"), group->front().port(), 0};
  for (std::uint8_t index = 0; index < 250; ++index) {
    std::vector<std::uint8_t> datagram(32);
    datagram[4] = index;
    peer.send(datagram, there);
    pollfd ready{(*group)[index % 3].v4(), POLLIN, 0};
    REQUIRE(::poll(&ready, 1, 1000) == 1);
    REQUIRE(::recv(ready.fd, datagram.data(), datagram.size(), 0) == 32);
    REQUIRE(datagram[4] == index);
  }
  // Sharing is among ourselves only.
  CHECK_FALSE(UdpSockets::openGroup(onLoopback(there.port), 3));
}

TEST_CASE("a destination of a family without a socket is an error", "[udp]") {
  const auto sockets = UdpSockets::open(onLoopback());
  REQUIRE(sockets);
  Destination destination;
  destination.length = Endpoint{*IpAddress::parse("::1"), 9, 0}.toSockaddr(destination.address);
  const auto outcome = sendDatagrams(*sockets, destination, counting(10), 10, 0, true);
  CHECK(outcome.sent == 0);
  CHECK(outcome.error == EAFNOSUPPORT);
}

TEST_CASE("a stuck device holds a batch up once, not for each of its datagrams", "[root][udp]") {
  using Time = std::chrono::steady_clock;
  if (!test::canMakeNamespaces()) return;
  const test::Namespace space;
  const test::Namespace::Visit visit(space);
  if (std::system("tc qdisc add dev lo root tbf rate 8kbit burst 2000 limit 10000000") != 0) {
    testing::skip("this kernel has no tbf queue");
    return;
  }
  const UdpPeer receiver;
  const auto sockets = UdpSockets::open(onLoopback());
  REQUIRE(sockets);
  const int small = 5000;
  REQUIRE(::setsockopt(sockets->v4(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) == 0);
  const auto data = counting(20 * 1000);
  const auto start = Time::now();
  const SendOutcome outcome = sendDatagrams(*sockets, receiver.destination(), data, 1000, 0, false);
  CHECK(Time::now() - start < std::chrono::seconds(1));
  CHECK(outcome.error == EAGAIN);
  CHECK(outcome.sent < 20);
}
