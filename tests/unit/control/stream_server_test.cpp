#include "control/stream_server.hpp"

#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "scratch.hpp"

namespace adit::control {
namespace {

struct Fixture {
  ~Fixture() { std::filesystem::remove_all(root); }

  /// Runs the loop while `client` talks on a thread of its own, then ends it.
  void serve(const StreamServer::Options& options, const std::function<void()>& client) {
    StreamServer server(loop, listenAt(path, options.readers).value(), options, handler);
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    const EventSource done =
        loop.watch(reader.get(), 1 /* EPOLLIN */, [&](std::uint32_t) { loop.exit(0); });
    std::thread thread([&] {
      client();
      writer.reset();
    });
    loop.run();
    thread.join();
  }

  [[nodiscard]] UniqueFd connect() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    UniqueFd client(::socket(AF_UNIX, SOCK_STREAM, 0));
    CHECK(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    return client;
  }

  static void send(const UniqueFd& client, std::string_view text) {
    CHECK(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL) == ssize_t(text.size()));
  }
  /// What arrives until `size` bytes are there or the server hangs up.
  static std::string receive(const UniqueFd& client, std::size_t size) {
    std::string text;
    std::array<char, 256> buffer{};
    while (text.size() < size) {
      const ssize_t count = ::recv(client.get(), buffer.data(), buffer.size(), 0);
      if (count <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

  std::filesystem::path root = testing::makeScratch("adit-socket");
  std::string path = root / "x.sock";
  EventLoop loop;
  StreamServer::Handler handler = [](std::string_view request, Access) {
    return "<" + std::string(request) + ">";
  };
};

}  // namespace

TEST_CASE_METHOD(Fixture, "requests are answered in order, however they are cut") {
  serve({.delimiter = "\n\n"}, [&] {
    const UniqueFd client = connect();
    send(client, "get=1\n");
    send(client, "\nset");
    send(client, "=1\na\n\nthird\n\n");
    CHECK(receive(client, 23) == "<get=1><set=1\na><third>");
    // Without its delimiter a request is none.
    send(client, "fourth");
    ::shutdown(client.get(), SHUT_WR);
    CHECK(receive(client, 100).empty());
  });
}

TEST_CASE_METHOD(Fixture, "a request beyond the limit ends its connection alone") {
  serve({.delimiter = "\n", .maximumRequest = 100}, [&] {
    const UniqueFd greedy = connect();
    const UniqueFd modest = connect();
    send(greedy, std::string(200, 'x'));
    CHECK(receive(greedy, 1).empty());
    send(modest, "a\n");
    CHECK(receive(modest, 3) == "<a>");
  });
}

TEST_CASE_METHOD(Fixture, "more clients than allowed are turned away") {
  serve({.delimiter = "\n", .maximumConnections = 2}, [&] {
    const UniqueFd first = connect();
    const UniqueFd second = connect();
    const UniqueFd third = connect();
    CHECK(receive(third, 1).empty());
    send(first, "a\n");
    CHECK(receive(first, 3) == "<a>");
  });
}

TEST_CASE_METHOD(Fixture, "a group may read, and nobody else may talk to the socket", "[root]") {
  constexpr gid_t kReaders = 12345;
  constexpr uid_t kSomebody = 54321;
  handler = [](std::string_view, Access access) { return access == Access::Full ? "F" : "R"; };
  std::filesystem::permissions(root, std::filesystem::perms{0755});
  const auto answerTo = [&](uid_t user, gid_t group, std::vector<gid_t> others) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    const pid_t child = ::fork();
    if (child == 0) {
      char answer = '-';
      if (::setgroups(others.size(), others.data()) != 0 || ::setresgid(group, group, group) != 0 ||
          ::setresuid(user, user, user) != 0) {
        ::_exit(1);
      }
      const UniqueFd client(::socket(AF_UNIX, SOCK_STREAM, 0));
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::memcpy(address.sun_path, path.c_str(), path.size());
      if (::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
        // The server may have closed it already.
        const bool answered = ::send(client.get(), "a\n", 2, MSG_NOSIGNAL) == 2 &&
                              ::recv(client.get(), &answer, 1, 0) == 1;
        if (!answered) answer = 'c';
      }
      ::_exit(::write(writer.get(), &answer, 1) == 1 ? 0 : 1);
    }
    writer.reset();
    char answer = '?';
    CHECK(::read(reader.get(), &answer, 1) == 1);
    ::waitpid(child, nullptr, 0);
    return answer;
  };
  std::string answers;
  serve({.delimiter = "\n", .readers = kReaders}, [&] {
    answers += answerTo(0, 0, {});
    answers += answerTo(kSomebody, kReaders, {});
    answers += answerTo(kSomebody, 1000, {7, kReaders});
    answers += answerTo(kSomebody, 1000, {7});
    // Nor where the modes would let them.
    std::filesystem::permissions(path, std::filesystem::perms{0666});
    answers += answerTo(kSomebody, 1000, {7});
  });
  CHECK(answers == "FRR-c");
}

TEST_CASE_METHOD(Fixture, "the socket is for its owner only, and one in use is not taken") {
  const auto listener = listenAt(path);
  REQUIRE(listener);
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const auto second = listenAt(path);
  REQUIRE_FALSE(second);
  CHECK_THAT(second.error().message, Catch::Contains("is in use"));
}

TEST_CASE_METHOD(Fixture, "a socket that a killed daemon left is replaced") {
  { const auto dead = listenAt(path); }
  CHECK(std::filesystem::exists(path));
  CHECK(listenAt(path));
}

TEST_CASE_METHOD(Fixture, "a path that is too long is an error") {
  CHECK_FALSE(listenAt("/tmp/" + std::string(200, 'x')));
}

TEST_CASE_METHOD(Fixture, "another client is answered while a request pumps the loop") {
  bool released = false;
  handler = [&](std::string_view request, Access) -> std::string {
    if (request == "wait") {
      loop.pumpUntil(released);
      return "waited;";
    }
    released = request == "release";
    return "ok;";
  };
  serve({.delimiter = "\n"}, [&] {
    const UniqueFd waiting = connect();
    const UniqueFd other = connect();
    send(waiting, "wait\nnext\n");
    send(other, "hello\nrelease\n");
    CHECK(receive(other, 6) == "ok;ok;");
    CHECK(receive(waiting, 10) == "waited;ok;");
  });
}

TEST_CASE("a callback may let go of its own source") {
  EventLoop loop;
  EventSource timer;
  int calls = 0;
  timer = loop.timer([&] {
    ++calls;
    timer = {};
    loop.exit(3);
  });
  timer.schedule(BootTime(1));
  CHECK(loop.run() == 3);
  CHECK(calls == 1);
}

}  // namespace adit::control
