/* What programs do with ikcp.c beyond its documented functions. All of this holds with ikcp.c 2.1.1 as well. Also compiled as C++. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ikcp.h"
#include "check.h"

#define MOST 256

/* Datagrams in flight: each arrives `delay` ms after it was sent. */
struct path {
  char bytes[MOST][1500];
  int lengths[MOST];
  IUINT32 at[MOST];
  int first, next, count, largest;
};

static IUINT32 clock_ms;

static int output(const char *buf, int len, ikcpcb *kcp, void *user) {
  struct path *path = (struct path *)user;
  (void)kcp;
  memcpy(path->bytes[path->next % MOST], buf, (size_t)len);
  path->lengths[path->next % MOST] = len;
  path->at[path->next++ % MOST] = clock_ms;
  path->count++;
  path->largest = len > path->largest ? len : path->largest;
  return 0;
}

static void arrive(struct path *path, ikcpcb *to, IUINT32 delay) {
  while (path->first < path->next && clock_ms - path->at[path->first % MOST] >= delay) {
    int at = path->first++ % MOST;
    if (to != NULL) {
      CHECK(ikcp_input(to, path->bytes[at], path->lengths[at]) == 0);
    }
  }
}

static struct path there, back;
static char message[128 * 1376];

static ikcpcb *block(struct path *path) {
  ikcpcb *kcp = ikcp_create(7, path);
  path->first = path->next = path->count = path->largest = 0;
  ikcp_setoutput(kcp, output);
  return kcp;
}

/* A loop that asks every millisecond whether to update. A message every 33 ms, 10 ms each way. */
static void asked_each_millisecond(void) {
  int sent = 0, received = 0;
  ikcpcb *a = block(&there), *b = block(&back);
  ikcp_nodelay(a, 1, 10, 2, 1);
  ikcp_nodelay(b, 1, 10, 2, 1);
  for (clock_ms = 1; clock_ms < 17000; clock_ms++) {
    if (clock_ms % 33 == 0 && sent < 500) {
      CHECK(ikcp_send(a, message, 100) == 100);
      sent++;
    }
    if (ikcp_check(a, clock_ms) <= clock_ms) ikcp_update(a, clock_ms);
    if (ikcp_check(b, clock_ms) <= clock_ms) ikcp_update(b, clock_ms);
    CHECK(clock_ms - a->current <= 10 && clock_ms - b->current <= 10); /* the clock is never older than a beat */
    arrive(&there, b, 10);
    arrive(&back, a, 10);
    while (ikcp_recv(b, message, sizeof message) >= 0) received++;
  }
  CHECK(sent == 500 && received == 500);
  CHECK(a->xmit == 0 && there.count == 500); /* nothing is sent again */
  CHECK(a->rx_srtt >= 20 && a->rx_srtt <= 40);
  ikcp_release(a);
  ikcp_release(b);
}

static void never_later_than_a_beat(void) {
  IUINT32 start;
  for (start = 0; start < 3; start++) {
    IUINT32 at = start == 0 ? 5 : start == 1 ? 0x7ffffff0u : 0xfffffff0u, ms;
    ikcpcb *a = block(&there);
    CHECK(ikcp_check(a, at) == at);
    ikcp_update(a, at);
    for (ms = 0; ms < 100; ms++) CHECK(ikcp_check(a, at + ms) == at + 100 && a->ts_flush == at + 100);
    CHECK(ikcp_check(a, at + 100) == at + 100 && ikcp_check(a, at + 130) == at + 130);
    ikcp_update(a, at + 130);
    CHECK(ikcp_check(a, at + 130) == at + 200); /* the beat stays */
    ikcp_update(a, at + 450);
    CHECK(ikcp_check(a, at + 450) == at + 550); /* or is a new one */
    CHECK(ikcp_check(a, at + 20000) == at + 20000 && ikcp_check(a, at - 20000) == at - 20000);
    CHECK(ikcp_check(a, at + 100) == at + 200); /* the clock was set back */
    CHECK(there.count == 0);
    ikcp_release(a);
  }
}

