// The whole table of keys: each one changes the run that a file resolves to, or is
// told. No key is silently without an effect.
#include "graph/rewrite.h"
#include "key_places.h"
#include "models/adapter.h"
#include "opening.h"
#include "planner/planner.h"
#include "run/keys/keys.h"
#include "run/run.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A GPT-2 of 13 positions on 4,000 bytes; nothing is ever written.
static const char base[] =
    "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 32, "
    "\"n_head\": 2, \"n_positions\": 13}, \"data\": {\"train\": \"text\"}, "
    "\"steps\": 40, \"train_batch_size\": 12, \"train_micro_batch_size_per_gpu\": 2, "
    "\"out\": \"unused\"}";

enum { SAMPLE_MAX = 4096, SAID_MAX = 1 << 16, WORDS = 256, CANDIDATES = 24 };

static tr_machine *machine;

// ---- a run, as far as it is opened

typedef struct outcome {
    tr_status status;
    char message[TR_MESSAGE_MAX];
    char said[SAID_MAX];
    char *print; // what the run is, as text; NULL: it was refused
} outcome;

static void note(void *user, tr_message_level level, const char *line) {
    char *said = user;
    size_t used = strlen(said);
    (void)level;
    snprintf(said + used, SAID_MAX - used, "%s\n", line);
}

static void print_bytes(FILE *to, const void *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        fprintf(to, "%02x", ((const unsigned char *)data)[i]);
    }
    fputc('\n', to);
}

// What nothing reads as the rest is, no key can have an effect by.
static void drop_unread(const tr_run *run, tr_settings *s) {
    tr_schedule *schedule = &s->schedule;
    if (s->guard.action == TR_GUARD_NONE) {
        memset(&s->guard, 0, sizeof s->guard);
    }
    if (s->guard.action != TR_GUARD_ROLLBACK) {
        s->guard.rate_factor = 0;
        s->guard.warmup_steps = 0;
    }
    if (s->scaling.rule == TR_SCALING_NONE) {
        memset(&s->scaling, 0, sizeof s->scaling);
    }
    if (!run->validation) {
        s->evaluate_every = s->evaluate_samples = 0;
    }
    if (run->request.measure == TR_MEASURE_NEVER) {
        s->noise_keep = 0;
    }
    if (s->log_steps > 0) {
        s->log_seconds = 0;
    }
    if (schedule->kind == TR_SCHEDULE_CONSTANT) {
        memset(schedule, 0, sizeof *schedule);
    }
    if (!schedule->cycle_momentum || !s->optimizer->has_betas) {
        schedule->min_momentum = schedule->max_momentum = schedule->decay_momentum = 0;
    }
    if (schedule->decay_size == 0) {
        schedule->decay_lr = schedule->decay_momentum = 0;
    }
    if (schedule->decay_lr == 0 && schedule->decay_momentum == 0) {
        schedule->decay_size = 0;
    }
}

static void print_monitor(FILE *to, const tr_monitor_place *at) {
    if (at->enabled) {
        fprintf(to, "%s/%s\n", at->path, at->job);
    }
}

// What stands in the structure, with the texts that it points to in place of addresses.
static void print_settings(FILE *to, const tr_run *run) {
    const tr_settings *s = &run->settings;
    tr_settings bare = *s;
    drop_unread(run, &bare);
    bare.groups = NULL;
    bare.apart_rules = NULL;
    bare.freeze = (tr_patterns){0};
    bare.batches.changes = NULL;
    bare.out = bare.nvme_path = bare.resume = bare.trace = NULL;
    bare.csv_monitor.path = bare.csv_monitor.job = NULL;
    bare.tensorboard.path = bare.tensorboard.job = NULL;
    print_bytes(to, &bare, sizeof bare);
    fprintf(to, "%s %s\n", s->out, s->nvme_path ? s->nvme_path : "");
    print_monitor(to, &s->csv_monitor);
    print_monitor(to, &s->tensorboard);
    print_bytes(to, s->batches.changes, s->batches.count * sizeof *s->batches.changes);
    for (size_t p = 0; p < s->freeze.count; p++) {
        fprintf(to, "%s ", s->freeze.globs[p]);
    }
    for (size_t g = 0; g < s->group_count; g++) {
        for (size_t p = 0; p < s->groups[g].match.count; p++) {
            fprintf(to, "%s ", s->groups[g].match.globs[p]);
        }
        print_bytes(to, &s->groups[g].hyper, sizeof s->groups[g].hyper);
        print_bytes(to, &s->groups[g].apart, sizeof s->groups[g].apart);
        bool rules = g + 1 < s->group_count;
        fprintf(to, "%d %d\n", rules && s->apart_rules[g].says,
                rules && s->apart_rules[g].apart);
    }
}

