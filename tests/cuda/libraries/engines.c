// Which of cuDNN's engines computes an attention, tried on the stand-in: one whose bits
// do not change, in the planned bytes, compiled once for each shape.
#include "backend/cuda/driver_cudnn.h"
#include "cuda/libraries/cudnn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CONTEXT = 64, DEPTH = 64, HEADS = 2, PITCH = 3 * HEADS * DEPTH };

static tr_cuda_attend_shape shape_of(bool backward, int64_t batch) {
    tr_cuda_attend_shape shape = {.batch = batch,
                                  .context = CONTEXT,
                                  .depth = DEPTH,
                                  .heads = HEADS,
                                  .pairs = HEADS,
                                  .pitch = PITCH,
                                  .width = HEADS * DEPTH,
                                  .half = TR_BF16,
                                  .backward = backward,
                                  .has_lse = true,
                                  .version = 919};
    shape.workspace = tr__cuda_attend_room(&shape);
    return shape;
}

static void assert_refused(const tr_cuda_attend_shape *shape, const char *part) {
    tr_error err = {0};
    int alive = dnn_look()->alive;
    assert_int_equal(tr__cudnn_ready(shape, &err), TR_USAGE);
    if (!strstr(err.message, part) ||
        !strstr(err.message, "\"execution\": {\"attention\": \"own\"}")) {
        fail_msg("\"%s\" is not in: %s", part, err.message);
    }
    assert_int_equal(dnn_look()->alive, alive);
}

// The backward's first engines add in any order: the third one is taken.
static void engines_that_change_bits_are_passed(void **state) {
    tr_error err = {0};
    (void)state;
    for (int backward = 0; backward < 2; backward++) {
        tr_cuda_attend_shape shape = shape_of(backward, 1);
        int before = dnn_look()->compiled;
        int compiled = before + 1 + backward; // one says nothing, but is too small
        assert_int_equal(tr__cudnn_ready(&shape, &err), TR_OK);
        assert_int_equal(dnn_look()->compiled, compiled);
        assert_int_equal(tr__cudnn_ready(&shape, &err), TR_OK);
        assert_int_equal(dnn_look()->compiled, compiled);
    }
}

// Its logarithms are made, and stay where they are made.
static void a_forward_alone_has_an_engine(void **state) {
    tr_cuda_attend_shape shape = shape_of(false, 1);
    tr_error err = {0};
    (void)state;
    shape.has_lse = false;
    if (tr__cudnn_ready(&shape, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
}

static void without_another_engine_there_is_none(void **state) {
    tr_cuda_attend_shape shape = shape_of(true, 2);
    (void)state;
    dnn_set_deterministic(false);
    assert_refused(&shape, "of the 2 engines that cuDNN 9.19 has for the backward of "
                           "attention here (2 x 2 heads of 64, 2 of keys, 64 tokens "
                           "each, bf16, causal), 2 do not give the same bits");
    dnn_set_deterministic(true);
}

// Never more bytes than are planned.
static void a_larger_engine_is_refused(void **state) {
    tr_cuda_attend_shape shape = shape_of(true, 2);
    tr_error err = {0};
    (void)state;
    dnn_set_more(1);
    assert_refused(&shape, "1 want more than the plan's");
    dnn_set_more(0);
    shape.workspace--;
    assert_refused(&shape, "1 want more than the plan's");
    shape.workspace++;
    assert_int_equal(tr__cudnn_ready(&shape, &err), TR_OK);
}

static void graphs_that_it_refuses_say_why(void **state) {
    tr_cuda_attend_shape shape = shape_of(false, 2);
    (void)state;
    shape.depth = 0;
    assert_refused(&shape, "a tensor without number, sizes or alignment");
}

// What was not readied is not launched.
static void launches_find_what_is_compiled(void **state) {
    tr_cuda_attend attend = {.of = shape_of(false, 7)};
    (void)state;
    assert_string_equal(tr__cudnn_error_text(tr__cudnn_attend(&attend, NULL)),
                        "cuDNN has not been readied for this attention");
}

// A launch leaves no descriptor, and its workspace must be aligned.
static void a_launch_leaves_nothing(void **state) {
    enum { ELEMENTS = CONTEXT * PITCH };
    static _Alignas(256) uint16_t qkv[ELEMENTS], y[CONTEXT * HEADS * DEPTH];
    static _Alignas(256) float lse[HEADS * CONTEXT];
    static _Alignas(256) char workspace[1024];
    tr_cuda_attend attend = {.of = shape_of(false, 1),
                             .q = qkv,
                             .k = qkv + HEADS * DEPTH,
                             .v = qkv + 2 * HEADS * DEPTH,
                             .y = y,
                             .lse = lse,
                             .workspace = workspace};
    tr_error err = {0};
    (void)state;
    assert_int_equal(tr__cudnn_ready(&attend.of, &err), TR_OK);
    int alive = dnn_look()->alive, executed = dnn_look()->executed;
    assert_int_equal(tr__cudnn_attend(&attend, &alive), 0);
    assert_int_equal(dnn_look()->alive, alive);
    assert_int_equal(dnn_look()->executed, executed + 1);
    assert_ptr_equal(dnn_look()->stream, &alive);
    for (int i = 0; i < CONTEXT; i++) { // of queries of zeros: as many keys, alike
        assert_float_equal(lse[i], logf((float)(i + 1)), 1e-5f);
    }
    attend.workspace = workspace + 64;
    assert_string_equal(tr__cudnn_error_text(tr__cudnn_attend(&attend, NULL)),
                        "CUDNN_STATUS_BAD_PARAM");
    assert_int_equal(dnn_look()->alive, alive);
}

static int look(void **state) {
    const char *why = NULL;
    (void)state;
    return tr__cudnn_version(&why) == 919 ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_that_change_bits_are_passed),
        cmocka_unit_test(a_forward_alone_has_an_engine),
        cmocka_unit_test(without_another_engine_there_is_none),
        cmocka_unit_test(a_larger_engine_is_refused),
        cmocka_unit_test(graphs_that_it_refuses_say_why),
        cmocka_unit_test(launches_find_what_is_compiled),
        cmocka_unit_test(a_launch_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, look, NULL);
}
