/* A server and a client in one program over loopback, encrypted: channels, datagrams, errors, and the close. */
#include <stdlib.h>
#include <string.h>
#include "whitewater.h"
#include "check.h"

static uint8_t psk[32] = {1, 2, 3, 4, 5};
enum { CHAT, LEVEL, POSITIONS, BYTES, NONE };
static ww_channel channels[4] = {
  {WW_CHANNEL_ORDERED, WW_CARRIER_DEFAULT, 0},
  {WW_CHANNEL_UNORDERED, WW_CARRIER_PACKETS, 100000},
  {WW_CHANNEL_SEQUENCED, WW_CARRIER_DEFAULT, 0},
  {WW_CHANNEL_STREAM, WW_CARRIER_KCP, 0},
};

static ww_options options(void) {
  ww_options options;
  memset(&options, 0, sizeof options);
  options.suite = WW_SUITE_PSK;
  options.psk = psk;
  options.channels = channels;
  options.channel_count = 4;
  options.timeout_ms = 5000;
  return options;
}

/* Pumps both until one has the event: the server if `of_server`, otherwise the client. */
static ww_event next(ww_server *server, ww_client *client, int of_server) {
  ww_event event;
  int tries;
  memset(&event, 0, sizeof event);
  for (tries = 0; tries < 2000; tries++) {
    int64_t wait = -2;
    CHECK(ww_server_pump(server, &wait) == 0 && wait >= -1);
    CHECK(ww_client_pump(client, NULL) == 0);
    if ((of_server ? ww_server_poll_event(server, &event) : ww_client_poll_event(client, &event)) == 1) {
      return event;
    }
    CHECK(ww_client_poll(client, 2) >= 0);
  }
  CHECK(!"an event");
  return event;
}

static ww_event until(ww_server *server, ww_client *client, int of_server, int kind) {
  ww_event event;
  do {
    event = next(server, client, of_server);
  } while (event.kind != kind && event.kind != WW_EVENT_CLOSED && event.kind != 0);
  CHECK(event.kind == kind);
  return event;
}

