/* A program written for ikcp.h, run with our library: two control blocks and a path that loses every fifth datagram. Also compiled as C++. */
#include <stddef.h>
#include <string.h>
#include "ikcp.h"
#include "check.h"

/* Where ikcp.h 2.1.1 has its fields, with 8-byte pointers: a program compiled with that header reads there. */
#if UINTPTR_MAX > 0xffffffffu
#define AT(field, offset) CHECK(offsetof(struct IKCPCB, field) == (offset))
static void layout(void) {
  AT(conv, 0);
  AT(state, 12);
  AT(snd_una, 16);
  AT(rx_minrto, 52);
  AT(cwnd, 68);
  AT(current, 76);
  AT(nodelay, 108);
  AT(dead_link, 124);
  AT(snd_queue, 136);
  AT(acklist, 200);
  AT(user, 224);
  AT(fastresend, 240);
  AT(stream, 252);
  AT(ccops, 256);
  AT(logmask, 272);
  AT(output, 280);
  AT(writelog, 288);
}
#else
static void layout(void) {}
#endif

#define MOST 4096

struct path {
  char bytes[MOST][1400];
  int lengths[MOST];
  int count;
  int number;
  int losing;
};

static int output(const char *buf, int len, ikcpcb *kcp, void *user) {
  struct path *path = (struct path *)user;
  CHECK(kcp->user == user);
  CHECK(len > 0 && len <= 1400);
  CHECK(ikcp_waitsnd(kcp) >= 0); /* a callback may ask */
  path->number++;
  if (path->losing && path->number % 5 == 0) {
    return 0;
  }
  CHECK(path->count < MOST);
  memcpy(path->bytes[path->count], buf, (size_t)len);
  path->lengths[path->count++] = len;
  return 0;
}

static struct path there, back;
static struct path arriving;

static void arrive(struct path *path, ikcpcb *to) {
  int i;
  arriving = *path;
  path->count = 0;
  for (i = 0; i < arriving.count; i++) {
    CHECK(ikcp_getconv(arriving.bytes[i]) == 0x11223344);
    CHECK(ikcp_input(to, arriving.bytes[i], arriving.lengths[i]) == 0);
  }
}

static void fill(char *message, int len, int number) {
  int i;
  for (i = 0; i < len; i++) {
    message[i] = (char)(number * 31 + i * 7 + i / 256);
  }
}

/* Sends 300 messages of up to 4000 bytes; with `stream`, checks only the bytes. */
static void carry(int stream, int by_time) {
  static char message[4096], expected[4096], all[300 * 4096];
  int sent = 0, received = 0, given = 0, taken = 0, i;
  IUINT32 now = 4294960000u; /* it wraps on the way */
  ikcpcb *a = ikcp_create(0x11223344, &there), *b = ikcp_create(0x11223344, &back);
  CHECK(a != NULL && b != NULL);
  ikcp_setoutput(a, output);
  b->output = output;
  a->stream = stream;
  CHECK(ikcp_nodelay(a, 1, 10, 2, 1) == 0 && ikcp_nodelay(b, 1, 10, 2, 1) == 0);
  CHECK(ikcp_wndsize(a, 128, 128) == 0 && ikcp_wndsize(b, 128, 128) == 0);
  CHECK(a->snd_wnd == 128 && a->interval == 10 && a->nocwnd == 1 && a->rx_minrto == 30 && a->mss == 1376);
  CHECK(ww_kcp_by_time(a, by_time) == 0);
  there.count = back.count = there.number = back.number = 0;
  there.losing = back.losing = 1;
  for (i = 0; i < 60000 && (stream ? taken < given || sent < 300 : received < 300); i++, now++) {
    while (sent < 300 && ikcp_waitsnd(a) < 200) {
      int len = sent * 13 % 4000 + 1;
      fill(message, len, sent);
      CHECK(ikcp_send(a, message, len) == len);
      memcpy(all + given, message, (size_t)len);
      given += len;
      sent++;
    }
    ikcp_update(a, now);
    ikcp_update(b, now);
    CHECK((IINT32)(ikcp_check(a, now) - now) >= 0 && ikcp_check(a, now) - now <= 10);
    arrive(&there, b);
    arrive(&back, a);
    for (;;) {
      int size = ikcp_peeksize(b), got;
      if (size < 0) {
        break;
      }
      if (size > 1) {
        CHECK(ikcp_recv(b, message, size - 1) == -3);
      }
      CHECK(ikcp_recv(b, message, -4096) == size); /* it stays */
      got = ikcp_recv(b, message, 4096);
      CHECK(got == size);
      if (stream) {
        CHECK(memcmp(message, all + taken, (size_t)got) == 0);
        taken += got;
      } else {
        fill(expected, received * 13 % 4000 + 1, received);
        CHECK(got == received * 13 % 4000 + 1 && memcmp(message, expected, (size_t)got) == 0);
        received++;
      }
    }
  }
  CHECK(sent == 300 && (stream ? taken == given : received == 300));
  CHECK(ikcp_recv(b, message, 4096) == -1);
  CHECK(a->state == 0 && a->current == now - 1 && a->snd_nxt > 0);
  for (i = 0; i < 1000; i++, now++) { /* the last acknowledgements */
    ikcp_update(a, now);
    ikcp_update(b, now);
    arrive(&there, b);
    arrive(&back, a);
  }
  CHECK(ikcp_waitsnd(a) == 0 && a->nsnd_buf == 0 && a->nsnd_que == 0 && a->snd_una == b->rcv_nxt);
  CHECK(by_time || a->xmit > 0);
  ikcp_release(a);
  ikcp_release(b);
}

