#include "nat/nft.hpp"

#include <nftables/libnftables.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace adit::nat {
namespace {

using nlohmann::json;

/// The first line of what libnftables prints, without the place in a text that nobody wrote.
std::string firstReason(std::string_view errors) {
  std::string_view line = errors.substr(0, errors.find('\n'));
  constexpr std::string_view kMarker = "Error: ";
  if (const auto marker = line.find(kMarker); marker != std::string_view::npos) {
    line.remove_prefix(marker + kMarker.size());
  }
  return line.empty() ? "nftables gave no reason" : std::string(line);
}

/// Bytes that are not UTF-8 would throw; no text of ours has any (see commentText()).
std::string textOf(const json& commands) {
  return commands.dump(-1, ' ', false, json::error_handler_t::replace);
}

json listCommand(json what) {
  return {{"nftables", json::array({{{"list", std::move(what)}}})}};
}

}  // namespace

void Nft::Free::operator()(nft_ctx* context) const {
  ::nft_ctx_free(context);
}

Result<Nft> Nft::open() {
  std::unique_ptr<nft_ctx, Free> context(::nft_ctx_new(NFT_CTX_DEFAULT));
  if (!context || ::nft_ctx_buffer_output(context.get()) != 0 ||
      ::nft_ctx_buffer_error(context.get()) != 0) {
    return fail("cannot use nftables: out of memory, or a kernel without netlink");
  }
  ::nft_ctx_output_set_flags(context.get(), NFT_CTX_OUTPUT_JSON | NFT_CTX_OUTPUT_NUMERIC_ALL);
  return Nft(std::move(context));
}

Result<void> Nft::run(const json& commands) {
  return runText(textOf(commands));
}

Result<void> Nft::runText(const std::string& text) {
  const int result = ::nft_run_cmd_from_buffer(context_.get(), text.c_str());
  const std::string errors = ::nft_ctx_get_error_buffer(context_.get());
  if (result == 0) {
    return {};
  }
  if (errors.find("Operation not permitted") != std::string::npos) {
    return tl::unexpected(
        Error{"nftables: permission denied; run as root or with CAP_NET_ADMIN", EPERM});
  }
  return fail("nftables: {}", firstReason(errors));
}

Result<void> Nft::dryRun(const json& transaction) {
  return dryRun(textOf(transaction));
}

Result<void> Nft::dryRun(const std::string& commands) {
  ::nft_ctx_set_dry_run(context_.get(), true);
  auto result = runText(commands);
  ::nft_ctx_set_dry_run(context_.get(), false);
  ::nft_ctx_get_output_buffer(context_.get());
  return result;
}

Result<void> Nft::apply(const json& transaction) {
  return apply(textOf(transaction));
}

Result<void> Nft::apply(const std::string& commands) {
  auto result = runText(commands);
  ::nft_ctx_get_output_buffer(context_.get());
  return result;
}

json Nft::parsedOutput() {
  return json::parse(::nft_ctx_get_output_buffer(context_.get()), nullptr, false);
}

Result<std::vector<std::string>> Nft::tableNames(std::string_view family) {
  if (const auto listed = run(listCommand({{"tables", nullptr}})); !listed) {
    return tl::unexpected(listed.error());
  }
  const json listing = parsedOutput();
  if (listing.is_discarded()) {
    return fail("nftables: the list of tables cannot be read");
  }
  std::vector<std::string> names;
  for (const json& object : listing.value("nftables", json::array())) {
    if (object.contains("table") && object["table"].value("family", "") == family) {
      names.push_back(object["table"].value("name", ""));
    }
  }
  return names;
}

Result<json> Nft::list(json what) {
  if (const auto listed = run(listCommand(std::move(what))); !listed) {
    return tl::unexpected(listed.error());
  }
  json listing = parsedOutput();
  if (listing.is_discarded()) {
    return fail("nftables: a listing cannot be read");
  }
  return listing;
}

Result<json> Nft::listChains() {
  return list({{"chains", nullptr}});
}

Result<json> Nft::listChain(std::string_view family, std::string_view table,
                            std::string_view chain) {
  return list({{"chain", {{"family", family}, {"table", table}, {"name", chain}}}});
}

Result<std::optional<json>> Nft::listTable(std::string_view name) {
  const auto tables = tableNames("inet");
  if (!tables) {
    return tl::unexpected(tables.error());
  }
  if (std::ranges::find(*tables, name) == tables->end()) {
    return std::nullopt;
  }
  const auto listed = run(listCommand({{"table", {{"family", "inet"}, {"name", name}}}}));
  json listing = parsedOutput();
  if (!listed) {
    // Deleted by somebody between the two commands.
    if (listed.error().message.find("No such file") != std::string::npos) {
      return std::nullopt;
    }
    return tl::unexpected(listed.error());
  }
  if (listing.is_discarded()) {
    return fail("nftables: the listing of table {} cannot be read", name);
  }
  return std::optional<json>(std::move(listing));
}

}  // namespace adit::nat
