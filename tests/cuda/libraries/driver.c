// The table of what is asked of CUDA (backend/cuda/driver.c) on a stand-in for NVIDIA's
// driver that allows no more than that does.
#include "backend/cuda/driver.h"
#include "backend/cuda/backend.h"
#include "cuda/libraries/cuda.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define OK(call) assert_int_equal(call, 0)

static void assert_allowed(void) {
    if (cuda_look()->fault) {
        fail_msg("%s", cuda_look()->fault);
    }
}

static void the_device_is_described(void **state) {
    tr_device device;
    tr_error err = {0};
    const tr_backend *backend = tr__backend(TR_BACKEND_CUDA);
    (void)state;
    OK(backend->device(0, &device, &err));
    assert_string_equal(device.name, "a stand-in");
    assert_int_equal(device.memory, (int64_t)CUDA_MEMORY_MIB << 20);
    assert_int_equal(backend->here(0).workers, 132);
    assert_int_equal(backend->device(1, &device, &err), TR_USAGE);
    assert_allowed();
}

static tr_arena *take(const tr_memory_source *source, size_t bytes) {
    tr_arena *arena = NULL;
    tr_error err = {0};
    if (tr__arena_create_from(source, "tests", bytes, &arena, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return arena;
}

// Pages are taken, cleared and given back, and none is left.
static void arenas_are_of_pages(void **state) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    tr_error err = {0};
    char seen[8] = "nothing";
    (void)state;
    tr_arena *arena = take(&tr__cuda_memory, 100);
    assert_int_equal(cuda_look()->physical, CUDA_PAGE);
    OK(tr__arena_grow(arena, 3 * CUDA_PAGE + 1, &err));
    assert_int_equal(cuda_look()->physical, 4 * CUDA_PAGE);
    const char *end = tr__arena_view(arena, 4 * CUDA_PAGE - 8, 0);
    assert_null(end); // of the arena are the bytes that were asked for
    end = tr__arena_view(arena, 3 * CUDA_PAGE - 8, 8);
    OK(driver->copy(seen, end, sizeof seen, NULL));
    for (size_t i = 0; i < sizeof seen; i++) {
        assert_int_equal(seen[i], 0);
    }
    assert_int_equal(
        tr__arena_grow(arena, (CUDA_MEMORY_MIB + 1) * (size_t)1 << 20, &err),
        TR_MEMORY);
    tr__arena_destroy(arena);
    assert_int_equal(cuda_look()->physical, 0);
    assert_int_equal(cuda_look()->reserved, 0);
    assert_allowed();
}

static void arenas_of_the_host_are_registered(void **state) {
    tr_error err = {0};
    (void)state;
    tr_arena *arena = take(&tr__cuda_pinned_memory, 100);
    assert_int_equal(cuda_look()->registered, 1);
    OK(tr__arena_grow(arena, 3 * CUDA_PAGE + 1, &err));
    assert_int_equal(cuda_look()->registered, 1);
    tr__arena_destroy(arena);
    assert_int_equal(cuda_look()->registered, 0);
    assert_allowed();
}

static void kernels_get_their_parameter(void **state) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    const cuda_launch *launch = &cuda_look()->launch;
    const struct {
        int64_t count;
        const void *x;
        int32_t real;
    } args = {7, &args, 2};
    tr_cuda_grid grid = {{5, 4, 3}, {32, 8, 1}, 0};
    void *module, *function;
    (void)state;
    OK(driver->load("image", &module));
    OK(driver->function(module, "tr_cuda_any", &function));
    assert_true(driver->function(module, "any", &function) != 0);
    OK(driver->launch(function, &grid, &args, sizeof args, NULL));
    assert_int_equal(launch->bytes, sizeof args);
    assert_memory_equal(launch->args, &args, sizeof args);
    assert_true(launch->blocks[0] == 5 && launch->blocks[1] == 4 &&
                launch->blocks[2] == 3 && launch->threads[0] == 32 &&
                launch->threads[1] == 8 && launch->threads[2] == 1);
    grid.shared = 64 << 10; // more than is allowed without asking
    OK(driver->launch(function, &grid, &args, sizeof args, NULL));
    assert_int_equal(launch->shared, 64 << 10);
    grid.blocks[1] = 1 << 16;
    assert_true(driver->launch(function, &grid, &args, sizeof args, NULL) != 0);
    assert_allowed();
}

static void *use_a_queue(void *table) {
    const tr_queue_table *queues = table;
    tr_device_queue *queue = NULL, *other = NULL;
    tr_task_span spans[2];
    tr_error err = {0};
    char from = 1, to = 0;
    bool done = true;
    OK(queues->create(1, &queue, &err));
    OK(queues->create(1, &other, &err));
    queues->watch(queue, spans, 2);
    queues->copy(queue, &from, &to, 1);
    cuda_set_slow(0.05);
    int64_t ticket = queues->mark(queue);
    queues->follow(other, queue, ticket);
    OK(queues->look(queue, ticket, &done, &err));
    assert_false(done);
    OK(queues->wait(queue, ticket, &err));
    assert_int_equal(to, 1);
    assert_true(spans[0].end - spans[0].begin > 1e-3); // 1.5 ms, as it says
    cuda_set_slow(0);
    queues->destroy(queue);
    queues->destroy(other);
    return NULL;
}

// By a thread that has not opened the device, too.
static void queues_are_for_any_thread(void **state) {
    pthread_t thread;
    (void)state;
    use_a_queue((void *)&tr__cuda_queues);
    OK(pthread_create(&thread, NULL, use_a_queue, (void *)&tr__cuda_queues));
    OK(pthread_join(thread, NULL));
    assert_int_equal(cuda_look()->streams, 0);
    assert_int_equal(cuda_look()->events, 0);
    assert_allowed();
}

static double thread_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The host's kernels need all cores while the walk waits.
static void a_long_wait_leaves_the_core_to_others(void **state) {
    tr_device_queue *queue = NULL;
    tr_error err = {0};
    (void)state;
    OK(tr__cuda_queues.create(1, &queue, &err));
    cuda_set_slow(0.2);
    int64_t ticket = tr__cuda_queues.mark(queue);
    double before = thread_seconds();
    OK(tr__cuda_queues.wait(queue, ticket, &err));
    assert_true(thread_seconds() - before < 0.04);
    cuda_set_slow(0);
    tr__cuda_queues.destroy(queue);
    assert_allowed();
}

static void a_fault_is_told_in_words(void **state) {
    tr_device_queue *queue = NULL;
    tr_error err = {0};
    char from = 1, to = 0;
    (void)state;
    OK(tr__cuda_queues.create(1, &queue, &err));
    cuda_break(true);
    tr__cuda_queues.copy(queue, &from, &to, 1);
    assert_int_equal(tr__cuda_queues.wait(queue, tr__cuda_queues.mark(queue), &err),
                     TR_INTERNAL);
    assert_non_null(strstr(err.message, "unspecified launch failure"));
    tr__cuda_queues.destroy(queue);
    cuda_break(false);
    assert_allowed();
}

static int open_device(void **state) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    (void)state;
    return driver->missing() ? -1 : driver->open(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_is_described),
        cmocka_unit_test(arenas_are_of_pages),
        cmocka_unit_test(arenas_of_the_host_are_registered),
        cmocka_unit_test(kernels_get_their_parameter),
        cmocka_unit_test(queues_are_for_any_thread),
        cmocka_unit_test(a_long_wait_leaves_the_core_to_others),
        cmocka_unit_test(a_fault_is_told_in_words),
    };
    return cmocka_run_group_tests(tests, open_device, NULL);
}
