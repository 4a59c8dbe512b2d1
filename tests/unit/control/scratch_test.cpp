#include "scratch.hpp"

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <fstream>

namespace adit::testing {

TEST_CASE("the folder of a killed test goes with the next one, those of living ones stay") {
  const std::filesystem::path parent = makeScratch("adit-scratch");
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::ofstream(makeScratch("x", parent) / "file") << "left";
    ::raise(SIGKILL);
  }
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  const std::filesystem::path own = makeScratch("other", parent);
  CHECK(std::distance(std::filesystem::directory_iterator(parent), {}) == 2);
  std::filesystem::create_directory(parent / "x-words");
  const std::filesystem::path first = makeScratch("x", parent);
  const std::filesystem::path second = makeScratch("x", parent);
  CHECK(std::filesystem::exists(first));
  CHECK(std::filesystem::exists(second));
  CHECK(std::filesystem::exists(own));
  CHECK(std::filesystem::exists(parent / "x-words"));
  CHECK(std::distance(std::filesystem::directory_iterator(parent), {}) == 4);
  std::filesystem::remove_all(parent);
}

}  // namespace adit::testing
