#include "cli/sources.hpp"

#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "cli/output.hpp"
#include "config/file_io.hpp"
#include "config/values.hpp"

namespace adit::cli {
namespace {

/// Of a key.
constexpr std::size_t kLongestFile = 4096;
constexpr int kStandardRetries = 15;
constexpr int kEndless = -1;

template <typename Number>
std::optional<Number> parseNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<int> allowedRetries() {
  const char* value = std::getenv("WG_ENDPOINT_RESOLUTION_RETRIES");
  if (value == nullptr) return kStandardRetries;
  if (std::string_view(value) == "infinity") return kEndless;
  const auto number = parseNumber<int>(value);
  if (!number || *number < 0) {
    return fail("WG_ENDPOINT_RESOLUTION_RETRIES takes a number or infinity");
  }
  return *number;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

const char* explain(int code) {
  return code == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(code);
}

/// The first address of `host`; asks again while the failure may pass.
Result<Addresses> lookUp(const std::string& host, const std::string& port) {
  using std::chrono::milliseconds;
  constexpr milliseconds kLongestPause{20'000};
  const auto retries = allowedRetries();
  if (!retries) return tl::unexpected(retries.error());
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_protocol = IPPROTO_UDP;
  milliseconds pause{1'000};
  for (int tries = 0;; ++tries) {
    addrinfo* list = nullptr;
    const int code = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
    if (code == 0) return Addresses(list);
    const bool final = code == EAI_NONAME || code == EAI_FAIL || code == EAI_NODATA;
    if (final || (*retries != kEndless && tries >= *retries)) {
      return fail("endpoint {}: {}; check the name and the resolver, or give an address", host,
                  explain(code));
    }
    remark(fmt::format("endpoint {}: {}; trying again in {:.1f} seconds", host, explain(code),
                       static_cast<double>(pause.count()) / 1000));
    std::this_thread::sleep_for(pause);
    pause = std::min(kLongestPause, pause * 6 / 5);
  }
}

}  // namespace

Result<std::string> readFile(const std::string& path) {
  const auto file = config::readFile(path, kLongestFile, false);
  if (!file) return wrapError(file.error(), path);
  return std::string(file->text());
}

Result<Endpoint> resolveEndpoint(std::string_view text) {
  const auto name = config::parseEndpoint(text);
  if (!name) return fail("endpoint: {}", name.error().message);
  if (name->literal) return Endpoint::parse(name->toString());
  const auto addresses = lookUp(name->host, std::to_string(name->port));
  if (!addresses) return tl::unexpected(addresses.error());
  return Endpoint::fromSockaddr((*addresses)->ai_addr);
}

control::ChangeSources machineSources() {
  return {.readFile = readFile, .resolve = resolveEndpoint};
}

}  // namespace adit::cli
