#include "control/privileged_outcome.hpp"

#include <array>
#include <concepts>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <variant>

#include "control/privileged_codec.hpp"

namespace adit::control {
namespace {

template <typename T, typename... Any>
concept OneOf = (std::same_as<std::remove_const_t<T>, Any> || ...);

// What each aggregate of the model holds. A structured binding must name all members, so a member
// that is added to the model does not compile here until it travels as well.

template <OneOf<config::TableAuto, config::TableOff, config::TableReply> T, typename Use>
void members(T&, Use use) {
  use();
}

template <OneOf<crypto::PublicKey> T, typename Use>
void members(T& key, Use use) {
  use(key.bytes);
}

template <OneOf<InterfaceAddress, config::Hook, config::MetricsAddress> T, typename Use>
void members(T& pair, Use use) {
  auto& [a, b] = pair;
  use(a, b);
}

template <OneOf<Endpoint, config::PortGrant, config::FileStamp, config::Diagnostic,
                config::TuneConfig::Setting, config::TuneConfig, config::Outcome>
              T,
          typename Use>
void members(T& triple, Use use) {
  auto& [a, b, c] = triple;
  use(a, b, c);
}

template <OneOf<config::EndpointName> T, typename Use>
void members(T& four, Use use) {
  auto& [a, b, c, d] = four;
  use(a, b, c, d);
}

template <OneOf<config::Config> T, typename Use>
void members(T& five, Use use) {
  auto& [a, b, c, d, e] = five;
  use(a, b, c, d, e);
}

template <OneOf<config::InvitationConfig> T, typename Use>
void members(T& invitation, Use use) {
  auto& [a, b, c, d, e, f, g, h, i] = invitation;
  use(a, b, c, d, e, f, g, h, i);
}

template <OneOf<config::PeerConfig> T, typename Use>
void members(T& peer, Use use) {
  auto& [a, b, c, d, e, f, g, h, i, j, k] = peer;
  use(a, b, c, d, e, f, g, h, i, j, k);
}

template <OneOf<config::MapConfig> T, typename Use>
void members(T& map, Use use) {
  auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = map;
  use(a, b, c, d, e, f, g, h, i, j, k, l, m);
}

template <OneOf<config::InterfaceConfig> T, typename Use>
void members(T& interface, Use use) {
  auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w] = interface;
  use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w);
}

/// Appends values to an Encoder.
class Save {
 public:
  explicit Save(Encoder& out) : out_(out) {}

  template <Scalar T>
  void one(const T& scalar) {
    out_.value(scalar);
  }
  void one(const std::string& text) { out_.value(text); }
  void one(const std::filesystem::path& path) { out_.value(path.native()); }
  void one(const IpAddress& address) { out_.value(address); }
  void one(const Prefix& prefix) {
    one(prefix.address());
    one(prefix.length());
  }
  template <std::size_t Size>
  void one(const std::array<std::uint8_t, Size>& bytes) {
    out_.raw(bytes);
  }
  template <std::size_t Size>
  void one(const Secret<Size>& secret) {
    out_.raw(secret.bytes());
  }
  void one(const std::chrono::seconds& time) { out_.value(std::int64_t{time.count()}); }
  void one(const crypto::PrivateKey& key) { one(key.secret()); }
  void one(const config::Location& location) {
    one(location.file ? std::optional(*location.file) : std::nullopt);
    one(location.line);
    one(location.column);
  }
  void one(const config::Table& table) {
    one(static_cast<std::uint8_t>(table.index()));
    const auto* number = std::get_if<std::uint32_t>(&table);
    one(number != nullptr ? *number : std::uint32_t{0});
  }
  template <typename T>
  void one(const std::optional<T>& maybe) {
    one(maybe.has_value());
    if (maybe) one(*maybe);
  }
  template <typename T>
  void one(const std::vector<T>& items) {
    one(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items)
      one(item);
  }
  template <typename T>
  requires std::is_class_v<T>
  void one(const T& aggregate) {
    members(aggregate, [this](const auto&... member) { (one(member), ...); });
  }

