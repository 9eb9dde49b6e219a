// `tranche plan --ranks W`: what each ZeRO stage keeps and sends, without any rank.
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETERS = 124439808 }; // of GPT-2

typedef struct plan {
    int64_t parameters, gradients, optimizer, total; // bytes of the ledger
    int64_t gather, reduce;                          // bytes of the traffic
} plan;

static int64_t number(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

// GPT-2, batch 32 in micro-batches of 1: no rank has a tensor of it.
static plan plan_of(void *const *state, int ranks, int stage, int wave) {
    char w[32], sets[3][64];
    snprintf(w, sizeof w, "%d", ranks);
    snprintf(sets[0], sizeof sets[0], "zero_optimization.stage=%d", stage);
    snprintf(sets[1], sizeof sets[1], "execution.wave=%d", wave);
    json_t *json = succeed_json(state, LIST("plan", "run.json", "--json", "--ranks", w,
                                            "--set", sets[0], "--set", sets[1]));
    const json_t *ledger = json_object_get(json_object_get(json, "ledger"), "device");
    const json_t *traffic = json_object_get(json, "traffic_bytes");
    assert_int_equal(number(json, "ranks"), ranks);
    assert_int_equal(number(json, "stage"), stage);
    assert_int_equal(number(json, "wave"), wave);
    assert_int_equal(number(json, "accumulation_steps"), 32 / ranks);
    plan found = {number(ledger, "parameters"), number(ledger, "gradients"),
                  number(ledger, "optimizer"),  number(ledger, "total"),
                  number(traffic, "gather"),    number(traffic, "reduce")};
    json_decref(json);
    return found;
}

static void write_run(void *const *state) {
    file_text(
        state, "run.json",
        "{\"model\": \"gpt2\", \"train_batch_size\": 32, "
        "\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": {\"stage\": "
        "0}, \"execution\": {\"threads\": 1}}");
}

// Of `whole` bytes, about that share: shards are cut at multiples of 4 KiB.
static void assert_about(int64_t bytes, int64_t whole, double share) {
    double wanted = (double)whole * share;
    if (!((double)bytes > 0.99 * wanted - 1e5 && (double)bytes < 1.01 * wanted + 1e5)) {
        fail_msg("%lld bytes, about %.0f wanted", (long long)bytes, wanted);
    }
}

static void test_alone(void **state) {
    write_run(state);
    for (int stage = 0; stage < 4; stage++) { // with one rank there is nothing to share
        plan p = plan_of(state, 1, stage, 1);
        assert_about(p.parameters, 4L * PARAMETERS, 1);
        assert_about(p.optimizer, 8L * PARAMETERS, 1);
        assert_true(p.gather == 0 && p.reduce == 0);
    }
}

// What each stage keeps, and what rank 0 sends.
static void test_stages(void **state) {
    static const int64_t bytes = 4L * PARAMETERS;
    write_run(state);
    for (int ranks = 2; ranks <= 4; ranks *= 2) {
        double share = 1.0 / ranks, sent = 1 - share;
        int g = 32 / ranks;
        plan p[4];
        for (int stage = 0; stage < 4; stage++) {
            p[stage] = plan_of(state, ranks, stage, g);
            assert_about(p[stage].optimizer, 2 * bytes, stage > 0 ? share : 1);
            assert_about(p[stage].reduce, bytes, sent); // once a step
        }
        for (int stage = 0; stage < 3; stage++) {
            assert_about(p[stage].parameters, bytes, 1);
            assert_about(p[stage].gather, bytes, sent);
            assert_true(p[stage + 1].total < p[stage].total);
        }
        assert_about(p[0].gradients, bytes, 1);
        assert_about(p[1].gradients, bytes, 1);
        assert_true(p[2].gradients < p[1].gradients);
        assert_true(p[3].parameters < p[2].parameters);
        assert_true(p[3].gather > p[2].gather && p[3].gather < 3 * p[2].gather);
    }
}

// Traffic goes with the number of waves where gradients, or parameters, do not stay.
static void test_waves(void **state) {
    enum { RANKS = 4, G = 8 };
    write_run(state);
    for (int stage = 0; stage < 4; stage++) {
        plan one = plan_of(state, RANKS, stage, G),
             each = plan_of(state, RANKS, stage, 1);
        plan two = plan_of(state, RANKS, stage, G / 2);
        assert_int_equal(each.reduce, (stage < 2 ? 1 : G) * one.reduce);
        assert_int_equal(two.reduce, (stage < 2 ? 1 : 2) * one.reduce);
        if (stage < 3) {
            assert_int_equal(each.gather, one.gather);
        } else {
            assert_about(each.gather, one.gather, G);
        }
    }
}

static void test_for_people(void **state) {
    write_run(state);
    char *text = succeed(state, LIST("plan", "run.json", "--ranks", "4", "--set",
                                     "zero_optimization.stage=3"));
    assert_says(text, "x 4 ranks");
    assert_says(text, "stage 3");
    assert_says(text, "traffic of a step, sent by rank 0");
    assert_says(text, "gathered");
    assert_says(text, "reduced");
    free(text);
    fail_with(state, NULL, LIST("plan", "run.json", "--ranks", "0"), 2,
              LIST("--ranks 0: expected a whole number of 1 or more"));
}

static void test_pipeline(void **state) {
    static const char stages[] = "pipeline.stages=2";
    write_run(state);
    char *text =
        succeed(state, LIST("plan", "run.json", "--ranks", "4", "--set", stages));
    assert_says(text, "x 2 ranks");
    assert_says(text, "mesh 2 x 1 x 2");
    assert_says(text, "stages, a rank of each");
    free(text);
    fail_with(state, NULL, LIST("plan", "run.json", "--ranks", "3", "--set", stages), 2,
              LIST("pipeline.stages is 2", "start a multiple of 2"));
    fail_with(state, NULL,
              LIST("plan", "run.json", "--ranks", "99", "--set", "pipeline.stages=99"),
              2, LIST("pipeline.stages is 99, and the model has"));
}

// ---- nodes

// Two nodes of two ranks, with messages of these rates and latencies on a node and
// between nodes.
static void write_machine(void *const *state, const char *exchange, const char *inside,
                          const char *between) {
    char text[512];
    snprintf(text, sizeof text,
             "{\"name\": \"nodes\", \"ranks_per_node\": 2, \"compute\": "
             "{\"flops\": 1e12, \"bytes\": 1e11}, \"link\": {\"exchange\": "
             "\"%s\", \"inside\": {%s}, \"between\": {%s}}}",
             exchange, inside, between);
    file_text(state, "machine.json", text);
}

// The member "pipeline" of a command's JSON. The caller frees it.
static char *stages_of(void *const *state, const char *command) {
    static const char stages[] = "pipeline.stages=2";
    char *text = succeed(state, LIST(command, "run.json", "--machine", "machine.json",
                                     "--ranks", "4", "--set", stages, "--json"));
    const char *begin = strstr(text, "\"pipeline\": [");
    assert_non_null(begin);
    char *member = strndup(begin, (size_t)(strchr(begin, ']') - begin));
    free(text);
    assert_says(member, "\"bubble_seconds\": ");
    assert_says(member, "\"idle_share\": ");
    return member;
}

// What a plan says of its stages is what a simulation says.
static void test_bubble(void **state) {
    write_run(state);
    write_machine(state, "nccl", "\"bytes\": 1e11", "\"bytes\": 1e10");
    char *planned = stages_of(state, "plan"), *simulated = stages_of(state, "simulate");
    assert_string_equal(planned, simulated);
    free(planned);
    free(simulated);
    char *text = succeed(state, LIST("plan", "run.json", "--machine", "machine.json",
                                     "--ranks", "4", "--set", "pipeline.stages=2"));
    assert_says(text, "% of the step");
    free(text);
    text = succeed(state, LIST("simulate", "run.json", "--machine", "machine.json",
                               "--ranks", "4", "--set", "pipeline.stages=2"));
    assert_says(text, "waiting for other stages");
    free(text);
}

// ---- the mesh that the planner chooses

static const char any_tensor[] = "tensor_parallel.size=auto",
                  any_stages[] = "pipeline.stages=auto",
                  any_order[] = "pipeline.schedule=auto";

// The planner's choice of a mesh for four ranks. *made: the caller frees it.
static const json_t *mesh_of(void *const *state, const char *more, json_t **made) {
    *made = succeed_json(state,
                         LIST("plan", "run.json", "--machine", "machine.json",
                              "--ranks", "4", "--set", any_tensor, "--set", any_stages,
                              "--set", any_order, "--set", more, "--json"));
    const json_t *planner = json_object_get(*made, "planner");
    return json_object_get(planner, "choice");
}

// Data ranks send once a step; where a rank's memory is too small, others are chosen.
static void test_chosen(void **state) {
    json_t *made = NULL;
    write_run(state);
    write_machine(state, "nccl", "\"bytes\": 1e10", "\"bytes\": 1e10");
    const json_t *choice = mesh_of(state, "steps=1", &made);
    assert_int_equal(number(choice, "tensor_ranks"), 1);
    assert_int_equal(number(choice, "pipeline_stages"), 1);
    assert_null(json_object_get(made, "pipeline"));
    json_decref(made);
    // Device and host are one memory here; nothing may move.
    choice =
        mesh_of(state, "memory={\"device\": \"1.6GB\", \"host\": \"200MB\"}", &made);
    int64_t stages = number(choice, "pipeline_stages");
    assert_true(stages * number(choice, "tensor_ranks") > 1);
    const json_t *shown = json_object_get(made, "pipeline");
    assert_int_equal(json_array_size(shown), stages > 1 ? stages : 0);
    if (stages > 1) {
        assert_non_null(json_object_get(json_array_get(shown, 0), "bubble_seconds"));
        assert_non_null(json_object_get(json_array_get(shown, 0), "compute_seconds"));
    }
    json_decref(made);
}

static void test_chosen_for_people(void **state) {
    write_run(state);
    write_machine(state, "nccl", "\"bytes\": 1e11", "\"bytes\": 1e11");
    char *text = succeed(state, LIST("plan", "run.json", "--machine", "machine.json",
                                     "--ranks", "4", "--set", "tensor_parallel.size=1",
                                     "--set", "pipeline.stages=2", "--set", any_order));
    assert_says(text, "planner: v, 2 virtual stages");
    assert_says(text, "computes ");
    assert_says(text, "; bubble ");
    free(text);
}

static void test_chosen_with_a_batch(void **state) {
    file_text(state, "run.json",
              "{\"model\": \"gpt2\", \"train_micro_batch_size_per_gpu\": 1}");
    fail_with(state, NULL,
              LIST("plan", "run.json", "--ranks", "4", "--set", any_tensor), 2,
              LIST("tensor_parallel.size is \"auto\"", "give train_batch_size"));
    write_run(state);
    fail_with(state, NULL,
              LIST("plan", "run.json", "--ranks", "4", "--set", any_stages, "--set",
                   "gradient_accumulation_steps=8"),
              2, LIST("pipeline.stages is \"auto\"", "leave it out"));
    fail_with(state, NULL,
              LIST("plan", "run.json", "--ranks", "4", "--set", any_tensor, "--set",
                   "tensor_parallel.autotp_size=2"),
              2, LIST("autotp_size is 2", "they are the same"));
}

// Eight ranks share eight heads of queries and two of keys; three cannot.
static void test_heads_of_keys(void **state) {
    file_text(state, "run.json",
              "{\"model\": {\"model_type\": \"llama\", \"hidden_size\": 64, "
              "\"intermediate_size\": 96, \"num_hidden_layers\": 2, "
              "\"num_attention_heads\": 8, \"num_key_value_heads\": 2, "
              "\"max_position_embeddings\": 16, \"vocab_size\": 160}, "
              "\"train_batch_size\": 4, \"execution\": {\"threads\": 1}}");
    json_t *json = succeed_json(state, LIST("plan", "run.json", "--json", "--ranks",
                                            "8", "--set", "tensor_parallel.size=8"));
    assert_int_equal(number(json_object_get(json, "mesh"), "repeats"), 4);
    json_decref(json);
    fail_with(
        state, NULL,
        LIST("plan", "run.json", "--ranks", "3", "--set", "tensor_parallel.size=3"), 2,
        LIST("8 heads of queries and 2 of keys", "Sizes that can: 1, 2, 4, 8"));
}

// How four ranks exchange, with an option and its value; "": there are no nodes.
// `hierarchical`: as that key says. *between: bytes that go to other nodes.
static void exchange_of(void *const *state, const char *hierarchical,
                        const char *option, const char *value, char exchange[32],
                        int64_t *between) {
    char set[64];
    snprintf(set, sizeof set, "execution.hierarchical=%s", hierarchical);
    json_t *json = succeed_json(state, LIST("plan", "run.json", "--json", "--ranks",
                                            "4", "--set", "zero_optimization.stage=3",
                                            "--set", set, option, value));
    const json_t *said = json_object_get(json, "exchange");
    snprintf(exchange, 32, "%s", said ? json_string_value(said) : "");
    *between = number(json_object_get(json, "traffic_bytes"), "between_nodes");
    assert_int_equal(said != NULL, json_object_get(json, "ranks_per_node") != NULL);
    json_decref(json);
}

static void test_nodes_of_the_run(void **state) {
    char exchange[32];
    int64_t none, by_nodes, direct;
    write_run(state);
    exchange_of(state, "auto", "--set", "execution.threads=1", exchange, &none);
    assert_string_equal(exchange, "");
    assert_int_equal(none, 0);
    exchange_of(state, "auto", "--set", "execution.ranks_per_node=2", exchange,
                &by_nodes);
    assert_string_equal(exchange, "hierarchical");
    exchange_of(state, "false", "--set", "execution.ranks_per_node=2", exchange,
                &direct);
    assert_string_equal(exchange, "direct");
    assert_about(by_nodes, direct, 0.5);
    // Not as many on each.
    exchange_of(state, "auto", "--set", "execution.ranks_per_node=3", exchange,
                &by_nodes);
    assert_string_equal(exchange, "direct");
}

// The faster of both, unless the machine's file says one.
static void test_nodes_of_the_machine(void **state) {
    static const char slow[] = "\"bytes\": 1e8", fast[] = "\"bytes\": 1e11",
                      late[] = "\"bytes\": 1e11, \"latency\": 0.01";
    static const struct {
        const char *says, *inside, *between, *wanted;
    } cases[] = {
        {"auto", fast, slow, "hierarchical"},
        {"auto", late, fast, "direct"},
        {"direct", fast, slow, "direct"},
        {"nccl", fast, slow, ""},
        {"hierarchical", late, fast, "hierarchical"},
    };
    char exchange[32];
    int64_t between;
    write_run(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_machine(state, cases[i].says, cases[i].inside, cases[i].between);
        exchange_of(state, "auto", "--machine", "machine.json", exchange, &between);
        assert_string_equal(exchange, cases[i].wanted);
    }
}

// How many exchanges of four ranks, two on a node, are by this algorithm.
static int64_t exchanges_of(void *const *state, const char *set, const char *name,
                            int64_t *all) {
    json_t *json = succeed_json(state, LIST("plan", "run.json", "--json", "--ranks",
                                            "4", "--machine", "machine.json", "--set",
                                            "zero_optimization.stage=3", "--set", set));
    const json_t *said = json_object_get(json, "exchanges");
    int64_t count = number(said, name);
    *all = number(said, "direct") + number(said, "hierarchical") +
           number(said, "ring") + number(said, "tree");
    json_decref(json);
    return count;
}

// Each exchange as is fastest on the machine, unless the run file or the machine's says
// one of them.
static void test_algorithms(void **state) {
    static const char fast[] = "\"bytes\": 1e11";
    static const char slow[] = "\"bytes\": 1e8, \"shared\": true";
    static const char far[] = "\"bytes\": 1e11, \"latency\": 0.01";
    int64_t all;
    write_run(state);
    // A ring sends to the other node by one rank of each, at twice the rate; but on a
    // node that is fast, parts that have come there once are faster.
    write_machine(state, "auto", "\"bytes\": 2e8", slow);
    assert_true(exchanges_of(state, "steps=1", "ring", &all) > 0);
    write_machine(state, "auto", fast, slow);
    assert_int_equal(exchanges_of(state, "steps=1", "hierarchical", &all), all);
    assert_true(all > 0);
    write_machine(state, "auto", fast, far);
    assert_int_equal(exchanges_of(state, "steps=1", "ring", &all), 0);
    write_machine(state, "ring", fast, far);
    assert_int_equal(exchanges_of(state, "steps=1", "ring", &all), all);
    assert_int_equal(
        exchanges_of(state, "execution.exchange_algorithm=direct", "direct", &all),
        all);
    assert_int_equal(
        exchanges_of(state, "execution.hierarchical=false", "direct", &all), all);
    // Sums that are too large for a tree are made as without.
    int64_t trees =
        exchanges_of(state, "execution.exchange_algorithm=tree", "tree", &all);
    assert_true(trees > 0 && trees < all);
    char *text = succeed(state, LIST("plan", "run.json", "--ranks", "4", "--set",
                                     "execution.exchange_algorithm=ring"));
    assert_says(text, "exchanges of a step: ");
    assert_says(text, " ring\n");
    free(text);
    fail_with(state, NULL,
              LIST("plan", "run.json", "--ranks", "4", "--set",
                   "execution.exchange_algorithm=direct", "--set",
                   "execution.hierarchical=true"),
              2, LIST("exchange_algorithm is \"direct\"", "leave one of them out"));
    fail_with(state, NULL,
              LIST("plan", "run.json", "--ranks", "4", "--set",
                   "execution.exchange_algorithm=star"),
              2, LIST("execution.exchange_algorithm", "\"ring\""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_algorithms),
        TEST(test_alone),
        TEST(test_stages),
        TEST(test_waves),
        TEST(test_heads_of_keys),
        TEST(test_nodes_of_the_run),
        TEST(test_nodes_of_the_machine),
        TEST(test_for_people),
        TEST(test_pipeline),
        TEST(test_bubble),
        TEST(test_chosen),
        TEST(test_chosen_for_people),
        TEST(test_chosen_with_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
