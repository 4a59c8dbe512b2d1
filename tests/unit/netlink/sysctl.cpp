#include "netlink/sysctl.hpp"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "netlink/test_namespace.hpp"

using namespace adit;
using namespace adit::netlink;

namespace {

class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "adit-sysctl-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
    std::filesystem::create_directories(path_ / "net/ipv4");
    std::ofstream(path_ / "net/ipv4/ip_forward") << "0\n";
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("a parameter is read, written, and its old value returned") {
  const Directory directory;
  const Sysctl sysctl(directory.path());
  REQUIRE(*sysctl.read("net/ipv4/ip_forward") == "0");
  REQUIRE(*sysctl.write("net/ipv4/ip_forward", "1") == "0");
  REQUIRE(*sysctl.read("net/ipv4/ip_forward") == "1");
  REQUIRE(*sysctl.write("net/ipv4/ip_forward", "1") == "1");
}

TEST_CASE("a parameter that this kernel does not have") {
  const Directory directory;
  const auto result = Sysctl(directory.path()).write("net/ipv4/nonsense", "1");
  REQUIRE_FALSE(result);
  REQUIRE(result.error().code == ENOENT);
  REQUIRE(result.error().message.find("/proc/sys/net/ipv4/nonsense") != std::string::npos);
}

TEST_CASE("paths do not leave the root") {
  const Directory directory;
  const Sysctl sysctl(directory.path());
  for (const char* path : {"", "/etc/passwd", "../../etc/passwd", "net/../../etc/passwd", "net/"}) {
    INFO(path);
    const auto result = sysctl.read(path);
    REQUIRE_FALSE(result);
    REQUIRE(result.error().message.find("is not the path") != std::string::npos);
  }
}

TEST_CASE("parameters belong to the namespace of the calling thread", "[root]") {
  if (!test::haveNamespaces()) {
    return;
  }
  const test::Namespace a;
  const test::Namespace b;
  a.run([] { REQUIRE(Sysctl().write("net/ipv4/conf/lo/forwarding", "1")); });
  a.run([] { REQUIRE(*Sysctl().read("net/ipv4/conf/lo/forwarding") == "1"); });
  b.run([] { REQUIRE(*Sysctl().read("net/ipv4/conf/lo/forwarding") == "0"); });
}