static void queues_are_lists(void) {
  ikcpcb *a = block(&there);
  iqueue_head *queues[4], *at;
  int i, seen = 0;
  queues[0] = &a->snd_queue;
  queues[1] = &a->rcv_queue;
  queues[2] = &a->snd_buf;
  queues[3] = &a->rcv_buf;
  for (i = 0; i < 4; i++) {
    CHECK(iqueue_is_empty(queues[i]) && queues[i]->next == queues[i] && queues[i]->prev == queues[i]);
    iqueue_foreach_entry(at, queues[i]) seen++;
  }
  CHECK(seen == 0);
  ikcp_release(a);
}

static void nothing_is_a_message(void) {
  ikcpcb *a = block(&there), *b = block(&back);
  ikcp_nodelay(a, 1, 10, 2, 1);
  CHECK(ikcp_send(a, NULL, 100) == 100 && ikcp_send(a, NULL, 0) == 0 && ikcp_send(a, NULL, 3000) == 3000);
  CHECK(ikcp_send(a, NULL, 1 << 30) == -2 && ikcp_send(a, NULL, -1) == -1 && ikcp_waitsnd(a) == 5);
  clock_ms = 1;
  ikcp_update(a, clock_ms);
  arrive(&there, b, 0);
  CHECK(ikcp_recv(b, message, sizeof message) == 100 && ikcp_recv(b, message, sizeof message) == 0);
  CHECK(ikcp_recv(b, message, sizeof message) == 3000);
  a->stream = 1;
  CHECK(ikcp_send(a, NULL, 100) == 100 && ikcp_send(a, NULL, 1500) == 1500 && ikcp_waitsnd(a) == 7);
  ikcp_release(a);
  ikcp_release(b);
}

static void knobs_are_heeded_as_they_are(void) {
  ikcpcb *a = block(&there);
  int i;
  ikcp_nodelay(a, 1, 1, 2, 1);
  CHECK(a->interval == 10); /* the function bounds it, */
  a->interval = 1;          /* the field does not */
  for (clock_ms = 1; clock_ms <= 10; clock_ms++) {
    CHECK(ikcp_send(a, message, 10) == 10);
    ikcp_update(a, clock_ms);
    CHECK(there.count == (int)clock_ms && a->interval == 1 && ikcp_check(a, clock_ms) == clock_ms + 1);
  }
  a->interval = 0; /* each call flushes */
  for (i = 0; i < 3; i++) {
    CHECK(ikcp_send(a, message, 10) == 10);
    ikcp_update(a, clock_ms);
    CHECK(there.count == 11 + i && ikcp_check(a, clock_ms) == clock_ms);
  }
  CHECK(ikcp_setmtu(a, 1400) == 0 && a->interval == 0);
  CHECK(ikcp_wndsize(a, 65536, 0) == 0 && a->snd_wnd == 65536 && a->rcv_wnd == 128);
  CHECK(ikcp_wndsize(a, 0, 10) == 0 && a->snd_wnd == 65536 && a->rcv_wnd == 128);
  for (i = 0; i < 200; i++) CHECK(ikcp_send(a, message, 1376) == 1376);
  ikcp_update(a, clock_ms);
  CHECK(a->snd_wnd == 65536 && a->nsnd_buf == 128); /* as many as the other takes */
  ikcp_release(a);
  a = block(&there);
  a->interval = 7000;
  ikcp_update(a, 10);
  CHECK(a->ts_flush == 7010 && ikcp_check(a, 11) == 7010 && a->interval == 7000);
  ikcp_release(a);
}

