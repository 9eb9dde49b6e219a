// Every key of zero_optimization and activation_checkpointing is accepted with its
// meaning, or said to have none here, or refused; and the two devices of offloading go
// with all stages and any number of ranks, or say why not.
#include "run/keys/keys.h"
#include "run/run.h"
#include "samples.h"
#include "trial.h"

#include <stdio.h>
#include <string.h>

static samples data;

static const char base[] =
    "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 32, "
    "\"n_head\": 2, \"n_positions\": 9, \"vocab_size\": 61}, \"steps\": 1, "
    "\"train_batch_size\": 12, \"train_micro_batch_size_per_gpu\": 1, \"out\": "
    "\"unused\"}";

enum { SAID_MAX = 8192, SETS_MAX = 6 };

typedef struct outcome {
    tr_status status;
    tr_error err;
    tr_run *run; // NULL: not opened
    tr_plan *plan;
    char said[SAID_MAX];
} outcome;

static void note(void *user, tr_message_level level, const char *line) {
    char *said = user;
    size_t used = strlen(said);
    (void)level;
    snprintf(said + used, SAID_MAX - used, "%s\n", line);
}

// Opens the run with `set` (ended by NULL) and makes its plan.
static void try_keys(outcome *o, int64_t ranks, const char *const *set) {
    memset(o, 0, sizeof *o);
    run_options options = {.text = base,
                           .set = set,
                           .ranks = ranks,
                           .own_train = data.dataset,
                           .resume = "never",
                           .plan_only = true,
                           .messages = {note, o->said}};
    while (set[options.set_count]) {
        options.set_count++;
    }
    o->status = run_open(&options, &o->run, &o->err);
    if (o->status == TR_OK) {
        o->status = tr_plan_make(tr_run_plan_request(o->run), &o->plan, &o->err);
    }
}

static void end(outcome *o) {
    tr_plan_destroy(o->plan);
    tr_run_destroy(o->run);
}

static void must_do(const outcome *o, const char *what) {
    if (o->status != TR_OK) {
        fail_msg("%s: %s", what, o->err.message);
    }
}

static void must_refuse(const outcome *o, const char *what, const char *words) {
    if (o->status != TR_USAGE || !strstr(o->err.message, words)) {
        fail_msg("%s: not refused with \"%s\": %s", what, words, o->err.message);
    }
}

// ---- keys that have a meaning

typedef struct meaning {
    const char *path;
    const char *value;
    const char *with[SETS_MAX]; // what else is set
    // 1 where the plan is what the key asks for.
    bool (*holds)(const tr_plan *plan, const tr_run *run);
} meaning;

static bool stage_is_2(const tr_plan *plan, const tr_run *run) {
    (void)run;
    return plan->request.stage == 2;
}

static int64_t bytes_of(const tr_plan *plan, tr_space space, tr_ledger_category what) {
    return tr_plan_ledger(plan)->bytes[space][what];
}

static bool state_on_host(const tr_plan *plan, const tr_run *run) {
    (void)run;
    return bytes_of(plan, TR_SPACE_HOST, TR_LEDGER_optimizer) > 0 &&
           bytes_of(plan, TR_SPACE_DEVICE, TR_LEDGER_optimizer) == 0;
}

static bool state_in_both(const tr_plan *plan, const tr_run *run) {
    int64_t here = bytes_of(plan, TR_SPACE_DEVICE, TR_LEDGER_optimizer);
    (void)run;
    return here > 0 && bytes_of(plan, TR_SPACE_HOST, TR_LEDGER_optimizer) >= here;
}

static bool params_on_host(const tr_plan *plan, const tr_run *run) {
    (void)run;
    return plan->request.param_placement == TR_SPACE_HOST &&
           bytes_of(plan, TR_SPACE_HOST, TR_LEDGER_parameters) > 0;
}

static bool state_in_folder(const tr_plan *plan, const tr_run *run) {
    return bytes_of(plan, TR_SPACE_NVME, TR_LEDGER_optimizer) > 0 &&
           strcmp(tr__run_nvme_folder(run), "/tmp") == 0;
}

static bool params_in_folder(const tr_plan *plan, const tr_run *run) {
    return bytes_of(plan, TR_SPACE_NVME, TR_LEDGER_parameters) > 0 &&
           strcmp(tr__run_nvme_folder(run), "/tmp") == 0;
}

static bool waits(const tr_plan *plan, const tr_run *run) {
    (void)run;
    return plan->request.no_overlap;
}

static bool two_units(const tr_plan *plan, const tr_run *run) {
    (void)run;
    return plan->request.recomputed_units == 2;
}

