// Run on ranks: what they must agree on, ends that one is asked for, and one rank's
// trouble, which ends all. What breaks the ranks' bond comes as an argument, alone.
#include "backend/cpu/isa.h"
#include "on_ranks.h"
#include "train/samples.h"
#include "train/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 40, POSITIONS = 8, VOCABULARY = 31, TEXT_MAX = 1024 };

static tr_comm *comm;

static bool is_last(void) {
    return tr_comm_rank(comm) == tr_comm_ranks(comm) - 1;
}

// What a rank does otherwise than rank 0.
typedef struct otherwise {
    const char *set;      // "KEY=VALUE"
    int threads;          // of the plan
    bool no_overlap;      // likewise
    int isa_limit;        // likewise
    uint64_t data_hash;   // of the training data; 0: the usual
    const char *words[2]; // of the message
} otherwise;

static void print_run(char text[TEXT_MAX], bool reproducible) {
    snprintf(
        text, TEXT_MAX,
        "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 16, "
        "\"n_head\": 2, \"n_positions\": %d, \"vocab_size\": %d}, \"steps\": 5, "
        "\"seed\": 5, \"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": "
        "1, \"execution\": {\"threads\": 1, \"reproducible\": %s}, "
        "\"zero_optimization\": {\"stage\": 3}, \"out\": \"unused\"}",
        POSITIONS, VOCABULARY, reproducible ? "true" : "false");
}

// ---- data of which a sample may be unreadable

typedef struct source {
    samples from, validation;
    _Atomic int64_t good; // samples that can be read: the first ones
    tr_dataset *dataset;
} source;

static tr_status read_source(void *user, const int64_t *index, int64_t count,
                             void *const *rows, tr_error *err) {
    const source *s = user;
    for (int64_t i = 0; i < count; i++) {
        if (index[i] >= s->good) {
            return tr_fail(err, TR_DATA, "sample %d is gone", (int)index[i]);
        }
    }
    return tr_dataset_read(s->from.dataset, index, count, rows, err);
}

static void source_make(source *s, uint64_t hash) {
    tr_error err = {0};
    samples_tokens(&s->from, SAMPLES, POSITIONS, VOCABULARY, 3);
    samples_tokens(&s->validation, SAMPLES, POSITIONS, VOCABULARY, 4);
    s->good = SAMPLES;
    tr_dataset_source table = {.size = sizeof(tr_dataset_source),
                               .samples = SAMPLES,
                               .tensors = *tr_dataset_tensors(s->from.dataset),
                               .vocabulary = VOCABULARY,
                               .classes = VOCABULARY,
                               .hash = hash ? hash : 1,
                               .read = read_source,
                               .user = s};
    trial_ok(tr_dataset_create_callback(&table, &s->dataset, &err), &err);
}

static void source_free(source *s) {
    tr_dataset_destroy(s->dataset);
    samples_free(&s->from);
    samples_free(&s->validation);
}

// ---- what ranks must agree on

static tr_status open_otherwise(const otherwise *o, source *data, bool reproducible,
                                trial *t, tr_error *err) {
    char text[TEXT_MAX];
    print_run(text, reproducible);
    run_options options = {.text = text,
                           .own_train = data->dataset,
                           .own_validation = data->validation.dataset,
                           .set = &o->set,
                           .set_count = o->set != NULL,
                           .comm = comm,
                           .resume = "never"};
    *t = (trial){0};
    trial_ok(run_open(&options, &t->run, err), err);
    tr_plan_request request = *tr_run_plan_request(t->run);
    request.threads = o->threads ? o->threads : request.threads;
    request.no_overlap = o->no_overlap;
    request.level_limit = o->isa_limit;
    trial_ok(tr_plan_make(&request, &t->plan, err), err);
    return tr_engine_create(t->run, t->plan, &t->engine, err);
}

// The last rank is otherwise than the others; all get the same words.
static void refuse(const otherwise *o, bool reproducible) {
    static const otherwise usual;
    const otherwise *mine = is_last() ? o : &usual;
    char lead[32];
    source data;
    trial t;
    tr_error err = {0};
    snprintf(lead, sizeof lead, "rank %d: ", tr_comm_ranks(comm) - 1);
    source_make(&data, mine->data_hash);
    tr_status status = open_otherwise(mine, &data, reproducible, &t, &err);
    trial_close(&t);
    source_free(&data);
    assert_int_equal(status, o->words[0] ? TR_COMM : TR_OK);
    for (int i = 0; i < 2 && o->words[i]; i++) {
        if (strncmp(err.message, lead, strlen(lead)) != 0 ||
            !strstr(err.message, o->words[i])) {
            fail_msg("%s (wanted: %s)", err.message, o->words[i]);
        }
    }
}

