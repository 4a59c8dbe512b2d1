// libnftables, with its errors as Results.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/result.hpp"

struct nft_ctx;

namespace adit::nat {

/// One nftables context: a netlink socket in the network namespace of the thread that opened it.
/// To be used by one thread at a time.
class Nft {
 public:
  static Result<Nft> open();

  /// Lets the kernel check a transaction without committing it. `code` is EPERM where rights are
  /// missing, else 0; the message is nft's first.
  Result<void> dryRun(const nlohmann::json& transaction);
  Result<void> dryRun(const std::string& commands);
  /// All of the transaction, or nothing.
  Result<void> apply(const nlohmann::json& transaction);
  /// The same of commands in the grammar of nft(8).
  Result<void> apply(const std::string& commands);
  /// Of one family ("inet").
  Result<std::vector<std::string>> tableNames(std::string_view family);
  /// All chains of all tables, without their rules.
  Result<nlohmann::json> listChains();
  /// One chain with its rules.
  Result<nlohmann::json> listChain(std::string_view family, std::string_view table,
                                   std::string_view chain);
  /// The listing of the table `inet NAME`, or nothing when there is no such table.
  Result<std::optional<nlohmann::json>> listTable(std::string_view name);

 private:
  struct Free {
    void operator()(nft_ctx* context) const;
  };
  explicit Nft(std::unique_ptr<nft_ctx, Free> context) : context_(std::move(context)) {}
  Result<void> run(const nlohmann::json& commands);
  Result<void> runText(const std::string& commands);
  nlohmann::json parsedOutput();
  Result<nlohmann::json> list(nlohmann::json what);

  std::unique_ptr<nft_ctx, Free> context_;
};

}  // namespace adit::nat