/* The program's own congestion control: a window of 3, and counters. */
static int acks, inits, releases, rtts, sends;
static int init(ikcpcb *kcp) {
  inits++;
  kcp->cwnd = 3;
  return 0;
}
static void release(ikcpcb *kcp) {
  (void)kcp;
  releases++;
}
static void on_ack(ikcpcb *kcp, IUINT32 segments, IUINT32 bytes, IUINT32 in_flight) {
  CHECK(in_flight <= 3 && segments <= 3 && bytes <= 3 * kcp->mss);
  CHECK(ikcp_waitsnd(kcp) == -1); /* not from within */
  acks++;
}
static void on_rtt(ikcpcb *kcp, IINT32 rtt) {
  (void)kcp;
  CHECK(rtt >= 0 && rtt <= 110);
  rtts++;
}
static void on_sent(ikcpcb *kcp, IUINT32 sn, IUINT32 ts, IUINT32 len, IUINT32 in_flight, IUINT32 xmit) {
  (void)sn;
  (void)ts;
  CHECK(len <= kcp->mss && in_flight <= 3 && xmit == 1);
  sends++;
}

static void control(void) {
  static char message[40 * 1376];
  struct IKCPOPS ops;
  IUINT32 now;
  ikcpcb *a = ikcp_create(0x11223344, &there), *b = ikcp_create(0x11223344, &back);
  memset(&ops, 0, sizeof ops);
  ops.init = init;
  ops.release = release;
  ops.on_ack = on_ack;
  ops.on_rtt = on_rtt;
  ops.on_pkt_sent = on_sent;
  ikcp_setoutput(a, output);
  ikcp_setoutput(b, output);
  ikcp_nodelay(a, 1, 10, 0, 1); /* the program's control applies all the same, as in ikcp.c */
  there.count = back.count = there.losing = back.losing = 0;
  CHECK(ikcp_setcc(a, &ops) == 0 && inits == 1 && a->ccops == &ops);
  CHECK(ikcp_send(a, message, sizeof message) == (int)sizeof message);
  for (now = 1; now < 2000 && ikcp_waitsnd(a) > 0; now++) {
    ikcp_update(a, now);
    ikcp_update(b, now);
    CHECK(a->nsnd_buf <= 3 && a->cwnd == 3);
    arrive(&there, b);
    arrive(&back, a);
  }
  CHECK(ikcp_waitsnd(a) == 0 && acks > 10 && rtts > 0 && sends == 40);
  CHECK(ikcp_setcc(a, NULL) == 0 && releases == 1 && a->ccops == NULL);
  CHECK(ikcp_setcc(a, &ops) == 0 && inits == 2);
  ikcp_release(a);
  CHECK(releases == 2);
  ikcp_release(b);
}

/* A congestion control that calls back while it starts, sets a knob in a callback, and is released twice. */
static int begin(ikcpcb *kcp) {
  CHECK(ikcp_waitsnd(kcp) == 0); /* not within a call yet */
  return 0;
}
static void on_tick(ikcpcb *kcp) {
  kcp->snd_wnd = 2;
}
static void twice(ikcpcb *kcp) {
  releases++;
  ikcp_release(kcp);
}

static void callbacks(void) {
  static char message[10 * 1376];
  struct IKCPOPS ops;
  ikcpcb *a = ikcp_create(0x11223344, &there);
  memset(&ops, 0, sizeof ops);
  ops.init = begin;
  ops.release = twice;
  ops.on_tick = on_tick;
  releases = 0;
  there.count = there.losing = 0;
  ikcp_setoutput(a, output);
  CHECK(ikcp_setcc(a, &ops) == 0);
  a->cwnd = 100;
  ikcp_update(a, 10);
  CHECK(a->snd_wnd == 2);
  CHECK(ikcp_send(a, message, sizeof message) == (int)sizeof message);
  ikcp_update(a, 200);
  CHECK(a->nsnd_buf == 2); /* the knob is taken with the call that follows */
  ikcp_release(a);
  CHECK(releases == 1);
}