static void fields_that_tell_can_be_written(void) {
  ikcpcb *a = block(&there);
  ikcp_nodelay(a, 0, 10, 0, 1);
  ikcp_wndsize(a, 1000, 1000);
  a->mtu = 1000;
  a->mss = 976;
  CHECK(ikcp_send(a, message, 10 * 976) == 10 * 976 && a->nsnd_que == 10);
  ikcp_update(a, 1);
  CHECK(there.largest == 1000 && a->mtu == 1000 && a->mss == 976);
  CHECK(ikcp_send(a, message, 120 * 976) == 120 * 976 && ikcp_send(a, message, 100 * 976) == 100 * 976);
  ikcp_update(a, 11);
  CHECK(a->nsnd_buf == 128);
  a->rmt_wnd = 200;
  ikcp_update(a, 21);
  CHECK(a->nsnd_buf == 200 && a->rmt_wnd == 200);
  CHECK(a->rx_rto == 200); /* the first went at 1 ms, with an eighth on top */
  a->rmt_wnd = 201;
  a->rx_rto = 1000;
  ikcp_update(a, 31);
  CHECK(a->rx_rto == 1000 && a->nsnd_buf == 201 && a->xmit == 0);
  ikcp_update(a, 241);
  CHECK(a->xmit == 128); /* the last but 73 are later */
  ikcp_update(a, 261);
  CHECK(a->xmit == 200);
  a->xmit = 7;
  ikcp_update(a, 1151); /* 31 + 1000 + 125 is not yet */
  CHECK(a->xmit == 7);
  ikcp_update(a, 1161);
  CHECK(a->xmit == 8);
  ikcp_release(a);
}

static void the_link_can_be_called_alive(void) {
  ikcpcb *a = block(&there);
  ikcp_nodelay(a, 2, 10, 0, 1);
  a->dead_link = 3;
  CHECK(ikcp_send(a, message, 10) == 10);
  for (clock_ms = 0; clock_ms < 5000 && a->state == 0; clock_ms++) ikcp_update(a, clock_ms);
  CHECK(a->state == (IUINT32)-1 && there.count == 3);
  a->state = 0;
  ikcp_update(a, clock_ms++);
  CHECK(a->state == 0);
  for (; clock_ms < 10000 && a->state == 0; clock_ms++) ikcp_update(a, clock_ms);
  CHECK(a->state == (IUINT32)-1 && there.count == 4);
  a->state = 5;
  ikcp_update(a, clock_ms);
  CHECK(a->state == 5);
  ikcp_release(a);
}

static void the_window_can_be_written(void) {
  ikcpcb *a = block(&there), *b = block(&back);
  ikcp_nodelay(a, 0, 10, 0, 0);
  clock_ms = 1;
  a->cwnd = 5;
  a->incr = 5 * a->mss;
  a->ssthresh = 100;
  CHECK(ikcp_send(a, message, 20 * 1376) == 20 * 1376);
  ikcp_update(a, clock_ms);
  CHECK(a->nsnd_buf == 5 && a->cwnd == 5 && a->ssthresh == 100);
  arrive(&there, b, 0);
  ikcp_update(b, clock_ms);
  arrive(&back, a, 0);
  CHECK(a->cwnd == 6 && a->incr == 6u * 1376 && a->ssthresh == 100 && a->nsnd_buf == 0); /* not from 2 on slower */
  ikcp_release(a);
  ikcp_release(b);
}

static void the_conversation_can_be_given_later(void) {
  ikcpcb *a = block(&there), *b = block(&back);
  a->conv = 9;
  b->conv = 9;
  CHECK(ikcp_send(a, message, 10) == 10);
  ikcp_nodelay(a, 1, 10, 0, 1);
  ikcp_update(a, 1);
  CHECK(ikcp_getconv(there.bytes[0]) == 9);
  clock_ms = 1;
  arrive(&there, b, 0);
  CHECK(ikcp_recv(b, message, sizeof message) == 10);
  ikcp_release(a);
  ikcp_release(b);
}

/* Each callback of a congestion control writes its name and its arguments. */
static char told[4096], *end = told;

