// Plans of all ranks of a mesh fit together; and what one rank does otherwise is found.
#include "plan/drawn.h"
#include "plan/flow/passes.h"
#include "plan/flow/work.h"
#include "plan/models.h"
#include "plan/print/print.h"
#include "plan/proof/prove.h"
#include "plan/schedules/schedule.h"

#include "draws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS_MOST = 8 };

// The plans of all ranks of a mesh.
typedef struct ranks {
    tr_plan *plans[RANKS_MOST];
    size_t count;
} ranks;

static bool make_ranks(tr_plan_request request, tr_mesh mesh, ranks *out) {
    request.tensor_ranks_alike = true;
    tr_error err = {0};
    *out = (ranks){.count = (size_t)tr_mesh_ranks(&mesh)};
    for (size_t i = 0; i < out->count; i++) {
        request.mesh = tr__mesh_of_rank(&mesh, (int64_t)i);
        tr_status status = tr__plan_build(&request, &out->plans[i], &err);
        if (status != TR_OK) { // what cannot be is refused on the first
            if (status != TR_USAGE || i > 0) {
                fail_msg("rank %d of %dx%dx%d %s x %d g %d wave %d m %d stage %d sums "
                         "%d units %d recomputed %d: %s",
                         (int)i, (int)mesh.size[0], (int)mesh.size[1],
                         (int)mesh.size[2], tr__pipeline_names[request.pipeline_order],
                         (int)request.virtual_stages, (int)request.accumulation_steps,
                         (int)request.wave, (int)request.micro_batch, request.stage,
                         request.sums, request.model->unit_count,
                         (int)request.recomputed_units, err.message);
            }
            return false;
        }
    }
    return true;
}

static void free_ranks(ranks *r) {
    for (size_t i = 0; i < r->count; i++) {
        tr_plan_destroy(r->plans[i]);
    }
}

static tr_status match(const ranks *r, tr_error *err) {
    const tr_plan *plans[RANKS_MOST];
    memcpy(plans, r->plans, sizeof plans);
    return tr__plans_match(plans, r->count, err);
}

static bool is_found(const ranks *r) {
    tr_error err = {0};
    tr_status status = match(r, &err);
    assert_true(status == TR_OK || status == TR_INTERNAL);
    assert_true(status == TR_OK ||
                strstr(err.message, "the plans of ranks do not fit together"));
    return status != TR_OK;
}

static const tr_mesh meshes[] = {
    {.size = {4, 1, 1}}, {.size = {2, 2, 1}}, {.size = {3, 2, 1}}, {.size = {1, 3, 1}},
    {.size = {1, 1, 2}}, {.size = {2, 1, 3}}, {.size = {1, 2, 2}}, {.size = {1, 1, 4}}};
enum {
    MESHES = sizeof meshes / sizeof *meshes,
    IN_ONE_ORDER = 5, // of them: no rank can exchange with some before others
};

// ---- they fit

static void plans_of_all_ranks_fit_together(void **state) {
    test_models models;
    int made = 0;
    (void)state;
    test_models_make(&models);
    for (uint64_t i = 0; i < TEST_DRAWS(480, 60); i++) {
        ranks r;
        tr_error err = {0};
        tr_mesh mesh = meshes[i % MESHES];
        tr_plan_request request = test_draw_request(&models, i);
        int64_t room = request.micro_batch * request.accumulation_steps * mesh.size[0];
        if (request.inference || request.train_batch_size > room) {
            continue;
        }
        if (make_ranks(request, mesh, &r)) {
            if (match(&r, &err) != TR_OK) {
                fail_msg("request %d: %s", (int)i, err.message);
            }
            made++;
        }
        free_ranks(&r);
    }
    test_models_destroy(&models);
    assert_true(made > TEST_DRAWS(30, 3));
}

static const struct {
    tr_pipeline_order order;
    int64_t least, most; // parts of a stage
} orders[] = {{TR_PIPELINE_1F1B, 1, 1},
              {TR_PIPELINE_INTERLEAVED, 2, 4},
              {TR_PIPELINE_BREADTH_FIRST, 1, 4},
              {TR_PIPELINE_ZERO_BUBBLE, 1, 1},
              {TR_PIPELINE_V, 2, 2}};