// With its first sample, as it is read.
static void print_data(FILE *to, tr_dataset *data) {
    static float values[TR_BATCH_TENSORS_MAX][SAMPLE_MAX];
    void *rows[TR_BATCH_TENSORS_MAX];
    const int64_t first = 0;
    if (!data) {
        return;
    }
    const tr_batch_tensors *tensors = tr_dataset_tensors(data);
    for (int i = 0; i < tensors->count; i++) {
        rows[i] = values[i];
        assert_true(tr_shape_count(tensors->tensor[i].desc.shape) <= SAMPLE_MAX);
    }
    tr_error err = {0}; // what cannot be read ends the run, later
    tr_dataset_read(data, &first, 1, rows, &err);
    fprintf(to, "%s\n", err.message);
    fprintf(to, "%s %lld %llx\n", tr_dataset_about(data),
            (long long)tr_dataset_samples(data),
            (unsigned long long)tr_dataset_hash(data));
    for (int i = 0; i < tensors->count; i++) {
        print_bytes(to, rows[i],
                    4 * (size_t)tr_shape_count(tensors->tensor[i].desc.shape));
    }
}

// What its units compute.
static void print_graphs(FILE *to, const tr_plan *plan) {
    for (int u = 0; u < plan->unit_count; u++) {
        uint64_t hash = tr__graph_hash(plan->units[u].program->graph);
        print_bytes(to, &hash, sizeof hash);
    }
}

// The memory of its plan, and its units.
static void print_plan(FILE *to, const tr_run *run) {
    tr_plan *plan = NULL;
    tr_error err = {0};
    tr_plan_make(tr_run_plan_request(run), &plan, &err);
    fprintf(to, "%s\n", err.message);
    if (plan) {
        print_bytes(to, tr_plan_ledger(plan), sizeof(tr_ledger));
        print_graphs(to, plan);
    }
    tr_plan_destroy(plan);
}

static void print_adapter(FILE *to, const tr_run *run) {
    const tr_adapter *adapter = run->model->adapter;
    if (!adapter) {
        return;
    }
    fprintf(to, "adapter %lld %g %g %s\n", (long long)adapter->rank, adapter->scale,
            adapter->dropout, run->adapter ? run->adapter : "");
    const char *const *trained = tr__adapter_trained(tr__model_adapter(run->model));
    for (; *trained; trained++) {
        fprintf(to, "%s ", *trained);
    }
}

static char *print(const tr_run *run) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    tr_plan_request request = run->request;
    assert_non_null(to);
    request.model = NULL;
    request.frozen = request.unfrozen = NULL; // the settings have them
    request.apart_rules = NULL;
    print_bytes(to, &request, sizeof request);
    print_settings(to, run);
    print_data(to, run->train);
    print_data(to, run->validation);
    print_bytes(to, &run->batcher, sizeof run->batcher);
    fprintf(to, "%d %s\n", run->order.shuffled, run->model->config_json);
    const char *folder = tr__run_nvme_folder(run);
    fprintf(to, "%s\n", folder && run->settings.nvme_path ? folder : "");
    const char *trace = run->settings.trace;
    fprintf(to, "%s %s\n", run->settings.resume, trace ? trace : "");
    print_adapter(to, run);
    print_plan(to, run);
    if (run->planned) {
        assert_int_equal(tr__planned_print(run->planned, to, NULL), TR_OK);
    }
    fclose(to);
    return text;
}

static void try_run(outcome *o, const char *const *set) {
    tr_error err = {0};
    tr_run *run = NULL;
    memset(o, 0, sizeof *o);
    const char *all[SETS_MAX + 4] = {"resume=never"};
    run_options options = {.text = base,
                           .set = all,
                           .set_count = 1,
                           .machine = machine,
                           .messages = {note, o->said}};
    for (size_t i = 0; set[i]; i++) {
        all[options.set_count++] = set[i];
    }
    o->status = run_open(&options, &run, &err);
    snprintf(o->message, sizeof o->message, "%s", err.message);
    o->print = o->status == TR_OK ? print(run) : NULL;
    tr_run_destroy(run);
}

// ---- what to try

static const place *find_place(const char *path) {
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (strcmp(places[i].path, path) == 0) {
            return &places[i];
        }
    }
    return NULL;
}

typedef char candidate[WORDS];