static void play(void) {
  static uint8_t level[100001], buffer[200000];
  const uint8_t hello[] = "hello";
  ww_options opts = options();
  ww_stats stats;
  char address[64];
  int32_t error = 7;
  int tries, sent = 0, len = WW_AGAIN;
  uint32_t session;
  ww_event event;
  ww_server *server = ww_server_bind("127.0.0.1:0", &opts, &error);
  ww_client *client;
  CHECK(server != NULL && error == 0);
  CHECK(ww_server_local_addr(server, (uint8_t *)address, sizeof address) > 0);
  opts.user = hello;
  opts.user_len = 5;
  client = ww_client_connect(address, &opts, &error);
  CHECK(client != NULL && error == 0);
  CHECK(ww_client_send(client, CHAT, hello, 5) == WW_CLOSED); /* not up yet */
  session = until(server, client, 1, WW_EVENT_CONNECTED).session;
  until(server, client, 0, WW_EVENT_CONNECTED);
  CHECK(ww_server_user(server, session, buffer, sizeof buffer) == 5 && memcmp(buffer, hello, 5) == 0);
  CHECK(ww_server_user(server, session, buffer, 4) == WW_TOO_LONG);

  CHECK(ww_client_send(client, CHAT, hello, 5) == 0 && ww_client_send(client, BYTES, hello, 3) == 0);
  CHECK(ww_client_send(client, NONE, hello, 5) == WW_MISUSE && ww_client_recv(client, NONE, buffer, 5) == WW_MISUSE);
  CHECK(ww_server_send(server, session, NONE, hello, 5) == WW_MISUSE);
  CHECK(ww_server_recv(server, session, NONE, buffer, 5) == WW_MISUSE);
  CHECK(ww_client_send_datagram(client, hello, 4) == 0);
  CHECK(ww_client_send_datagram(client, level, WW_UNRELIABLE_MAX) == 0);
  CHECK(ww_client_send_datagram(client, level, WW_UNRELIABLE_MAX + 30) == WW_TOO_LONG);
  CHECK(ww_client_send(client, POSITIONS, hello, 2) == 0 && ww_client_send(client, POSITIONS, level, 2000) == WW_TOO_LONG);
  memset(level, 0x5a, sizeof level);
  CHECK(ww_client_send(client, LEVEL, level, sizeof level) == WW_TOO_LONG); /* one more than `max_message` */
  CHECK(ww_client_send(client, LEVEL, level, 100000) == 0);
  for (tries = 0; tries < 5000 && len == WW_AGAIN; tries++) {
    until(server, client, 1, WW_EVENT_READABLE);
    len = ww_server_recv(server, session, LEVEL, buffer, 10);
  }
  CHECK(len == WW_TOO_LONG); /* and it stays */
  CHECK(ww_server_recv(server, session, LEVEL, buffer, sizeof buffer) == 100000);
  CHECK(memcmp(buffer, level, 100000) == 0);
  CHECK(ww_server_recv(server, session, LEVEL, buffer, sizeof buffer) == WW_AGAIN);
  CHECK(ww_server_recv(server, session, CHAT, buffer, 4) == WW_TOO_LONG);
  CHECK(ww_server_recv(server, session, CHAT, buffer, sizeof buffer) == 5 && memcmp(buffer, hello, 5) == 0);
  CHECK(ww_server_recv(server, session, BYTES, buffer, sizeof buffer) == 3);
  CHECK(ww_server_recv(server, session, CHAT, buffer, sizeof buffer) == WW_AGAIN);
  CHECK(ww_server_recv_datagram(server, session, buffer, sizeof buffer) == 4);
  CHECK(ww_server_recv_datagram(server, session, buffer, sizeof buffer) == WW_UNRELIABLE_MAX);
  CHECK(ww_server_recv(server, session, POSITIONS, buffer, sizeof buffer) == 2);
  do {
    len = ww_client_send(client, CHAT, hello, 5); /* nobody pumps, so nothing leaves */
    sent += len == 0;
  } while (len == 0);
  CHECK(len == WW_AGAIN && sent > 100);
  for (tries = 0; tries < 5000 && sent > 0; tries++) {
    CHECK(ww_client_pump(client, NULL) == 0 && ww_client_poll(client, 1) >= 0 && ww_server_pump(server, NULL) == 0);
    while (ww_server_recv(server, session, CHAT, buffer, sizeof buffer) == 5) {
      sent--;
    }
  }
  CHECK(sent == 0);
  CHECK(ww_client_is_delivered(client, NONE) == WW_MISUSE && ww_server_is_delivered(server, session + 1, CHAT) == WW_CLOSED);
  for (tries = 0; tries < 1000 && ww_client_is_delivered(client, CHAT) == 0; tries++) {
    CHECK(ww_client_poll(client, 1) >= 0 && ww_server_pump(server, NULL) == 0);
  }
  CHECK(ww_client_is_delivered(client, CHAT) == 1 && ww_server_is_delivered(server, session, CHAT) == 1);

  CHECK(ww_client_send(client, POSITIONS, level, WW_UNRELIABLE_MAX) == 0);
  CHECK(ww_client_path_changed(client) == 0 && ww_client_path_changed(NULL) == WW_MISUSE);
  CHECK(ww_server_send(server, session, CHAT, hello, 5) == 0);
  until(server, client, 0, WW_EVENT_READABLE);
  CHECK(ww_client_recv(client, CHAT, buffer, sizeof buffer) == 5);
  CHECK(ww_server_stats(server, session, &stats) == 0 && stats.received > 80 && stats.rtt_us > 0);
  CHECK(stats.loss == -1 || (stats.loss >= 0 && stats.loss <= 1));
  CHECK(ww_client_stats(client, &stats) == 0 && stats.bytes_sent > 100000);

  CHECK(ww_server_send(server, session + 1, CHAT, hello, 5) == WW_CLOSED);
  CHECK(ww_server_recv(server, session + 1, CHAT, buffer, sizeof buffer) == WW_CLOSED);
  CHECK(ww_client_close(client, 0xff00) == WW_MISUSE && ww_client_kick(client, 0xffff, "") == WW_MISUSE);
  CHECK(ww_server_close(server, session, 0xff00) == WW_MISUSE && ww_server_close_with(server, session, 0xff01, "") == WW_MISUSE);
  CHECK(ww_client_close(client, 42) == 0);
  event = until(server, client, 1, WW_EVENT_CLOSED);
  CHECK(event.reason == WW_CLOSED_PEER && event.code == 42 && !event.is_undelivered && event.session == session);
  event = until(server, client, 0, WW_EVENT_CLOSED);
  CHECK(event.reason == WW_CLOSED_LOCAL && event.code == 42);
  ww_client_free(client);
  ww_server_free(server);
}

