/* What a program written for ikcp.h 2.1.1 includes: the same names, types and layout. C89 or C++98, and later. */
#ifndef WHITEWATER_IKCP_H
#define WHITEWATER_IKCP_H

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include "whitewater.h"

/* The integers of ikcp.h; a program that has some of them already says so by the same macros as there. */
#ifndef __INTEGER_32_BITS__
#define __INTEGER_32_BITS__
typedef uint32_t ISTDUINT32;
typedef int32_t ISTDINT32;
#endif
#ifndef __IINT8_DEFINED
#define __IINT8_DEFINED
typedef char IINT8;
#endif
#ifndef __IUINT8_DEFINED
#define __IUINT8_DEFINED
typedef unsigned char IUINT8;
#endif
#ifndef __IINT16_DEFINED
#define __IINT16_DEFINED
typedef short IINT16;
#endif
#ifndef __IUINT16_DEFINED
#define __IUINT16_DEFINED
typedef unsigned short IUINT16;
#endif
#ifndef __IINT32_DEFINED
#define __IINT32_DEFINED
typedef int32_t IINT32;
#endif
#ifndef __IUINT32_DEFINED
#define __IUINT32_DEFINED
typedef uint32_t IUINT32;
#endif
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wlong-long" /* which C89 and C++98 have not */
#endif
#ifndef __IINT64_DEFINED
#define __IINT64_DEFINED
typedef long long IINT64;
#endif
#ifndef __IUINT64_DEFINED
#define __IUINT64_DEFINED
typedef unsigned long long IUINT64;
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

#ifndef INLINE
#if defined(__GNUC__) || defined(_MSC_VER)
#define INLINE __inline
#else
#define INLINE inline
#endif
#endif

/* Lists for programs that have their own: those of a control block are empty, and there is no IKCPSEG. */
#ifndef __IQUEUE_DEF__
#define __IQUEUE_DEF__
typedef struct IQUEUEHEAD iqueue_head;

#define IOFFSETOF(type, member) offsetof(type, member)
#define ICONTAINEROF(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#define IQUEUE_HEAD_INIT(name) {&(name), &(name)}
#define IQUEUE_HEAD(name) struct IQUEUEHEAD name = IQUEUE_HEAD_INIT(name)
#define IQUEUE_ENTRY(ptr, type, member) ICONTAINEROF(ptr, type, member)
#define IQUEUE_INIT(ptr) ((void)((ptr)->prev = (ptr)->next = (ptr)))
#define IQUEUE_IS_EMPTY(ptr) ((ptr)->next == (ptr))
#define IQUEUE_ADD(node, head) ww_iqueue_put(node, head, (head)->next)
#define IQUEUE_ADD_TAIL(node, head) ww_iqueue_put(node, (head)->prev, head)
#define IQUEUE_DEL_BETWEEN(before, after) ((void)((after)->prev = (before), (before)->next = (after)))
#define IQUEUE_DEL(node) ww_iqueue_del(node)
#define IQUEUE_DEL_INIT(node) (ww_iqueue_del(node), IQUEUE_INIT(node))
#define IQUEUE_FOREACH(entry, head, type, member)                                            \
  for ((entry) = IQUEUE_ENTRY((head)->next, type, member); &(entry)->member != (head);        \
       (entry) = IQUEUE_ENTRY((entry)->member.next, type, member))

#define iqueue_init IQUEUE_INIT
#define iqueue_entry IQUEUE_ENTRY
#define iqueue_add IQUEUE_ADD
#define iqueue_add_tail IQUEUE_ADD_TAIL
#define iqueue_del IQUEUE_DEL
#define iqueue_del_init IQUEUE_DEL_INIT
#define iqueue_is_empty IQUEUE_IS_EMPTY
#define iqueue_foreach IQUEUE_FOREACH
#define iqueue_foreach_entry(at, head) for ((at) = (head)->next; (at) != (head); (at) = (at)->next)
#define iqueue_splice(list, head) ww_iqueue_splice(list, head)
#define iqueue_splice_init(list, head) (ww_iqueue_splice(list, head), IQUEUE_INIT(list))

static INLINE void ww_iqueue_put(iqueue_head *node, iqueue_head *before, iqueue_head *after) {
  node->prev = before;
  node->next = after;
  before->next = node;
  after->prev = node;
}

static INLINE void ww_iqueue_del(iqueue_head *node) {
  IQUEUE_DEL_BETWEEN(node->prev, node->next);
  node->next = node->prev = NULL;
}

/* All of `list` comes before what `head` has. */
static INLINE void ww_iqueue_splice(iqueue_head *list, iqueue_head *head) {
  if (!IQUEUE_IS_EMPTY(list)) {
    IQUEUE_DEL_BETWEEN(list->prev, head->next);
    IQUEUE_DEL_BETWEEN(head, list->next);
  }
}
#endif

/* Bits of kcp->logmask: the first two are heeded here, all are by ikcp_log. */
#define IKCP_LOG_OUTPUT 1
#define IKCP_LOG_INPUT 2
#define IKCP_LOG_SEND 4
#define IKCP_LOG_RECV 8
#define IKCP_LOG_IN_DATA 16
#define IKCP_LOG_IN_ACK 32
#define IKCP_LOG_IN_PROBE 64
#define IKCP_LOG_IN_WINS 128
#define IKCP_LOG_OUT_DATA 256
#define IKCP_LOG_OUT_ACK 512
#define IKCP_LOG_OUT_PROBE 1024
#define IKCP_LOG_OUT_WINS 2048

#if defined(__STRICT_ANSI__) && !defined(__cplusplus) && !defined(__STDC_VERSION__)
extern int vsnprintf(char *, size_t, const char *, va_list); /* stdio.h hides it from C89 */
#endif

/* A line for kcp->writelog, of at most 1023 bytes. Here and not in the library: Rust cannot define a function with `...`. */
static INLINE void ikcp_log(ikcpcb *kcp, int mask, const char *fmt, ...) {
  char line[1024];
  va_list args;
  if (kcp == NULL || (kcp->logmask & mask) == 0 || kcp->writelog == NULL) {
    return;
  }
  va_start(args, fmt);
  vsnprintf(line, sizeof line, fmt, args);
  va_end(args);
  kcp->writelog(line, kcp, kcp->user);
}

#endif