static void write_down(const char *name, ikcpcb *kcp, long one, long two, long three) {
  if (end < told + sizeof told - 100) {
    end += sprintf(end, "%s %ld %ld %ld", name, one, two, three);
    end += sprintf(end, " (%d %d %d %d);", (int)(kcp->current % 1000), (int)kcp->cwnd, (int)kcp->snd_una, (int)kcp->nsnd_buf);
  }
}
static int init(ikcpcb *kcp) {
  write_down("init", kcp, kcp->ccops != NULL, kcp->congest != NULL, ikcp_waitsnd(kcp));
  kcp->congest = kcp;
  return 0;
}
static int no(ikcpcb *kcp) {
  write_down("no", kcp, kcp->ccops != NULL, kcp->congest != NULL, 0);
  return -1;
}
static void release(ikcpcb *kcp) { write_down("release", kcp, kcp->ccops != NULL, kcp->congest != NULL, 0); }
static void on_ack(ikcpcb *kcp, IUINT32 segments, IUINT32 bytes, IUINT32 in_flight) {
  write_down("ack", kcp, (long)segments, (long)bytes, (long)in_flight);
  kcp->cwnd++;
}
static void on_fast(ikcpcb *kcp, IUINT32 fast, IUINT32 in_flight, IUINT32 prior_cwnd) {
  write_down("fast", kcp, (long)fast, (long)in_flight, (long)prior_cwnd);
}
static void on_timeout(ikcpcb *kcp, IUINT32 prior_cwnd) {
  write_down("timeout", kcp, (long)prior_cwnd, 0, 0);
  kcp->cwnd = 0;
}
static void on_tick(ikcpcb *kcp) { write_down("tick", kcp, 0, 0, 0); }
static void on_app_limited(ikcpcb *kcp, IUINT32 in_flight) { write_down("limited", kcp, (long)in_flight, 0, 0); }
static void on_rtt(ikcpcb *kcp, IINT32 rtt) {
  (void)kcp;
  end += sprintf(end, "rtt %d;", (int)rtt);
}
static void on_sent(ikcpcb *kcp, IUINT32 sn, IUINT32 ts, IUINT32 len, IUINT32 in_flight, IUINT32 xmit) {
  write_down("sent", kcp, (long)sn * 10 + (long)xmit, (long)(ts % 1000), (long)(len + in_flight * 10000));
}
static IUINT32 rate(ikcpcb *kcp) {
  write_down("rate", kcp, 0, 0, 0);
  return 0xffffffffu;
}

static void expect(int line, const char *expected) {
  if (strcmp(told, expected) != 0) fprintf(stderr, "line %d:\n%s\n%s\n", line, told, expected);
  CHECK(strcmp(told, expected) == 0);
  end = told;
  *end = 0;
}
#define EXPECT(text) expect(__LINE__, text)

