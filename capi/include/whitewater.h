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
 Not now: there is nothing to read, or no room. Try again later.
 */
#define WW_AGAIN -1

/*
 The message does not fit into the buffer, and stays queued; or it is too long to send.
 */
#define WW_TOO_LONG -2

/*
 The session is over or not up yet, or there is no such session.
 */
#define WW_CLOSED -3

/*
 A null pointer, a negative length, an unknown index, an invalid address, or a call from within a callback.
 */
#define WW_MISUSE -4

/*
 The socket has failed, or could not be created.
 */
#define WW_IO -5

/*
 A setting is missing or out of range: `ww_error_text` says which.
 */
#define WW_CONFIG -6

/*
 A panic, now or earlier: the object cannot be used any more. This is a bug in the library.
 */
#define WW_PANIC -7

/*
 An unreliable message or datagram of this many bytes always fits, if the peer takes datagrams of 1200 bytes, as it does by default.
 */
#define WW_UNRELIABLE_MAX 1150

/*
 A client asks to join: `ww_server_admit` or `ww_server_reject` it within 10 s.
 */
#define WW_EVENT_REQUESTED 1

/*
 The session is up.
 */
#define WW_EVENT_CONNECTED 2

/*
 There is something to read: read until nothing is left.
 */
#define WW_EVENT_READABLE 3

/*
 A channel that was full has room again.
 */
#define WW_EVENT_WRITABLE 4

/*
 The server sends the client to another one: `ww_client_take_redirect`.
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
 An event that this version of the header does not know.
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
 The server's application rejected the client, with `code`; see `ww_client_rejection`.
 */
#define WW_CLOSED_REJECTED 3

/*
 The server refused the client: it is busy, or the version, the secret or the channels differ. `ww_client_close_reason` says which.
 */
#define WW_CLOSED_DENIED 4

/*
 The peer fell silent, or never answered.
 */
#define WW_CLOSED_TIMEOUT 5

/*
 Any other reason: `ww_client_close_reason` and `ww_server_close_reason` say which.
 */
#define WW_CLOSED_OTHER 100

/*
 Not encrypted, only a checksum: for local networks and tests.
 */
#define WW_SUITE_CHECKED 1

/*
 Encrypted with a secret that both ends know (`psk`).
 */
#define WW_SUITE_PSK 513

/*
 Encrypted, and the client verifies the server (`server_key`).
 */
#define WW_SUITE_KEY 769

/*
 As `WW_SUITE_PSK`, and recordings stay closed to quantum computers.
 */
#define WW_SUITE_HYBRID_PSK 33281

/*
 As `WW_SUITE_KEY`, and recordings stay closed to quantum computers.
 */
#define WW_SUITE_HYBRID_KEY 33537

/*
 No repairs.
 */
#define WW_REPAIRS_OFF 255

/*
 As many repairs as replace about their own bytes of resends.
 */
#define WW_REPAIRS_AUTO 254

/*
 All messages, in order.
 */
#define WW_CHANNEL_ORDERED 0

/*
 All messages, in any order.
 */
#define WW_CHANNEL_UNORDERED 1

/*
 The newest of the messages that arrive.
 */
#define WW_CHANNEL_SEQUENCED 2

/*
 Those messages that arrive, in any order.
 */
#define WW_CHANNEL_UNRELIABLE 3

/*
 All bytes in order, without message boundaries.
 */
#define WW_CHANNEL_STREAM 4

/*
 KCP for ordered channels and streams, packets for all others.
 */
#define WW_CARRIER_DEFAULT 0

/*
 KCP: a message is sent at once. For ordered channels and streams.
 */
#define WW_CARRIER_KCP 1

/*
 Packets, which many small messages share. For all kinds except streams.
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
 A list of ikcp.c. It is always empty and never read.
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
 A congestion control of the program. `window` and `ssthresh` are the fields `cwnd` and `ssthresh` of the control
 block, which the callbacks set. If a callback is null, what ikcp.c does there happens. Callbacks must not call
 functions on the control block.
 */