static size_t add(candidate *list, size_t count, const char *value) {
    if (count < CANDIDATES) {
        snprintf(list[count++], WORDS, "%s", value);
    }
    return count;
}

// Values that are not the default.
static size_t candidates(const tr_key *key, candidate *list) {
    static const char *const integers[] = {"1", "2", "3", "7", "12", "24"};
    static const char *const numbers[] = {"0.25", "0.5", "2", "3"};
    size_t count = 0;
    if (key->types & TR_KEY_BOOL) {
        count = add(list, count, "true");
        count = add(list, count, "false");
    }
    for (const char *const *name = key->choices; name && *name; name++) {
        count = add(list, count, *name);
    }
    for (int i = 0; i < 6 && key->types & TR_KEY_INT; i++) {
        count = add(list, count, integers[i]);
    }
    for (int i = 0; i < 4 && key->types & TR_KEY_NUMBER; i++) {
        count = add(list, count, numbers[i]);
    }
    if (key->types & TR_KEY_SIZE) {
        count = add(list, count, "1GiB");
    }
    if (key->types & TR_KEY_LIST && key->elements == 0) {
        count = add(list, count, "[1]");
    }
    if (key->types & TR_KEY_LIST && key->elements == TR_KEY_TEXT) {
        count = add(list, count, "[\"x\"]");
    }
    if (key->types & TR_KEY_OBJECT) {
        count = add(list, count, "{\"enabled\": true}");
    }
    if (key->types & TR_KEY_TEXT && !key->choices) {
        count = add(list, count, "x");
    }
    return count;
}

static const tr_key *key_at(size_t index) {
    return tr__key_at(tr__key_tables, TR_KEY_TABLES, index);
}

static const tr_key *find_key(const char *path) {
    const tr_key *key;
    for (size_t i = 0; (key = key_at(i)) != NULL; i++) {
        if (strcmp(key->path, path) == 0) {
            return key;
        }
    }
    return NULL;
}

// Without what the key must have to be one at all: another key's value, and its group's
// switch. Returns how many settings these are.
static size_t prerequisites(const tr_key *key, candidate *list, const char **set) {
    size_t count = 0;
    char enabled[WORDS];
    const char *dot = strrchr(key->path, '.');
    if (key->where_key) {
        snprintf(list[count++], WORDS, "%s=%s", key->where_key, key->where[0]);
    }
    snprintf(enabled, sizeof enabled, "%.*s.enabled", dot ? (int)(dot - key->path) : 0,
             key->path);
    const tr_key *group = find_key(enabled);
    if (group && group != key) {
        snprintf(list[count++], WORDS, "%.200s=true", enabled);
    }
    for (size_t i = 0; i < count; i++) {
        set[i] = list[i];
    }
    return count;
}

// ---- what came of it

typedef enum verdict { SILENT, TOLD, CHANGED } verdict;

// Is a group of the key told as a whole: as ignored, or by its switch?
static bool names_group(const char *text, const char *path) {
    static const char *const words[] = {".*", ".enabled is true, which has no effect"};
    char group[WORDS];
    for (const char *dot = strchr(path, '.'); dot; dot = strchr(dot + 1, '.')) {
        for (int i = 0; i < 2; i++) {
            snprintf(group, sizeof group, "%.*s%s", (int)(dot - path), path, words[i]);
            if (strstr(text, group)) {
                return true;
            }
        }
    }
    return false;
}

// A run that is refused is not silent.
static verdict judge(const tr_key *key, const outcome *plain, const outcome *with) {
    bool named = strstr(with->said, key->path) && !strstr(plain->said, key->path);
    if (with->status != TR_OK || named || names_group(with->said, key->path)) {
        return TOLD;
    }
    return !plain->print || strcmp(plain->print, with->print) != 0 ? CHANGED : SILENT;
}

// The key beside `set`, which has `used` entries and room for one more.
static verdict try_value(const tr_key *key, const outcome *plain, const char **set,
                         size_t used, const char *value, bool show) {
    char own[2 * WORDS];
    outcome with;
    snprintf(own, sizeof own, "%s=%s", key->path, value);
    set[used] = own;
    set[used + 1] = NULL;
    try_run(&with, set);
    set[used] = NULL;
    verdict v = judge(key, plain, &with);
    if (show) {
        print_error("%s: %s%s\n", own, with.message, with.said);
    }
    free(with.print);
    return v;
}

