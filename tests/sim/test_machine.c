// Machine files: what they may say, and what is said of those that are wrong.
#include "sim/helper.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOOD                                                                           \
    "\"name\": \"m\", \"ranks_per_node\": 2, \"compute\": {\"flops\": 5e11, "          \
    "\"bytes\": \"20GB\""

typedef struct wrong {
    const char *text;
    const char *words[4];
} wrong;

static const wrong all[] = {
    {"", {"m.json", "not valid JSON"}},
    {"[]", {"m.json", "one JSON object"}},
    {"{}", {"m.json: name is missing"}},
    {"{\"name\": \"m\", \"ranks_per_node\": 1, \"compute\": {\"flops\": 1e9}}",
     {"m.json: compute.bytes is missing"}},
    {"{\"name\": \"m\",\n\"rank_per_node\": 1}",
     {"m.json:2: rank_per_node", "mean \"ranks_per_node\"?"}},
    {"{" GOOD ",\n\n\"lunch\": 1}}", {"m.json:3: compute.lunch", "compute.launch"}},
    {"{" GOOD ", \"ops\": {\n\"atention\": 1e9}}}",
     {"m.json:2: compute.ops.atention", "compute.ops.attention"}},
    {"{" GOOD "}, \"link\": {\"inside\": {\"byte\": 1}}}", {"link.inside.bytes"}},
    {"{" GOOD "}, \"link\": {\"exchange\": \"rings\"}}",
     {"m.json:1: link.exchange is \"rings\"", "\"direct\"", "\"hierarchical\""}},
    {"{" GOOD "}, \"link\": {\"interference\": 1}}",
     {"link.interference is 1", "0 to 0.9"}},
    {"{" GOOD ", \"launch\": -1}}", {"compute.launch is -1"}},
    {"{" GOOD ", \"flops\": 1}}", {"not valid JSON", "duplicate"}},
    {"{\"name\": \"m\", \"compute\": {\"flops\": 0}}", {"compute.flops is 0"}},
    {"{" GOOD ", \"cache\": {\"size\": \"1MiB\"}}}",
     {"compute.cache", "compute.cache needs both size and bytes"}},
    {"{" GOOD "}, \"memory\": {\"device\": \"much\"}}",
     {"memory.device is \"much\"", "a size"}},
    {"{" GOOD "}, \"memory\": 5}", {"memory is 5", "an object"}},
    {"{" GOOD "}, \"reached\": {\"products\": {\"share\": 1.5}}}",
     {"reached.products.share is 1.5", "0 to 1"}},
    {"{" GOOD "}, \"reached\": {\"link\": {\"inside\": {\"shares\": 1}}}}",
     {"reached.link.inside.shares", "share"}},
};

static void test_wrong_files(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tr_machine *machine = NULL;
        tr_error err = {0};
        tr_status status = tr__machine_parse("m.json", all[i].text, &machine, &err);
        if (status != TR_USAGE) {
            fail_msg("status %d of: %s", status, all[i].text);
        }
        assert_null(machine);
        for (size_t k = 0; k < 4 && all[i].words[k]; k++) {
            if (!strstr(err.message, all[i].words[k])) {
                fail_msg("\"%s\" is not in: %s", all[i].words[k], err.message);
            }
        }
    }
}

static void test_no_file(void **state) {
    (void)state;
    tr_machine *machine = NULL;
    tr_error err = {0};
    assert_int_equal(tr_machine_open("nothere.json", &machine, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "nothere.json: cannot open"));
}

static void test_values(void **state) {
    (void)state;
    tr_machine *m = test_machine(
        "{" GOOD ", \"launch\": 2e-6, \"shared\": true, \"cache\": {\"size\": \"1MiB\","
        " \"bytes\": 1e11}, \"ops\": {\"gelu\": 3e10}, \"launches\": {\"relu\": 2}},"
        " \"memory\": {\"device\": \"1GiB\", \"host\": 4000},"
        " \"link\": {\"interference\": 0.5, \"inside\": {\"bytes\": \"5GB\"},"
        " \"between\": {\"bytes\": 1e9, \"latency\": 1e-5}},"
        " \"copy\": {\"to_host\": {\"bytes\": 7}}, \"nvme\": {\"read\": {\"bytes\": 8},"
        " \"write\": {\"bytes\": 9}}, \"sources\": [\"measured\"]}");
    assert_string_equal(m->name, "m");
    assert_int_equal(m->ranks_per_node, 2);
    assert_true(m->shared);
    assert_true(m->flops == 5e11 && m->memory_rate == 20e9 && m->launch == 2e-6);
    assert_true(m->half_flops == m->flops && m->fp8_flops == m->flops);
    assert_true(m->op_launch[TR_RATED_gelu] < 0 && m->op_launch[TR_RATED_relu] == 2);
    assert_true(m->cache_bytes == 1 << 20 && m->cache_rate == 1e11);
    assert_true(m->op_flops[TR_RATED_gelu] == 3e10);
    assert_true(m->op_flops[TR_RATED_linear] == 0);
    assert_int_equal(m->capacity[TR_SPACE_DEVICE], 1 << 30);
    assert_int_equal(m->capacity[TR_SPACE_HOST], 4000);
    assert_int_equal(m->capacity[TR_SPACE_NVME], 0);
    assert_true(m->way[TR_WAY_INSIDE].rate == 5e9 &&
                m->way[TR_WAY_INSIDE].latency == 0);
    assert_true(m->way[TR_WAY_BETWEEN].latency == 1e-5);
    assert_true(m->way[TR_WAY_TO_DEVICE].rate == 0 && m->way[TR_WAY_TO_HOST].rate == 7);
    assert_true(m->way[TR_WAY_NVME_READ].rate == 8);
    assert_true(m->way[TR_WAY_NVME_WRITE].rate == 9);
    assert_true(m->level_limit == 0 && m->workers == 0);
    assert_int_equal(m->exchange, TR_EXCHANGE_AUTO);
    tr_machine_close(m);
}