static bool inputs_on_host(const tr_plan *plan, const tr_run *run) {
    (void)run;
    return bytes_of(plan, TR_SPACE_HOST, TR_LEDGER_boundary) > 0;
}

static bool saved_on_host(const tr_plan *plan, const tr_run *run) {
    (void)run;
    return bytes_of(plan, TR_SPACE_HOST, TR_LEDGER_activations) > 0;
}

#define ZERO       "zero_optimization."
#define ON_CPU     ZERO "offload_optimizer.device=cpu"
#define CHECKPOINT "activation_checkpointing."

static const meaning meanings[] = {
    {ZERO "stage", "2", {0}, stage_is_2},
    {ZERO "offload_optimizer.device", "cpu", {0}, state_on_host},
    {ZERO "offload_optimizer.nvme_path",
     "/tmp",
     {ZERO "offload_optimizer.device=nvme"},
     state_in_folder},
    {ZERO "offload_optimizer.ratio", "0.5", {ON_CPU}, state_in_both},
    {ZERO "offload_param.device", "cpu", {ON_CPU}, params_on_host},
    {ZERO "offload_param.nvme_path",
     "/tmp",
     {ON_CPU, ZERO "offload_param.device=nvme"},
     params_in_folder},
    {ZERO "cpu_offload", "true", {0}, state_on_host},
    {ZERO "cpu_offload_params", "true", {ON_CPU}, params_on_host},
    {ZERO "cpu_offload_param", "true", {ON_CPU}, params_on_host},
    {ZERO "overlap_comm", "false", {0}, waits},
    {CHECKPOINT "number_checkpoints", "2", {0}, two_units},
    {CHECKPOINT "cpu_checkpointing",
     "true",
     {CHECKPOINT "number_checkpoints=4", "execution.wave=4"},
     inputs_on_host},
    {CHECKPOINT "cpu_saved", "true", {"execution.wave=4"}, saved_on_host},
};
enum { MEANINGS = sizeof meanings / sizeof *meanings };

static const meaning *find_meaning(const char *path) {
    for (int i = 0; i < MEANINGS; i++) {
        if (strcmp(meanings[i].path, path) == 0) {
            return &meanings[i];
        }
    }
    return NULL;
}

static void check_meaning(const tr_key *key) {
    const meaning *m = find_meaning(key->path);
    const char *set[SETS_MAX + 2] = {0};
    char own[256];
    outcome with, without;
    if (!m) {
        fail_msg("%s works, and nothing tests what it does", key->path);
        return;
    }
    memcpy(set, m->with, sizeof m->with);
    try_keys(&without, 1, set);
    snprintf(own, sizeof own, "%s=%s", m->path, m->value);
    size_t used = 0;
    while (set[used]) {
        used++;
    }
    set[used] = own;
    try_keys(&with, 1, set);
    must_do(&with, own);
    if (!m->holds(with.plan, with.run)) {
        fail_msg("%s does not do what it says", own);
    }
    if (without.status == TR_OK && !strstr(m->path, "nvme_path")) {
        assert_false(m->holds(without.plan, without.run));
    }
    end(&with);
    end(&without);
}

// ---- keys that have none, or will have one

static const char *value_of(const tr_key *key) {
    if (key->types & TR_KEY_BOOL) {
        return "true";
    }
    return key->types & TR_KEY_OBJECT ? "{\"enabled\": true}" : "3";
}

static void check_said(const tr_key *key) {
    char own[256];
    outcome o, plain;
    snprintf(own, sizeof own, "%s=%s", key->path, value_of(key));
    try_keys(&plain, 1, (const char *const[]){NULL});
    try_keys(&o, 1, (const char *const[]){own, NULL});
    must_do(&o, own);
    const char *found = strstr(o.said, key->path);
    if (!found || strstr(found + 1, key->path)) {
        fail_msg("%s: not said, or said twice, that it has no meaning: %s", own,
                 o.said);
    }
    assert_memory_equal(tr_plan_ledger(o.plan), tr_plan_ledger(plain.plan),
                        sizeof(tr_ledger));
    end(&o);
    end(&plain);
}

static void check_refused(const tr_key *key) {
    char own[256];
    outcome o;
    snprintf(own, sizeof own, "%s=%s", key->path, value_of(key));
    try_keys(&o, 1, (const char *const[]){own, NULL});
    must_refuse(&o, own, key->path);
    must_refuse(&o, own, "not yet supported");
    end(&o);
    if (key->fallback) {
        snprintf(own, sizeof own, "%s=%s", key->path, key->fallback);
        try_keys(&o, 1, (const char *const[]){own, NULL});
        must_do(&o, own);
        end(&o);
    }
}

