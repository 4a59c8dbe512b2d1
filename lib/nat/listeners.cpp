#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <sstream>

#include "nat/prerequisites.hpp"

namespace adit::nat {
namespace {

namespace fs = std::filesystem;

/// States of include/net/tcp_states.h, which UDP uses too: bound, not connected.
constexpr unsigned kTcpListen = 0x0a;
constexpr unsigned kUdpUnconnected = 0x07;

/// A listener and the inode of its socket, by which a process holds it.
struct Found {
  Listener listener;
  std::uint64_t inode = 0;
};

std::optional<std::uint32_t> hexNumber(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// "0100007F" or 32 digits: 32-bit words, each printed in the host's byte order.
std::optional<IpAddress> kernelAddress(std::string_view text) {
  if (text.size() != 8 && text.size() != 32) {
    return std::nullopt;
  }
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t word = 0; word < text.size() / 8; ++word) {
    const auto value = hexNumber(text.substr(word * 8, 8));
    if (!value) {
      return std::nullopt;
    }
    std::memcpy(bytes.data() + word * 4, &*value, 4);
  }
  if (text.size() == 8) {
    return IpAddress::fromV4(std::span(bytes).first<4>());
  }
  return IpAddress::fromV6(bytes);
}

/// One line of /proc/net/{tcp,udp}{,6} (proc(5)).
std::optional<Found> parseLine(const std::string& line, Protocol protocol) {
  std::istringstream words(line);
  std::string slot, local, remote, state, queues, timer, retransmits;
  std::uint64_t user = 0;
  std::uint64_t timeout = 0;
  Found found;
  if (!(words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
        timeout >> found.inode)) {
    return std::nullopt;
  }
  const auto colon = local.find(':');
  const auto number = hexNumber(state);
  if (colon == std::string::npos ||
      number != (protocol == Protocol::Tcp ? kTcpListen : kUdpUnconnected)) {
    return std::nullopt;
  }
  const auto address = kernelAddress(std::string_view(local).substr(0, colon));
  const auto port = hexNumber(std::string_view(local).substr(colon + 1));
  if (!address || !port || *port > 65535) {
    return std::nullopt;
  }
  found.listener.protocol = protocol;
  found.listener.address = *address;
  found.listener.port = static_cast<std::uint16_t>(*port);
  return found;
}

/// The thread's own namespace; /proc/net is the one of the process's first thread.
fs::path networkDirectory(const fs::path& proc) {
  std::error_code ignored;
  const fs::path own = proc / "thread-self" / "net";
  return fs::exists(own, ignored) ? own : proc / "net";
}

std::string commandName(const fs::path& process) {
  std::ifstream file(process / "comm");
  std::string name;
  std::getline(file, name);
  return name;
}

/// Fills in who holds the sockets, as far as we may look.
void findProcesses(const fs::path& proc, std::vector<Found>& found) {
  std::map<std::uint64_t, std::vector<Listener*>> byInode;
  for (Found& entry : found) {
    byInode[entry.inode].push_back(&entry.listener);
  }
  std::error_code error;
  for (const auto& process : fs::directory_iterator(proc, error)) {
    std::uint32_t pid = 0;
    const std::string name = process.path().filename();
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr !=
        name.data() + name.size()) {
      continue;
    }
    for (const auto& descriptor : fs::directory_iterator(process.path() / "fd", error)) {
      const std::string target = fs::read_symlink(descriptor.path(), error).string();
      constexpr std::string_view kPrefix = "socket:[";
      if (!target.starts_with(kPrefix)) {
        continue;
      }
      std::uint64_t inode = 0;
      std::from_chars(target.data() + kPrefix.size(), target.data() + target.size(), inode);
      if (const auto match = byInode.find(inode); match != byInode.end()) {
        for (Listener* listener : match->second) {
          listener->process = commandName(process.path());
          listener->pid = pid;
        }
      }
    }
  }
}

bool inTheWay(const Listener& listener, const Mapping& mapping, const RulesetSpec& spec) {
  if (listener.protocol != mapping.protocol || listener.port < mapping.firstPort ||
      listener.port > mapping.lastPort || listener.address.isLoopback() ||
      (listener.protocol == Protocol::Udp && listener.port == spec.ownPort) ||
      std::ranges::find(spec.tunnelAddresses, listener.address) != spec.tunnelAddresses.end()) {
    return false;
  }
  return !mapping.listenAddress || listener.address.isUnspecified() ||
         listener.address == *mapping.listenAddress;
}

}  // namespace

std::string Listener::toString() const {
  std::string text = fmt::format("{}/{}", protocolName(protocol), port);
  if (!process.empty()) {
    text += fmt::format(" of {} (process {})", process, pid);
  }
  return text;
}

Result<std::vector<Listener>> localListeners(const fs::path& proc) {
  constexpr std::array kFiles = {std::pair{"tcp", Protocol::Tcp}, std::pair{"tcp6", Protocol::Tcp},
                                 std::pair{"udp", Protocol::Udp}, std::pair{"udp6", Protocol::Udp}};
  std::vector<Found> found;
  bool any = false;
  for (const auto& [name, protocol] : kFiles) {
    // Without IPv6 in the kernel two of them are missing.
    std::ifstream file(networkDirectory(proc) / name);
    any = any || file.is_open();
    for (std::string line; std::getline(file, line);) {
      if (auto entry = parseLine(line, protocol)) {
        found.push_back(std::move(*entry));
      }
    }
  }
  if (!any) {
    return fail("cannot read the list of sockets in {}", networkDirectory(proc).string());
  }
  findProcesses(proc, found);
  std::vector<Listener> listeners;
  for (Found& entry : found) {
    listeners.push_back(std::move(entry.listener));
  }
  return listeners;
}

std::vector<Error> listenerConflicts(const RulesetSpec& spec,
                                     const std::vector<Listener>& listeners) {
  std::vector<Error> errors;
  for (const Mapping& mapping : spec.mappings) {
    const auto holder = std::ranges::find_if(listeners, [&](const Listener& listener) {
      return !mapping.overrideListener && inTheWay(listener, mapping, spec);
    });
    if (holder != listeners.end()) {
      errors.push_back(Error{
          fmt::format("{}{}mapping {} would take {} away from this host; choose another port, or "
                      "write Override = yes if that is meant",
                      mapping.location, mapping.location.empty() ? "" : ": ", mapping.listenText(),
                      holder->toString()),
          0});
    }
  }
  return errors;
}

}  // namespace adit::nat