typedef struct IKCPOPS {
  const char *name;
  /*
   Returns 0 if it can begin.
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
   Never called: acknowledgements are reported per datagram here; see `on_ack`.
   */
  void (*on_pkt_acked)(struct IKCPCB *kcp, uint32_t sn, uint32_t ts, uint32_t len, int32_t rtt, uint32_t xmit);
  /*
   Never called: nothing asks for it.
   */
  uint32_t (*get_info)(struct IKCPCB *kcp, void *buf, uint32_t bufsize);
  /*
   Payload bytes that one flush may send, every `interval`. Above 2^31: unlimited.
   */
  uint32_t (*pacing_rate)(struct IKCPCB *kcp);
} IKCPOPS;

/*
 A control block with the layout of ikcp.h 2.1.1. Its fields are updated after each call. The fields that are
 settings in ikcp.c are settings here too and take effect with the next call: `mtu` or `mss`, each of which moves the
 other, `rx_minrto`, `snd_wnd`, `rcv_wnd`, `current`, `interval`, `nodelay`, `dead_link`, `fastresend`, `fastlimit`,
 `nocwnd`, `stream`, `user`, `ccops`, `congest`, `logmask`, `output` and `writelog`. So do these state fields if the
 program changes them: `conv`, `state`, `ssthresh`, `rx_rttval`, `rx_srtt`, `rx_rto`, `rmt_wnd`, `cwnd`, `xmit` and
 `incr`.
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
   Not supported: always 0, here and wherever it says so.
   */
  uint32_t ts_recent;
  /*
   Not supported.
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
   Not supported.
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
   Not supported.
   */
  uint32_t ts_probe;
  /*
   Not supported.
   */
  uint32_t probe_wait;
  uint32_t dead_link;
  uint32_t incr;
  /*
   Always empty, like the other three queues. `nsnd_que`, `nrcv_que`, `nsnd_buf` and `nrcv_buf` have their lengths.
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
   Not supported.
   */
  uint32_t ackcount;
  /*
   Not supported.
   */
  uint32_t ackblock;
  /*
   Not supported.
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
 A channel of a session. Each field that is zero has the library's default.
 */
typedef struct ww_channel {
  /*
   How messages arrive, one of `WW_CHANNEL_..`.
   */
  uint8_t kind;
  /*
   What carries it, one of `WW_CARRIER_..`.
   */
  uint8_t carrier;
  /*
   Longest message, bytes, up to 2^26 (64 MiB); 0: 1 MiB. Unreliable messages must also fit into a datagram.
   */
  uint32_t max_message;
} ww_channel;

/*
 How a client connects or a server serves. Start with all zeros and set `suite`, or at a client `token`: all zeros are
 an error. Each other field that is zero has the library's default.
 */
