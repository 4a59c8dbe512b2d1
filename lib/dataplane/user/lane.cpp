#include "dataplane/user/lane.hpp"

#include <pthread.h>
#include <signal.h>

#include <string>
#include <utility>

namespace adit::dataplane::user {
namespace {

// Signals are the control thread's: packet threads inherit a mask that blocks them all.
template <typename Loop>
std::thread startThread(Loop& loop, const std::string& name) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([&loop] { loop.run(); });
  ::pthread_setname_np(thread.native_handle(), name.c_str());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Lane::Lane(Device& device, std::size_t number, int tun)
    : number_(number),
      transmit_(device, number * kSeats, tun),
      receive_(device, number * kSeats + 1, tun, transmit_) {}

Lane::~Lane() {
  stop();
}

void Lane::start() {
  transmitThread_ = startThread(transmit_, "adit-tx" + std::to_string(number_));
  receiveThread_ = startThread(receive_, "adit-rx" + std::to_string(number_));
}

void Lane::stop() {
  transmit_.stop();
  receive_.stop();
  if (transmitThread_.joinable()) transmitThread_.join();
  if (receiveThread_.joinable()) receiveThread_.join();
}

void Lane::setSockets(UdpSockets sockets) {
  sockets_ = std::move(sockets);
  transmit_.setSockets(&sockets_);
  receive_.setSockets(&sockets_);
}

}  // namespace adit::dataplane::user
