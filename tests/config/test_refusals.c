// What a run file must not say, and that the message tells what to change.
#include "config/helper.h"

#include "base/memory.h"
#include "run/keys/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_misspelt(void **state) {
    (void)state;
    refused("{\n \"train_batch_sise\": 8}", NULL,
            WORDS("run.json:2: ", "train_batch_sise", "mean \"train_batch_size\""));
    refused(
        "{\"optimizer\": {\"params\": {\"weight_decai\": 0.1}}}", NULL,
        WORDS("optimizer.params.weight_decai", "\"optimizer.params.weight_decay\""));
    refused("{\"zero_optimisation\": {}}", NULL, WORDS("\"zero_optimization\""));
    refused("{\n\"zero_optimization\": {\n\"stage\": 1,\n\"overlap_com\": true}}", NULL,
            WORDS("run.json:4: ", "\"zero_optimization.overlap_comm\""));
    // A known name in the wrong place.
    refused("{\"lr\": 0.1}", NULL, WORDS("lr: no such key", "\"optimizer.params.lr\""));
    // Nothing near: what there is.
    refused("{\"memory\": {\"quux\": 1}}", NULL, WORDS("device, host, process, nvme"));
    refused("{\"\": 1}", NULL, WORDS("no such key"));
    refused("{\"optimizer.type\": \"SGD\"}", NULL, WORDS("dots"));
}

// What others call them.
static void test_foreign(void **state) {
    (void)state;
    refused("{\"optimizer\": {\"params\": {\"learning_rate\": 0.1}}}", NULL,
            WORDS("optimizer.params.learning_rate", "mean \"optimizer.params.lr\"?"));
    refused("{\n\"max_grad_norm\": 1,\n\"output_dir\": \"x\"}", NULL,
            WORDS("run.json:2: ", "mean \"gradient_clipping\"?",
                  "run.json:3: ", "mean \"out\"?"));
    refused("{\"data\": {\"max_seq_length\": 128}}", NULL,
            WORDS("mean \"data.max_length\"?"));
    refused("{\"per_device_train_batch_size\": 128}", NULL,
            WORDS("mean \"train_micro_batch_size_per_gpu\"?"));
    refused("{\"lora\": {\"r\": 8}}", NULL,
            WORDS("lora: no such key; ", "\"adapter.type\""));
    refused("{\"peft\": {\"r\": 8}}", NULL,
            WORDS("peft: no such key; ", "\"adapter.type\""));
}

// Each of these names is no key, and stands for one that is there.
static void test_foreign_names(void **state) {
    (void)state;
    for (const tr_key_name *row = tr__key_names; row->name; row++) {
        const tr_key *key;
        bool leads = row->instead != NULL;
        for (size_t i = 0; (key = tr__key_at(tr__key_tables, TR_KEY_TABLES, i)); i++) {
            size_t length = row->path ? strlen(row->path) : 0;
            assert_string_not_equal(key->path, row->name);
            leads = leads || (strncmp(key->path, row->path, length) == 0 &&
                              (key->path[length] == '\0' || key->path[length] == '.'));
        }
        if (!leads) {
            fail_msg("%s: %s is no key", row->name, row->path);
        }
    }
}

static void test_misplaced(void **state) {
    (void)state;
    refused("{\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"momentum\": 0.9}}}",
            NULL, WORDS("optimizer.params.momentum", "optimizer.type is \"AdamW\""));
    refused("{\"scheduler\": {\"params\": {\"warmup_ratio\": 0.9, \"type\": 1},"
            " \"type\": \"WarmupCosineLR\"}}",
            NULL, WORDS("warmup_ratio"));
    refused("{\"scheduler\": {\"type\": \"WarmupLR\","
            " \"params\": {\"total_num_steps\": 9}}}",
            NULL, WORDS("total_num_steps", "scheduler.type is \"WarmupLR\""));
    refused("{\"optimizer\": {\"params\": {\"max_grad_norm\": 1}}}", NULL,
            WORDS("optimizer.params.max_grad_norm", "gradient_clipping"));
}