typedef struct ww_options {
  /*
   The game and its version: the same at both ends.
   */
  uint64_t protocol_id;
  /*
   How sessions are protected, one of `WW_SUITE_..`: the same at both ends. 0 is an error, so that nobody goes without
   encryption unknowingly.
   */
  uint16_t suite;
  /*
   At a server: most sessions at a time, up to 16,384. Together they may hold 256 MiB, or 256 KiB each if that is more.
   */
  uint16_t max_sessions;
  /*
   ms of silence after which a session is over.
   */
  uint32_t timeout_ms;
  /*
   ms between two pings of a session without other traffic.
   */
  uint32_t keepalive_ms;
  /*
   The channels by number from 0, the most urgent first: the same at both ends. Null: one `WW_CHANNEL_ORDERED`.
   */
  const struct ww_channel *channels;
  /*
   Number of channels, up to 32.
   */
  size_t channel_count;
  /*
   32 random bytes that both ends know, for `WW_SUITE_PSK`; or null. All zeros are an error, as for the other keys.
   */
  const uint8_t *psk;
  /*
   32 bytes for `WW_SUITE_KEY`: at a server its private key, at a client what `ww_public_key` makes of it; or null.
   */
  const uint8_t *server_key;
  /*
   At a client: what to tell the server's program, up to 256 bytes.
   */
  const uint8_t *user;
  /*
   Length of `user`.
   */
  size_t user_len;
  /*
   At a client: what `ww_client_ticket` returned in the last session with this server, or null. It saves a round trip.
   */
  const uint8_t *ticket;
  /*
   Length of `ticket`, up to 64.
   */
  size_t ticket_len;
  /*
   At a server: nonzero to be asked about each client; see `WW_EVENT_REQUESTED`.
   */
  uint8_t ask;
  /*
   Most bytes of repairs of lost packets, in percent of the packets that they protect, up to 200; or one of
   `WW_REPAIRS_..`. Both ends must use them. 0: the library's default.
   */
  uint8_t repairs;
  /*
   ms within which 99 of 100 packets should arrive, up to 10,000: as few repairs as that takes, instead of what
   `repairs` says. 0: there is no such time.
   */
  uint16_t repairs_within_ms;
  /*
   At a client: a connect token from a matchmaker, or null. It contains the address of the server and how the
   session is protected: the address argument, `suite`, `psk` and `server_key` are then ignored.
   */
  const uint8_t *token;
  /*
   Length of `token`.
   */
  size_t token_len;
  /*
   At a server: the 32 bytes with which the matchmaker seals connect tokens, or null. With it, only clients with a
   token for this server can join. `suite` must be one with a `psk`, which is in the token. Tokens made before the
   server started are refused.
   */
  const uint8_t *token_key;
  /*
   With `token_key`, the number of this server in its tokens, not 0: unique to this process.
   */
  uint64_t server_id;
  /*
   Distinguishes the keys of a server.
   */
  uint8_t key_id;
  /*
   At a server: how many bytes of a routing token each datagram ends with, up to 20, if the proxy leaves it there.
   */
  uint8_t routing_token_len;
  /*
   At a server: most sessions at a time from one address, up to 16,384.
   */
  uint16_t sessions_per_address;
  /*
   At a server: the IP addresses of proxies that put a header of the PROXY protocol, version 2, before each datagram, at most 64 with commas between;
   or null. Limits then count the addresses of the clients. Whoever can send from these addresses can claim to be any client.
   */
  const char *proxies;
} ww_options;

/*
 The state of a session. Bytes are of UDP payload.
 */
typedef struct ww_stats {
  /*
   Smoothed round-trip time in microseconds; 0 before the first measurement.
   */
  uint64_t rtt_us;
  /*
   Mean deviation of the round-trip time, microseconds.
   */
  uint64_t rttvar_us;
  /*
   Share of the packets sent in the last 10 s that were lost, 0 to 1; -1: unknown, because too few were sent.
   */
  double loss;
  /*
   Datagrams sent.
   */
  uint64_t sent;
  /*
   Bytes sent.
   */
  uint64_t bytes_sent;
  /*
   Datagrams received.
   */
  uint64_t received;
  /*
   Bytes received.
   */
  uint64_t bytes_received;
} ww_stats;

/*
 Something that has happened to a session.
 */
typedef struct ww_event {
  /*
   One of `WW_EVENT_..`.
   */
  int32_t kind;
  /*
   At a server: the session.
   */
  uint32_t session;
  /*
   With `WW_EVENT_CLOSED`: one of `WW_CLOSED_..`; `ww_client_close_reason` and `ww_server_close_reason` have it in words.
   */
  int32_t reason;
  /*
   With `WW_EVENT_CLOSED`: the code that the session was closed or rejected with.
   */
  uint16_t code;
  /*
   With `WW_EVENT_CLOSED`: whether something was sent that is not known to have arrived.
   */
  bool is_undelivered;
} ww_event;

/*
 What a matchmaker said about a client, in its connect token.
 */
typedef struct ww_pass {
  /*
   The client.
   */
  uint64_t client_id;
  /*
   When the token was made, in seconds since 1970.
   */
  uint64_t created;
  /*
   The match, or anything else that the matchmaker chose.
   */
  uint8_t match_id[16];
  /*
   Its other data.
   */
  uint8_t user[256];
  /*
   Length of `user`.
   */
  uint32_t user_len;
} ww_pass;

/*
 What a connect token should say. Start with all zeros.
 */
