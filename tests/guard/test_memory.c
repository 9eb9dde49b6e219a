// The host cannot touch the guard's memory by an address of its arena; what reaches it
// by the backend can; and it keeps its contents when it grows.
#include "guard/guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 100000, MORE = 3000000 };

static tr_arena *make_arena(void) {
    tr_arena *arena = NULL;
    tr_error err = {0};
    const tr_backend *backend = tr__backend(TR_BACKEND_CPU);
    assert_true(backend->discrete);
    assert_int_equal(tr__arena_create_from(tr__backend_memory(backend), "device", BYTES,
                                           &arena, &err),
                     TR_OK);
    return arena;
}

// What a child that reads there, or writes, ends by.
static int ends_by(volatile char *address, bool writes) {
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGSEGV, SIG_DFL);
        if (writes) {
            *address = 1;
        }
        _exit(*address == 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void the_host_cannot_touch_it(void **state) {
    tr_arena *arena = make_arena();
    char *address = tr__arena_view(arena, 0, BYTES);
    (void)state;
    assert_int_equal(ends_by(address, false), SIGSEGV);
    assert_int_equal(ends_by(address + BYTES - 1, true), SIGSEGV);
    assert_int_equal(ends_by(test_guard_reach(address), true), 0);
    tr__arena_destroy(arena);
}

static void it_keeps_its_contents(void **state) {
    tr_arena *arena = make_arena();
    tr_error err = {0};
    char *inside = tr__arena_view(arena, 64, 1000), *real = test_guard_reach(inside);
    (void)state;
    memset(real, 7, 1000);
    assert_int_equal(tr__arena_grow(arena, MORE, &err), TR_OK);
    inside = tr__arena_view(arena, 64, 1000);
    real = test_guard_reach(inside);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(real[i], 7);
    }
    assert_int_equal(real[1000], 0);
    assert_ptr_not_equal(real, inside);
    assert_ptr_equal(test_guard_reach(&err), &err); // the host's own
    tr__arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_cannot_touch_it),
        cmocka_unit_test(it_keeps_its_contents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