enum { ORDERS = sizeof orders / sizeof *orders };

// Stages of request number i, by schedule number i % ORDERS; whether there are plans.
static bool match_stages(tr_plan_request request, const tr_mesh *mesh, uint64_t i) {
    size_t k = i % ORDERS;
    int64_t parts = orders[k].most - orders[k].least + 1;
    tr_error err = {0};
    ranks r;
    request.pipeline_order = orders[k].order;
    request.virtual_stages = orders[k].least + (int64_t)(i / ORDERS) % parts;
    request.train_batch_size =
        request.micro_batch * request.accumulation_steps * mesh->size[0];
    bool made = make_ranks(request, *mesh, &r);
    if (made && match(&r, &err) != TR_OK) {
        fail_msg("request %d: %s", (int)i, err.message);
    }
    free_ranks(&r);
    return made;
}

// By every schedule, in waves of any size; a batch may end in the midst of one.
static void stages_of_several_parts_fit_together(void **state) {
    static const tr_mesh of[] = {{.size = {1, 1, 2}}, {.size = {2, 1, 3}},
                                 {.size = {1, 2, 2}}, {.size = {1, 1, 4}},
                                 {.size = {2, 1, 4}}, {.size = {1, 1, 5}}};
    enum { OF = sizeof of / sizeof *of };
    tr_model *model = test_model_deep_gpt2(19);
    test_models models;
    int made[ORDERS] = {0};
    (void)state;
    test_models_make(&models);
    for (uint64_t i = 0; i < TEST_DRAWS(900, 120); i++) {
        tr_plan_request request = test_draw_request(&models, i * 7 + 1);
        if (request.inference) {
            continue;
        }
        request.model = model;
        request.accumulation_steps = 1 + (int64_t)(i / 3) % 11;
        request.wave = 1 + (int64_t)(i / 5) % request.accumulation_steps;
        made[i % ORDERS] += match_stages(request, &of[i / ORDERS % OF], i);
    }
    test_models_destroy(&models);
    tr_model_destroy(model);
    for (size_t k = 0; k < ORDERS; k++) {
        assert_in_range(made[k], TEST_DRAWS(20, 2), 900);
    }
}

// The caller computes the loss of a micro-batch before he brings the next one: each
// stage's plan is proved to wait for nothing of it until then.
static void stages_that_hand_out_fit_together(void **state) {
    static const tr_mesh of[] = {{.size = {1, 1, 2}},
                                 {.size = {2, 1, 3}},
                                 {.size = {1, 1, 4}},
                                 {.size = {2, 1, 2}}};
    enum { OF = sizeof of / sizeof *of };
    test_models models;
    int made[ORDERS] = {0};
    (void)state;
    test_models_make(&models);
    for (uint64_t i = 0; i < TEST_DRAWS(600, 120); i++) {
        tr_plan_request request = test_draw_request(&models, i * 11 + 3);
        request.model = &test_model_open_deep;
        request.reproducible = false;
        request.inference = false;
        request.wave = 0;
        request.accumulation_steps = 1 + (int64_t)(i / 3) % 9;
        made[i % ORDERS] += match_stages(request, &of[i / ORDERS % OF], i);
    }
    test_models_destroy(&models);
    for (size_t k = 0; k < ORDERS; k++) {
        assert_in_range(made[k], TEST_DRAWS(40, 4), 600);
    }
}

// ---- they do not

// The exchanges of a sequence, as places in it.
static size_t find_exchanges(const tr_sequence *sequence, size_t *places, size_t most) {
    size_t count = 0;
    for (size_t i = 0; i < sequence->count && count < most; i++) {
        if (sequence->steps[i].shape == TR_STEP_IS_EXCHANGE) {
            places[count++] = i;
        }
    }
    return count;
}

static void omit(const ranks *r, tr_sequence *sequence, size_t place) {
    tr_plan_step *at = &sequence->steps[place], step = *at;
    size_t after = sequence->count - place - 1;
    memmove(at, at + 1, after * sizeof *at);
    sequence->count--;
    assert_true(is_found(r));
    memmove(at + 1, at, after * sizeof *at);
    *at = step;
    sequence->count++;
}