typedef struct ww_order {
  /*
   The game and its version, as in the options of the server.
   */
  uint64_t protocol_id;
  /*
   The number of the server, as in its options.
   */
  uint64_t server_id;
  /*
   The client: the server learns it by `ww_server_pass`.
   */
  uint64_t client_id;
  /*
   The match, or anything else; for `ww_server_pass` as well.
   */
  uint8_t match_id[16];
  /*
   The 32 bytes of `token_key` in the options of the server.
   */
  const uint8_t *token_key;
  /*
   The addresses of the server, the best first, at most 4 with commas between: "192.0.2.1:4000,[2001:db8::1]:4000".
   */
  const char *addresses;
  /*
   Other data for the server, which the client cannot read: up to 256 bytes.
   */
  const uint8_t *user;
  /*
   Length of `user`.
   */
  size_t user_len;
  /*
   What each datagram of the client ends with, so that a proxy finds the server by it: up to 20 bytes, or null.
   */
  const uint8_t *routing_token;
  /*
   Length of `routing_token`.
   */
  size_t routing_token_len;
  /*
   s until it expires, up to 600; 0: 45.
   */
  uint32_t life_s;
  /*
   One of `WW_SUITE_..` with a `psk`, as in the options of the server.
   */
  uint16_t suite;
  /*
   As in the options of the server.
   */
  uint8_t key_id;
} ww_order;

/*
 Writes why the last `ww_server_bind`, `ww_client_connect` or `ww_token_mint` of this thread that failed did so, in words, as a text that ends
 with a zero: for example which option is missing. Returns its length without the zero, 0 if none has failed; `WW_TOO_LONG`: `size` is too
 small, 512 is enough.

 # Safety

 `buffer` is null or has `size` bytes.
 */
int32_t ww_error_text(uint8_t *buffer,
                      size_t size);

/*
 Creates a control block for the conversation `conv`, or returns null if that fails. `user` is passed to the
 callbacks.
 */
struct IKCPCB *ikcp_create(uint32_t conv, void *user);

/*
 Frees a control block and sends nothing. In a callback it takes effect when the function that called back returns.
 */
void ikcp_release(struct IKCPCB *kcp);

/*
 Sets the callback that receives datagrams. It may call any function.
 */
void ikcp_setoutput(struct IKCPCB *kcp, int (*output)(const char *buf, int len, struct IKCPCB *kcp, void *user));

/*
 Reads the next message. Returns its length; -1: there is none, -2: it has not arrived in full, -3: it is longer than
 `len`. If `len` is negative, the message stays queued and may have up to -`len` bytes. If `buffer` is null, the
 message is dropped.
 */
int ikcp_recv(struct IKCPCB *kcp, char *buffer, int len);

/*
 Queues a message. Returns its length, or in stream mode the bytes taken; -2: it needs more fragments than a window
 has, -1: the queue is full. If `buffer` is null, sends `len` zero bytes (ikcp.c sends uninitialised memory).
 */
int ikcp_send(struct IKCPCB *kcp, const char *buffer, int len);

/*
 Flushes if an interval has passed. `current`: ms, of a monotonic clock.
 */
void ikcp_update(struct IKCPCB *kcp, uint32_t current);

/*
 When to call `ikcp_update` next, if nothing is sent or received before: not before `current`, and not after the next
 flush.
 */
uint32_t ikcp_check(const struct IKCPCB *kcp, uint32_t current);

/*
 Takes a datagram. Returns 0; -1: too short, or of another conversation, -2: shorter than it says, -3: unknown
 command, -4: implausible. A refused datagram has changed nothing.
 */
int ikcp_input(struct IKCPCB *kcp, const char *data, long size);

/*
 Flushes now, with the time of the last `ikcp_update`. Does nothing before the first.
 */
void ikcp_flush(struct IKCPCB *kcp);

/*
 The length of the next message; -1: there is none, or it has not arrived in full.
 */
int ikcp_peeksize(const struct IKCPCB *kcp);

/*
 Sets the size of the largest datagram, 50 to 65,507 bytes. Returns 0; -1: out of range, or larger segments are
 waiting.
 */
int ikcp_setmtu(struct IKCPCB *kcp, int mtu);

/*
 Sets the windows, segments; 0 or less: unchanged. The receive window is 128 to 65,535.
 */