/* A server that asks, and admits the client. */
static void let_in(void) {
  ww_options opts = options();
  char address[64];
  uint8_t text[8];
  uint32_t session;
  ww_server *server;
  ww_client *client;
  opts.ask = 1;
  server = ww_server_bind("127.0.0.1:0", &opts, NULL);
  CHECK(ww_server_local_addr(server, (uint8_t *)address, sizeof address) > 0);
  client = ww_client_connect(address, &opts, NULL);
  session = until(server, client, 1, WW_EVENT_REQUESTED).session;
  CHECK(ww_client_user(client, text, sizeof text) == WW_CLOSED); /* not up yet */
  CHECK(ww_server_admit(server, session, (const uint8_t *)"seat 4", 6) == 0);
  until(server, client, 0, WW_EVENT_CONNECTED);
  CHECK(ww_client_user(client, text, 5) == WW_TOO_LONG && ww_client_user(NULL, text, 5) == WW_MISUSE);
  CHECK(ww_client_user(client, text, sizeof text) == 6 && memcmp(text, "seat 4", 6) == 0);
  ww_client_free(client);
  ww_server_free(server);
}

/* A server that asks, and rejects the client. */
static void turn_away(void) {
  ww_options opts = options();
  char address[64];
  const uint8_t sorry[] = "sorry";
  uint8_t text[257] = {0};
  ww_event event;
  ww_server *server;
  ww_client *client;
  opts.ask = 7; /* any but 0 */
  server = ww_server_bind("127.0.0.1:0", &opts, NULL);
  CHECK(ww_server_local_addr(server, (uint8_t *)address, sizeof address) > 0);
  client = ww_client_connect(address, &opts, NULL);
  event = until(server, client, 1, WW_EVENT_REQUESTED);
  CHECK(ww_server_admit(server, event.session + 1, NULL, 0) == WW_CLOSED);
  CHECK(ww_server_reject(server, event.session, 9, text, sizeof text) == WW_TOO_LONG); /* and it still asks */
  CHECK(ww_server_reject(server, event.session, 0xff00, sorry, 5) == WW_MISUSE);
  CHECK(ww_server_reject(server, event.session, 9, sorry, 5) == 0);
  event = until(server, client, 0, WW_EVENT_CLOSED);
  CHECK(event.reason == WW_CLOSED_REJECTED && event.code == 9);
  CHECK(ww_client_rejection(client, text, 4) == WW_TOO_LONG);
  CHECK(ww_client_rejection(client, text, sizeof text) == 5 && memcmp(text, sorry, 5) == 0);
  CHECK(ww_client_close_reason(client, text, 256) > 0 && strstr((char *)text, "code 9") != NULL);
  ww_client_free(client);
  ww_server_free(server);
}

