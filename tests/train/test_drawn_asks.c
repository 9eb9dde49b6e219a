// Drawn sequences of calls on all that a program may ask beside an engine: checkpoints,
// samplers, evaluators, data, tokenizers, dialogs, machines, simulations, ranks. In any
// order, on what is there and on what is not, with whatever arguments: none crashes,
// and each error has a message. TR_DRAWN_SEQUENCES in the environment says how many.
#include "samples.h"
#include "scratch.h"
#include "trial.h"

#include <tranche.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEQUENCES = 100, CALLS = 40, VALUES = 512, PATHS = 8 };

static char path[PATHS][PATH_MAX]; // some are there, some are not

typedef struct session {
    uint64_t seed;
    tr_run *run;
    tr_plan *plan;
    tr_machine *machine;
    tr_simulated *simulated;
    tr_sampler *sampler;
    tr_evaluator *evaluator;
    tr_inspection *inspection;
    tr_dataset *dataset;
    tr_tokenizer *tokenizer;
    tr_encoder *encoder;
    tr_dialog *dialog;
    tr_comm *comm;
    tr_token_ids ids;
    int good; // calls that succeeded
} session;

static uint64_t draw(session *s, uint64_t below) {
    s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
    return (s->seed >> 33) % below;
}

static const char *any_path(session *s) {
    uint64_t which = draw(s, PATHS + 1);
    return which < PATHS ? path[which] : NULL;
}

// One of several: the thing itself, or nothing.
#define OR_NULL(s, thing) (draw((s), 6) ? (thing) : NULL)

static bool take(void *user, const char *text, size_t bytes) {
    size_t *left = user;
    (void)text;
    *left -= bytes < *left ? bytes : *left;
    return *left > 0;
}

static const tr_sink *any_sink(session *s) {
    static size_t left;
    static const tr_sink good = {take, &left}, empty = {NULL, NULL};
    left = draw(s, 3) ? 1U << 30 : draw(s, 300);
    uint64_t which = draw(s, 12);
    return which == 0 ? NULL : which == 1 ? &empty : &good;
}

// ---- files

static tr_status call_inspection(session *s, tr_error *err) {
    switch (draw(s, 4)) {
    case 0:
        tr_inspection_destroy(s->inspection);
        s->inspection = NULL;
        return tr_checkpoint_inspect(any_path(s), OR_NULL(s, &s->inspection), err);
    case 1:
        return tr_inspection_print(s->inspection, any_sink(s), err);
    case 2:
        return tr_inspection_print_json(s->inspection, any_sink(s), err);
    default:
        tr_inspection_tensor(s->inspection, draw(s, 9));
        return tr_inspection_count(s->inspection) > 0 ? TR_OK : TR_DATA;
    }
}

static tr_status call_checkpoint(session *s, tr_error *err) {
    tr_checkpoint_entry *entries = NULL;
    tr_diff *diff = NULL;
    char where[PATH_MAX];
    void *bytes = NULL;
    size_t count = 0;
    tr_status status = TR_OK;
    switch (draw(s, 5)) {
    case 0:
        return tr_checkpoint_locate(any_path(s), OR_NULL(s, where), draw(s, PATH_MAX),
                                    err);
    case 1:
        tr_checkpoint_recognize(any_path(s));
        return TR_OK;
    case 2:
        status = tr_checkpoint_list(any_path(s), OR_NULL(s, &entries), &count, err);
        tr_checkpoint_list_destroy(entries, count);
        return status;
    case 3:
        status = tr_checkpoint_bytes(any_path(s), OR_NULL(s, &bytes), &count, err);
        tr_checkpoint_bytes_release(bytes);
        return status;
    default:
        status = tr_checkpoint_diff(any_path(s), any_path(s), OR_NULL(s, &diff), err);
        if (status == TR_OK) {
            status = tr_diff_print(OR_NULL(s, diff), any_sink(s), err);
        }
        tr_diff_destroy(diff);
        return status;
    }
}

// ---- asking