int ikcp_wndsize(struct IKCPCB *kcp, int sndwnd, int rcvwnd);

/*
 Number of segments that are unacknowledged or unsent.
 */
int ikcp_waitsnd(const struct IKCPCB *kcp);

/*
 Sets the settings with these names; negative: unchanged. `interval` is 10 to 5000 ms.
 */
int ikcp_nodelay(struct IKCPCB *kcp, int nodelay, int interval, int resend, int nc);

/*
 Installs a congestion control; null: that of ikcp.c. Returns 0; -1: its `init` refused, and that of ikcp.c is
 installed. `ops` must live as long as it is installed.
 */
int ikcp_setcc(struct IKCPCB *kcp, const struct IKCPOPS *ops);

/*
 Has no effect: memory is Rust's.
 */
void ikcp_allocator(void *(*_new_malloc)(size_t), void (*_new_free)(void*));

/*
 The conversation of a datagram of at least 4 bytes; 0 for null.
 */
uint32_t ikcp_getconv(const void *ptr);

/*
 Not in ikcp.h. 1: detect loss by timing instead of by the settings, as whitewater does by default; 0: as ikcp.c
 does. For the lowest latency, also set `kcp->current` before `ikcp_input`, and call `ikcp_flush` after `ikcp_send`.
 */
int ww_kcp_by_time(struct IKCPCB *kcp, int is_by_time);

/*
 Begins to connect to `address` ("host:port"). Returns a client, which reports `WW_EVENT_CONNECTED` or `WW_EVENT_CLOSED` later; or null on
 failure, with the error in `*error` unless that is null, and in `ww_error_text` in words.
 */
struct ww_client *ww_client_connect(const char *address,
                                    const struct ww_options *options,
                                    int32_t *error);

/*
 Queues a message on a channel. Returns 0; `WW_AGAIN`: the channel is full, wait for `WW_EVENT_WRITABLE`; `WW_TOO_LONG`: the message is longer
 than `max_message` of the channel or, on a channel that is not reliable, than a datagram; `WW_CLOSED`: the session is not up.
 */
int32_t ww_client_send(struct ww_client *client,
                       uint32_t channel,
                       const uint8_t *message,
                       size_t len);

/*
 Takes the next message of a channel. Returns its length, which is 0 for an empty message: read on until it is negative. `WW_AGAIN`: there is none;
 `WW_TOO_LONG`: the message is longer than `size`, and stays.
 */
int32_t ww_client_recv(struct ww_client *client,
                       uint32_t channel,
                       uint8_t *buffer,
                       size_t size);

/*
 Queues an unreliable datagram. Returns 0, or the errors of `ww_client_send`.
 */
int32_t ww_client_send_datagram(struct ww_client *client, const uint8_t *datagram, size_t len);

/*
 Takes the next unreliable datagram. Returns its length, or the errors of `ww_client_recv`.
 */
int32_t ww_client_recv_datagram(struct ww_client *client, uint8_t *buffer, size_t size);

/*
 Returns 1 if everything that was sent on a reliable channel is known to have arrived, 0 if not, and then `WW_EVENT_WRITABLE` follows;
 `WW_CLOSED`: the session was never up.
 */
int32_t ww_client_is_delivered(struct ww_client *client,
                               uint32_t channel);

/*
 Writes the state of the session to `*stats`. Returns 0, or `WW_CLOSED` if the session was never up.
 */
int32_t ww_client_stats(struct ww_client *client, struct ww_stats *stats);

/*
 Reads arrived datagrams, runs timers and sends what is due. Call it again after at most `*next` ms (-1: no limit); `next` may be null. Returns 0.
 */
int32_t ww_client_pump(struct ww_client *client,
                       int64_t *next);

/*
 Pumps until there is an event, for at most `timeout_ms`; a negative timeout waits forever. Returns 1 if there is an event, 0 if not.
 */
int32_t ww_client_poll(struct ww_client *client,
                       int64_t timeout_ms);

/*
 Takes the next event. Returns 1, or 0 if there is none.
 */
int32_t ww_client_poll_event(struct ww_client *client, struct ww_event *event);

