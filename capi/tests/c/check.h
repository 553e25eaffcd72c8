/* CHECK: says which line does not hold, and goes on. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int checks, failures;

#define CHECK(condition) \
  do { \
    checks++; \
    if (!(condition) && failures++ < 20) { \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    } \
  } while (0)

static int done(void) {
  printf("%d checks, %d failures\n", checks, failures);
  return failures > 0;
}

#endif
