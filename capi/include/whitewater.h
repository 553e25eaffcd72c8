/* whitewater for C: sessions, and the functions of ikcp.h. Made by cbindgen from capi/src: change those, and run its test with UPDATE_HEADER=1.

   A pointer is null, or it is what its type says: one that was handed out here and not freed yet, used by one thread at a time; as many bytes as the
   length beside it says; a text that ends with a zero. */
#ifndef WHITEWATER_H
#define WHITEWATER_H


#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct IKCPCB ikcpcb;


/*
 Not now: nothing to take, or no room. Try again later.
 */
#define WW_AGAIN -1

/*
 The message does not fit into the buffer, and stays; or it is too long to be sent.
 */
#define WW_TOO_LONG -2

/*
 The session is over, or not up yet, or there is no such session.
 */
#define WW_CLOSED -3

/*
 A null pointer, a negative length, an index that there is none of, an address that is none, a call from within a callback.
 */
#define WW_MISUSE -4

/*
 The socket has failed, or could not be made.
 */
#define WW_IO -5

/*
 A value of a configuration is out of range.
 */
#define WW_CONFIG -6

/*
 There was a panic, now or earlier: this object is of no use any more. A bug of this library.
 */
#define WW_PANIC -7

/*
 A client wants to come in: `ww_server_admit` or `ww_server_reject` it within 10 s.
 */
#define WW_EVENT_REQUESTED 1

/*
 The session is up.
 */
#define WW_EVENT_CONNECTED 2

/*
 There is something to be read: read until nothing is left.
 */
#define WW_EVENT_READABLE 3

/*
 A channel that was full has room again.
 */
#define WW_EVENT_WRITABLE 4

/*
 The client is sent to another server.
 */
#define WW_EVENT_REDIRECTED 5

/*
 The peer has another address.
 */
#define WW_EVENT_MOVED 6

/*
 The session is over.
 */
#define WW_EVENT_CLOSED 7

/*
 Something that this version of the header does not know.
 */
#define WW_EVENT_OTHER 100

/*
 This end closed it, with `code`.
 */
#define WW_CLOSED_LOCAL 1

/*
 The peer closed it, with `code`.
 */
#define WW_CLOSED_PEER 2

/*
 The server does not take us: `code` is its application's.
 */
#define WW_CLOSED_REJECTED 3

/*
 The server does not take us: it is busy, or of another version.
 */
#define WW_CLOSED_DENIED 4

/*
 Nothing was heard any more, or never.
 */
#define WW_CLOSED_TIMEOUT 5

/*
 Any other reason: `code` is one of the protocol's own.
 */
#define WW_CLOSED_OTHER 100

/*
 Not encrypted: a checksum, for local networks and tests.
 */
#define WW_SUITE_CHECKED 0

/*
 Encrypted by a secret that both ends know (`psk`).
 */
#define WW_SUITE_PSK 513

/*
 Encrypted, and the client knows that it is the server (`server_key`).
 */
#define WW_SUITE_KEY 769

/*
 All messages, in order.
 */
#define WW_CHANNEL_ORDERED 0

/*
 All messages, as they come.
 */
#define WW_CHANNEL_UNORDERED 1

/*
 The newest of the messages that arrive.
 */
#define WW_CHANNEL_SEQUENCED 2

/*
 The messages that arrive, as they come.
 */
#define WW_CHANNEL_UNRELIABLE 3

/*
 All bytes in order, without bounds between messages.
 */
#define WW_CHANNEL_STREAM 4

/*
 KCP for ordered channels and streams, packets for all others.
 */
#define WW_CARRIER_DEFAULT 0

/*
 KCP: a message leaves at once; for ordered channels and streams.
 */
#define WW_CARRIER_KCP 1

/*
 Packets, which many small messages share; for all but streams.
 */
#define WW_CARRIER_PACKETS 2

/*
 The client's end of a session.
 */
typedef struct ww_client ww_client;

/*
 The server's end of sessions.
 */
typedef struct ww_server ww_server;

/*
 A list of ikcp.c's. Empty, and nothing is looked for in it.
 */
typedef struct IQUEUEHEAD {
  /*
   Itself.
   */
  struct IQUEUEHEAD *next;
  /*
   Itself.
   */
  struct IQUEUEHEAD *prev;
} IQUEUEHEAD;

/*
 A congestion control of the program. `window` and `ssthresh` are the fields `cwnd` and `ssthresh` of the control block, which the callbacks
 set. A callback that is null does what ikcp.c does there. No function may be called on the control block from within one.
 */