static void every_key_says_what_it_does(void **state) {
    (void)state;
    int seen[TR_KEY_REFUSED + 1] = {0};
    for (size_t i = 0; i < tr__keys_zero.count; i++) {
        const tr_key *key = &tr__keys_zero.keys[i];
        switch (key->status) {
        case TR_KEY_WORKS:
            check_meaning(key);
            break;
        case TR_KEY_NO_MEANING:
            check_said(key);
            break;
        default:
            check_refused(key);
        }
        seen[key->status]++;
    }
    assert_int_equal(seen[TR_KEY_WORKS], MEANINGS);
    assert_true(seen[TR_KEY_NO_MEANING] > 40 && seen[TR_KEY_NOT_YET] > 5);
}

// DeepSpeed 0.19's own names: of both devices, and those that older files have.
static void known_keys_are_there(void **state) {
    (void)state;
    static const char *const names[] = {"stage",
                                        "offload_optimizer.device",
                                        "offload_optimizer.nvme_path",
                                        "offload_optimizer.pin_memory",
                                        "offload_optimizer.buffer_count",
                                        "offload_optimizer.pipeline_read",
                                        "offload_optimizer.pipeline_write",
                                        "offload_optimizer.fast_init",
                                        "offload_optimizer.ratio",
                                        "offload_param.device",
                                        "offload_param.nvme_path",
                                        "offload_param.pin_memory",
                                        "offload_param.buffer_count",
                                        "offload_param.buffer_size",
                                        "offload_param.max_in_cpu",
                                        "contiguous_gradients",
                                        "overlap_comm",
                                        "reduce_scatter",
                                        "allgather_partitions",
                                        "allgather_bucket_size",
                                        "reduce_bucket_size",
                                        "sub_group_size",
                                        "round_robin_gradients",
                                        "stage3_prefetch_bucket_size",
                                        "stage3_param_persistence_threshold",
                                        "stage3_model_persistence_threshold",
                                        "stage3_max_live_parameters",
                                        "stage3_max_reuse_distance",
                                        "stage3_gather_16bit_weights_on_model_save",
                                        "stage3_module_granularity_threshold",
                                        "cpu_offload",
                                        "cpu_offload_params"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        bool found = false;
        for (size_t i = 0; i < tr__keys_zero.count && !found; i++) {
            const char *path = tr__keys_zero.keys[i].path;
            found = strncmp(path, ZERO, strlen(ZERO)) == 0 &&
                    strcmp(path + strlen(ZERO), names[n]) == 0;
        }
        if (!found) {
            fail_msg("%s%s is not known", ZERO, names[n]);
        }
    }
}

// ---- both devices, all stages, any number of ranks

static const char *const places[] = {"none", "cpu", "nvme"};

static void check_places(const outcome *o, const char *what, int optimizer,
                         int params) {
    must_do(o, what);
    const tr_ledger *ledger = tr_plan_ledger(o->plan);
    for (int space = 0; space < TR_SPACES; space++) {
        bool here = ledger->bytes[space][TR_LEDGER_optimizer] > 0;
        assert_int_equal(here, space == optimizer);
        here = ledger->bytes[space][TR_LEDGER_parameters] > 0;
        assert_true(here || space != params);
    }
}

static void check_pair(int64_t ranks, int stage, int optimizer, int params) {
    char a[64], b[80], c[80], what[256];
    outcome o;
    snprintf(a, sizeof a, ZERO "stage=%d", stage);
    snprintf(b, sizeof b, ZERO "offload_optimizer.device=%s", places[optimizer]);
    snprintf(c, sizeof c, ZERO "offload_param.device=%s", places[params]);
    snprintf(what, sizeof what, "%d ranks, %s, %s, %s", (int)ranks, a, b, c);
    try_keys(&o, ranks, (const char *const[]){a, b, c, "memory.nvme.path=/tmp", NULL});
    if (params > 0 && ranks > 1 && stage < 3) {
        must_refuse(&o, what, "stage");
    } else {
        check_places(&o, what, optimizer, params);
    }
    end(&o);
}

static void both_devices_go_with_all_stages(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= 5; ranks += 2) {
        for (int stage = 0; stage <= 3; stage++) {
            for (int pair = 0; pair < 9; pair++) {
                check_pair(ranks, stage, pair % 3, pair / 3);
            }
        }
    }
}

static int set_up(void **state) {
    (void)state;
    samples_tokens(&data, 40, 9, 61, 5);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    samples_free(&data);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_says_what_it_does),
        cmocka_unit_test(known_keys_are_there),
        cmocka_unit_test(both_devices_go_with_all_stages),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