 private:
  Encoder& out_;
};

/// The inverse of Save, member for member.
class Load {
 public:
  explicit Load(Decoder& in) : in_(in) {}

  template <std::integral T>
  void one(T& scalar) {
    scalar = in_.scalar<T>();
  }
  template <typename T>
  requires std::is_enum_v<T>
  void one(T& enumerator) { enumerator = static_cast<T>(in_.scalar<std::underlying_type_t<T>>()); }
  void one(std::string& text) { text = in_.text(); }
  void one(std::filesystem::path& path) { path = in_.text(); }
  void one(IpAddress& address) { address = in_.address(); }
  void one(Prefix& prefix) {
    const IpAddress address = in_.address();
    const auto length = in_.scalar<unsigned>();
    if (length > address.bits()) return in_.reject();
    prefix = Prefix(address, length);
  }
  template <std::size_t Size>
  void one(std::array<std::uint8_t, Size>& bytes) {
    fill(bytes);
  }
  template <std::size_t Size>
  void one(Secret<Size>& secret) {
    fill(secret.bytes());
  }
  void one(std::chrono::seconds& time) { time = std::chrono::seconds(in_.scalar<std::int64_t>()); }
  void one(std::optional<crypto::PrivateKey>& key) {
    if (!in_.scalar<bool>()) return;
    Secret<32> secret;
    one(secret);
    key.emplace(secret.bytes());
  }
  void one(config::Location& location) {
    std::optional<std::string> file;
    one(file);
    if (file) location.file = shared(*file);
    one(location.line);
    one(location.column);
  }
  void one(config::Table& table) {
    const auto index = in_.scalar<std::uint8_t>();
    const auto number = in_.scalar<std::uint32_t>();
    switch (index) {
      case 0:
        table = config::TableAuto{};
        break;
      case 1:
        table = config::TableOff{};
        break;
      case 2:
        table = config::TableReply{};
        break;
      default:
        table = number;
    }
  }
  template <typename T>
  void one(std::optional<T>& maybe) {
    if (in_.scalar<bool>()) one(maybe.emplace());
  }
  template <typename T>
  void one(std::vector<T>& items) {
    items = in_.list([this] {
      T item{};
      one(item);
      return item;
    });
  }
  template <typename T>
  requires std::is_class_v<T>
  void one(T& aggregate) {
    members(aggregate, [this](auto&... member) { (one(member), ...); });
  }

 private:
  template <std::size_t Size>
  void fill(std::span<std::uint8_t, Size> bytes) {
    const auto read = in_.raw(Size);
    if (!read.empty()) std::memcpy(bytes.data(), read.data(), Size);
  }
  template <std::size_t Size>
  void fill(std::array<std::uint8_t, Size>& bytes) {
    fill(std::span<std::uint8_t, Size>(bytes));
  }
  /// All locations in one file share its name, as after parsing.
  std::shared_ptr<const std::string> shared(const std::string& file) {
    auto& name = files_[file];
    if (!name) name = std::make_shared<const std::string>(file);
    return name;
  }

  Decoder& in_;
  std::map<std::string, std::shared_ptr<const std::string>> files_;
};

static_assert(std::same_as<config::Table, std::variant<config::TableAuto, config::TableOff,
                                                       config::TableReply, std::uint32_t>>);

}  // namespace

Bytes encodeOutcome(const config::Outcome& outcome) {
  Encoder encoder;
  Save(encoder).one(outcome);
  return encoder.take();
}

Result<config::Outcome> decodeOutcome(std::span<const std::uint8_t> bytes) {
  Decoder decoder(bytes);
  config::Outcome outcome;
  Load(decoder).one(outcome);
  if (!decoder.finished()) return fail("the configuration came across damaged");
  return outcome;
}

}  // namespace adit::control
