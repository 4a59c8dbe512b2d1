#include "bench/local_network.hpp"

#include <poll.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "crypto/key.hpp"
#include "util/file.hpp"

namespace adit::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr auto kCommandLimit = seconds(60);
constexpr auto kHandshakeLimit = seconds(20);
constexpr auto kListenLimit = seconds(5);
constexpr std::chrono::milliseconds kPoll{50};
constexpr const char* kFolder = "/run/adit-bench";
constexpr unsigned kTunnelPort = 51820;

constexpr const char* kServerFile = R"([Interface]
PrivateKey = {}
Address = 10.10.0.1/24
ListenPort = {}
Backend = {}
Cipher = {}
Public = eth0

[Peer]
Name = nas
PublicKey = {}
AllowedIPs = 10.10.0.2/32

[Map]
Listen = tcp/{}
To = nas
)";

constexpr const char* kNasFile = R"([Interface]
PrivateKey = {}
Address = 10.10.0.2/24
Backend = {}
Cipher = {}
Table = reply

[Peer]
Name = server
PublicKey = {}
Endpoint = 203.0.113.9:{}
AllowedIPs = 0.0.0.0/0
PersistentKeepalive = 25
)";

Result<void> pauseUntilNextLook(const Interrupt& interrupt) {
  pollfd source{interrupt.descriptor(), POLLIN, 0};
  ::poll(&source, 1, static_cast<int>(kPoll.count()));
  if (interrupt.signal() != 0) return fail("interrupted");
  return {};
}

Result<std::string> runCommand(const Command& command, const Interrupt& interrupt) {
  const auto ended = runToEnd(command, kCommandLimit, interrupt);
  if (!ended) return tl::unexpected(ended.error());
  if (ended->how == Ended::How::Interrupted) return fail("interrupted");
  if (ended->how == Ended::How::TooLate || ended->status != 0) {
    return fail("{}: {}", command.arguments.front(), lastWords(*ended));
  }
  return ended->output;
}

Result<void> configureLinks(const Host& host, std::string script, const Interrupt& interrupt) {
  Command command{.arguments = {"ip", "-batch", "-"}, .place = &host.network()};
  command.input = std::move(script);
  return runCommand(command, interrupt).map([](const std::string&) {});
}

/// Keys of machines that live for a minute; their file is in memory and root's alone. The daemon
/// passes through the folder as another user.
Result<void> writeFile(const Host& host, const std::string& content) {
  const auto folder = host.file(kFolder);
  if (::mkdir(folder.c_str(), 0755) != 0) return failErrno(errno, "{}", folder.string());
  const auto name = std::string(LocalNetwork::kInterface) + ".conf";
  return replaceFile(folder / name, content, S_IRUSR | S_IWUSR, Durability::Process);
}

