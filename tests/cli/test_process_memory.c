// Training in less memory than the model and its state take, the whole process limited:
// the planner places the rest on the disk.
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// 15 million parameters: with gradients and state they take 307 MB. The limit is one of
// address space, of which code and stacks take more than 100 MB.
enum { LAYERS = 16, WIDTH = 1000, LIMIT_MB = 320 };

static const char budgets[] = "memory={\"device\": \"50MB\", \"host\": \"230MB\", "
                              "\"nvme\": {\"path\": \".\"}}";

static void write_run(void *const *state) {
    char text[1024], sizes[LAYERS * 6 + 1] = "";
    for (int i = 0; i < LAYERS; i++) {
        snprintf(sizes + strlen(sizes), sizeof sizes - strlen(sizes), "%d, ", WIDTH);
    }
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [64, %s10]},"
             " \"data\": {\"format\": \"random\", \"samples\": 32, \"features\": 64,"
             " \"classes\": 10}, \"train_batch_size\": 16, \"steps\": 2,"
             " \"checkpoint\": {\"keep\": 1},"
             " \"execution\": {\"threads\": 1, \"reproducible\": true},"
             " \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3}}}",
             sizes);
    file_text(state, "run.json", text);
}

// Device and host take what their plan says, to the byte.
static void check_metrics(void *const *state, const char *path) {
    char *text = file_read(state, path, NULL), *rest = text, *line;
    int steps = 0;
    while ((line = strsep(&rest, "\n")) && *line) {
        json_t *object = json_loads(line, 0, NULL);
        const json_t *planned = json_object_get(object, "planned_peak_bytes");
        const json_t *peak = json_object_get(object, "peak_bytes"), *bytes;
        const char *space;
        if (!peak) { // the end of an epoch
            json_decref(object);
            continue;
        }
        json_object_foreach((json_t *)planned, space, bytes) {
            assert_true(json_equal(bytes, json_object_get(peak, space)));
        }
        steps++;
        json_decref(object);
    }
    free(text);
    assert_int_equal(steps, 2);
}

static void test_limited(void **state) {
    static const setting limited = {.memory_limit = (int64_t)LIMIT_MB * 1000 * 1000};
    if (!CAN_LIMIT_MEMORY) {
        skip();
    }
    write_run(state);
    outcome o = run_with(state, &limited,
                         LIST("train", "run.json", "--set", "out=\"resident\""));
    assert_int_not_equal(o.status, 0); // it needs more than that
    assert_says(o.err, "no memory for the device arena");
    outcome_free(&o);
    o = run_with(state, &limited,
                 LIST("train", "run.json", "--set", "out=\"small\"", "--set", budgets));
    if (o.status != 0) {
        fail_msg("%s", o.err);
    }
    assert_says(o.err, "optimizer on nvme");
    outcome_free(&o);
    check_metrics(state, "small/metrics.jsonl");
}

// The machine is measured first, by threads of its own: they leave no memory taken.
static void test_measured(void **state) {
    char cache[512];
    snprintf(cache, sizeof cache, "XDG_CACHE_HOME=%s", (const char *)*state);
    const setting limited = {.memory_limit = (int64_t)460 * 1000 * 1000,
                             .environment = {cache}};
    if (!CAN_LIMIT_MEMORY) {
        skip();
    }
    write_run(state);
    outcome o =
        run_with(state, &limited,
                 LIST("train", "run.json", "--set", "out=\"measured\"", "--set",
                      "execution.reproducible=false", "--set", "execution.threads=2",
                      "--set", budgets, "--set", "memory.host=\"330MB\""));
    if (o.status != 0) {
        fail_msg("%s", o.err);
    }
    assert_says(o.err, " on nvme"); // what of it, the machine's speed decides
    outcome_free(&o);
    check_metrics(state, "measured/metrics.jsonl");
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_limited), TEST(test_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