typedef struct IKCPOPS {
  const char *name;
  /*
   0: it can begin.
   */
  int (*init)(struct IKCPCB *kcp);
  void (*release)(struct IKCPCB *kcp);
  void (*on_ack)(struct IKCPCB *kcp, uint32_t acked_segs, uint32_t acked_bytes, uint32_t prior_in_flight);
  void (*on_fast_retransmit)(struct IKCPCB *kcp, uint32_t fast_retrans, uint32_t inflight, uint32_t prior_cwnd);
  void (*on_timeout)(struct IKCPCB *kcp, uint32_t prior_cwnd);
  void (*on_tick)(struct IKCPCB *kcp);
  void (*on_app_limited)(struct IKCPCB *kcp, uint32_t inflight);
  void (*on_rtt)(struct IKCPCB *kcp, int32_t rtt);
  void (*on_pkt_sent)(struct IKCPCB *kcp, uint32_t sn, uint32_t ts, uint32_t len, uint32_t inflight, uint32_t xmit);
  /*
   Not called: segments are acknowledged by the datagram here, see `on_ack`.
   */
  void (*on_pkt_acked)(struct IKCPCB *kcp, uint32_t sn, uint32_t ts, uint32_t len, int32_t rtt, uint32_t xmit);
  /*
   Not called: there is nobody who asks.
   */
  uint32_t (*get_info)(struct IKCPCB *kcp, void *buf, uint32_t bufsize);
  /*
   Payload bytes that one flush may send, every `interval`; above 2^31: as many as there are.
   */
  uint32_t (*pacing_rate)(struct IKCPCB *kcp);
} IKCPOPS;

/*
 A control block as ikcp.h 2.1.1 lays it out. What stands in it is told after each call; what is a knob there is one here, and taken with
 the next call: `mtu` or `mss`, each of which moves the other, `rx_minrto`, `snd_wnd`, `rcv_wnd`, `current`, `interval`, `nodelay`,
 `dead_link`, `fastresend`, `fastlimit`, `nocwnd`, `stream`, `user`, `ccops`, `congest`, `logmask`, `output` and `writelog`; and so is what changes
 by itself: `conv`, `state`, `ssthresh`, `rx_rttval`, `rx_srtt`, `rx_rto`, `rmt_wnd`, `cwnd`, `xmit` and `incr`.
 */
typedef struct IKCPCB {
  uint32_t conv;
  uint32_t mtu;
  uint32_t mss;
  /*
   All ones: the link is dead.
   */
  uint32_t state;
  uint32_t snd_una;
  uint32_t snd_nxt;
  uint32_t rcv_nxt;
  /*
   Not told, here and where it says so: 0.
   */
  uint32_t ts_recent;
  /*
   Not told.
   */
  uint32_t ts_lastack;
  uint32_t ssthresh;
  int32_t rx_rttval;
  int32_t rx_srtt;
  int32_t rx_rto;
  int32_t rx_minrto;
  uint32_t snd_wnd;
  uint32_t rcv_wnd;
  uint32_t rmt_wnd;
  uint32_t cwnd;
  /*
   Not told.
   */
  uint32_t probe;
  uint32_t current;
  uint32_t interval;
  uint32_t ts_flush;
  uint32_t xmit;
  uint32_t nrcv_buf;
  uint32_t nsnd_buf;
  uint32_t nrcv_que;
  uint32_t nsnd_que;
  uint32_t nodelay;
  uint32_t updated;
  /*
   Not told.
   */
  uint32_t ts_probe;
  /*
   Not told.
   */
  uint32_t probe_wait;
  uint32_t dead_link;
  uint32_t incr;
  /*
   Always empty, as are the other three: `nsnd_que`, `nrcv_que`, `nsnd_buf` and `nrcv_buf` tell how long they are.
   */
  struct IQUEUEHEAD snd_queue;
  struct IQUEUEHEAD rcv_queue;
  struct IQUEUEHEAD snd_buf;
  struct IQUEUEHEAD rcv_buf;
  /*
   Null.
   */
  uint32_t *acklist;
  /*
   Not told.
   */
  uint32_t ackcount;
  /*
   Not told.
   */
  uint32_t ackblock;
  /*
   Not told.
   */
  uint32_t ackedlen;
  void *user;
  /*
   Null.
   */
  char *buffer;
  int fastresend;
  int fastlimit;
  int nocwnd;
  int stream;
  const struct IKCPOPS *ccops;
  void *congest;
  int logmask;
  /*
   Takes a datagram.
   */
  int (*output)(const char *buf, int len, struct IKCPCB *kcp, void *user);
  /*
   Takes a line of the log.
   */
  void (*writelog)(const char *log, struct IKCPCB *kcp, void *user);
} IKCPCB;