static void differences(void **state) {
    static const otherwise all[] = {
        {.set = "seed=6", .words = {"seed is 6 here, and 5 on rank 0", "options"}},
        {.set = "steps=7", .words = {"steps is 7 here, and 5 on rank 0"}},
        {.set = "optimizer.params.lr=0.5",
         .words = {"optimizer.params.lr is 0.5 here", "0.001 on rank 0"}},
        {.set = "model.n_layer=3", .words = {"model.n_layer is 3 here, and 2 on"}},
        {.set = "gradient_clipping=2", .words = {"gradient_clipping is 2"}},
        {.set = "data.order=sequential",
         .words = {"data.order is \"sequential\" here, and \"shuffled\" on rank 0"}},
        {.set = "zero_optimization.stage=2",
         .words = {"zero_optimization.stage is 2 here, and 3 on rank 0"}},
        {.set = "train_batch_size=6", .words = {"train_batch_size is 6"}},
        {.set = "execution.wave=2",
         .words = {"execution.wave is 2 here, and \"auto\""}},
        {.set = "evaluation.samples=3",
         .words = {"evaluation.samples is 3 here, and not given on rank 0"}},
        {.data_hash = 2,
         .words = {"data.train is data of hash 0000000000000002 (40 samples) here, and "
                   "data of hash 0000000000000001 (40 samples) on rank 0",
                   "all ranks must find the same data"}},
        {.no_overlap = true,
         .words = {"what ranks on the axes \"data\" exchange is a sequence of hash",
                   "the same program"}},
        {.threads = 2},
        {.isa_limit = 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        refuse(&all[i], false);
    }
}

static void differences_of_bits(void **state) {
    static const otherwise all[] = {
        {.threads = 2,
         .words = {"execution.threads is 2 here, and 1 on rank 0", "reproducible"}},
        {.isa_limit = 1, .words = {"the instruction set is generic here, and"}},
    };
    bool generic = tr__cpu_isa() == TR_ISA_GENERIC;
    (void)state;
    refuse(&all[0], true);
    if (!generic) {
        refuse(&all[1], true);
    }
}

// A plan that is another rank's, on one of them.
static void plan_of_another_rank(void **state) {
    static const otherwise usual;
    source data;
    trial t;
    tr_error err = {0};
    (void)state;
    source_make(&data, 0);
    trial_ok(open_otherwise(&usual, &data, false, &t, &err), &err);
    tr_plan_request request = t.plan->request;
    tr_engine_destroy(t.engine);
    tr_plan_destroy(t.plan);
    request.mesh.at[TR_AXIS_DATA] = 0;
    trial_ok(tr_plan_make(&request, &t.plan, &err), &err);
    t.engine = NULL;
    tr_status status = tr_engine_create(t.run, t.plan, &t.engine, &err);
    assert_int_equal(status, TR_USAGE);
    assert_non_null(strstr(err.message, "a plan for rank 0 of"));
    trial_close(&t);
    source_free(&data);
}

// ---- asked for an end

typedef struct asking {
    int64_t calls, at; // true from this call on; 0: never
} asking;

static bool ask(void *user) {
    asking *a = user;
    return ++a->calls >= a->at && a->at > 0;
}

// One rank is asked, in a step or an evaluation: all stop there, nothing is changed,
// and all can go on.
static void check_asked(const otherwise *all) {
    source data;
    trial t;
    tr_error err = {0};
    source_make(&data, 0);
    trial_ok(open_otherwise(all, &data, false, &t, &err), &err);
    trial_steps(&t, 1, NULL);
    for (int64_t at = 1; at < 26; at += 6) {
        asking a = {.at = is_last() ? at : 0};
        tr_step_result result = TR_STEP_RESULT_INIT;
        tr_evaluation evaluation = TR_EVALUATION_INIT, again = TR_EVALUATION_INIT;
        trial_ok(tr_engine_evaluate(t.engine, 0, &evaluation, &err), &err);
        tr_status status = tr__engine_step_until(t.engine, ask, &a, &result, &err);
        assert_int_equal(status, TR_INTERRUPTED);
        err = (tr_error){0};
        a.calls = 0;
        status = tr__engine_evaluate_until(t.engine, 0, ask, &a, &again, &err);
        assert_int_equal(status, TR_INTERRUPTED);
        err = (tr_error){0};
        assert_int_equal(tr_engine_steps_done(t.engine), 1);
        trial_ok(tr_engine_evaluate(t.engine, 0, &again, &err), &err);
        assert_memory_equal(&again.loss, &evaluation.loss, sizeof again.loss);
    }
    trial_steps(&t, 1, NULL);
    assert_int_equal(tr_engine_steps_done(t.engine), 2);
    trial_close(&t);
    source_free(&data);
}

static void one_is_asked(void **state) {
    static const otherwise all[] = {{.set = "zero_optimization.stage=0"},
                                    {.set = "zero_optimization.stage=1"},
                                    {.set = "zero_optimization.stage=2"},
                                    {.set = "zero_optimization.stage=3"},
                                    {.set = "execution.reproducible=true"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        check_asked(&all[i]);
    }
}

// ---- one rank's trouble

// A sample that only the last rank cannot read, in a step or an evaluation: all get its
// status and message, and so does what they call later.
static void unreadable(bool evaluates) {
    static const otherwise usual;
    source data;
    trial t;
    tr_error err = {0};
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_evaluation evaluation = TR_EVALUATION_INIT;
    char words[64];
    source_make(&data, 0);
    trial_ok(open_otherwise(&usual, &data, false, &t, &err), &err);
    tr_status status = TR_OK;
    data.good = is_last() && !evaluates ? SAMPLES / 2 : SAMPLES;
    for (int s = 0; s < 8 && status == TR_OK; s++) {
        status = tr_engine_step(t.engine, &result, &err);
    }
    if (evaluates) {
        // The reading thread of an evaluation is another one, on other samples.
        assert_int_equal(status, TR_OK);
        int32_t *token = &data.validation.tokens[(SAMPLES - 1) * POSITIONS];
        *token = is_last() ? -5 : *token;
        status = tr_engine_evaluate(t.engine, 0, &evaluation, &err);
    }
    assert_int_equal(status, TR_DATA);
    snprintf(words, sizeof words, "rank %d: ", tr_comm_ranks(comm) - 1);
    assert_memory_equal(err.message, words, strlen(words));
    err = (tr_error){0};
    assert_int_equal(tr_engine_step(t.engine, &result, &err), TR_DATA);
    assert_memory_equal(err.message, words, strlen(words));
    trial_close(&t);
    source_free(&data);
}

static void unreadable_in_a_step(void **state) {
    (void)state;
    unreadable(false);
}

static void unreadable_in_an_evaluation(void **state) {
    (void)state;
    unreadable(true);
}

static int run(const char *which) {
    const struct CMUnitTest whole[] = {
        cmocka_unit_test(differences),
        cmocka_unit_test(differences_of_bits),
        cmocka_unit_test(plan_of_another_rank),
        cmocka_unit_test(one_is_asked),
    };
    const struct CMUnitTest step[] = {cmocka_unit_test(unreadable_in_a_step)};
    const struct CMUnitTest evaluation[] = {
        cmocka_unit_test(unreadable_in_an_evaluation)};
    if (strcmp(which, "step") == 0) {
        return cmocka_run_group_tests(step, NULL, NULL);
    }
    return strcmp(which, "evaluation") == 0
               ? cmocka_run_group_tests(evaluation, NULL, NULL)
               : cmocka_run_group_tests(whole, NULL, NULL);
}

// An error of the ranks ends them as it ends the program, once all have said how they
// fared: the launcher's status is that of the data, or 1 where a test has failed. Ranks
// that were abandoned end here; those that have agreed on the error return.
static int run_to_error(const char *which) {
    enum { OTHERS_SECONDS = 2 };
    int failed = run(which);
    int status = failed ? 1 : tr_status_exit(TR_DATA);
    fflush(NULL);
    sleep(OTHERS_SECONDS);
    tr_comm_end(comm, status);
    comm = NULL;
    return status;
}

int main(int argc, char **argv) {
    return on_ranks(&comm, argc > 1 ? run_to_error : run, argc, argv);
}