static void regroup(const ranks *r, tr_plan_step *step) {
    tr_axes right = step->payload.exchange.group;
    for (tr_axes group = 0; group <= TR_ON_ALL; group++) {
        step->payload.exchange.group = group;
        assert_true(is_found(r) == (group != right));
    }
    step->payload.exchange.group = right;
}

// False: it is the same exchange, twice.
static bool swap(const ranks *r, tr_plan_step *a, tr_plan_step *b) {
    tr_plan_step step = *a;
    bool other = tr__exchange_hash(a) != tr__exchange_hash(b);
    *a = *b;
    *b = step;
    assert_true(is_found(r) == other);
    *b = *a;
    *a = step;
    return other;
}

// The last rank does each of its exchanges otherwise.
static int spoil_last(const ranks *r) {
    enum { MOST = 400 };
    tr_plan *plan = r->plans[r->count - 1];
    int found = 0;
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        tr_sequence *sequence = &plan->sequences[kind];
        size_t places[MOST], count = find_exchanges(sequence, places, MOST);
        for (size_t k = 0; k < count; k++) {
            tr_plan_step *at = &sequence->steps[places[k]];
            omit(r, sequence, places[k]);
            regroup(r, at);
            if (k + 1 < count) {
                found += swap(r, at, &sequence->steps[places[k + 1]]);
            }
        }
    }
    assert_false(is_found(r));
    return found;
}

static void what_one_rank_does_otherwise_is_found(void **state) {
    test_models models;
    int found = 0, plans = 0;
    (void)state;
    test_models_make(&models);
    for (uint64_t i = 0; plans < 24; i++) {
        ranks r;
        tr_mesh mesh = meshes[i % IN_ONE_ORDER];
        tr_plan_request request = test_draw_request(&models, i * 29);
        int64_t room = request.micro_batch * request.accumulation_steps * mesh.size[0];
        if (request.inference || request.train_batch_size > room) {
            continue;
        }
        if (make_ranks(request, mesh, &r)) {
            found += spoil_last(&r);
            plans++;
        }
        free_ranks(&r);
    }
    test_models_destroy(&models);
    assert_true(found > 50);
}

// Rank 3 tells all how it fares before it reduces gradients with rank 1, and all others
// after they have.
static void ranks_that_wait_in_a_circle_are_found(void **state) {
    size_t places[64];
    tr_error err = {0};
    ranks r;
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 1, 2);
    request.train_batch_size = 4;
    assert_true(make_ranks(request, meshes[1], &r));
    tr_sequence *sequence = &r.plans[3]->sequences[TR_SEQUENCE_TRAIN];
    size_t count = find_exchanges(sequence, places, 64);
    tr_plan_step *first = &sequence->steps[places[0]], step = *first;
    tr_plan_step *last = &sequence->steps[places[count - 1]];
    assert_true(first->payload.exchange.group == TR_ON_DATA &&
                last->payload.exchange.group == TR_ON_ALL);
    *first = *last;
    *last = step;
    assert_int_equal(match(&r, &err), TR_INTERNAL);
    assert_non_null(strstr(err.message, "waits for rank"));
    free_ranks(&r);
    tr_model_destroy(model);
}

// ---- digests

