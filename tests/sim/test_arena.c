// The arenas over the steps, as tr_plan_buffers tells them: held against the ledger,
// and against what the plan's JSON says of each step.
#include "sim/helper.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct map {
    tr_planned_buffer *buffers;
    size_t count, room;
    int64_t steps;
} map;

static void add_buffer(void *user, const tr_planned_buffer *buffer) {
    map *m = user;
    if (m->count == m->room) {
        m->room = 2 * m->room + 16;
        m->buffers = realloc(m->buffers, m->room * sizeof *m->buffers);
        assert_non_null(m->buffers);
    }
    m->buffers[m->count++] = *buffer;
}

static void count_step(void *user, const tr_planned_step *step) {
    map *m = user;
    assert_true(step->size == sizeof *step && step->kind && step->stream);
    m->steps++;
}

static map map_of(const tr_plan *plan) {
    map m = {0};
    assert_int_equal(tr_plan_buffers(plan, add_buffer, &m, NULL), TR_OK);
    assert_int_equal(tr_plan_steps(plan, count_step, &m, NULL), TR_OK);
    return m;
}

static bool lives(const tr_planned_buffer *b, int64_t step) {
    return b->first <= step && step <= b->last;
}

// Is there a step at which the buffers of a space add up to the ledger, category by
// category? None may have more.
static void check_ledger(const map *m, const tr_ledger *ledger, tr_space space) {
    int64_t most = 0, wanted = 0;
    for (int c = 0; c < TR_LEDGER_unused; c++) {
        wanted += ledger->bytes[space][c];
    }
    for (int64_t s = 0; s < m->steps; s++) {
        int64_t bytes[TR_LEDGER_COUNT] = {0}, sum = 0;
        bool same = true;
        for (size_t i = 0; i < m->count; i++) {
            const tr_planned_buffer *b = &m->buffers[i];
            bool here = b->space == space && lives(b, s);
            bytes[b->category] += here ? b->bytes : 0;
            sum += here ? b->bytes : 0;
        }
        for (int c = 0; c < TR_LEDGER_unused; c++) {
            same = same && bytes[c] == ledger->bytes[space][c];
        }
        assert_true(sum <= wanted);
        most = same ? sum : most;
    }
    assert_int_equal(most, wanted);
}

static void check_places(const map *m, const tr_ledger *ledger) {
    for (size_t i = 0; i < m->count; i++) {
        const tr_planned_buffer *a = &m->buffers[i];
        assert_true(a->bytes > 0 && a->offset >= 0 && a->first <= a->last);
        assert_true(a->offset + a->bytes <= ledger->total[a->space]);
        assert_true(a->what && a->what[0] && a->last < m->steps);
        assert_true(a->kept || a->writer < 0 || lives(a, a->writer));
        assert_true(a->kept || a->reader < 0 || lives(a, a->reader));
        for (size_t k = 0; k < i; k++) {
            const tr_planned_buffer *b = &m->buffers[k];
            assert_true(a->space != b->space || a->last < b->first ||
                        b->last < a->first || a->offset + a->bytes <= b->offset ||
                        b->offset + b->bytes <= a->offset);
        }
    }
}

// ---- the plan's JSON

static bool take(void *to, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, to) == bytes;
}

static json_t *plan_json(const tr_plan *plan) {
    char *text = NULL;
    size_t bytes = 0;
    const tr_sink to = {take, open_memstream(&text, &bytes)};
    assert_non_null(to.user);
    assert_int_equal(tr_plan_print_json(plan, &to, NULL), TR_OK);
    fclose(to.user);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    free(text);
    return root;
}

static bool has(const map *m, int64_t step, int64_t offset, int64_t bytes) {
    bool found = false;
    for (size_t i = 0; i < m->count; i++) {
        const tr_planned_buffer *b = &m->buffers[i];
        found = found || (lives(b, step) && b->offset == offset && b->bytes == bytes &&
                          !b->kept);
    }
    return found;
}