static void test_types_and_ranges(void **state) {
    (void)state;
    refused("{\"train_batch_size\": \"8\"}", NULL,
            WORDS("train_batch_size is \"8\"", "an integer from 1 to", "or \"auto\""));
    refused("{\"train_batch_size\": 0}", NULL,
            WORDS("train_batch_size is 0", "from 1"));
    refused("{\"train_batch_size\": -4}", NULL, WORDS("is -4"));
    refused("{\"train_batch_size\": 1.5}", NULL, WORDS("is 1.5"));
    refused("{\"train_batch_size\": 1e30}", NULL, WORDS("is 1e+30"));
    refused("{\"train_batch_size\": 2147483649}", NULL, WORDS("to 2147483648"));
    refused("{\"train_batch_size\": 99999999999999999999}", NULL, WORDS("run.json:1:"));
    refused("{\"train_batch_size\": true}", NULL, WORDS("is true"));
    refused("{\"train_batch_size\": [8]}", NULL, WORDS("is [8]"));
    refused("{\"train_batch_size\": {\"a\": 8}}", NULL, WORDS("an integer"));
    refused("{\"optimizer\": 3}", NULL, WORDS("optimizer is 3", "an object"));
    refused("{\"optimizer\": {\"params\": {\"lr\": -1}}}", NULL,
            WORDS("of at least 0"));
    refused("{\"optimizer\": {\"params\": {\"lr\": 1e999}}}", NULL, WORDS("overflow"));
    refused("{\"optimizer\": {\"params\": {\"betas\": [0.9]}}}", NULL,
            WORDS("a list of 2", "each a number of at least 0 and below 1"));
    refused("{\"optimizer\": {\"params\": {\"betas\": [0.9, 1]}}}", NULL,
            WORDS("optimizer.params.betas[1] is 1; expected a number of at least 0"));
    refused("{\"data\": {\"train\": [1]}}", NULL,
            WORDS("data.train[0] is 1; expected a text"));
    refused("{\"device\": \"gpu\"}", NULL, WORDS("\"cuda\" (or \"cuda:1\""));
    refused("{\"optimizer\": {\"params\": {\"betas\": [0.9, [0.1]]}}}", NULL,
            WORDS("betas[1]"));
    refused("{\"zero_optimization\": {\"stage\": 4}}", NULL, WORDS("from 0 to 3"));
    refused("{\"optimizer\": {\"type\": \"AdmW\"}}", NULL,
            WORDS("\"AdmW\"", "\"Adam\", \"AdamW\", \"SGD\"", "mean \"AdamW\""));
    refused("{\"fp16\": {\"enabled\": \"yes\"}}", NULL,
            WORDS("fp16.enabled", "true or false or \"auto\""));
    refused("{\"seed\": \"auto\"}", NULL, WORDS("seed is \"auto\""));
    refused("{\"seed\": 9223372036854775807}", NULL,
            WORDS("an integer of at least 0 (at most 9007199254740992)"));
    refused("{\"gradient_clipping\": 1e308}", NULL,
            WORDS("of at least 0", "(at most 1e+300)"));
    refused("[1, 2]", NULL, WORDS("one JSON object"));
}

static void test_sizes(void **state) {
    (void)state;
    refused("{\"memory\": {\"device\": \"-6GiB\"}}", NULL,
            WORDS("-6GiB", "at least 0"));
    refused("{\"memory\": {\"device\": -1}}", NULL, WORDS("is -1", "at least 0"));
    refused("{\"memory\": {\"device\": 1e30}}", NULL, WORDS("is 1e+30"));
    refused("{\"memory\": {\"device\": \"9999999TiB\"}}", NULL, WORDS("9999999TiB"));
    refused("{\"memory\": {\"device\": \"6 gallons\"}}", NULL, WORDS("6 gallons"));
}

static void test_syntax(void **state) {
    (void)state;
    // What is taken beside JSON moves no line and no column.
    refused("{ // a\n/* b\n c */ \"seed\": x}", NULL, WORDS("run.json:3:15: "));
    refused("{ # a\n\n/* b\n */ \"sead\": 1,}", NULL, WORDS("run.json:4: sead"));
    refused("{ \"seed\": 1, // a\n\"seed\": 2,}", NULL, WORDS("duplicate"));
    refused("{\n\"seed\": 1 /* a\n}", NULL, WORDS("run.json:2: ", "has no end"));
    refused("{\"seed\": 1,,}", NULL, WORDS("not valid JSON"));
    refused("{,}", NULL, WORDS("not valid JSON"));
    refused("{\"out\": here}", NULL, WORDS("not valid JSON"));
    refused("{\n\"steps\": 1,\n\"seed\": 2,\n\"steps\": 3}", NULL,
            WORDS("run.json:4:", "duplicate", "steps"));
    refused("{\n  \"steps\" 1}", NULL, WORDS("run.json:2:"));
    refused("", NULL, WORDS("run.json:1:"));
    refused("\xEF\xBB\xBF{\n\"steps\": 0}", NULL, WORDS("run.json:2: steps is 0"));
    refused("\xEF\xBB\xBF", NULL, WORDS("run.json:1:"));
    refused("\xEF\xBB", NULL, WORDS("run.json:1:"));
    refused("{\"steps\": 1} x", NULL, WORDS("end of file"));
    refused("{\"out\": \"\xff\"}", NULL, WORDS("run.json:1:", "0xff"));
    refused("{\"out\": \"a\\u0000b\"}", NULL, WORDS("run.json:1:"));
}

