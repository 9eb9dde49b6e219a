// How much a test tries where more of the same finds less and less: drawn requests,
// ways of spoiling a plan, sizes. The release build tries `all`, which is where results
// are judged. Builds with sanitizers, five to ten times as slow, try `few`: they look
// for accesses outside of memory and for races, and these are of the code, which a part
// of the draws runs through already.
#ifndef TESTS_DRAWS_H
#define TESTS_DRAWS_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TEST_SANITIZED = 1 };
#define TEST_DRAWS(all, few) (few)
#else
enum { TEST_SANITIZED = 0 };
#define TEST_DRAWS(all, few) (all)
#endif

#endif