// What is printed of a machine is that machine again.
static void test_printed(void **state) {
    (void)state;
    static const char *const sources[] = {"a \"b\"", "c"};
    tr_machine *m = test_machine(
        "{" GOOD ", \"half\": 9e11, \"fp8\": 2e12, \"launch\": 2e-6, \"shared\": true, "
        "\"cache\": {\"size\": 4096, \"bytes\": 1e11}, \"ops\": {\"gelu\": 3e10, "
        "\"relu\": 1e10}, "
        "\"launches\": {\"gelu\": 0}}, \"memory\": {\"device\": 5, \"nvme\": 7},"
        " \"target\": {\"level\": \"generic\", \"workers\": 3},"
        " \"fingerprint\": \"f\", \"host\": {\"bytes\": 5e10}, \"link\": "
        "{\"interference\": 0.5, \"exchange\": \"hierarchical\", \"inside\": "
        "{\"bytes\": "
        "5e9, \"latency\": 1e-6}}, \"copy\": {\"interference\": 0.25, \"to_host\": "
        "{\"bytes\": 7}}, \"nvme\": {\"interference\": 0.75, \"read\": {\"bytes\": 8}, "
        "\"write\": {\"bytes\": 9, \"latency\": 1}}, \"reached\": {\"products\": "
        "{\"share\": 0.5, \"rows\": 256}, \"memory\": {\"share\": 0.75}, \"issue\": "
        "1e-6, "
        "\"link\": {\"inside\": {\"half\": 1000}, \"between\": {\"share\": 0.25}}, "
        "\"nvme\": {\"write\": {\"share\": 0.125}}}}");
    assert_true(m->reached.products.share == 0.5 && m->reached.products.rows == 256);
    assert_true(m->reached.memory == 0.75 && m->reached.issue == 1e-6);
    assert_true(m->reached.way[TR_WAY_INSIDE].half == 1000);
    assert_true(m->reached.way[TR_WAY_BETWEEN].share == 0.25);
    assert_true(m->reached.way[TR_WAY_NVME_WRITE].share == 0.125);
    char *text = NULL;
    size_t bytes = 0;
    tr_error err = {0};
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    assert_int_equal(tr__machine_print(m, sources, 2, to, &err), TR_OK);
    fclose(to);
    tr_machine *again = test_machine(text);
    assert_string_equal(again->name, m->name);
    assert_string_equal(again->fingerprint, "f");
    tr_machine same = *again; // but for where its texts are
    same.name = m->name;
    same.fingerprint = m->fingerprint;
    assert_memory_equal(m, &same, sizeof *m);
    free(text);
    tr_machine_close(m);
    tr_machine_close(again);
}

// A kernel takes its launch and the longer of its arithmetic and its memory; the ranks
// of a node share what is shared.
static void test_roofline(void **state) {
    (void)state;
    tr_machine *m = test_machine(
        "{\"name\": \"m\", \"ranks_per_node\": 2, \"compute\": {\"flops\": 100,"
        " \"bytes\": 10, \"launch\": 3, \"shared\": true, \"cache\": {\"size\": 100, "
        "\"bytes\": 50}, \"ops\": {\"relu\": 20}}}");
    const double most = 1 << 20;
    tr_share one = tr__machine_share(m, 1, most), two = tr__machine_share(m, 7, most);
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 2, 1);
    tr_plan *plan = test_plan(&request);
    const tr_program *program =
        tr__unit_piece(plan->units[0].program, TR_VARIANT_FORWARD, 0);
    assert_int_equal(program->count, 1); // y [2, 7] = x [2, 6] weight [7, 6] + bias
    double flops = 2 * 2 * 7 * 6, bytes = 4 * (12 + 42 + 7 + 14);
    assert_true(program->cost.flops == flops && program->cost.bytes == bytes);
    double memory = 3 + bytes / 10;
    assert_near(tr__program_seconds(&one, program), memory, 1e-12);
    assert_near(tr__program_seconds(&two, program), 3 + bytes / 5, 1e-12);
    // x and y pass from one to the next; weight and bias come from memory.
    double warm = 4 * (12 + 14), cold = bytes - warm;
    m->cache_bytes = warm - 1;
    assert_near(tr__program_seconds(&one, program), memory, 1e-12);
    m->cache_bytes = bytes;
    assert_near(tr__program_seconds(&one, program), 3 + cold / 10 + warm / 50, 1e-12);
    one.all_bytes = bytes; // everything stays there
    assert_near(tr__program_seconds(&one, program), 3 + bytes / 50, 1e-12);
    m->op_flops[TR_RATED_linear] = 1;
    assert_near(tr__program_seconds(&one, program), 3 + flops, 1e-12);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
    tr_machine_close(m);
}