/*
 A channel of a session. What is zero is as the library has it.
 */
typedef struct ww_channel {
  /*
   How its messages arrive, one of `WW_CHANNEL_..`.
   */
  uint8_t kind;
  /*
   What carries it, one of `WW_CARRIER_..`.
   */
  uint8_t carrier;
  /*
   Longest message, bytes, up to 2^26 (64 MiB); 0: 1 MiB. Messages that are not reliable have to fit into a datagram as well.
   */
  uint32_t max_message;
} ww_channel;

/*
 How a client connects or a server serves. All zero is a session of one ordered channel that is not encrypted: for local networks and tests.
 What is zero is as the library has it.
 */
typedef struct ww_options {
  /*
   The game and its version, the same at both ends.
   */
  uint64_t protocol_id;
  /*
   How sessions are protected, one of `WW_SUITE_..`: the same at both ends.
   */
  uint16_t suite;
  /*
   At a server: sessions at a time, up to 16,384.
   */
  uint16_t max_sessions;
  /*
   ms after which a session that nothing is heard of is over.
   */
  uint32_t timeout_ms;
  /*
   ms after which something is said when there is nothing to say.
   */
  uint32_t keepalive_ms;
  /*
   The channels by their numbers from 0, the most urgent first, the same at both ends; or null: one, `WW_CHANNEL_ORDERED`.
   */
  const struct ww_channel *channels;
  /*
   How many they are, up to 32.
   */
  size_t channel_count;
  /*
   32 random bytes that both ends know, for `WW_SUITE_PSK`; or null.
   */
  const uint8_t *psk;
  /*
   Null, or 32 bytes for `WW_SUITE_KEY`: at a server its private key, at a client what `ww_public_key` makes of it.
   */
  const uint8_t *server_key;
  /*
   At a client, what the server's program is told of it: up to 256 bytes.
   */
  const uint8_t *user;
  /*
   How many.
   */
  size_t user_len;
  /*
   At a server, unless it is 0: ask about each client, see `WW_EVENT_REQUESTED`.
   */
  uint8_t ask;
  /*
   Most bytes of repairs of lost packets, in percent of the others, up to 100; 0: none. Both ends have to want them.
   */
  uint8_t repairs;
  /*
   At a client, a connect token as a matchmaker hands it out; or null. It says where the server is and how the session is protected: the address,
   `suite`, `psk` and `server_key` are not looked at then.
   */
  const uint8_t *token;
  /*
   Its bytes.
   */
  size_t token_len;
  /*
   At a server, the 32 bytes that the matchmaker seals connect tokens with, or null: only clients with a token for this server come in
   then, of a `suite` with a `psk`, which is in the token. Tokens from before the server was made do not count.
   */
  const uint8_t *token_key;
  /*
   The number of this server in its tokens, of this process alone.
   */
  uint64_t server_id;
  /*
   What tells the keys of a server apart.
   */
  uint8_t key_id;
} ww_options;

/*
 How a session stands. Bytes are of UDP payload.
 */
typedef struct ww_stats {
  /*
   Round trip, smoothed, microseconds; 0 before the first.
   */
  uint64_t rtt_us;
  /*
   Its mean deviation.
   */
  uint64_t rttvar_us;
  /*
   Share of the packets sent in the last 10 s that got lost on the way, 0 to 1; -1: not known, for too few were sent.
   */
  double loss;
  /*
   Datagrams sent.
   */
  uint64_t sent;
  /*
   Bytes of them.
   */
  uint64_t bytes_sent;
  /*
   Datagrams received.
   */
  uint64_t received;
  /*
   Bytes of them.
   */
  uint64_t bytes_received;
} ww_stats;

/*
 Something has happened: the session of `session` (at a server), and what, one of `WW_EVENT_..`.
 */
typedef struct ww_event {
  /*
   One of `WW_EVENT_..`.
   */
  int32_t kind;
  /*
   At a server: which session.
   */
  uint32_t session;
  /*
   Of `WW_EVENT_CLOSED`: why, one of `WW_CLOSED_..`.
   */
  int32_t reason;
  /*
   Of `WW_EVENT_CLOSED`: the code of who closed or rejected it.
   */
  uint16_t code;
  /*
   Of `WW_EVENT_CLOSED`: whether something was sent that is not known to have arrived.
   */
  bool is_undelivered;
} ww_event;

/*
 A control block for the conversation `conv`; null if there is none to be had. `user` goes to the callbacks.
 */
struct IKCPCB *ikcp_create(uint32_t conv, void *user);

/*
 Ends it, sends nothing. From within a callback of a congestion control it does nothing, as no function does there; it must not be called from
 within `output`.
 */
