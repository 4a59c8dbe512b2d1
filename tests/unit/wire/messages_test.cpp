// The layouts of the WireGuard paper, section 5.4, byte by byte.
#include "wire/messages.h"

#include <catch2/catch.hpp>
#include <cstddef>

#include "wire/control.h"
#include "wire/timing.h"

TEST_CASE("Messages have the sizes of the paper") {
  CHECK(sizeof(adit_message_initiation) == 148);
  CHECK(sizeof(adit_message_response) == 92);
  CHECK(sizeof(adit_message_cookie) == 64);
  CHECK(sizeof(adit_message_data) == 16);
  CHECK(ADIT_DATA_OVERHEAD == 32);
  CHECK(sizeof(adit_control_record) == 2);
  CHECK(sizeof(adit_control_suite) == 5);
}

TEST_CASE("Fields stand where the paper puts them") {
  CHECK(offsetof(adit_message_header, suite) == 1);

  CHECK(offsetof(adit_message_initiation, sender_index) == 4);
  CHECK(offsetof(adit_message_initiation, unencrypted_ephemeral) == 8);
  CHECK(offsetof(adit_message_initiation, encrypted_static) == 40);
  CHECK(offsetof(adit_message_initiation, encrypted_timestamp) == 88);
  CHECK(offsetof(adit_message_initiation, macs) == 116);
  CHECK(offsetof(adit_message_macs, mac2) == 16);

  CHECK(offsetof(adit_message_response, sender_index) == 4);
  CHECK(offsetof(adit_message_response, receiver_index) == 8);
  CHECK(offsetof(adit_message_response, unencrypted_ephemeral) == 12);
  CHECK(offsetof(adit_message_response, encrypted_nothing) == 44);
  CHECK(offsetof(adit_message_response, macs) == 60);

  CHECK(offsetof(adit_message_cookie, receiver_index) == 4);
  CHECK(offsetof(adit_message_cookie, nonce) == 8);
  CHECK(offsetof(adit_message_cookie, encrypted_cookie) == 32);

  CHECK(offsetof(adit_message_data, receiver_index) == 4);
  CHECK(offsetof(adit_message_data, counter) == 8);
}

TEST_CASE("Limits are the paper's and the protocol's") {
  CHECK(ADIT_REKEY_AFTER_MESSAGES_CHACHA == 1ULL << 60);
  CHECK(ADIT_REJECT_AFTER_MESSAGES_CHACHA == 0xffffffffffffdfff);
  CHECK(ADIT_REKEY_AFTER_MESSAGES_GCM == 1ULL << 28);
  CHECK(ADIT_REJECT_AFTER_MESSAGES_GCM == 1ULL << 29);
  CHECK(ADIT_REKEY_AFTER_TIME == 120);
  CHECK(ADIT_REJECT_AFTER_TIME == 180);
}
