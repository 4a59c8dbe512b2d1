#include "control/privileged_direct.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "config/parser.hpp"
#include "control/device_enrol_file.hpp"
#include "control/module_loader.hpp"
#include "control/sysctl_file.hpp"

namespace adit::control {
namespace {

/// Room for a key of 44 characters and what people put round it.
constexpr std::size_t kKeyOutputLimit = 256;

std::string replaceAll(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

constexpr std::array kHookKinds{HookKind::PreUp, HookKind::PostUp, HookKind::PreDown,
                                HookKind::PostDown};

bool isAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Means nothing to a shell.
bool isPlain(char c) {
  return isAlphanumeric(c) || std::string_view("_=+.@-").find(c) != std::string_view::npos;
}

std::string_view hookKey(HookKind kind) {
  switch (kind) {
    case HookKind::PreUp:
      return "PreUp";
    case HookKind::PostUp:
      return "PostUp";
    case HookKind::PreDown:
      return "PreDown";
    case HookKind::PostDown:
      return "PostDown";
  }
  return "";
}

const std::vector<config::Hook>& hooksOf(const config::InterfaceConfig& interface, HookKind kind) {
  switch (kind) {
    case HookKind::PreUp:
      return interface.preUp;
    case HookKind::PostUp:
      return interface.postUp;
    case HookKind::PreDown:
      return interface.preDown;
    case HookKind::PostDown:
      break;
  }
  return interface.postDown;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string place(const config::Location& location) {
  return fmt::format("{}:{}", location.file ? *location.file : "?", location.line);
}

template <typename T>
bool subset(const std::vector<T>& some, const std::vector<T>& all) {
  return std::ranges::all_of(
      some, [&](const T& item) { return std::ranges::find(all, item) != all.end(); });
}

/// A request that no configuration leads to: the process that made it is not to be trusted.
tl::unexpected<Error> refused(Error error) {
  error.message.insert(0, "refused: ");
  spdlog::warn("{}", error.message);
  return tl::unexpected(std::move(error));
}

/// The lines of resolv.conf(5) that resolvconf(8) reads.
std::string resolverLines(const std::vector<IpAddress>& servers,
                          const std::vector<std::string>& search) {
  std::string text;
  for (const IpAddress& server : servers)
    text += fmt::format("nameserver {}\n", server.toString());
  if (!search.empty()) text += fmt::format("search {}\n", fmt::join(search, " "));
  return text;
}

/// Runs a program whose failure is the operation's.
Result<void> runProgram(const Command& command, std::string_view doing) {
  auto result = runCommand(command);
  if (!result) return wrapError(result.error(), doing);
  if (!result->ok()) {
    return fail("{}: {} {}", doing, fmt::join(command.arguments, " "),
                describeEnd(command, *result));
  }
  return {};
}

}  // namespace

DirectPrivileged::DirectPrivileged(std::string interface, std::string configFile,
                                   PrivilegedSystem system)
    : interface_(std::move(interface)),
      configFile_(std::move(configFile)),
      system_(std::move(system)),
      tuneWriter_(interface_, system_.tuneRoot) {}

Command DirectPrivileged::shell(const std::string& text) const {
  std::vector<std::string> environment{fmt::format("PATH={}", system_.searchPath),
                                       fmt::format("ADIT_INTERFACE={}", interface_)};
  // So that `adit` in a hook finds the daemon that runs it.
  for (const char* name : {"ADIT_RUNTIME_DIR", "ADIT_STATE_DIR", "ADIT_CONFIG_DIR"}) {
    if (const char* value = ::getenv(name))
      environment.push_back(fmt::format("{}={}", name, value));
  }
  return {.arguments = {"/bin/sh", "-c", replaceAll(text, "%i", interface_)},
          .environment = std::move(environment),
          .input = {},
          .timeout = system_.commandTimeout};
}

config::Outcome DirectPrivileged::loadConfig() {
  config::Outcome outcome =
      system_.readConfig ? system_.readConfig(configFile_) : config::load(configFile_);
  if (outcome.ok()) checkHooks(outcome);
  if (outcome.ok()) runKeyCommand(outcome);
  if (outcome.ok()) config_ = outcome.config;
  return outcome;
}

void DirectPrivileged::checkHooks(config::Outcome& outcome) const {
  // The kernel takes names such as `a;b`, which in a hook would be two commands.
  if (std::ranges::all_of(interface_, isPlain)) return;
  const std::size_t before = outcome.diagnostics.size();
  for (const HookKind kind : kHookKinds) {
    for (const config::Hook& hook : hooksOf(outcome.config->interface, kind)) {
      if (hook.command.find("%i") == std::string::npos) continue;
      outcome.diagnostics.push_back(
          {config::Severity::Error, hook.location,
           fmt::format("%i cannot stand for the interface \"{}\" in shell text: a name of letters, "
                       "digits and _ = + . @ - only can",
                       interface_)});
    }
  }
  if (outcome.diagnostics.size() > before) outcome.config.reset();
}

void DirectPrivileged::runKeyCommand(config::Outcome& outcome) const {
  config::InterfaceConfig& interface = outcome.config->interface;
  if (interface.privateKeyCommand.empty()) return;
  // The output is a secret: no message repeats any of it.
  const auto refuse = [&](std::string_view why) {
    outcome.diagnostics.push_back(
        {config::Severity::Error, interface.location, fmt::format("PrivateKeyCommand {}", why)});
    outcome.config.reset();
  };
  Command command = shell(interface.privateKeyCommand);
  command.outputLimit = kKeyOutputLimit;
  auto result = runCommand(command);
  if (!result) return refuse(fmt::format("could not run: {}", result.error().message));
  if (!result->ok()) return refuse(describeEnd(command, *result));
  auto key = crypto::PrivateKey::fromBase64(trim(std::string_view(
      reinterpret_cast<const char*>(result->output.data()), result->output.size())));
  if (!key) return refuse("must print a private key, as `adit genkey` does, and nothing else");
  interface.privateKey = *key;
}

Result<void> DirectPrivileged::runHook(const config::Hook& hook, std::string_view kind) const {
  const Command command = shell(hook.command);
  spdlog::info("{}: {}: {}", place(hook.location), kind, command.arguments.back());
  auto result = runCommand(command);
  if (!result) return fail("{}: {}: {}", place(hook.location), kind, result.error().message);
  if (!result->ok()) {
    return fail("{}: {} {}: {}", place(hook.location), kind, describeEnd(command, *result),
                command.arguments.back());
  }
  return {};
}

Result<void> DirectPrivileged::runHooks(HookKind kind) {
  if (!config_) return fail("no configuration is loaded, so there are no hooks to run");
  const bool stopAtFailure = kind == HookKind::PreUp || kind == HookKind::PostUp;
  std::vector<std::string> failures;
  for (const config::Hook& hook : hooksOf(config_->interface, kind)) {
    if (auto ran = runHook(hook, hookKey(kind)); !ran) {
      failures.push_back(ran.error().message);
      if (stopAtFailure) break;
    }
  }
  if (failures.empty()) return {};
  return fail("{}", fmt::join(failures, "\n"));
}

Result<std::string> DirectPrivileged::writeSysctl(const std::string& path,
                                                  const std::string& value) {
  if (auto allowed = checkSysctl(path); !allowed) return refused(allowed.error());
  return writeSysctlFile(system_.sysctlRoot, path, value);
}

Result<void> DirectPrivileged::writeTuned(const std::string& path, const std::string& value) {
  auto written = tuneWriter_.write(config_ ? &*config_ : nullptr, path, value);
  if (!written && written.error().code == 0) return refused(written.error());
  return written;
}

Result<enrol::Verdict> DirectPrivileged::completeInvitation(const crypto::PublicKey& enrolment,
                                                            const crypto::PublicKey& joining) {
  crypto::SystemRandom random;
  return control::completeInvitation(configFile_, {enrolment, joining}, SystemClock(), random);
}

std::string DirectPrivileged::resolvconfName() const {
  // Debian's resolvconf ranks interfaces by name patterns. The first pattern "PREFIX*" of its list
  // takes NAME in as PREFIX.NAME, as wg-quick(8) does.
  std::ifstream order(system_.resolvconfOrder);
  for (std::string line; std::getline(order, line);) {
    const std::string_view pattern = trim(line);
    if (pattern.size() < 2 || !pattern.ends_with('*')) continue;
    const std::string_view prefix = pattern.substr(0, pattern.size() - 1);
    const bool usable =
        std::ranges::all_of(prefix, [](char c) { return isAlphanumeric(c) || c == '-'; });
    if (usable) return fmt::format("{}.{}", prefix, interface_);
  }
  return interface_;
}

Result<void> DirectPrivileged::setDns(const std::vector<IpAddress>& servers,
                                      const std::vector<std::string>& search) {
  if (!servers.empty() || !search.empty()) {
    if (!config_ || !subset(servers, config_->interface.dnsServers) ||
        !subset(search, config_->interface.dnsSearch)) {
      return refused(
          {fmt::format("{} does not name these DNS servers or domains", configFile_), 0});
    }
  }
  const std::string program = findProgram("resolvconf", system_.searchPath);
  if (program.empty()) {
    // What is not there holds nothing of ours.
    if (servers.empty() && search.empty()) return {};
    return fail(
        "resolvconf is not installed, and DNS needs it: install the package openresolv, or "
        "resolvconf (with systemd-resolved: systemd-resolved), or remove DNS from {}",
        configFile_);
  }
  Command command{
      .arguments = {program},
      .environment = {fmt::format("PATH={}", system_.searchPath)},
      .input = resolverLines(servers, search),
      .timeout = system_.commandTimeout,
  };
  // openresolv: -m 0 ranks first, -x makes the servers exclusive, -f forgives an absent entry.
  if (command.input.empty()) {
    command.arguments.insert(command.arguments.end(), {"-d", resolvconfName(), "-f"});
  } else {
    command.arguments.insert(command.arguments.end(), {"-a", resolvconfName(), "-m", "0", "-x"});
  }
  return runProgram(command, "DNS");
}

Result<void> DirectPrivileged::loadModule() {
  if (!config_ || config_->interface.backend == config::Backend::Userspace) {
    return refused({fmt::format("{} does not ask for the kernel module", configFile_), 0});
  }
  return loadAditModule(system_.searchPath, system_.commandTimeout);
}

Result<UniqueFd> DirectPrivileged::openTun() {
  const std::string& device = system_.tunDevice;
  UniqueFd tun(::open(device.c_str(), O_RDWR | O_CLOEXEC));
  if (tun) return tun;
  switch (const int code = errno) {
    case ENOENT:
    case ENOTDIR:
    case ENODEV:
    case ENXIO:
      return failErrno(code,
                       "{}: there is no TUN device; load its module with `modprobe tun`, or give "
                       "the container `--device {}`",
                       device, device);
    case EACCES:
    case EPERM:
      return failErrno(code,
                       "{}: not allowed; run aditd as root, or give the container `--cap-add "
                       "NET_ADMIN --device {}`",
                       device, device);
    default:
      return failErrno(code, "{}", device);
  }
}

}  // namespace adit::control