void ikcp_release(struct IKCPCB *kcp);

/*
 Sets the callback that takes datagrams. It may call any function but `ikcp_release`.
 */
void ikcp_setoutput(struct IKCPCB *kcp, int (*output)(const char *buf, int len, struct IKCPCB *kcp, void *user));

/*
 Takes the next message: its length; -1: none, -2: not all of it yet, -3: it is longer than `len`. With `len` below zero it stays, and
 may be -`len` long. With `buffer` null it is thrown away.
 */
int ikcp_recv(struct IKCPCB *kcp,
              char *buffer,
              int len);

/*
 Queues a message: its length, or how much of it in stream mode; -2: it would take more fragments than a window has; -1: the queue is full.
 With `buffer` null it is `len` bytes of 0; ikcp.c sends what the memory happens to hold.
 */
int ikcp_send(struct IKCPCB *kcp,
              const char *buffer,
              int len);

/*
 Flushes if an interval has passed. `current`: ms, of a clock that only goes forward.
 */
void ikcp_update(struct IKCPCB *kcp, uint32_t current);

/*
 When to call `ikcp_update` next, if nothing is sent or received until then: `current` at the earliest, the next flush at the latest.
 */
uint32_t ikcp_check(const struct IKCPCB *kcp,
                    uint32_t current);

/*
 Takes a datagram: 0; -1: too short, or of another conversation, -2: shorter than it says, -3: no command, -4: nothing that we believe. A
 datagram that is refused has changed nothing.
 */
int ikcp_input(struct IKCPCB *kcp,
               const char *data,
               long size);

/*
 Flushes now, by the time of the last `ikcp_update`; nothing before the first.
 */
void ikcp_flush(struct IKCPCB *kcp);

/*
 The length of the next message; -1: none, or not all of it yet.
 */
int ikcp_peeksize(const struct IKCPCB *kcp);

/*
 Sets the largest datagram, 50 to 65,507 bytes: 0; -1: out of range, or larger segments wait.
 */
int ikcp_setmtu(struct IKCPCB *kcp, int mtu);

/*
 Sets the windows, segments; 0 or less: as it is. The receive window is 128 to 65,535.
 */
int ikcp_wndsize(struct IKCPCB *kcp, int sndwnd, int rcvwnd);

/*
 Messages' segments that are not acknowledged, or not sent.
 */
int ikcp_waitsnd(const struct IKCPCB *kcp);

/*
 Sets the knobs of the same names; below zero: as it is. `interval` is 10 to 5000 ms.
 */
int ikcp_nodelay(struct IKCPCB *kcp, int nodelay, int interval, int resend, int nc);

/*
 Installs a congestion control, or with null the one of ikcp.c: 0; -1: its `init` said no, and there is the one of ikcp.c. `ops` lives as
 long as it is installed.
 */
int ikcp_setcc(struct IKCPCB *kcp,
               const struct IKCPOPS *ops);

/*
 Does nothing: memory is Rust's.
 */
void ikcp_allocator(void *(*_new_malloc)(size_t), void (*_new_free)(void*));

/*
 The conversation that a datagram of at least 4 bytes is of; 0 for null.
 */
uint32_t ikcp_getconv(const void *ptr);

/*
 Not of ikcp.h: with 1, what is lost is found by time and not by the knobs, as whitewater does by itself; with 0 as ikcp.c does. Set
 `kcp->current` before `ikcp_input`, and call `ikcp_flush` after `ikcp_send`, and it is as fast as it can be.
 */
int ww_kcp_by_time(struct IKCPCB *kcp,
                   int is_by_time);

/*
 Begins to connect to `address` ("host:port"): a client, that `WW_EVENT_CONNECTED` or `WW_EVENT_CLOSED` will come of. Null if there
 is none to be had, and `*error`, unless that is null, says why. Without `options` they are all zero.
 */
struct ww_client *ww_client_connect(const char *address,
                                    const struct ww_options *options,
                                    int32_t *error);

/*
 Queues a message on a channel: 0; `WW_AGAIN`: as much waits as may, `WW_TOO_LONG`: it is longer than `max_message` of the channel, or than a
 datagram on a channel that is not reliable.
 */
int32_t ww_client_send(struct ww_client *client,
                       uint32_t channel,
                       const uint8_t *message,
                       size_t len);

/*
 Takes the next message of a channel: its length; `WW_AGAIN`: none, `WW_TOO_LONG`: `size` is too small for it, and it stays.
 */
int32_t ww_client_recv(struct ww_client *client,
                       uint32_t channel,
                       uint8_t *buffer,
                       size_t size);