/* A matchmaker makes connect tokens, and the server learns what is in them. */
static void fleet(void) {
  ww_options opts = options();
  ww_order order;
  ww_pass pass;
  char address[64], why[512];
  uint8_t token[577], ones[257];
  ww_event event;
  ww_server *server;
  ww_client *client;
  int len, tries, is_in = 0;
  memset(ones, 1, sizeof ones);
  opts.psk = NULL;
  opts.token_key = ones;
  opts.server_id = 9;
  opts.routing_token_len = 21;
  CHECK(ww_server_bind("127.0.0.1:0", &opts, NULL) == NULL);
  opts.routing_token_len = 8; /* so that only clients with such a token come in */
  opts.proxies = "192.0.2.1,proxy";
  CHECK(ww_server_bind("127.0.0.1:0", &opts, NULL) == NULL);
  CHECK(ww_error_text((uint8_t *)why, sizeof why) > 0 && strstr(why, "`proxies`") != NULL);
  opts.proxies = "192.0.2.1,2001:db8::1"; /* from where nobody sends */
  server = ww_server_bind("127.0.0.1:0", &opts, NULL);
  CHECK(ww_server_local_addr(server, (uint8_t *)address, sizeof address) > 0);

  memset(&order, 0, sizeof order);
  CHECK(ww_token_mint(NULL, token, sizeof token) == WW_MISUSE && ww_token_mint(&order, NULL, 1) == WW_MISUSE);
  order.addresses = "";
  CHECK(ww_token_mint(&order, token, sizeof token) == WW_CONFIG);
  CHECK(ww_error_text((uint8_t *)why, sizeof why) > 0 && strstr(why, "`token_key`") != NULL);
  order.token_key = ones;
  CHECK(ww_token_mint(&order, token, sizeof token) == WW_MISUSE); /* no address */
  order.addresses = address;
  CHECK(ww_token_mint(&order, token, sizeof token) == WW_CONFIG); /* no number */
  order.server_id = 9;
  CHECK(ww_token_mint(&order, token, sizeof token) == WW_MISUSE); /* no suite */
  order.suite = WW_SUITE_CHECKED;
  CHECK(ww_token_mint(&order, token, sizeof token) == WW_MISUSE); /* one without a secret */
  order.suite = WW_SUITE_PSK;
  order.life_s = 601;
  CHECK(ww_token_mint(&order, token, sizeof token) == WW_CONFIG);
  order.life_s = 0;
  order.user = ones;
  order.user_len = 257;
  CHECK(ww_token_mint(&order, token, sizeof token) == WW_CONFIG);
  order.user_len = 3;
  order.client_id = 42;
  order.match_id[15] = 5;
  CHECK(ww_token_mint(&order, token, 100) == WW_TOO_LONG);
  order.routing_token_len = 8;
  CHECK(ww_token_mint(&order, token, sizeof token) == WW_MISUSE); /* it is null */
  order.routing_token = ones;
  order.routing_token_len = 21;
  CHECK(ww_token_mint(&order, token, sizeof token) == WW_CONFIG);
  order.routing_token_len = 8;

  for (tries = 0; tries < 2000 && !is_in; tries++) { /* one of the second in which the server started may be refused */
    len = ww_token_mint(&order, token, sizeof token);
    CHECK(len > 100);
    opts.token = token;
    opts.token_len = (size_t)len;
    client = ww_client_connect("", &opts, NULL);
    event = next(server, client, 0);
    is_in = event.kind == WW_EVENT_CONNECTED;
    if (is_in) {
      uint32_t session = until(server, client, 1, WW_EVENT_CONNECTED).session;
      CHECK(ww_server_pass(server, session, &pass) == 0 && ww_server_pass(server, session, NULL) == WW_MISUSE);
      CHECK(pass.client_id == 42 && pass.match_id[15] == 5 && pass.created > 1700000000);
      CHECK(pass.user_len == 3 && pass.user[2] == 1 && pass.user[3] == 0);
      CHECK(ww_server_pass(server, session + 1, &pass) == WW_CLOSED);
    }
    ww_client_free(client);
  }
  CHECK(is_in);
  ww_server_free(server);
}