// Products of 8 bits have a rate of their own, that of 16 bits where none is given;
// what they make of their operands before comes on top.
static void test_fp8(void **state) {
    static const char *const rates[] = {"", ", \"fp8\": 400"};
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 2, 1);
    request.compute = TR_BF16;
    request.fp8.enabled = true;
    tr_plan *plan = test_plan(&request);
    const tr_program *program =
        tr__unit_piece(plan->units[1].program, TR_VARIANT_FORWARD, 0);
    double flops = 2 * 2 * 5 * 7, prepare = 3 * 2 * (14 + 35);
    assert_true(program->cost.flops == flops && program->cost.prepare == prepare);
    for (int i = 0; i < 2; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"name\": \"m\", \"ranks_per_node\": 1, \"compute\": {\"flops\": 1,"
                 " \"half\": 100%s, \"bytes\": 1e3}}",
                 rates[i]);
        tr_machine *m = test_machine(text);
        tr_share one = tr__machine_share(m, 1, 1 << 20);
        double rate = i == 0 ? 100 : 400;
        assert_near(tr__program_seconds(&one, program), flops / rate + prepare / 1e3,
                    1e-12);
        tr_machine_close(m);
    }
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// On a GPU the scale of what passes is found and used by launches of their own.
static void test_launches(void **state) {
    (void)state;
    tr_model *model = test_model_wide_gpt2();
    tr_plan_request request = test_request(model, 2, 2); // weights' codes are kept
    request.backend = TR_BACKEND_CUDA;
    request.level_limit = 100; // the best there are
    request.compute = TR_BF16;
    request.fp8.enabled = true;
    tr_plan *plan = test_plan(&request);
    tr_machine *m =
        test_machine("{\"name\": \"m\", \"ranks_per_node\": 1, \"compute\": "
                     "{\"flops\": 1e30, \"bytes\": 1e30, \"launch\": 1}}");
    tr_share one = tr__machine_share(m, 1, 1 << 20);
    const tr_program *program =
        tr__unit_piece(plan->units[1].program, TR_VARIANT_FORWARD, 0);
    int products = 0;
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        bool product = strcmp(at->kernel->name, "linear_fp8.cuda") == 0;
        assert_near(tr__kernel_seconds(&one, at), product ? 1 + 2 : 1, 1e-9);
        products += product;
    }
    assert_true(products > 0);
    tr_machine_close(m);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// What is packed of the weight takes the first micro-batch's time alone.
static void test_packed(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 2, 2);
    request.compute = TR_BF16;
    request.fp8.enabled = true;
    request.wave = 1;
    tr_plan *plan = test_plan(&request);
    tr_machine *m = test_machine("{\"name\": \"m\", \"ranks_per_node\": 1, "
                                 "\"compute\": {\"flops\": 1, \"bytes\": 1e3}}");
    tr_share one = tr__machine_share(m, 1, 1 << 20);
    const tr_program *program =
        tr__unit_piece(plan->units[0].program, TR_VARIANT_FORWARD, 0);
    double pack = 3 * 2 * 42, seconds[2] = {0, 0};
    assert_true(program->cost.pack == pack && program->cost.prepare == 3 * 2 * 12);
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        if (step->label.verb == TR_VERB_forward && step->unit == 0) {
            seconds[step->micro] = tr__step_seconds(&one, plan, step);
        }
    }
    assert_near(seconds[0] - seconds[1], pack / 1e3, 1e-9);
    tr_machine_close(m);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void test_examples(void **state) {
    (void)state;
    glob_t files = {0};
    assert_int_equal(glob(TR_SOURCE_DIR "/examples/machines/*.json", 0, NULL, &files),
                     0);
    assert_true(files.gl_pathc >= 2);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        tr_machine *machine = NULL;
        tr_error err = {0};
        if (tr_machine_open(files.gl_pathv[i], &machine, &err) != TR_OK) {
            fail_msg("%s", err.message);
        }
        tr_machine_close(machine);
    }
    globfree(&files);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_files), cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_values),      cmocka_unit_test(test_printed),
        cmocka_unit_test(test_roofline),    cmocka_unit_test(test_fp8),
        cmocka_unit_test(test_launches),    cmocka_unit_test(test_packed),
        cmocka_unit_test(test_examples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