static tr_status call_sampler(session *s, tr_error *err) {
    static const int32_t tokens[] = {1, 2, 3, 60, 0, 5, 7, 9, 11, 61, -1};
    tr_sampler_options options = TR_SAMPLER_OPTIONS_INIT;
    const float *logits = NULL;
    switch (draw(s, 5)) {
    case 0:
        tr_sampler_destroy(s->sampler);
        s->sampler = NULL;
        options.size += draw(s, 8) == 0;
        options.path = draw(s, 3) ? path[0] : any_path(s);
        options.length = (int64_t)draw(s, 12) - 1;
        options.device = draw(s, 8) ? NULL : "gpu";
        options.threads = (int)draw(s, 3);
        options.plan_only = draw(s, 6) == 0;
        options.uncached = draw(s, 3) == 0;
        return tr_sampler_open(OR_NULL(s, &options), OR_NULL(s, &s->sampler), err);
    case 1:
    case 2:
        return tr_sampler_logits(s->sampler, OR_NULL(s, tokens + draw(s, 6)),
                                 (int64_t)draw(s, 6), OR_NULL(s, &logits), err);
    case 3:
        tr_sampler_ends(s->sampler, (int32_t)draw(s, 99) - 5);
        return tr_plan_print(tr_sampler_prompt_plan(s->sampler), any_sink(s), err);
    default:
        return tr_plan_print_json(tr_sampler_token_plan(s->sampler), any_sink(s), err);
    }
}

static tr_status call_sampling(session *s, tr_error *err) {
    float logits[9];
    bool kept[9];
    int32_t token = 0;
    const tr_sampling how = {.size = sizeof how + (draw(s, 8) == 0),
                             .temperature = (double)draw(s, 3) / 2,
                             .top_k = (int64_t)draw(s, 12),
                             .top_p = (double)draw(s, 5) / 4,
                             .seed = draw(s, 100)};
    for (int i = 0; i < 9; i++) {
        uint64_t what = draw(s, 40);
        logits[i] = what == 0   ? NAN
                    : what == 1 ? INFINITY
                    : what == 2 ? -INFINITY
                                : (float)what / 7;
    }
    return draw(s, 2) ? tr_sample_pick(OR_NULL(s, logits), 9, OR_NULL(s, &how),
                                       draw(s, 50), OR_NULL(s, &token), err)
                      : tr_sample_keep(OR_NULL(s, logits), 9, OR_NULL(s, &how),
                                       OR_NULL(s, kept), err);
}

static tr_status make_evaluator(session *s, tr_error *err) {
    tr_evaluator_options options = TR_EVALUATOR_OPTIONS_INIT;
    const char *set = draw(s, 2) ? "seed=4" : "sed=4";
    tr_evaluator_destroy(s->evaluator);
    s->evaluator = NULL;
    options.size += draw(s, 8) == 0;
    options.path = draw(s, 3) ? path[0] : any_path(s);
    options.own_data = draw(s, 2) ? s->dataset : NULL;
    options.rows_only = draw(s, 4) == 0;
    options.plan_only = draw(s, 8) == 0;
    options.micro_batch = (int64_t)draw(s, 5) - 1;
    options.set = &set;
    options.set_count = draw(s, 4) == 0;
    return tr_evaluator_create(OR_NULL(s, &options), OR_NULL(s, &s->evaluator), err);
}

static tr_status call_evaluator(session *s, tr_error *err) {
    static int32_t ids[VALUES];
    static float logits[VALUES * 8];
    const void *rows[] = {OR_NULL(s, ids), OR_NULL(s, ids)};
    tr_predictions predictions = TR_PREDICTIONS_INIT;
    tr_evaluated result = TR_EVALUATED_INIT;
    predictions.size -= draw(s, 8) == 0;
    result.size -= draw(s, 8) == 0;
    ids[3] = draw(s, 6) ? 3 : 61;
    switch (draw(s, 5)) {
    case 0:
        return make_evaluator(s, err);
    case 1:
        return tr_evaluator_ask(s->evaluator, OR_NULL(s, rows), (int64_t)draw(s, 4),
                                logits, err);
    case 2:
        return tr_evaluator_result(s->evaluator, OR_NULL(s, &result), err);
    case 3:
        tr_evaluator_samples(s->evaluator);
        tr_evaluator_positions(s->evaluator);
        return tr_plan_print(tr_evaluator_plan(s->evaluator), any_sink(s), err);
    default:
        return tr_evaluator_next(s->evaluator, OR_NULL(s, &predictions), err);
    }
}

// ---- data

static tr_status read_ids(void *user, const int64_t *index, int64_t count,
                          void *const *rows, tr_error *err) {
    session *s = user;
    if (draw(s, 12) == 0) {
        return draw(s, 2) ? TR_IO : tr_fail(err, TR_DATA, "sample %d", (int)index[0]);
    }
    for (int64_t i = 0; i < count * 8; i++) {
        ((int64_t *)rows[0])[i] = draw(s, 200) ? index[i / 8] % 61 : INT64_MAX;
        ((int32_t *)rows[1])[i] = draw(s, 200) ? 1 : -3;
    }
    return TR_OK;
}

