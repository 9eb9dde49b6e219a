// Every part and every item is run once, by a thread that is one of those asked for.
#include "base/parallel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST = 100 };

typedef struct counts {
    atomic_int times[MOST];
    atomic_bool out_of_range;
    int least, most; // of part counts, of thread numbers
} counts;

static void count_part(void *work, int part, int parts) {
    counts *c = work;
    c->times[part]++;
    if (parts < c->least || parts > c->most) {
        c->out_of_range = true;
    }
}

static void count_item(void *work, int64_t item, int thread) {
    counts *c = work;
    c->times[item]++;
    if (thread < c->least || thread > c->most) {
        c->out_of_range = true;
    }
}

static void check(const counts *c, int count) {
    for (int i = 0; i < MOST; i++) {
        assert_int_equal(c->times[i], i < count);
    }
    assert_false(c->out_of_range);
}

static void parts_are_run_once(void **state) {
    (void)state;
    for (int parts = 1; parts <= 5; parts++) {
        counts c = {.least = parts, .most = parts};
        tr__parallel_parts(parts, count_part, &c);
        check(&c, parts);
    }
}

static void items_are_run_once(void **state) {
    static const int counts_of[] = {0, 1, 2, 7, MOST};
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        for (int i = 0; i < 5; i++) {
            counts c = {.least = 0, .most = threads - 1};
            tr__parallel_items(threads, counts_of[i], count_item, &c);
            check(&c, counts_of[i]);
        }
    }
}

static void threads_are_what_was_set(void **state) {
    (void)state;
    int before = tr__parallel_threads();
    assert_true(before >= 1 && tr__parallel_processors() >= 1);
    tr__parallel_threads_set(3);
    assert_int_equal(tr__parallel_threads(), 3);
    tr__parallel_threads_set(before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_run_once),
        cmocka_unit_test(items_are_run_once),
        cmocka_unit_test(threads_are_what_was_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
