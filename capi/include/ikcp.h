/* What a program written for ikcp.h 2.1.1 includes: the same names, types and layout. */
#ifndef WHITEWATER_IKCP_H
#define WHITEWATER_IKCP_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include "whitewater.h"

typedef int32_t IINT32;
typedef uint32_t IUINT32;
typedef int16_t IINT16;
typedef uint16_t IUINT16;
typedef int8_t IINT8;
typedef uint8_t IUINT8;
typedef int64_t IINT64;
typedef uint64_t IUINT64;

/* Bits of kcp->logmask: those that are heeded here. */
#define IKCP_LOG_OUTPUT 1
#define IKCP_LOG_INPUT 2

/* A line for kcp->writelog, of at most 1023 bytes. */
static inline void ikcp_log(ikcpcb *kcp, int mask, const char *fmt, ...) {
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