static void test_not_yet(void **state) {
    (void)state;
    static const char *const active[] = {
        "{\"bf16\": {\"enabled\": true, \"bf16_optimizer_states\": true}}",
        "{\"amp\": {\"enabled\": true}}",
        "{\"zero_optimization\": {\"zero_quantized_gradients\": true}}",
        "{\"elasticity\": {\"enabled\": true}}",
        "{\"data_types\": {\"param_dtype\": \"bf16\"}}",
        "{\"communication_data_type\": \"fp16\"}",
        "{\"optimizer\": {\"type\": \"MuAdam\"}}",
        "{\"optimizer\": {\"type\": \"onebitadam\"}}",
        "{\"optimizer\": {\"params\": {\"amsgrad\": true}}}",
        "{\"compression_training\": {\"sparse_pruning\": {\"shared_parameters\":"
        " {\"enabled\": true}}}}",
    };
    for (size_t i = 0; i < sizeof active / sizeof *active; i++) {
        refused(active[i], NULL, WORDS("not yet supported"));
    }
    // The same keys, asking for nothing.
    static const char passive[] =
        "{\"fp16\": {\"enabled\": false, \"fp16_master_weights_and_grads\": true},"
        "\"bf16\": {\"enabled\": \"auto\"}, \"amp\": {\"enabled\": false},"
        "\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"None\"},"
        "  \"offload_param\": null, \"cpu_offload\": false},"
        "\"memory\": {\"device\": \"auto\"}, \"execution\": {\"reproducible\": false},"
        "\"elasticity\": {\"enabled\": false, \"micro_batch_sizes\": [2, 4]},"
        "\"data_types\": {\"grad_accum_dtype\": \"fp32\"},"
        "\"compression_training\": {\"sparse_pruning\": {\"shared_parameters\":"
        " {\"enabled\": false, \"method\": \"l1\"}}},"
        "\"communication_data_type\": null}";
    tr_config *config = good_config(passive, NULL);
    assert_null(tr__config_no_meaning(config));
    tr__config_destroy(config);
}

// All that is wrong in the elements of a list is told at once, in its order.
static void test_all_of_a_list(void **state) {
    (void)state;
    refused("{\"optimizer\": {\"groups\": [{\"mach\": \"*\", \"lr\": \"x\", "
            "\"weight_decay\": true}, {\"match\": [1, \"a\", 2]}]}, \"steps\": 0}",
            NULL,
            WORDS("6 problems:\n", "\n    ", "optimizer.groups[0].mach: no such key",
                  "optimizer.groups[0].lr is \"x\"",
                  "optimizer.groups[0].weight_decay is true",
                  "optimizer.groups[1].match[0] is 1",
                  "optimizer.groups[1].match[2] is 2", "steps is 0"));
}

static void test_groups(void **state) {
    (void)state;
    refused("{\"optimizer\": {\"groups\": {\"match\": \"*\"}}}", NULL,
            WORDS("optimizer.groups", "a list, each an object"));
    refused("{\"optimizer\": {\"groups\": [{\"mach\": \"*\"}]}}", NULL,
            WORDS("optimizer.groups[0].mach: no such key", "match, weight_decay, lr"));
    refused("{\"optimizer\": {\"groups\": [{}, {\"lr\": \"x\"}]}}", NULL,
            WORDS("optimizer.groups[1].lr is \"x\""));
    refused("{\"optimizer\": {\"groups\": [{\"match\": [1]}]}}", NULL,
            WORDS("optimizer.groups[0].match[0] is 1"));
}

static void test_set(void **state) {
    (void)state;
    refused("{}", WORDS("steps"), WORDS("--set", "\"steps\" is not KEY.PATH=VALUE"));
    refused("{}", WORDS("=3"), WORDS("--set"));
    refused("{}", WORDS("stepz=3"), WORDS("--set: stepz: no such key", "\"steps\""));
    refused("{}", WORDS("steps=-3"), WORDS("--set: steps is -3"));
    refused("{}", WORDS("steps=many"), WORDS("--set: steps is \"many\""));
    refused("{}", WORDS("steps..x=1"), WORDS("--set"));
    refused("{}", WORDS("optimizer.params={\"lr\": 1, \"lr\": 2}"),
            WORDS("--set: optimizer.params", "duplicate"));
    refused("{\"model\": \"gpt2\"}", WORDS("model.n_layer=4"),
            WORDS("model is \"gpt2\", not an object"));
    refused("{\"steps\": 4}", WORDS("optimizer.params.lr=oops"),
            WORDS("--set: optimizer.params.lr is \"oops\""));
    refused("{}", WORDS("out=\xff\xfe"), WORDS("UTF-8"));
    refused("{}", WORDS("\xff=1"), WORDS("UTF-8"));
}