/* Several clients: all get a broadcast, one is kicked, one closes with a text, and the server shuts down. */
static void crowd(void) {
  ww_options opts = options();
  const uint8_t news[] = "news";
  uint8_t text[300];
  char address[64], here[64];
  ww_event event;
  ww_client *clients[3];
  uint32_t sessions[3], listed[4] = {0, 0, 0, 0};
  int i;
  ww_server *server = ww_server_bind("127.0.0.1:0", &opts, NULL);
  CHECK(ww_server_local_addr(server, (uint8_t *)address, 5) == WW_TOO_LONG);
  CHECK(ww_server_local_addr(server, (uint8_t *)address, sizeof address) > 0);
  CHECK(ww_server_clients(server, listed, 4) == 0 && ww_server_clients(server, NULL, 4) == WW_MISUSE);
  CHECK(ww_server_close_reason(server, text, sizeof text) == WW_AGAIN);
  for (i = 0; i < 3; i++) {
    clients[i] = ww_client_connect(address, &opts, NULL);
    CHECK(ww_client_is_connected(clients[i]) == 0 && ww_client_peer_addr(clients[i], text, sizeof text) == WW_CLOSED);
    sessions[i] = until(server, clients[i], 1, WW_EVENT_CONNECTED).session;
    until(server, clients[i], 0, WW_EVENT_CONNECTED);
    CHECK(ww_client_is_connected(clients[i]) == 1 && ww_server_is_connected(server, sessions[i]) == 1);
    CHECK(ww_client_peer_addr(clients[i], text, sizeof text) > 0 && strcmp((char *)text, address) == 0);
    CHECK(ww_server_peer_addr(server, sessions[i], text, sizeof text) > 0);
    CHECK(ww_client_local_addr(clients[i], (uint8_t *)here, sizeof here) > 0);
    CHECK(strrchr(here, ':') != NULL && strstr((char *)text, strrchr(here, ':')) != NULL);
  }
  CHECK(ww_server_clients(server, listed, 4) == 3 && listed[2] != 0 && listed[3] == 0);
  listed[1] = 7;
  CHECK(ww_server_clients(server, listed, 1) == 3 && listed[1] == 7);
  CHECK(ww_server_broadcast(server, NONE, news, 4) == WW_MISUSE);
  CHECK(ww_server_broadcast(server, CHAT, news, 4) == 0 && ww_server_broadcast_except(server, sessions[0], CHAT, news, 3) == 0);
  for (i = 0; i < 3; i++) {
    until(server, clients[i], 0, WW_EVENT_READABLE);
    CHECK(ww_client_recv(clients[i], CHAT, text, sizeof text) == 4);
    while (i > 0 && ww_client_recv(clients[i], CHAT, text, sizeof text) == WW_AGAIN) {
      next(server, clients[i], 0);
    }
  }
  CHECK(ww_client_recv(clients[0], CHAT, text, sizeof text) == WW_AGAIN);

  CHECK(ww_server_redirect(server, sessions[0], news, 4) == WW_MISUSE); /* no token */
  CHECK(ww_client_take_redirect(clients[0], text, sizeof text) == WW_AGAIN);
  CHECK(ww_server_kick(server, sessions[0], 8, "a\nb") == WW_MISUSE && ww_server_kick(server, sessions[0], 8, NULL) == WW_MISUSE);
  CHECK(ww_server_kick(server, sessions[0], 8, "no cheating") == 0 && ww_server_is_connected(server, sessions[0]) == 0);
  event = until(server, clients[0], 0, WW_EVENT_CLOSED);
  CHECK(event.reason == WW_CLOSED_PEER && event.code == 8 && ww_client_is_connected(clients[0]) == 0);
  CHECK(ww_client_close_text(clients[0], text, 11) == WW_TOO_LONG);
  CHECK(ww_client_close_text(clients[0], text, 12) == 11 && strcmp((char *)text, "no cheating") == 0);
  event = until(server, clients[0], 1, WW_EVENT_CLOSED);
  CHECK(event.reason == WW_CLOSED_LOCAL && event.session == sessions[0]);

  CHECK(ww_client_close_with(clients[1], 5, "dinner") == 0);
  event = until(server, clients[1], 1, WW_EVENT_CLOSED);
  CHECK(event.session == sessions[1] && event.code == 5);
  CHECK(ww_server_close_text(server, sessions[1], text, sizeof text) == 6 && strcmp((char *)text, "dinner") == 0);
  CHECK(ww_server_close_reason(server, text, sizeof text) > 0 && strstr((char *)text, "code 5") != NULL);

  CHECK(ww_server_close_with(server, sessions[2], 3, "night") == 0);
  event = until(server, clients[2], 0, WW_EVENT_CLOSED);
  CHECK(ww_client_close_text(clients[2], text, sizeof text) == 5 && event.code == 3);
  CHECK(ww_server_shutdown(server, 1) == 0 && ww_server_clients(server, listed, 4) == 0);
  CHECK(ww_client_shutdown(clients[2], 1) == 0);
  for (i = 0; i < 3; i++) {
    ww_client_free(clients[i]);
  }
  ww_server_free(server);
}

