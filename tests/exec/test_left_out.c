// Labels: guard
// A step that is left out waits nevertheless: later steps count on it, because what one
// step has waited for, no other waits for.
#include "exec/rig.h"
#include "exec/walk.h"
#include "plan/flow/work.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

// Follows a walk, and looks at what has been read from NVMe when each step begins.
typedef struct follower {
    const test_rig *rig;
    size_t next;       // step
    int64_t transfers; // steps of the NVMe stream so far,
    int64_t *asked;    // and the bytes that the walk has asked for with each of them
    int64_t waits;     // of updates that were left out, for something
    int64_t early;     // of those, so many ended before it was read
} follower;

static const tr_plan_step *step_at(const follower *f, size_t index) {
    return &f->rig->plan->sequences[TR_SEQUENCE_TRAIN].steps[index];
}

static void look(follower *f, const tr_plan_step *step) {
    const tr_copy_engine *copy_engine = f->rig->executor->copy_engine[TR_STREAM_NVME];
    int64_t asked = f->asked[step->wait[TR_STREAM_NVME]];
    if (step->label.verb == TR_VERB_update && step->guard == TR_GUARD_DEFERRED &&
        asked > 0) {
        f->waits++;
        f->early += tr__copy_engine_totals(copy_engine).read < asked;
    }
}

static void note(follower *f, const tr_plan_step *step) {
    bool reads = step->label.verb == TR_VERB_read && step->guard == TR_GUARD_ALWAYS;
    if (step->stream == TR_STREAM_NVME) {
        int64_t before = f->asked[f->transfers++];
        f->asked[f->transfers] =
            before + (reads ? tr__step_stored(f->rig->plan, step) : 0);
    }
}

static bool follow(void *user) {
    follower *f = user;
    if (f->next > 0) { // the step before has been issued, or left out
        look(f, step_at(f, f->next - 1));
        note(f, step_at(f, f->next - 1));
    }
    f->next++;
    return false;
}

// No step before has left an update to this one.
static void updates_that_are_left_out_wait(void **state) {
    (void)state;
    tr_model *model = test_rig_gpt2(2, 0);
    tr_plan_request request = test_rig_request(model, 4);
    request.optimizer_states = 2;
    request.optimizer_placement = TR_SPACE_NVME;
    request.update_slots = 2; // so that pieces wait for each other
    test_rig rig;
    test_rig_begin(&rig, &request);
    size_t steps = rig.plan->sequences[TR_SEQUENCE_TRAIN].count;
    follower f = {.rig = &rig, .asked = calloc(steps + 1, sizeof *f.asked)};
    assert_non_null(f.asked);
    test_rig_follow(&rig, follow, &f);
    assert_true(f.waits > 0);
    assert_int_equal(f.early, 0);
    free(f.asked);
    test_rig_end(&rig);
    tr_model_destroy(model);
}

// Waits count the host's steps, whether they are done or left out: so many of them the
// walk has handed to the stream.
static void what_the_host_leaves_out_counts(void **state) {
    (void)state;
    tr_model *model = test_rig_gpt2(2, 0);
    tr_plan_request request = test_rig_request(model, 4);
    request.optimizer_states = 2;
    request.optimizer_placement = TR_SPACE_HOST;
    test_rig rig;
    tr_error err = {0};
    test_rig_begin(&rig, &request);
    assert_int_equal(tr__executor_host_beside(rig.executor, &err), TR_OK);
    test_rig_train(&rig);
    const tr_sequence *train = &rig.plan->sequences[TR_SEQUENCE_TRAIN];
    int64_t steps = 0, deferred = 0;
    for (size_t i = 0; i < tr__sequence_update(train); i++) {
        bool host = train->steps[i].stream == TR_STREAM_HOST;
        steps += host;
        deferred += host && train->steps[i].guard == TR_GUARD_DEFERRED;
    }
    assert_true(deferred > 0 && steps > deferred);
    assert_int_equal(tr__stream_newest(rig.executor, TR_STREAM_HOST), steps);
    test_rig_end(&rig);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_that_are_left_out_wait),
        cmocka_unit_test(what_the_host_leaves_out_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