/*
 Queues an unreliable datagram: 0.
 */
int32_t ww_client_send_datagram(struct ww_client *client, const uint8_t *datagram, size_t len);

/*
 Takes the next unreliable datagram: its length.
 */
int32_t ww_client_recv_datagram(struct ww_client *client, uint8_t *buffer, size_t size);

/*
 How the session stands: 0.
 */
int32_t ww_client_stats(struct ww_client *client, struct ww_stats *stats);

/*
 Reads what came, does what is due and sends what came out: ms until the next call at the latest in `*next`, -1: for ever.
 */
int32_t ww_client_pump(struct ww_client *client,
                       int64_t *next);

/*
 Pumps until there is an event, for so many ms at most, below zero: for ever. 1: there is one, 0: none.
 */
int32_t ww_client_poll(struct ww_client *client, int64_t timeout_ms);

/*
 Takes the next event: 1, or 0: there is none.
 */
int32_t ww_client_event(struct ww_client *client, struct ww_event *event);

/*
 Ends the session when what was sent has arrived, `WW_EVENT_CLOSED` tells when: 0.
 */
int32_t ww_client_close(struct ww_client *client, uint16_t code);

/*
 Frees it. What was not sent is not, and the other end finds out by silence: close and poll before.
 */
void ww_client_free(struct ww_client *client);

/*
 The public half of a server's key: 32 bytes each.

 # Safety

 Both are null or have 32 bytes.
 */
int32_t ww_public_key(const uint8_t *private_key, uint8_t *public_key);

/*
 A server on `address` ("0.0.0.0:4000"). Null if there is none to be had, and `*error`, unless that is null, says why. Without `options` they are all
 zero.
 */
struct ww_server *ww_server_bind(const char *address,
                                 const struct ww_options *options,
                                 int32_t *error);

/*
 Queues a message on a reliable channel of `session`: its length; `WW_AGAIN`: as much waits as may.
 */
int32_t ww_server_send(struct ww_server *server,
                       uint32_t session,
                       uint32_t channel,
                       const uint8_t *message,
                       size_t len);

/*
 Takes the next message of a channel of `session`: its length; `WW_AGAIN`: none, `WW_TOO_LONG`: `size` is too small for it, and it stays.
 */
int32_t ww_server_recv(struct ww_server *server,
                       uint32_t session,
                       uint32_t channel,
                       uint8_t *buffer,
                       size_t size);

/*
 Queues an unreliable datagram of `session`: 0.
 */
int32_t ww_server_send_datagram(struct ww_server *server, uint32_t session, const uint8_t *datagram, size_t len);

/*
 Takes the next unreliable datagram of `session`: its length.
 */
int32_t ww_server_recv_datagram(struct ww_server *server, uint32_t session, uint8_t *buffer, size_t size);

/*
 How the session stands: 0.
 */
int32_t ww_server_stats(struct ww_server *server, uint32_t session, struct ww_stats *stats);

/*
 Reads what came, does what is due and sends what came out: ms until the next call at the latest in `*next`, -1: for ever.
 */
int32_t ww_server_pump(struct ww_server *server,
                       int64_t *next);

/*
 Pumps until there is an event, for so many ms at most, below zero: for ever. 1: there is one, 0: none.
 */
int32_t ww_server_poll(struct ww_server *server, int64_t timeout_ms);

/*
 Takes the next event: 1, or 0: there is none.
 */
int32_t ww_server_event(struct ww_server *server, struct ww_event *event);

/*
 Ends a session when what was sent has arrived, `WW_EVENT_CLOSED` tells when: 0.
 */
int32_t ww_server_close(struct ww_server *server, uint32_t session, uint16_t code);

/*
 Lets a client in that asks (`WW_EVENT_REQUESTED`): 0; `WW_CLOSED`: it does not ask any more.
 */
int32_t ww_server_admit(struct ww_server *server, uint32_t session);

/*
 Sends a client away that asks, and tells it `code`: 0; `WW_CLOSED`: it does not ask any more.
 */
int32_t ww_server_reject(struct ww_server *server, uint32_t session, uint16_t code);

/*
 What a session's client, or one that asks, has said with `user`: its length; `WW_TOO_LONG`: `size` is too small for it.
 */
int32_t ww_server_user(struct ww_server *server, uint32_t session, uint8_t *buffer, size_t size);

/*
 The port that it is bound to.
 */
int32_t ww_server_port(struct ww_server *server);

/*
 Frees it. What was not sent is not, and the other end finds out by silence: close and poll before.
 */
void ww_server_free(struct ww_server *server);

#ifdef __cplusplus
}
#endif

#endif