/*
 Call this when the machine has changed networks. An encrypted session goes on in the new one, from another port, and under another number if
 there is a spare one. The client also notices by itself, within 250 ms while it is pumped. If the system tells you sooner, call this at once, so
 that nothing leaves by the new network under the old number. Returns 0.
 */
int32_t ww_client_path_changed(struct ww_client *client);

/*
 Ends the session once everything sent has arrived; then `WW_EVENT_CLOSED` follows. Returns 0; `WW_MISUSE`: `code` is 0xff00 or more, which
 the library uses itself.
 */
int32_t ww_client_close(struct ww_client *client,
                        uint16_t code);

/*
 `ww_client_close` with a text for the server's log. Returns 0; `WW_MISUSE`: as that says, or `message` is longer than 128 bytes or has
 control characters.
 */
int32_t ww_client_close_with(struct ww_client *client,
                             uint16_t code,
                             const char *message);

/*
 Ends the session, or the attempt to connect, at once: what has not arrived is lost. Returns 0, or as `ww_client_close_with`.
 */
int32_t ww_client_kick(struct ww_client *client,
                       uint16_t code,
                       const char *message);

/*
 Ends the session and pumps until that is done: until everything sent has arrived and the goodbye is said, for a limited time. Returns 0.
 */
int32_t ww_client_shutdown(struct ww_client *client,
                           uint16_t code);

/*
 Returns 1 if the session is up and can be sent to, 0 if not.
 */
int32_t ww_client_is_connected(struct ww_client *client);

/*
 Writes the server's address ("192.0.2.1:4000") to `buffer` as a text that ends with a zero. Returns its length without the zero; `WW_CLOSED`:
 the session was never up; `WW_TOO_LONG`: `size` is too small.
 */
int32_t ww_client_peer_addr(struct ww_client *client,
                            uint8_t *buffer,
                            size_t size);

/*
 Writes the address that the client's socket is bound to, like `ww_client_peer_addr`.
 */
int32_t ww_client_local_addr(struct ww_client *client, uint8_t *buffer, size_t size);

/*
 Writes the reason of the last `WW_EVENT_CLOSED` in words, for people to read, as a text that ends with a zero. Returns its length without the
 zero; `WW_AGAIN`: there was no such event yet; `WW_TOO_LONG`: `size` is too small, 256 is enough.
 */
int32_t ww_client_close_reason(struct ww_client *client,
                               uint8_t *buffer,
                               size_t size);

/*
 Writes the text that the server closed the session with, as a text that ends with a zero. Returns its length without the zero; 0: there is
 none; `WW_TOO_LONG`: `size` is too small, 129 is enough.
 */
int32_t ww_client_close_text(struct ww_client *client,
                             uint8_t *buffer,
                             size_t size);

/*
 Copies what the server's program said with `ww_server_admit`. Returns the number of bytes, at most 256; `WW_CLOSED`: the session was never up;
 `WW_TOO_LONG`: `size` is too small.
 */
int32_t ww_client_user(struct ww_client *client,
                       uint8_t *buffer,
                       size_t size);

/*
 Takes what the server's program said with `ww_server_reject`. Returns the number of bytes, at most 256; `WW_TOO_LONG`: `size` is too small.
 */
int32_t ww_client_rejection(struct ww_client *client,
                            uint8_t *buffer,
                            size_t size);

/*
 Takes what saves a round trip when this player's next client connects to this server: give it to `ww_client_connect` in the options. Returns
 its length, at most 64, or 0: there is none, or the session was not up yet; `WW_TOO_LONG`: `size` is too small.
 */
int32_t ww_client_ticket(struct ww_client *client,
                         uint8_t *buffer,
                         size_t size);

/*
 Takes the connect token of another server, after `WW_EVENT_REDIRECTED`: give it to `ww_client_connect` in the options of a new client.
 Returns its length; `WW_AGAIN`: there is none; `WW_TOO_LONG`: `size` is too small, and the token stays.
 */
int32_t ww_client_take_redirect(struct ww_client *client,
                                uint8_t *buffer,
                                size_t size);

/*
 Says goodbye if the session is up, and frees the client. It does not wait: what has not arrived is lost, see `ww_client_shutdown`.
 */