static verdict try_values(const tr_key *key, const char **set, size_t used,
                          const char *value, bool show) {
    candidate list[CANDIDATES];
    outcome plain;
    verdict most = SILENT;
    size_t count = value ? add(list, 0, value) : candidates(key, list);
    set[used] = NULL;
    try_run(&plain, set);
    for (size_t i = 0; i < count; i++) {
        verdict v = try_value(key, &plain, set, used, list[i], show);
        most = v > most ? v : most;
    }
    free(plain.print);
    return most;
}

// Alone: with what makes it a key, and nothing more.
static verdict alone(const tr_key *key, bool show) {
    candidate list[2];
    const char *set[SETS_MAX + 2];
    size_t used = prerequisites(key, list, set);
    const place *p = find_place(key->path);
    // Two optimizers may have one key, with other defaults.
    bool usual = p && p->value && key->fallback && strcmp(p->value, key->fallback) == 0;
    return try_values(key, set, used, p && !usual ? p->value : NULL, show);
}

static verdict in_place(const tr_key *key, bool show) {
    const char *set[SETS_MAX + 2];
    const place *p = find_place(key->path);
    size_t used = 0;
    if (!p) {
        return alone(key, show);
    }
    while (p->with[used]) {
        set[used] = p->with[used];
        used++;
    }
    return try_values(key, set, used, p->value, show);
}

// ---- the tests

static void a_run_is_told_apart(void **state) {
    outcome first, second, other;
    (void)state;
    try_run(&first, (const char *const[]){NULL});
    try_run(&second, (const char *const[]){NULL});
    try_run(&other, (const char *const[]){"seed=5", NULL});
    if (first.status != TR_OK) {
        fail_msg("%s", first.message);
    }
    assert_string_equal(first.print, second.print);
    assert_string_not_equal(first.print, other.print);
    free(first.print);
    free(second.print);
    free(other.print);
}

static void no_key_is_silent(void **state) {
    int silent = 0;
    const tr_key *key;
    (void)state;
    for (size_t i = 0; (key = key_at(i)) != NULL; i++) {
        if (!strchr(key->path, '*') && alone(key, false) == SILENT) {
            print_error("%s does nothing, without a word\n", key->path);
            alone(key, true);
            silent++;
        }
    }
    assert_int_equal(silent, 0);
}

static void every_key_that_works_does_something(void **state) {
    int idle = 0;
    const tr_key *key;
    (void)state;
    for (size_t i = 0; (key = key_at(i)) != NULL; i++) {
        bool works = key->status == TR_KEY_WORKS && !strchr(key->path, '*');
        if (works && in_place(key, false) != CHANGED) {
            print_error("%s: nothing shows what it does; where it does something is to "
                        "be said in `places`\n",
                        key->path);
            in_place(key, true);
            idle++;
        }
    }
    assert_int_equal(idle, 0);
}