static void test_format_characters(void **state) {
    (void)state;
    refused("{\"%s%n%d\": 1}", NULL, WORDS("%s%n%d: no such key"));
    refused("{\"optimizer\": {\"%n\": {\"%s\": 2}}}", NULL, WORDS("optimizer.%n"));
    refused("{\"steps\": \"%s%s%n\"}", NULL, WORDS("is \"%s%s%n\""));
    refused("{\"steps\": %s}", NULL, WORDS("near '%'"));
    refused("{}", WORDS("steps=%n"), WORDS("is \"%n\""));
    refused("{}", WORDS("%n%s=%n"), WORDS("%n%s"));
    // Nor can they write on the terminal what they like.
    refused("{\"a\\u001b[2J\": 1}", NULL, WORDS("a?[2J"));
    refused("{\"steps\": \"\\u001b[2J\\n\"}", NULL, WORDS("\\u001b[2J\\u000a"));
}

static void test_long_names(void **state) {
    (void)state;
    char text[4096], name[3000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(text, sizeof text, "{\"%s\": 1}", name);
    refused(text, NULL, WORDS("xxx...", "no such key"));
    snprintf(text, sizeof text, "{\"optimizer\": {\"type\": \"%s\"}}", name);
    refused(text, NULL, WORDS("xxx..."));
    snprintf(text, sizeof text, "%s=1", name);
    refused("{}", WORDS(text), WORDS("2999 characters"));
}

// `depth` times `open`, then `inside`, then as often `close`.
static char *nested(const char *open, const char *inside, const char *close,
                    size_t depth) {
    size_t size = (strlen(open) + strlen(close)) * depth + strlen(inside) + 1;
    char *text = tr__calloc(size, 1), *at = text;
    assert_non_null(text);
    for (size_t i = 0; i < depth; i++) {
        at = stpcpy(at, open);
    }
    at = stpcpy(at, inside);
    for (size_t i = 0; i < depth; i++) {
        at = stpcpy(at, close);
    }
    return text;
}

static void test_deep(void **state) {
    (void)state;
    char *objects = nested("{\"optimizer\":", "1", "}", 100000);
    refused(objects, NULL, WORDS("depth"));
    tr__free(objects);
    char *lists = nested("[", "", "]", 100000);
    refused(lists, NULL, WORDS("depth"));
    tr__free(lists);
    // As deep as is read, in an object that is handed on whole, and printed again.
    char *model = nested("{\"model\":", "1", "}", 2000);
    tr_config *config = good_config(model, NULL);
    char *text = NULL;
    assert_int_equal(tr__config_write_resolved(config, &text, NULL), TR_OK);
    tr__free(text);
    tr__config_destroy(config);
    tr__free(model);
}

static void test_files(void **state) {
    (void)state;
    char path[] = "/tmp/tranche-config-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    tr_config *config = NULL;
    tr_error err = {0};
    assert_int_equal(ftruncate(file, TR_CONFIG_BYTES_MAX + 1), 0);
    assert_int_equal(tr__config_open(path, NULL, 0, NULL, 0, &config, &err), TR_USAGE);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(ftruncate(file, 0), 0);
    assert_int_equal(pwrite(file, "{\"a\":1}", 7, 0), 7);
    err = (tr_error){0};
    assert_int_equal(tr__config_open(path, NULL, 0, NULL, 0, &config, &err), TR_USAGE);
    assert_non_null(strstr(err.message, ":1: a: no such key"));
    close(file);
    unlink(path);
    err = (tr_error){0};
    assert_int_equal(tr__config_open(path, NULL, 0, NULL, 0, &config, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "No such file"));
    err = (tr_error){0};
    assert_int_equal(tr__config_open("/tmp", NULL, 0, NULL, 0, &config, &err),
                     TR_USAGE);
    assert_null(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_misspelt),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_foreign_names),
        cmocka_unit_test(test_misplaced),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_types_and_ranges),
        cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_not_yet),
        cmocka_unit_test(test_all_of_a_list),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_format_characters),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