// It outlives the evaluator.
static void drop_dataset(session *s) {
    tr_evaluator_destroy(s->evaluator);
    s->evaluator = NULL;
    tr_dataset_destroy(s->dataset);
    s->dataset = NULL;
}

static tr_status make_dataset(session *s, tr_error *err) {
    tr_dataset_source source = TR_DATASET_SOURCE_INIT;
    drop_dataset(s);
    source.size += draw(s, 8) == 0;
    source.samples = (int64_t)draw(s, 20) - 1;
    source.tensors = tr_batch_tokens(draw(s, 6) ? 8 : 0);
    source.tensors.tensor[0].desc.dtype = TR_I64;
    source.tensors.count += draw(s, 8) == 0;
    source.vocabulary = source.classes = 61;
    source.read = OR_NULL(s, read_ids);
    source.user = s;
    return tr_dataset_create_callback(OR_NULL(s, &source), OR_NULL(s, &s->dataset),
                                      err);
}

static tr_status open_dataset(session *s, tr_error *err) {
    static const char *const formats[] = {"bytes", "csv", "npy", "text", "bites", NULL};
    const char *data = any_path(s);
    tr_dataset *validation = NULL;
    const tr_data_options options = {.size = sizeof options - (draw(s, 8) == 0),
                                     .format = formats[draw(s, 6)],
                                     .paths = &data,
                                     .path_count = data != NULL,
                                     .validation_fraction = (double)draw(s, 6) / 4,
                                     .sequence_length = (int64_t)draw(s, 10) - 1};
    drop_dataset(s);
    tr_status status = tr_dataset_open(OR_NULL(s, &options), OR_NULL(s, &s->dataset),
                                       OR_NULL(s, &validation), err);
    tr_dataset_destroy(validation);
    if (s->dataset && tr_dataset_tensors(s->dataset)->count > 2) {
        drop_dataset(s); // of more than the rows below
    }
    return status;
}

static tr_status call_dataset(session *s, tr_error *err) {
    static char rows[2][VALUES * 8];
    void *const to[] = {rows[0], rows[1]};
    const int64_t index[] = {0, 1, (int64_t)draw(s, 30) - 2};
    tr_survey survey = TR_SURVEY_INIT;
    survey.size += draw(s, 8) == 0;
    tr_status status = TR_OK;
    switch (draw(s, 5)) {
    case 0:
        return make_dataset(s, err);
    case 1:
        return open_dataset(s, err);
    case 2:
        status = tr_data_survey(any_path(s), OR_NULL(s, &survey), err);
        if (status == TR_OK) {
            tr_survey_windows(&survey, (int)draw(s, 4), (int64_t)draw(s, 5));
        }
        return status;
    case 3:
        tr_dataset_about(s->dataset);
        tr_dataset_hash(s->dataset);
        return tr_dataset_samples(s->dataset) > 0 ? TR_OK : TR_DATA;
    default:
        return tr_dataset_read(s->dataset, OR_NULL(s, index), (int64_t)draw(s, 4),
                               OR_NULL(s, to), err);
    }
}

// ---- text

static tr_status call_decode(session *s, tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    tr_status status =
        tr_tokenizer_decode(s->tokenizer, s->ids.id, s->ids.count, draw(s, 2),
                            OR_NULL(s, &text), OR_NULL(s, &bytes), err);
    tr_tokenizer_text_release(text);
    return status;
}