void ww_client_free(struct ww_client *client);

/*
 Computes the public half of a server's key: 32 bytes each. Returns 0; `WW_MISUSE`: a pointer is null, or the private key has only zeros.

 # Safety

 Both are null or have 32 bytes.
 */
int32_t ww_public_key(const uint8_t *private_key,
                      uint8_t *public_key);

/*
 Binds a server to `address` ("0.0.0.0:4000"). Returns the server; or null on failure, with the error in `*error` unless that is null, and in words
 in `ww_error_text`.
 */
struct ww_server *ww_server_bind(const char *address,
                                 const struct ww_options *options,
                                 int32_t *error);

/*
 Reads arrived datagrams, runs timers and sends what is due. Call it again after at most `*next` ms (-1: no limit); `next` may be null. Returns 0.
 */
int32_t ww_server_pump(struct ww_server *server,
                       int64_t *next);

/*
 Pumps until there is an event, for at most `timeout_ms`; a negative timeout waits forever. Returns 1 if there is an event, 0 if not.
 */
int32_t ww_server_poll(struct ww_server *server,
                       int64_t timeout_ms);

/*
 Takes the next event. Returns 1, or 0 if there is none.
 */
int32_t ww_server_poll_event(struct ww_server *server, struct ww_event *event);

/*
 Writes the sessions of connected clients to `sessions`, at most `count` of them, in no order. Returns how many clients are connected,
 which may be more.
 */
int32_t ww_server_clients(struct ww_server *server,
                          uint32_t *sessions,
                          size_t count);

/*
 Queues a message for every connected client. Returns the number of clients that it could not be queued for, because their channel was full.
 Other errors are those of `ww_client_send`.
 */
int32_t ww_server_broadcast(struct ww_server *server,
                            uint32_t channel,
                            const uint8_t *message,
                            size_t len);

/*
 `ww_server_broadcast` to all clients but `session`, such as the one that a message came from.
 */
int32_t ww_server_broadcast_except(struct ww_server *server,
                                   uint32_t session,
                                   uint32_t channel,
                                   const uint8_t *message,
                                   size_t len);

/*
 Writes the address that the server is bound to, like `ww_server_peer_addr`.
 */
int32_t ww_server_local_addr(struct ww_server *server, uint8_t *buffer, size_t size);

/*
 Writes the reason of the last `WW_EVENT_CLOSED` that was taken, in words, for people to read, as a text that ends with a zero. Returns its
 length without the zero; `WW_AGAIN`: there was no such event yet; `WW_TOO_LONG`: `size` is too small, 256 is enough.
 */
int32_t ww_server_close_reason(struct ww_server *server,
                               uint8_t *buffer,
                               size_t size);

/*
 Ends all sessions and pumps until that is done: until everything sent has arrived and the goodbyes are said, for a limited time. Returns 0.
 */
int32_t ww_server_shutdown(struct ww_server *server,
                           uint16_t code);

/*
 Says goodbye to all clients and frees the server. It does not wait: what has not arrived is lost, see `ww_server_shutdown`.
 */
void ww_server_free(struct ww_server *server);

/*
 Admits a client that asks to join (`WW_EVENT_REQUESTED`), and tells its program `user`, up to 256 bytes. Returns 0; `WW_CLOSED`: the client
 no longer asks; `WW_TOO_LONG`: `len` is more than 256.
 */
int32_t ww_server_admit(struct ww_server *server,
                        uint32_t session,
                        const uint8_t *user,
                        size_t len);

/*
 Rejects a client that asks to join, and tells its program `code` and `user`, up to 256 bytes. Returns 0, or as `ww_server_admit`;
 `WW_MISUSE`: `code` is 0xff00 or more.
 */
int32_t ww_server_reject(struct ww_server *server,
                         uint32_t session,
                         uint16_t code,
                         const uint8_t *user,
                         size_t len);

/*
 Copies the `user` bytes of a session's client, or of one that asks to join. Returns their number; `WW_TOO_LONG`: `size` is too small.
 */
int32_t ww_server_user(struct ww_server *server,
                       uint32_t session,
                       uint8_t *buffer,
                       size_t size);