/* Programs that release the block in a callback, and free what the callbacks use: nothing may be called after that. */
static int where, calls_after;
static void let_go(int here, ikcpcb *kcp) {
  calls_after += kcp->user == NULL;
  if (where == here) {
    kcp->user = NULL;
    ikcp_release(kcp);
    CHECK(ikcp_send(kcp, "late", 4) == -1 && ikcp_waitsnd(kcp) == -1);
    ikcp_release(kcp);
  }
}
static int in_output(const char *buf, int len, ikcpcb *kcp, void *user) {
  (void)buf;
  (void)len;
  (void)user;
  let_go(0, kcp);
  return 0;
}
static void in_log(const char *text, ikcpcb *kcp, void *user) {
  (void)text;
  (void)user;
  let_go(1, kcp);
}
static int in_init(ikcpcb *kcp) {
  let_go(2, kcp);
  return 0;
}
static void in_release(ikcpcb *kcp) {
  releases++;
  if (where == 3) {
    let_go(3, kcp);
  }
}
static void in_tick(ikcpcb *kcp) {
  let_go(4, kcp);
}
static void in_sent(ikcpcb *kcp, IUINT32 sn, IUINT32 ts, IUINT32 len, IUINT32 in_flight, IUINT32 xmit) {
  (void)sn;
  (void)ts;
  (void)len;
  (void)in_flight;
  (void)xmit;
  let_go(5, kcp);
}

static void released(void) {
  static char message[10 * 1376];
  struct IKCPOPS ops;
  memset(&ops, 0, sizeof ops);
  ops.init = in_init;
  ops.release = in_release;
  ops.on_tick = in_tick;
  ops.on_pkt_sent = in_sent;
  for (where = 0; where <= 5; where++) {
    ikcpcb *a = ikcp_create(0x11223344, &there);
    releases = calls_after = 0;
    ikcp_setoutput(a, in_output);
    ikcp_nodelay(a, 1, 10, 0, 1);
    CHECK(ikcp_setcc(a, &ops) == (where == 2 ? -1 : 0));
    if (where != 2) {
      a->cwnd = 100;
      a->writelog = in_log;
      a->logmask = IKCP_LOG_OUTPUT;
      CHECK(ikcp_send(a, message, sizeof message) == (int)sizeof message);
      if (where == 3) {
        CHECK(ikcp_setcc(a, NULL) == -1);
      } else {
        ikcp_update(a, 10); /* frees it when it returns */
      }
    }
    CHECK(releases == 1 && calls_after == 0);
  }
}

/* The rest of ikcp.h. */
struct entry {
  int number;
  iqueue_head node;
};

static void header(void) {
  static const int masks[] = {IKCP_LOG_OUTPUT,  IKCP_LOG_INPUT,    IKCP_LOG_SEND,     IKCP_LOG_RECV,
                              IKCP_LOG_IN_DATA, IKCP_LOG_IN_ACK,   IKCP_LOG_IN_PROBE, IKCP_LOG_IN_WINS,
                              IKCP_LOG_OUT_DATA, IKCP_LOG_OUT_ACK, IKCP_LOG_OUT_PROBE, IKCP_LOG_OUT_WINS};
  struct entry entries[4], *entry;
  iqueue_head *at;
  int i, sum = 0;
  IQUEUE_HEAD(first);
  struct IQUEUEHEAD second;
  for (i = 0; i < 12; i++) {
    CHECK(masks[i] == 1 << i);
  }
  CHECK(sizeof(ISTDUINT32) == 4 && sizeof(IINT8) == 1 && sizeof(IUINT16) == 2 && sizeof(IINT64) == 8);
  iqueue_init(&second);
  for (i = 0; i < 4; i++) {
    entries[i].number = i;
    if (i % 2) {
      iqueue_add_tail(&entries[i].node, &first);
    } else {
      iqueue_add(&entries[i].node, &second);
    }
  }
  iqueue_splice_init(&second, &first); /* 2 0 1 3 */
  CHECK(iqueue_is_empty(&second));
  iqueue_foreach(entry, &first, struct entry, node) {
    sum = sum * 10 + entry->number;
  }
  CHECK(sum == 2013);
  iqueue_del(&entries[0].node);
  iqueue_del_init(&entries[3].node);
  CHECK(entries[0].node.next == NULL && iqueue_is_empty(&entries[3].node));
  sum = 0;
  iqueue_foreach_entry(at, &first) {
    sum = sum * 10 + iqueue_entry(at, struct entry, node)->number;
  }
  CHECK(sum == 21 && first.next->prev == &first && first.prev == &entries[1].node);
}