// Keys that are of no use beside others are told as well.
static void nor_in_company(void **state) {
    static const place all[] = {
        {"optimizer.params.lr",
         "0.5",
         {"scheduler.type=WarmupLR", SCHED "warmup_max_lr=0.1"}},
        {"log.every_seconds", "3", {"steps_per_print=2"}},
        {"fp16.hysteresis", "4", {"fp16.enabled=true", "fp16.loss_scale=8"}},
        {"noise_scale.smoothing", "0.5", {"noise_scale.measure=false"}},
        {"spike_guard.warmup_steps", "4", {"spike_guard.action=warn"}},
        {ZERO "cpu_offload", "true", {ZERO "offload_optimizer.device=none"}},
        {ZERO "offload_optimizer.ratio", "0.5", {"memory.device=1GiB"}},
        {ZERO "offload_optimizer.ratio", "0.5", {ZERO "offload_optimizer.device=auto"}},
        {"activation_checkpointing.cpu_checkpointing",
         "true",
         {"activation_checkpointing.number_checkpoints=0"}},
        {"activation_checkpointing.cpu_saved",
         "true",
         {"activation_checkpointing.number_checkpoints=9"}},
        {"execution.recompute_units", "2", {"execution.recompute=none"}},
        {"data.image_mean", "0.5", ROWS},
        {"data.image_layout", "channels_last", ROWS},
        {"data.validation_labels", "labels.npy", ROWS},
        {SCHED "cycle_min_mom", "0.5", {CYCLE, SCHED "cycle_momentum=false"}},
        {SCHED "cycle_min_mom", "0.5", {CYCLE, "optimizer.type=SGD"}},
        {SCHED "cycle_momentum", "false", {CYCLE, "optimizer.type=LARS"}},
        {"optimizer.params.dampening", "0.5", {"optimizer.type=SGD"}},
        {"optimizer.params.adam_w_mode", "false", {"optimizer.type=AdamW"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *set[SETS_MAX + 2];
        size_t used = 0;
        for (; all[i].with[used]; used++) {
            set[used] = all[i].with[used];
        }
        const tr_key *key = find_key(all[i].path);
        assert_non_null(key);
        if (try_values(key, set, used, all[i].value, false) != TOLD) {
            try_values(key, set, used, all[i].value, true);
            fail_msg("%s=%s has no effect here, without a word", key->path,
                     all[i].value);
        }
    }
}

// Betas are cycled in every optimizer that has them, and nothing says otherwise.
static void cycles_of_betas(void **state) {
    static const char *const types[] = {"optimizer.type=Adam", "optimizer.type=Lion",
                                        "optimizer.type=Lamb"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *set[SETS_MAX + 2] = {CYCLE, types[i]};
        const tr_key *key = find_key(SCHED "cycle_min_mom");
        assert_int_equal(try_values(key, set, 4, "0.5", false), CHANGED);
    }
}

// ---- what the runs read

// Records whose parts have second names, and templates that tell them apart.
static void write_records(void **state) {
    scratch_text(state, "texts.jsonl", "{\"text\": \"one\", \"other\": \"two\"}\n");
    scratch_text(
        state, "labelled.jsonl",
        "{\"text\": \"one\", \"other\": \"two\", \"label\": \"a\", \"mood\": 1, "
        "\"anchor\": \"one\", \"positive\": \"a\", \"negative\": \"b\"}\n"
        "{\"text\": \"the river waits\", \"label\": \"b\", \"mood\": 0, "
        "\"other\": \"x\", \"anchor\": \"two\", \"positive\": \"c\", "
        "\"negative\": \"d\"}\n");
    scratch_text(
        state, "completions.jsonl",
        "{\"prompt\": \"one\", \"completion\": \"two\", \"other\": \"six\"}\n");
    scratch_text(state, "chats.jsonl",
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"one\"}], "
                 "\"other\": [{\"role\": \"user\", \"content\": \"two\"}]}\n");
    scratch_text(state, "roles.jinja",
                 "{% for m in messages %}{{ m.role }} {{ m.content }}{% endfor %}");
    scratch_text(state, "contents.jinja",
                 "{% for m in messages %}{{ m.content }}{% endfor %}");
    scratch_text(state, "dated.jinja",
                 "{{ strftime_now('%d') }} {{ messages[0].content }}");
}

static int set_up(void **state) {
    enum { IDS = 1200, IMAGES_BYTES = 24 * 8 * 8 * 8 };
    static uint16_t ids[IDS];
    static uint32_t wide[IDS];
    static unsigned char pixels[IMAGES_BYTES];
    static int64_t labels[24];
    tr_error err = {0};
    if (scratch_make(state) != 0 || chdir(*state) != 0 ||
        setenv("XDG_CACHE_HOME", scratch_path(state, "cache"), 1) != 0) {
        return -1;
    }
    for (int i = 0; i < IDS; i++) {
        ids[i] = (uint16_t)(i % 200 + 1);
        wide[i] = (uint32_t)(i % 200 + 1);
    }
    for (int i = 0; i < IMAGES_BYTES; i++) {
        pixels[i] = (unsigned char)(i % 251);
    }
    for (int i = 0; i < 24; i++) {
        labels[i] = i % 2;
    }
    scratch_words(state, "text", 4000, 1);
    scratch_words(state, "more", 900, 2);
    scratch_text(state, "prose", "one two three <|end|> four five six\n");
    write_records(state);
    scratch_write(state, "ids.bin", ids, sizeof ids);
    scratch_write(state, "wide.bin", wide, sizeof wide);
    scratch_write(state, "labels.bin", ids, sizeof ids);
    scratch_text(state, "table.csv", "1,2,0\n2,1,1\n0,2,2\n1,1,0\n");
    scratch_npy(state, "images.npy", "|u1", "(24, 8, 8, 8)", pixels, sizeof pixels);
    scratch_npy(state, "labels.npy", "<i8", "(24,)", labels, sizeof labels);
    tr_status status = tr_machine_open(
        TR_SOURCE_DIR "/examples/machines/two-cores.json", &machine, &err);
    return status == TR_OK ? 0 : -1;
}

static int tear_down(void **state) {
    tr_machine_close(machine);
    return scratch_remove(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_told_apart),
        cmocka_unit_test(no_key_is_silent),
        cmocka_unit_test(every_key_that_works_does_something),
        cmocka_unit_test(nor_in_company),
        cmocka_unit_test(cycles_of_betas),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
