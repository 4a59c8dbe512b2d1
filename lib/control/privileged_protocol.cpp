#include "control/privileged_protocol.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/privileged_outcome.hpp"

namespace adit::control {
namespace {

enum class Request : std::uint8_t {
  LoadConfig,
  RunHooks,
  WriteSysctl,
  SetDns,
  LoadModule,
  OpenTun,
  WriteTuned,
  CompleteInvitation
};
enum class Status : std::uint8_t { Done, Failed };

Encoder requestOf(Request kind) {
  Encoder encoder;
  encoder.value(kind);
  return encoder;
}

Answer done(std::span<const std::uint8_t> payload = {}) {
  Encoder encoder;
  encoder.value(Status::Done);
  encoder.raw(payload);
  return {encoder.take(), {}};
}

Answer failed(const Error& error) {
  Encoder encoder;
  encoder.value(Status::Failed);
  encoder.value(error.message);
  encoder.value(error.code);
  return {encoder.take(), {}};
}

Answer malformed() {
  spdlog::warn("refused a malformed request of the worker process");
  return failed(Error{"the request is malformed", 0});
}

template <typename T>
Answer plain(const Result<T>& result) {
  return result ? done() : failed(result.error());
}

Result<void> withoutValue(const Result<Answer>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  return {};
}

}  // namespace

Result<Answer> RemotePrivileged::call(Encoder request) {
  const std::lock_guard lock(mutex_);
  if (auto sent = sendRequest(socket_.get(), request.take()); !sent) {
    return tl::unexpected(sent.error());
  }
  auto answer = receiveAnswer(socket_.get());
  if (!answer) return answer;
  Decoder decoder(answer->bytes);
  const auto status = decoder.scalar<std::uint8_t>();
  if (decoder.ok() && status == static_cast<std::uint8_t>(Status::Done)) {
    answer->bytes.erase(answer->bytes.begin());
    return answer;
  }
  Error error{decoder.text(), decoder.scalar<int>()};
  if (!decoder.finished()) error = {"the privileged process answers what it should not", 0};
  return tl::unexpected(std::move(error));
}

config::Outcome RemotePrivileged::loadConfig() {
  const auto answer = call(requestOf(Request::LoadConfig));
  Result<config::Outcome> outcome =
      answer ? decodeOutcome(answer->bytes) : tl::unexpected(answer.error());
  if (outcome) return *std::move(outcome);
  config::Outcome none;
  none.diagnostics.push_back({config::Severity::Error, {}, outcome.error().message});
  return none;
}

Result<void> RemotePrivileged::runHooks(HookKind kind) {
  Encoder request = requestOf(Request::RunHooks);
  request.value(kind);
  return withoutValue(call(std::move(request)));
}

Result<std::string> RemotePrivileged::writeSysctl(const std::string& path,
                                                  const std::string& value) {
  Encoder request = requestOf(Request::WriteSysctl);
  request.value(path);
  request.value(value);
  const auto answer = call(std::move(request));
  if (!answer) return tl::unexpected(answer.error());
  return Decoder(answer->bytes).text();
}

Result<void> RemotePrivileged::writeTuned(const std::string& path, const std::string& value) {
  Encoder request = requestOf(Request::WriteTuned);
  request.value(path);
  request.value(value);
  return withoutValue(call(std::move(request)));
}

Result<enrol::Verdict> RemotePrivileged::completeInvitation(const crypto::PublicKey& enrolment,
                                                            const crypto::PublicKey& joining) {
  Encoder request = requestOf(Request::CompleteInvitation);
  request.raw(enrolment.bytes);
  request.raw(joining.bytes);
  const auto answer = call(std::move(request));
  if (!answer) return tl::unexpected(answer.error());
  const auto verdict = Decoder(answer->bytes).scalar<std::uint8_t>();
  return std::min(static_cast<enrol::Verdict>(verdict), enrol::Verdict::NotNow);
}

Result<void> RemotePrivileged::setDns(const std::vector<IpAddress>& servers,
                                      const std::vector<std::string>& search) {
  Encoder request = requestOf(Request::SetDns);
  request.value(servers);
  request.value(search);
  return withoutValue(call(std::move(request)));
}

Result<void> RemotePrivileged::loadModule() {
  return withoutValue(call(requestOf(Request::LoadModule)));
}

Result<UniqueFd> RemotePrivileged::openTun() {
  auto answer = call(requestOf(Request::OpenTun));
  if (!answer) return tl::unexpected(answer.error());
  if (!answer->descriptor) {
    return fail("the TUN device did not come across: this process has too many open files");
  }
  return std::move(answer->descriptor);
}

Result<void> PrivilegedServer::serve(int socket) {
  while (const auto request = receiveRequest(socket)) {
    const Answer answer = handle(*request);
    if (auto sent = sendAnswer(socket, answer.bytes, answer.descriptor.get()); !sent) {
      // The worker may have ended meanwhile; then it is not at fault.
      if (sent.error().code == EPIPE || sent.error().code == ECONNRESET) return {};
      return sent;
    }
  }
  return {};
}

Answer PrivilegedServer::handle(std::span<const std::uint8_t> request) {
  Decoder decoder(request);
  const auto kind = decoder.scalar<std::uint8_t>();
  if (!decoder.ok()) return malformed();
  switch (static_cast<Request>(kind)) {
    case Request::RunHooks:
      return runHooks(decoder);
    case Request::WriteSysctl:
      return writeSysctl(decoder);
    case Request::WriteTuned:
      return writeTuned(decoder);
    case Request::CompleteInvitation:
      return completeInvitation(decoder);
    case Request::SetDns:
      return setDns(decoder);
    case Request::LoadConfig:
      return decoder.finished() ? loadConfig() : malformed();
    case Request::LoadModule:
      return decoder.finished() ? plain(privileged_.loadModule()) : malformed();
    case Request::OpenTun:
      return decoder.finished() ? openTun() : malformed();
  }
  return malformed();
}

Answer PrivilegedServer::loadConfig() {
  const config::Outcome outcome =
      loaded_ ? *std::exchange(loaded_, std::nullopt) : privileged_.loadConfig();
  return done(encodeOutcome(outcome));
}

Answer PrivilegedServer::runHooks(Decoder& request) {
  const auto kind = request.scalar<std::uint8_t>();
  if (!request.finished() || kind > static_cast<std::uint8_t>(HookKind::PostDown)) {
    return malformed();
  }
  return plain(privileged_.runHooks(static_cast<HookKind>(kind)));
}

Answer PrivilegedServer::writeSysctl(Decoder& request) {
  const std::string path = request.text();
  const std::string value = request.text();
  if (!request.finished()) return malformed();
  const auto old = privileged_.writeSysctl(path, value);
  if (!old) return failed(old.error());
  Encoder payload;
  payload.value(*old);
  return done(payload.take());
}

Answer PrivilegedServer::writeTuned(Decoder& request) {
  const std::string path = request.text();
  const std::string value = request.text();
  if (!request.finished()) return malformed();
  return plain(privileged_.writeTuned(path, value));
}

Answer PrivilegedServer::completeInvitation(Decoder& request) {
  crypto::PublicKey enrolment;
  crypto::PublicKey joining;
  for (crypto::PublicKey* key : {&enrolment, &joining}) {
    const auto bytes = request.raw(key->bytes.size());
    std::ranges::copy(bytes, key->bytes.begin());
  }
  if (!request.finished()) return malformed();
  const auto verdict = privileged_.completeInvitation(enrolment, joining);
  if (!verdict) return failed(verdict.error());
  Encoder payload;
  payload.value(*verdict);
  return done(payload.take());
}

Answer PrivilegedServer::setDns(Decoder& request) {
  const auto servers = request.list([&] { return request.address(); });
  const auto search = request.list([&] { return request.text(); });
  if (!request.finished()) return malformed();
  return plain(privileged_.setDns(servers, search));
}

Answer PrivilegedServer::openTun() {
  auto tun = privileged_.openTun();
  if (!tun) return failed(tun.error());
  Answer answer = done();
  answer.descriptor = *std::move(tun);
  return answer;
}

}  // namespace adit::control
