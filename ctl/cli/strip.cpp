#include "cli/strip.hpp"

#include <memory>

#include "config/file_io.hpp"
#include "config/lexer.hpp"
#include "config/schema.hpp"

namespace adit::cli {
namespace {

using config::Line;
using config::LineKind;
using config::Section;

class Stripper {
 public:
  Stripper(const config::Config& config, std::vector<std::string>& remarks)
      : config_(config), remarks_(remarks) {}

  void add(const std::vector<Line>& lines) {
    keep_ = true;
    for (const Line& line : lines) {
      if (line.kind == LineKind::Header) enter(line);
      if (line.kind == LineKind::Entry) {
        addEntry(line);
      } else if (keep_) {
        addLine(line.raw);
      }
    }
  }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void enter(const Line& header) {
    const Section* section = config::findSection(header.name);
    section_ = section != nullptr ? *section : Section::Tune;
    keep_ = section_ == Section::Interface || section_ == Section::Peer;
    if (section_ == Section::Peer) ++peers_;
  }

  void addEntry(const Line& line) {
    if (!keep_) return;
    const config::KeySpec* key = config::findKey(section_, line.name);
    if (key == nullptr) return;
    if (key->wireguard) {
      addLine(line.raw);
    } else if (key->name == "PrivateKeyFile" && config_.interface.privateKey) {
      addLine("PrivateKey = " + config_.interface.privateKey->toBase64());
    } else if (key->name == "PresharedKeyFile" && peer().presharedKey) {
      addLine("PresharedKey = " + crypto::presharedKeyToBase64(*peer().presharedKey));
    } else if (key->name == "PrivateKeyCommand") {
      remarks_.emplace_back(
          "PrivateKeyCommand is not run here: the output has no PrivateKey, and setconf with it "
          "would take the key away");
    }
  }

  [[nodiscard]] const config::PeerConfig& peer() const { return config_.peers.at(peers_ - 1); }

  void addLine(std::string_view text) {
    out_ += text;
    out_ += '\n';
  }

  const config::Config& config_;
  std::vector<std::string>& remarks_;
  Section section_ = Section::Interface;
  bool keep_ = true;
  /// Sections so far, over all files: the model has them in the same order.
  std::size_t peers_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> stripToWireguard(const config::Outcome& loaded,
                                     std::vector<std::string>& remarks) {
  Stripper stripper(*loaded.config, remarks);
  for (const config::FileStamp& stamp : loaded.files) {
    const auto file = config::readFile(stamp.path, config::kMaxFileSize, false);
    if (!file) return wrapError(file.error(), stamp.path.string());
    if (config::stampOf(stamp.path, file->text()) != stamp) {
      return fail("{} changed while it was read; try again", stamp.path.string());
    }
    config::Diagnostics ignored;
    const auto name = std::make_shared<const std::string>(stamp.path.string());
    stripper.add(config::lex(file->text(), name, ignored));
  }
  return stripper.take();
}

}  // namespace adit::cli