static char line[128];
static void write_log(const char *text, ikcpcb *kcp, void *user) {
  (void)kcp;
  (void)user;
  strncpy(line, text, sizeof line - 1);
}

/* Mistakes return an error and change nothing. */
static void misuse(void) {
  static char message[200 * 1376];
  char datagram[24] = {0x44, 0x33, 0x22, 0x11, 84, 0, 1};
  ikcpcb *a = ikcp_create(0x11223344, NULL);
  CHECK(ikcp_recv(NULL, message, 10) < 0 && ikcp_send(NULL, message, 10) < 0 && ikcp_input(NULL, message, 24) < 0);
  CHECK(ikcp_peeksize(NULL) < 0 && ikcp_setmtu(NULL, 1400) < 0 && ikcp_wndsize(NULL, 1, 1) < 0);
  CHECK(ikcp_waitsnd(NULL) < 0 && ikcp_nodelay(NULL, 1, 1, 1, 1) < 0 && ikcp_setcc(NULL, NULL) < 0);
  CHECK(ikcp_getconv(NULL) == 0 && ikcp_check(NULL, 7) == 7);
  ikcp_update(NULL, 1);
  ikcp_flush(NULL);
  ikcp_release(NULL);
  ikcp_setoutput(NULL, NULL);
  ikcp_allocator(NULL, NULL);
  CHECK(ikcp_send(a, message, -1) < 0 && ikcp_input(a, NULL, 24) < 0);
  CHECK(ikcp_input(a, datagram, -24) < 0);
  CHECK(ikcp_send(a, message, sizeof message) == -2 && ikcp_waitsnd(a) == 0);
  CHECK(ikcp_setmtu(a, 49) == -1 && ikcp_setmtu(a, 1 << 30) == -1 && a->mtu == 1400);
  CHECK(ikcp_send(a, message, 1376) == 1376 && ikcp_setmtu(a, 100) <= 0);
  CHECK(ikcp_input(a, datagram, 23) == -1 && ikcp_input(a, datagram, 24) == 0);
  datagram[4] = 99;
  CHECK(ikcp_input(a, datagram, 24) == -3);
  datagram[4] = 81;
  datagram[20] = 1;
  CHECK(ikcp_input(a, datagram, 24) == -2);
  datagram[0] = 0;
  CHECK(ikcp_input(a, datagram, 24) == -1);
  a->logmask = -1;
  a->writelog = write_log;
  ikcp_update(a, 10); /* without an output */
  ikcp_update(a, 200);
  CHECK(strncmp(line, "[RO] ", 5) == 0);
  ikcp_log(a, IKCP_LOG_INPUT, "%d and %s", 7, "eight");
  CHECK(strcmp(line, "7 and eight") == 0);
  a->interval = 1 << 30;
  a->dead_link = 0; /* what ikcp.c takes and we do not, is as near as it can be, and says so */
  a->stream = 77;
  a->snd_wnd = 0;
  a->rcv_wnd = 65536;
  a->mtu = 70000;
  ikcp_update(a, 300);
  CHECK(a->interval == 1 << 30 && a->snd_wnd == 1 && a->rcv_wnd == 65535 && a->mtu == 100 && a->mss == 76);
  a->interval = 0;
  a->rcv_wnd = 10;
  a->snd_wnd = 1u << 31;
  a->mss = 1000;
  CHECK(ikcp_send(a, message, 10) == 10);
  CHECK(a->interval == 0 && a->rcv_wnd == 128 && a->snd_wnd == 1u << 31 && a->mtu == 1024 && a->mss == 1000);
  CHECK(ikcp_wndsize(a, 0, 65536) == 0 && a->rcv_wnd == 65535);
  a->rx_srtt = a->rx_rttval = a->rx_rto = -1;
  a->cwnd = a->ssthresh = a->incr = a->rmt_wnd = a->xmit = (IUINT32)-1;
  ikcp_update(a, 400);
  CHECK(a->rx_srtt == 0 && a->rmt_wnd == 65535 && ikcp_waitsnd(a) > 0);
  ikcp_release(a);
}

int main(void) {
  layout();
  carry(0, 0);
  carry(1, 0);
  carry(0, 1);
  carry(1, 1);
  control();
  callbacks();
  released();
  header();
  misuse();
  return done();
}