static tr_status call_tokenizer(session *s, tr_error *err) {
    static const char text[] = "Once upon \xc3\xa4 <s> time\xff!";
    const int32_t more[] = {3, -1, 1 << 20};
    size_t bytes = draw(s, sizeof text);
    switch (draw(s, 8)) {
    case 0:
        tr_encoder_destroy(s->encoder);
        s->encoder = NULL;
        tr_tokenizer_destroy(s->tokenizer);
        s->tokenizer = NULL;
        return tr_tokenizer_load(draw(s, 3) ? path[1] : any_path(s),
                                 OR_NULL(s, &s->tokenizer), err);
    case 1:
        tr_encoder_destroy(s->encoder);
        s->encoder = NULL;
        return tr_encoder_create(s->tokenizer, OR_NULL(s, &s->encoder), err);
    case 2:
        return tr_encoder_encode(s->encoder, OR_NULL(s, text), bytes, NULL,
                                 OR_NULL(s, &s->ids), err);
    case 3:
        return call_decode(s, err);
    case 4:
        tr_tokenizer_find(s->tokenizer, OR_NULL(s, "a"));
        tr_tokenizer_token(s->tokenizer, (int32_t)draw(s, 600) - 20,
                           OR_NULL(s, &bytes));
        return tr_tokenizer_vocabulary(s->tokenizer) > 0 ? TR_OK : TR_DATA;
    case 5:
        return tr_token_ids_add(OR_NULL(s, &s->ids), more, draw(s, 4), err);
    case 6:
        tr_token_ids_release(&s->ids);
        return TR_OK;
    default:
        return tr_tokenizer_encode(s->tokenizer, OR_NULL(s, text), bytes, NULL,
                                   (int)draw(s, 3), OR_NULL(s, &s->ids), err);
    }
}

static tr_status call_dialog(session *s, tr_error *err) {
    const char *text = NULL;
    size_t bytes = 0;
    int32_t id = 0;
    switch (draw(s, 4)) {
    case 0:
        tr_dialog_destroy(s->dialog);
        s->dialog = NULL;
        return tr_dialog_create(any_path(s), any_path(s), OR_NULL(s, &s->dialog), err);
    case 1:
        return tr_dialog_add(s->dialog, OR_NULL(s, "user"), OR_NULL(s, "a\xff"),
                             draw(s, 3), err);
    case 2:
        return tr_dialog_prompt(s->dialog, OR_NULL(s, &text), OR_NULL(s, &bytes), err);
    default:
        return tr_dialog_eos(s->dialog, s->tokenizer, OR_NULL(s, &id), err);
    }
}

// ---- plans

static tr_status make_run(session *s, tr_error *err) {
    tr_simulated_destroy(s->simulated);
    s->simulated = NULL;
    tr_plan_destroy(s->plan);
    s->plan = NULL;
    tr_run_destroy(s->run);
    s->run = NULL;
    tr_status status = tr_run_create(OR_NULL(s, &s->run), err);
    status = status == TR_OK
                 ? tr_run_load_text(s->run,
                                    "{\"model\": {\"model_type\": \"mlp\", "
                                    "\"layer_sizes\": [4, 3]}, \"data\": {\"format\": "
                                    "\"random\", \"samples\": 9, \"features\": 4, "
                                    "\"classes\": 3}, \"steps\": 2, "
                                    "\"train_batch_size\": 2}",
                                    err)
                 : status;
    status = status == TR_OK ? tr_run_set(s->run, "plan_only", "true", err) : status;
    status = status == TR_OK && draw(s, 8) ? tr_run_resolve(s->run, err) : status;
    return status == TR_OK ? tr_run_make_plan(s->run, OR_NULL(s, &s->plan), err)
                           : status;
}

static void take_row(void *user, const tr_compared *row) {
    *(int64_t *)user += row->wave;
}

static tr_status call_plan(session *s, tr_error *err) {
    int64_t sum = 0;
    switch (draw(s, 8)) {
    case 0:
        return make_run(s, err);
    case 1:
        tr_simulated_destroy(s->simulated);
        s->simulated = NULL;
        tr_machine_close(s->machine);
        s->machine = NULL;
        return tr_machine_open(draw(s, 3) ? path[2] : any_path(s),
                               OR_NULL(s, &s->machine), err);
    case 2:
        tr_simulated_destroy(s->simulated);
        s->simulated = NULL;
        return tr_simulate(s->plan, s->machine, OR_NULL(s, &s->simulated), err);
    case 3:
        tr_simulated_result(s->simulated);
        return tr_simulated_print(s->simulated, any_sink(s), err);
    case 4:
        return draw(s, 2) ? tr_simulated_print_json(s->simulated, any_sink(s), err)
                          : tr_simulated_trace(s->simulated, any_sink(s), err);
    case 5:
        return draw(s, 2) ? tr_run_print_plan(s->run, s->plan, any_sink(s), err)
                          : tr_run_print_plan_json(s->run, s->plan, any_sink(s), err);
    case 6:
        return draw(s, 2) ? tr_plan_check_memory(s->plan, OR_NULL(s, "this"), err)
                          : tr_run_check_memory(s->run, s->plan, err);
    default:
        return tr_run_compare(s->run, s->machine, OR_NULL(s, take_row), &sum, err);
    }
}