// What differs inside of a group shows in its digest; the order of two groups'
// exchanges in that of all.
static void a_digest_is_of_a_group(void **state) {
    size_t places[64];
    ranks r;
    tr_plan_digest right, wrong;
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 1, 2);
    request.train_batch_size = 4;
    assert_true(make_ranks(request, meshes[1], &r));
    tr_sequence *sequence = &r.plans[0]->sequences[TR_SEQUENCE_TRAIN];
    size_t count = find_exchanges(sequence, places, 64);
    tr_plan_step *first = &sequence->steps[places[0]], a = *first;
    tr_plan_step *last = &sequence->steps[places[count - 1]], b = *last;
    tr__plan_exchanges(r.plans[0], &right);
    *first = b;
    *last = a;
    tr__plan_exchanges(r.plans[0], &wrong);
    assert_true(wrong.of_group[TR_ON_ALL] == right.of_group[TR_ON_ALL]);
    assert_true(wrong.of_group[TR_ON_DATA] != right.of_group[TR_ON_DATA]);
    assert_true(wrong.all != right.all);
    *first = a;
    *last = b;
    // The last two are of the data group and of all.
    tr_plan_step *before = &sequence->steps[places[count - 2]], c = *before;
    assert_true(c.payload.exchange.group == TR_ON_DATA &&
                b.payload.exchange.group == TR_ON_ALL);
    *before = b;
    *last = c;
    tr__plan_exchanges(r.plans[0], &wrong);
    assert_memory_equal(wrong.of_group, right.of_group, sizeof wrong.of_group);
    assert_true(wrong.all != right.all);
    *before = c;
    *last = b;
    free_ranks(&r);
    tr_model_destroy(model);
}

// ---- printing

static char *print(const tr_plan *plan,
                   tr_status (*how)(const tr_plan *, FILE *, tr_error *)) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    assert_int_equal(how(plan, to, NULL), TR_OK);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void groups_are_printed_where_they_differ(void **state) {
    ranks two, four;
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 1, 2);
    request.train_batch_size = 4;
    assert_true(make_ranks(request, (tr_mesh){.size = {2, 1, 1}}, &two));
    assert_true(make_ranks(request, meshes[1], &four));
    char *plain = print(two.plans[0], tr__plan_print);
    char *grouped = print(four.plans[0], tr__plan_print);
    char *json = print(two.plans[0], tr__plan_print_json);
    assert_null(strstr(plain, "group"));
    assert_non_null(strstr(grouped, "; mesh 2 x 2 x 1"));
    assert_non_null(strstr(grouped, ", group data\n"));
    assert_non_null(strstr(grouped, ", group all\n"));
    assert_non_null(strstr(json, "\"mesh\": {\"data\": 2, \"tensor\": 1, \"pipeline\": "
                                 "1}"));
    assert_non_null(strstr(json, "\"group\": \"data\""));
    assert_non_null(strstr(json, "\"group\": \"all\""));
    free(plain);
    free(grouped);
    free(json);
    free_ranks(&two);
    free_ranks(&four);
    tr_model_destroy(model);
}

// Ranks that would exchange by different algorithms see it before they do.
static void algorithms_are_part_of_what_ranks_agree_on(void **state) {
    tr_plan_digest of[TR_EXCHANGE_ALGORITHMS];
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 1, 2);
    request.mesh = tr_mesh_of_data(4, 0);
    request.train_batch_size = 8;
    for (int a = 0; a < TR_EXCHANGE_ALGORITHMS; a++) {
        request.algorithm = (tr_exchange_algorithm)a;
        tr_plan *plan = test_plan(&request);
        tr__plan_exchanges(plan, &of[a]);
        tr_plan_destroy(plan);
    }
    // Without nodes, and where no links are known, all are direct unless asked for.
    assert_true(of[TR_EXCHANGE_AUTO].all == of[TR_EXCHANGE_DIRECT].all);
    assert_true(of[TR_EXCHANGE_HIERARCHICAL].all == of[TR_EXCHANGE_DIRECT].all);
    assert_true(of[TR_EXCHANGE_RING].all != of[TR_EXCHANGE_DIRECT].all);
    assert_true(of[TR_EXCHANGE_TREE].all != of[TR_EXCHANGE_DIRECT].all);
    assert_true(of[TR_EXCHANGE_TREE].all != of[TR_EXCHANGE_RING].all);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_all_ranks_fit_together),
        cmocka_unit_test(stages_of_several_parts_fit_together),
        cmocka_unit_test(stages_that_hand_out_fit_together),
        cmocka_unit_test(what_one_rank_does_otherwise_is_found),
        cmocka_unit_test(ranks_that_wait_in_a_circle_are_found),
        cmocka_unit_test(a_digest_is_of_a_group),
        cmocka_unit_test(groups_are_printed_where_they_differ),
        cmocka_unit_test(algorithms_are_part_of_what_ranks_agree_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