static void callbacks_come_in_order(void) {
  struct IKCPOPS ops, none;
  ikcpcb *a = block(&there), *b = block(&back);
  memset(&ops, 0, sizeof ops);
  memset(&none, 0, sizeof none);
  none.init = no;
  ops.init = init;
  ops.release = release;
  ops.on_ack = on_ack;
  ops.on_fast_retransmit = on_fast;
  ops.on_timeout = on_timeout;
  ops.on_tick = on_tick;
  ops.on_app_limited = on_app_limited;
  ops.on_rtt = on_rtt;
  ops.on_pkt_sent = on_sent;
  ops.pacing_rate = rate;
  ikcp_nodelay(a, 1, 10, 1, 0);
  ikcp_update(b, 1);
  CHECK(ikcp_setcc(a, &ops) == 0);
  EXPECT("init 1 0 0 (0 0 0 0);");
  a->cwnd = 3;
  CHECK(ikcp_send(a, message, 5 * 100) == 500 && ikcp_check(a, 10) == 10);
  ikcp_send(a, message, 2 * 1376);
  ikcp_send(a, message, 2 * 1376);
  ikcp_update(a, 10);
  EXPECT("tick 0 0 0 (10 3 0 0);rate 0 0 0 (10 3 0 0);sent 1 10 30500 (10 3 0 3);sent 11 10 31376 (10 3 0 3);"
         "sent 21 10 31376 (10 3 0 3);");
  CHECK(ikcp_check(a, 12) == 20);
  clock_ms = 10;
  there.first++; /* the first datagram is lost */
  arrive(&there, b, 0);
  ikcp_update(b, 101);
  ikcp_update(a, 15);
  arrive(&back, a, 0);
  EXPECT("rtt 5;rtt 5;");
  ikcp_update(a, 20);
  EXPECT("tick 0 0 0 (20 3 0 1);rate 0 0 0 (20 3 0 1);sent 2 20 10500 (20 3 0 1);fast 1 1 3 (20 3 0 1);");
  arrive(&there, b, 0);
  ikcp_update(b, 201);
  arrive(&back, a, 0);
  EXPECT("rtt 0;ack 3 500 1 (20 3 3 0);");
  ikcp_update(a, 30);
  EXPECT("tick 0 0 0 (30 4 3 0);rate 0 0 0 (30 4 3 0);limited 2 0 0 (30 4 3 2);sent 31 30 21376 (30 4 3 2);"
         "sent 41 30 21376 (30 4 3 2);");
  CHECK(ikcp_send(a, message, 10) == 10);
  ikcp_update(a, 40);
  ikcp_update(a, 500);
  CHECK(a->cwnd == 1);
  EXPECT("tick 0 0 0 (40 4 3 2);rate 0 0 0 (40 4 3 2);limited 3 0 0 (40 4 3 3);sent 51 40 30010 (40 4 3 3);"
         "tick 0 0 0 (500 4 3 3);rate 0 0 0 (500 4 3 3);limited 3 0 0 (500 4 3 3);"
         "sent 32 500 31376 (500 4 3 3);sent 42 500 31376 (500 4 3 3);sent 52 500 30010 (500 4 3 3);"
         "timeout 4 0 0 (500 4 3 3);");
  a->cwnd = 9;
  CHECK(ikcp_setcc(a, &ops) == 0 && a->ccops == &ops && a->congest == a);
  EXPECT("release 1 1 0 (500 9 3 3);init 1 0 3 (500 9 3 3);");
  CHECK(ikcp_setcc(a, &none) == -1 && a->ccops == NULL && a->congest == NULL);
  CHECK(a->cwnd == 9 && a->incr == 9 * a->mss); /* what there was goes on */
  EXPECT("release 1 1 0 (500 9 3 3);no 1 0 0 (500 9 3 3);");
  CHECK(ikcp_send(a, message, 20 * 1376) == 20 * 1376);
  ikcp_update(a, 510);
  CHECK(a->nsnd_buf == 9);
  a->nocwnd = 1; /* which applies to ikcp.c's own control again */
  ikcp_update(a, 520);
  CHECK(a->nsnd_buf == 23);
  CHECK(ikcp_setcc(a, NULL) == 0);
  EXPECT("");
  CHECK(ikcp_setcc(a, &ops) == 0);
  end = told;
  ikcp_release(a);
  EXPECT("release 1 1 0 (520 9 3 23);");
  ikcp_release(b);
}

static char line[64];
static void write_log(const char *text, ikcpcb *kcp, void *user) {
  (void)kcp;
  (void)user;
  strncpy(line, text, sizeof line - 1);
}

static void lines_are_written(void) {
  ikcpcb *a = block(&there);
  ikcp_log(a, IKCP_LOG_SEND, "%d", 1);
  a->writelog = write_log;
  ikcp_log(a, IKCP_LOG_SEND, "%d", 2);
  CHECK(line[0] == 0);
  a->logmask = IKCP_LOG_SEND;
  ikcp_log(a, IKCP_LOG_SEND, "%d and %s", 7, "eight");
  CHECK(strcmp(line, "7 and eight") == 0);
  ikcp_release(a);
}

int main(void) {
  asked_each_millisecond();
  never_later_than_a_beat();
  queues_are_lists();
  nothing_is_a_message();
  knobs_are_heeded_as_they_are();
  fields_that_tell_can_be_written();
  the_link_can_be_called_alive();
  the_window_can_be_written();
  the_conversation_can_be_given_later();
  callbacks_come_in_order();
  lines_are_written();
  return done();
}