/// Whether somebody listens on the port in the machine's network: state 0A of proc(5).
bool listensOn(const Host& host, std::uint16_t port) {
  const std::string wanted = fmt::format(":{:04X} ", port);
  for (const char* table : {"tcp", "tcp6"}) {
    const auto text = readFile(fmt::format("/proc/{}/net/{}", host.pid(), table));
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    while (!rest.empty()) {
      const auto length = std::min(rest.find('\n'), rest.size());
      const std::string_view line = rest.substr(0, length);
      rest.remove_prefix(std::min(length + 1, rest.size()));
      if (line.find(wanted) < line.find(" 0A ") && line.find(" 0A ") != std::string_view::npos) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

LocalNetwork::LocalNetwork(LocalOptions options, Host client, Host server, Host nas)
    : options_(std::move(options)),
      client_(std::move(client)),
      server_(std::move(server)),
      nas_(std::move(nas)) {}

Result<LocalNetwork> LocalNetwork::make(const LocalOptions& options, const Interrupt& interrupt) {
  auto client = Host::make();
  auto server = Host::make();
  auto nas = Host::make();
  for (const auto* host : {&client, &server, &nas}) {
    if (!*host) return tl::unexpected(host->error());
  }
  LocalNetwork network(options, std::move(*client), std::move(*server), std::move(*nas));
  const auto ready = network.connect(interrupt)
                         .and_then([&] { return network.bringUp(interrupt); })
                         .and_then([&] { return network.waitForHandshake(interrupt); })
                         .and_then([&] { return network.serve(interrupt); });
  if (!ready) return tl::unexpected(ready.error());
  return network;
}

Result<void> LocalNetwork::connect(const Interrupt& interrupt) const {
  // The numbers after "netns" are processes, as ip(8) takes them.
  return configureLinks(server_,
                        fmt::format("link set lo up\n"
                                    "link add eth0 type veth peer name eth0 netns {}\n"
                                    "link add eth1 type veth peer name eth0 netns {}\n"
                                    "address add 198.51.100.1/24 dev eth0\n"
                                    "address add 203.0.113.9/24 dev eth1\n"
                                    "link set eth0 up\n"
                                    "link set eth1 up\n",
                                    client_.pid(), nas_.pid()),
                        interrupt)
      .and_then([&] {
        return configureLinks(client_,
                              "link set lo up\n"
                              "address add 198.51.100.10/24 dev eth0\n"
                              "link set eth0 up\n",
                              interrupt);
      })
      .and_then([&] {
        return configureLinks(nas_,
                              "link set lo up\n"
                              "address add 203.0.113.2/24 dev eth0\n"
                              "link set eth0 up\n"
                              "route add default via 203.0.113.9\n",
                              interrupt);
      });
}

Result<void> LocalNetwork::bringUp(const Interrupt& interrupt) const {
  const auto serverKey = crypto::PrivateKey::generate();
  const auto nasKey = crypto::PrivateKey::generate();
  const std::string serverFile =
      fmt::format(kServerFile, serverKey.toBase64(), kTunnelPort, options_.backend, options_.cipher,
                  nasKey.publicKey().toBase64(), kIperfPort);
  const std::string nasFile =
      fmt::format(kNasFile, nasKey.toBase64(), options_.backend, options_.cipher,
                  serverKey.publicKey().toBase64(), kTunnelPort);
  for (const auto& [host, content] : {std::pair(&server_, &serverFile), {&nas_, &nasFile}}) {
    if (auto written = writeFile(*host, *content); !written) return written;
    const auto up = adit(*host, {"up", kInterface}, interrupt);
    if (!up) return tl::unexpected(up.error());
  }
  return {};
}

Result<void> LocalNetwork::waitForHandshake(const Interrupt& interrupt) const {
  const auto limit = Clock::now() + kHandshakeLimit;
  while (Clock::now() < limit) {
    const auto text = status(interrupt);
    if (!text) return tl::unexpected(text.error());
    const auto json = nlohmann::json::parse(*text, nullptr, false);
    if (json.is_object() && json.contains("peers") && json["peers"].is_array()) {
      for (const auto& peer : json["peers"]) {
        if (peer.is_object() && peer.value("latest_handshake_age", nlohmann::json()).is_number()) {
          return {};
        }
      }
    }
    if (auto paused = pauseUntilNextLook(interrupt); !paused) return paused;
  }
  return fail("no handshake between the two ends within {} s", kHandshakeLimit.count());
}

Result<void> LocalNetwork::serve(const Interrupt& interrupt) {
  const Command command{.arguments = {kIperf, "-s", "-p", std::to_string(kIperfPort)},
                        .place = &nas_.inside()};
  auto child = Child::start(command);
  if (!child) return tl::unexpected(child.error());
  iperf_.emplace(std::move(*child));
  const auto limit = Clock::now() + kListenLimit;
  while (!listensOn(nas_, kIperfPort)) {
    if (!iperf_->running() || Clock::now() >= limit) {
      return fail("iperf3 -s does not listen: {}", iperf_->errors());
    }
    if (auto paused = pauseUntilNextLook(interrupt); !paused) return paused;
  }
  return {};
}

Result<std::string> LocalNetwork::adit(const Host& host, std::vector<std::string> arguments,
                                       const Interrupt& interrupt) const {
  arguments.insert(arguments.begin(), options_.adit.string());
  const Command command{
      .arguments = std::move(arguments),
      .place = &host.inside(),
      .environment = {"ADIT_RUNTIME_DIR=/run/adit", "ADIT_WIREGUARD_DIR=/run/wireguard",
                      fmt::format("ADIT_STATE_DIR={}/state", kFolder),
                      fmt::format("ADIT_CONFIG_DIR={}", kFolder),
                      fmt::format("ADITD={}", options_.daemon.string())}};
  return runCommand(command, interrupt);
}

Result<std::string> LocalNetwork::status(const Interrupt& interrupt) const {
  return adit(server_, {"status", kInterface, "--json"}, interrupt);
}

Targets LocalNetwork::targets() const {
  return {{Layer::Bare, Target{"203.0.113.2", kIperfPort, &server_.inside()}},
          {Layer::Tunnel, Target{"10.10.0.2", kIperfPort, &server_.inside()}},
          {Layer::Mapped, Target{"198.51.100.1", kIperfPort, &client_.inside()}}};
}

}  // namespace adit::bench