// Each [offset, bytes] of each step is a buffer that lives at it.
static void check_json(const map *m, const tr_plan *plan) {
    json_t *root = plan_json(plan), *step;
    const json_t *steps = json_object_get(root, "steps");
    size_t i, pairs = 0;
    assert_int_equal(json_array_size(steps), m->steps);
    json_array_foreach(steps, i, step) {
        const char *key;
        json_t *value;
        json_object_foreach(step, key, value) {
            int64_t bytes = json_integer_value(json_array_get(value, 1));
            if (json_is_array(value) && strcmp(key, "elements") != 0 && bytes > 0) {
                int64_t offset = json_integer_value(json_array_get(value, 0));
                assert_true(has(m, (int64_t)i, offset, bytes));
                pairs++;
            }
        }
    }
    assert_true(pairs > 0);
    json_decref(root);
}

static void check(const tr_plan_request *request) {
    tr_plan *plan = test_plan(request);
    map m = map_of(plan);
    for (int s = 0; s < TR_SPACES; s++) {
        check_ledger(&m, tr_plan_ledger(plan), (tr_space)s);
    }
    check_places(&m, tr_plan_ledger(plan));
    check_json(&m, plan);
    free(m.buffers);
    tr_plan_destroy(plan);
}

static void test_agrees(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0.1);
    tr_plan_request request = test_request(model, 2, 4);
    check(&request);
    request.wave = 2;
    request.recomputed_units = -1;
    check(&request);
    request.mesh = tr_mesh_of_data(2, 1);
    request.train_batch_size *= 2;
    request.stage = 3;
    check(&request);
    request.wave = 4;
    request.optimizer_placement = TR_SPACE_HOST;
    check(&request);
    tr_model_destroy(model);
}

// ---- words

static const tr_planned_buffer *find(const map *m, const char *what,
                                     const char *subject, int64_t micro) {
    for (size_t i = 0; i < m->count; i++) {
        const tr_planned_buffer *b = &m->buffers[i];
        if (strcmp(b->what, what) == 0 && b->subject &&
            strcmp(b->subject, subject) == 0 && b->micro_batch == micro) {
            return b;
        }
    }
    fail_msg("no %s of %s", what, subject);
    return NULL;
}

typedef struct steps {
    char kind[64][24];
    int64_t count;
} steps;

static void note_step(void *user, const tr_planned_step *step) {
    steps *all = user;
    assert_true(all->count < 64);
    snprintf(all->kind[all->count++], sizeof all->kind[0], "%s %s %d", step->kind,
             step->subject ? step->subject : "-", (int)step->micro_batch);
}

// What a person is told of a buffer.
static void test_words(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 1, 2);
    tr_plan *plan = test_plan(&request);
    map m = map_of(plan);
    steps all = {0};
    assert_int_equal(tr_plan_steps(plan, note_step, &all, NULL), TR_OK);
    const tr_planned_buffer *saved = find(&m, "saved", "h.1", 1);
    assert_string_equal(all.kind[saved->writer], "forward h.1 1");
    assert_string_equal(all.kind[saved->reader], "backward h.1 1");
    assert_int_equal(saved->category, TR_LEDGER_activations);
    const tr_planned_buffer *grad = find(&m, "gradients", "h.0", -1);
    assert_true(grad->kept && grad->category == TR_LEDGER_gradients);
    assert_string_equal(all.kind[grad->writer], "backward h.0 0");
    assert_string_equal(all.kind[grad->reader], "update h.0 -1");
    assert_true(find(&m, "parameters", "h.0", -1)->kept);
    free(m.buffers);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void test_asks(void **state) {
    (void)state;
    map m = {0};
    tr_error err = {0};
    assert_int_equal(tr_plan_buffers(NULL, add_buffer, &m, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "plan"));
    assert_int_equal(tr_plan_steps(NULL, count_step, &m, &err), TR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