/* An end with other channels gets a text that says so. */
static void other_shape(void) {
  ww_options opts = options();
  char address[64];
  uint8_t text[256];
  ww_event event;
  ww_client *client;
  ww_server *server = ww_server_bind("127.0.0.1:0", &opts, NULL);
  CHECK(ww_server_local_addr(server, (uint8_t *)address, sizeof address) > 0);
  opts.channel_count = 3;
  client = ww_client_connect(address, &opts, NULL);
  event = until(server, client, 0, WW_EVENT_CLOSED);
  CHECK(event.reason == WW_CLOSED_DENIED);
  CHECK(ww_client_close_reason(client, text, sizeof text) > 0 && strstr((char *)text, "channel") != NULL);
  ww_client_free(client);
  ww_server_free(server);
}

/* Freeing a client closes its session. */
static void leave(void) {
  ww_options opts = options();
  char address[64];
  ww_event event;
  int tries, has_ended = 0;
  ww_client *client;
  ww_server *server = ww_server_bind("127.0.0.1:0", &opts, NULL);
  CHECK(ww_server_local_addr(server, (uint8_t *)address, sizeof address) > 0);
  client = ww_client_connect(address, &opts, NULL);
  until(server, client, 1, WW_EVENT_CONNECTED);
  ww_client_free(client);
  for (tries = 0; tries < 1000 && !has_ended; tries++) {
    CHECK(ww_server_poll(server, 5) >= 0);
    has_ended = ww_server_poll_event(server, &event) == 1 && event.kind == WW_EVENT_CLOSED;
  }
  CHECK(has_ended && event.reason == WW_CLOSED_PEER);
  ww_server_free(server);
}