// ---- ranks

static tr_status call_comm(session *s, tr_error *err) {
    tr_comm_functions functions = TR_COMM_FUNCTIONS_INIT;
    tr_error mine = {0};
    int64_t most = 0;
    switch (draw(s, 5)) {
    case 0:
        tr_comm_close(s->comm);
        s->comm = NULL;
        return tr_comm_open(OR_NULL(s, &s->comm), err);
    case 1:
        functions.rank = (int)draw(s, 3) - 1;
        functions.ranks = (int)draw(s, 3);
        return tr_comm_create_callback(OR_NULL(s, &functions), OR_NULL(s, &s->comm),
                                       err);
    case 2:
        return tr_comm_most(s->comm, (int64_t)draw(s, 9), &most, err);
    case 3:
        tr_comm_speaks(s->comm);
        tr_comm_threads(s->comm);
        return tr_comm_rank(s->comm) < tr_comm_ranks(s->comm) ? TR_OK : TR_INTERNAL;
    default:
        tr_fail(&mine, draw(s, 2) ? TR_OK : TR_DATA, "drawn");
        return s->comm ? tr_comm_agree(s->comm, OR_NULL(s, &mine), err) : TR_OK;
    }
}

static void call_one(session *s) {
    static tr_status (*const calls[])(session * s, tr_error * err) = {
        call_inspection, call_checkpoint, call_sampler, call_sampling, call_evaluator,
        call_dataset,    call_tokenizer,  call_dialog,  call_plan,     call_comm};
    tr_error err = {0};
    uint64_t which = draw(s, sizeof calls / sizeof *calls);
    tr_status status = calls[which](s, &err);
    s->good += status == TR_OK;
    if (err.status != TR_OK && !err.message[0]) {
        fail_msg("an error without a message, of call %d", (int)which);
    }
    if (status == TR_INTERNAL || err.status == TR_INTERNAL) {
        fail_msg("%s", err.message);
    }
}

static void end(session *s) {
    tr_simulated_destroy(s->simulated);
    tr_machine_close(s->machine);
    tr_plan_destroy(s->plan);
    tr_run_destroy(s->run);
    tr_sampler_destroy(s->sampler);
    tr_inspection_destroy(s->inspection);
    drop_dataset(s);
    tr_encoder_destroy(s->encoder);
    tr_tokenizer_destroy(s->tokenizer);
    tr_dialog_destroy(s->dialog);
    tr_comm_close(s->comm);
    tr_token_ids_release(&s->ids);
}

static void make_paths(void **state) {
    char text[PATH_MAX + 512];
    snprintf(path[0], PATH_MAX, "%s", scratch_path(state, "out"));
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 8, "
             "\"n_head\": 2, \"n_positions\": 8, \"vocab_size\": 61}, \"steps\": 1, "
             "\"train_batch_size\": 2, \"out\": \"%s\"}",
             path[0]);
    trial_save_new(text, 61);
    snprintf(path[1], PATH_MAX, "%s/tokenizers/gpt2.json", TR_TEST_DATA);
    snprintf(path[2], PATH_MAX, "%s/examples/machines/two-cores.json", TR_SOURCE_DIR);
    snprintf(path[3], PATH_MAX, "%s",
             scratch_text(state, "rows.csv", "a,b,label\n1,2,0\n3,4,1\n5,6,0\n"));
    snprintf(path[4], PATH_MAX, "%s", scratch_words(state, "words.txt", 4000, 3));
    snprintf(path[5], PATH_MAX, "%s", (const char *)*state);
    snprintf(path[6], PATH_MAX, "%s/not-there", (const char *)*state);
    snprintf(path[7], PATH_MAX, "%s", "");
}

static void drawn_sequences(void **state) {
    const char *asked = getenv("TR_DRAWN_SEQUENCES");
    long sequences = asked ? strtol(asked, NULL, 10) : SEQUENCES, good = 0;
    make_paths(state);
    for (long i = 0; i < sequences; i++) {
        session s = {.seed = (uint64_t)i};
        for (int c = 0; c < CALLS; c++) {
            call_one(&s);
        }
        end(&s);
        good += s.good;
    }
    if (good <= 4 * sequences) {
        fail_msg("%ld calls have succeeded in %ld sequences", good, sequences);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(drawn_sequences, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
