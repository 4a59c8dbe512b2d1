#include "control/tune_request.hpp"

#include <algorithm>

#include "config/values.hpp"

namespace adit::control {
namespace {

template <typename T>
using Mode = typename tune::Setting<T>::Mode;

template <typename T, typename Parse>
void assign(tune::Setting<T>& setting, const std::string& value, Parse parse) {
  if (value == "auto") {
    setting.mode = Mode<T>::Auto;
  } else if (value == "off") {
    setting.mode = Mode<T>::Off;
  } else {
    setting.mode = Mode<T>::Given;
    setting.value = parse(value);
  }
}

/// Grammar has been checked: what is no number here was none there.
std::uint64_t sizeOf(const std::string& text) {
  return config::parseSize(text).value_or(0);
}
std::string textOf(const std::string& text) {
  return text;
}

/// [INTERFACE:]CPUS, where auto and off may stand for CPUS.
void assignCpus(tune::Setting<tune::Cpus>& setting, const std::string& value) {
  const std::size_t colon = value.find(':');
  std::string interface = colon == std::string::npos ? "" : value.substr(0, colon);
  std::string list = colon == std::string::npos ? value : value.substr(colon + 1);
  std::ranges::transform(list, list.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  assign(setting, list, [](const std::string& text) { return tune::Cpus{"", text}; });
  setting.value.interface = std::move(interface);
}

void apply(const config::TuneConfig::Setting& entry, tune::Settings& settings) {
  const std::string& key = entry.key;
  const std::string& value = entry.value;
  if (key == "Rps") assignCpus(settings.rps, value);
  if (key == "Xps") assignCpus(settings.xps, value);
  if (key == "Irq") assignCpus(settings.irq, value);
  if (key == "Rfs") assign(settings.rfs, value, sizeOf);
  if (key == "Buffers") assign(settings.buffers, value, sizeOf);
  if (key == "Conntrack") assign(settings.conntrack, value, sizeOf);
  if (key == "Backlog") assign(settings.backlog, value, sizeOf);
  if (key == "CongestionControl") assign(settings.congestionControl, value, textOf);
  if (key == "Qdisc") assign(settings.qdisc, value, textOf);
}

tune::Settings allOff() {
  tune::Settings settings;
  for (auto* cpus : {&settings.rps, &settings.xps, &settings.irq}) {
    cpus->mode = Mode<tune::Cpus>::Off;
  }
  for (auto* number : {&settings.rfs, &settings.buffers, &settings.conntrack, &settings.backlog}) {
    number->mode = Mode<std::uint64_t>::Off;
  }
  for (auto* text : {&settings.congestionControl, &settings.qdisc}) {
    text->mode = Mode<std::string>::Off;
  }
  return settings;
}

}  // namespace

bool wantsTuning(const config::TuneConfig& tune) {
  return tune.profile != config::TuneConfig::Profile::Off;
}

tune::Settings tuneSettings(const config::TuneConfig& tune) {
  tune::Settings settings =
      tune.profile == config::TuneConfig::Profile::Explicit ? allOff() : tune::Settings{};
  for (const config::TuneConfig::Setting& entry : tune.settings) {
    apply(entry, settings);
  }
  return settings;
}

tune::Request tuneRequest(const config::Config& config, const std::string& interface,
                          const tune::Files& files) {
  tune::Request request;
  request.settings = tuneSettings(config.tune);
  request.tunnels = {interface};
  const std::string& named = config.interface.publicInterface;
  const std::string outer = named.empty() ? tune::defaultNic(files) : named;
  // An absent one is a warning of its own, of the mappings.
  if (!outer.empty() && !files.resolve("sys/class/net/" + outer).empty()) {
    request.nics = tune::nicsBehind(files, outer);
  }
  for (const auto* key : {&request.settings.rps, &request.settings.xps, &request.settings.irq}) {
    const std::string& nic = key->value.interface;
    const bool known = nic.empty() || nic == interface ||
                       std::ranges::find(request.nics, nic) != request.nics.end() ||
                       files.resolve("sys/class/net/" + nic).empty();
    if (!known) request.nics.push_back(nic);
  }
  return request;
}

}  // namespace adit::control