/* Options that a program forgot to fill in never make a server or a client without encryption. */
static void zeroed(void) {
  static uint8_t zeros[32];
  char why[512];
  int32_t error = 0;
  ww_options opts;
  ww_server *server;
  memset(&opts, 0, sizeof opts);
  CHECK(ww_error_text((uint8_t *)why, sizeof why) == 0 && why[0] == 0);
  CHECK(ww_server_bind("127.0.0.1:0", &opts, &error) == NULL && error == WW_CONFIG);
  CHECK(ww_error_text((uint8_t *)why, sizeof why) > 0 && strstr(why, "WW_SUITE_PSK") != NULL);
  CHECK(ww_error_text((uint8_t *)why, 5) == WW_TOO_LONG && ww_error_text(NULL, 5) == WW_MISUSE);
  CHECK(ww_client_connect("127.0.0.1:1", &opts, &error) == NULL && error == WW_CONFIG);
  CHECK(ww_server_bind("127.0.0.1:0", NULL, &error) == NULL && error == WW_MISUSE);
  opts.suite = WW_SUITE_PSK;
  CHECK(ww_server_bind("127.0.0.1:0", &opts, &error) == NULL && error == WW_CONFIG);
  opts.psk = zeros;
  CHECK(ww_server_bind("127.0.0.1:0", &opts, &error) == NULL && error == WW_CONFIG);
  CHECK(ww_error_text((uint8_t *)why, sizeof why) > 0 && strstr(why, "`psk`") != NULL);
  opts.psk = NULL;
  opts.suite = WW_SUITE_CHECKED; /* whoever wants that says so */
  server = ww_server_bind("127.0.0.1:0", &opts, &error);
  CHECK(server != NULL && error == 0);
  ww_server_free(server);
}

static void misuse(void) {
  uint8_t byte = 0;
  char address[64];
  ww_server *server;
  ww_channel wrong[2] = {{9, WW_CARRIER_DEFAULT, 0}, {WW_CHANNEL_ORDERED, 9, 0}};
  ww_channel stream = {WW_CHANNEL_STREAM, WW_CARRIER_PACKETS, 0};
  int which;
  int32_t error = 0;
  ww_options opts = options();
  CHECK(ww_client_connect(NULL, &opts, &error) == NULL && error == WW_MISUSE);
  CHECK(ww_client_connect("no address", &opts, &error) == NULL && error == WW_MISUSE);
  CHECK(ww_client_connect("\xff\xfe:1", &opts, NULL) == NULL);
  CHECK(ww_client_connect("127.0.0.1:1", NULL, &error) == NULL && error == WW_MISUSE);
  server = ww_server_bind("127.0.0.1:0", &opts, NULL);
  CHECK(ww_server_local_addr(server, (uint8_t *)address, sizeof address) > 0);
  CHECK(ww_server_bind(address, &opts, &error) == NULL && error == WW_IO); /* it is taken */
  ww_server_free(server);
  opts.suite = 999;
  CHECK(ww_server_bind("127.0.0.1:0", &opts, &error) == NULL && error == WW_MISUSE);
  opts = options();
  opts.timeout_ms = 1;
  CHECK(ww_server_bind("127.0.0.1:0", &opts, &error) == NULL && error == WW_CONFIG);
  opts = options();
  opts.channel_count = 1;
  for (which = 0; which < 2; which++) {
    opts.channels = &wrong[which];
    CHECK(ww_server_bind("127.0.0.1:0", &opts, &error) == NULL && error == WW_MISUSE);
  }
  opts.channels = &stream;
  CHECK(ww_server_bind("127.0.0.1:0", &opts, &error) == NULL && error == WW_CONFIG);
  opts.channels = NULL;
  CHECK(ww_server_bind("127.0.0.1:0", &opts, &error) == NULL && error == WW_MISUSE);
  CHECK(ww_client_send(NULL, 0, &byte, 1) == WW_MISUSE && ww_server_send(NULL, 1, 0, &byte, 1) == WW_MISUSE);
  CHECK(ww_client_pump(NULL, NULL) == WW_MISUSE && ww_server_poll_event(NULL, NULL) == WW_MISUSE);
  CHECK(ww_client_stats(NULL, NULL) == WW_MISUSE && ww_server_local_addr(NULL, NULL, 0) == WW_MISUSE);
  CHECK(ww_public_key(NULL, NULL) == WW_MISUSE);
  ww_client_free(NULL);
  ww_server_free(NULL);
}

int main(void) {
  zeroed();
  play();
  let_in();
  turn_away();
  fleet();
  crowd();
  other_shape();
  leave();
  misuse();
  return done();
}