/*
 Writes what is in the connect token of a session's client, or of one that asks to join, to `*pass`. Returns 0; `WW_CLOSED`: there is no such
 session, or the server does not require tokens.
 */
int32_t ww_server_pass(struct ww_server *server,
                       uint32_t session,
                       struct ww_pass *pass);

/*
 `ww_client_send` for a session of a server.
 */
int32_t ww_server_send(struct ww_server *server,
                       uint32_t session,
                       uint32_t channel,
                       const uint8_t *message,
                       size_t len);

/*
 `ww_client_recv` for a session of a server. `WW_CLOSED`: there is no such session.
 */
int32_t ww_server_recv(struct ww_server *server, uint32_t session, uint32_t channel, uint8_t *buffer, size_t size);

/*
 `ww_client_send_datagram` for a session of a server.
 */
int32_t ww_server_send_datagram(struct ww_server *server, uint32_t session, const uint8_t *datagram, size_t len);

/*
 `ww_client_recv_datagram` for a session of a server.
 */
int32_t ww_server_recv_datagram(struct ww_server *server, uint32_t session, uint8_t *buffer, size_t size);

/*
 `ww_client_is_delivered` for a session of a server.
 */
int32_t ww_server_is_delivered(struct ww_server *server, uint32_t session, uint32_t channel);

/*
 Returns 1 if a session is up and can be sent to, 0 if not.
 */
int32_t ww_server_is_connected(struct ww_server *server, uint32_t session);

/*
 Writes the state of a session to `*stats`. Returns 0, or `WW_CLOSED`: there is no such session.
 */
int32_t ww_server_stats(struct ww_server *server, uint32_t session, struct ww_stats *stats);

/*
 Writes the address of a client ("192.0.2.1:4000") to `buffer` as a text that ends with a zero. Returns its length without the zero;
 `WW_CLOSED`: there is no such session; `WW_TOO_LONG`: `size` is too small.
 */
int32_t ww_server_peer_addr(struct ww_server *server,
                            uint32_t session,
                            uint8_t *buffer,
                            size_t size);

/*
 Ends a session once everything sent has arrived; then `WW_EVENT_CLOSED` follows. Returns 0; `WW_MISUSE`: `code` is 0xff00 or more, which
 the library uses itself.
 */
int32_t ww_server_close(struct ww_server *server,
                        uint32_t session,
                        uint16_t code);

/*
 `ww_server_close` with a text for the client. Returns 0; `WW_MISUSE`: as that says, or `message` is longer than 128 bytes or has control characters.
 */
int32_t ww_server_close_with(struct ww_server *server,
                             uint32_t session,
                             uint16_t code,
                             const char *message);

/*
 Ends a session at once: what has not arrived is lost. The client is told `code` and `message`. Returns 0, or as `ww_server_close_with`.
 */
int32_t ww_server_kick(struct ww_server *server,
                       uint32_t session,
                       uint16_t code,
                       const char *message);

/*
 Writes the text that a client closed its session with, as a text that ends with a zero, until the next event is taken. Returns its length
 without the zero; 0: there is none; `WW_CLOSED`: there is no such session; `WW_TOO_LONG`: `size` is too small, 129 is enough.
 */
int32_t ww_server_close_text(struct ww_server *server,
                             uint32_t session,
                             uint8_t *buffer,
                             size_t size);

/*
 Sends the client of a session to another server, by a connect token that is valid there. Returns 0; `WW_CLOSED`: there is no such session;
 `WW_TOO_LONG`: the token does not fit into a datagram; `WW_MISUSE`: it is not a token.
 */
int32_t ww_server_redirect(struct ww_server *server,
                           uint32_t session,
                           const uint8_t *token,
                           size_t len);

/*
 Makes a connect token for one client and one server. Give it to that client over a connection that nobody else can read, as `token` of its options.
 Returns its length, at most 577; `WW_TOO_LONG`: `size` is too small; `WW_CONFIG`, `WW_MISUSE`: `ww_error_text` says what is wrong.
 */
int32_t ww_token_mint(const struct ww_order *order,
                      uint8_t *buffer,
                      size_t size);

#ifdef __cplusplus
}
#endif

#endif
