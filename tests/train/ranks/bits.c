// Run on ranks: in reproducible mode each stage and placement comes to the bits of one
// process, for models of whole texts with each of their heads, and for adapters.
#include "on_ranks.h"
#include "train/snapshot.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { STEPS = 4, SETTINGS = 3, TEXT_MAX = 4 * PATH_MAX };

static tr_comm *comm;

static const char *const heads[] = {"bert-class", "bert-set",    "roberta-value",
                                    "gpt2-class", "qwen3-class", "bert-masked",
                                    "bert-next",  "bert-pairs",  "roberta-triples"};
static const char *const adapters[] = {"llama", "llama-dora", "gpt2", "gpt2-dora"};

#define STAGE "zero_optimization.stage="

static const char *const ways[][SETTINGS] = {
    {STAGE "0"},
    {STAGE "1"},
    {STAGE "2", "execution.recompute=unit"},
    {STAGE "3", "zero_optimization.offload_param.device=cpu",
     "zero_optimization.offload_optimizer.device=cpu"},
};

static void train(run_options options, const char *const *way, tr_comm *ranks,
                  snapshot *end) {
    const char *set[SETTINGS + 3] = {"train_micro_batch_size_per_gpu=1",
                                     "execution.reproducible=true",
                                     "execution.threads=1"};
    trial t;
    options.set = set;
    options.set_count = 3;
    options.comm = ranks;
    options.resume = "never";
    for (int i = 0; way && i < SETTINGS && way[i]; i++) {
        set[options.set_count++] = way[i];
    }
    trial_open(&t, &options);
    trial_steps(&t, STEPS, NULL);
    snapshot_gather(end, &t);
    trial_close(&t);
}

static void check(run_options options, const char *name) {
    snapshot alone;
    train(options, NULL, NULL, &alone);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        snapshot here;
        print_message("%s, %s\n", name, ways[way][0]);
        train(options, ways[way], comm, &here);
        snapshot_assert_same(&alone, &here);
        snapshot_free(&here);
    }
    snapshot_free(&alone);
}

static void heads_have_the_same_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/goldens/%s", TR_TEST_DATA, heads[i]);
        assert_int_equal(chdir(path), 0);
        check((run_options){.file = "run.json"}, heads[i]);
    }
}

static void adapters_have_the_same_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof adapters / sizeof *adapters; i++) {
        char path[PATH_MAX], text[TEXT_MAX];
        snprintf(path, sizeof path, "%s/adapters/%s", TR_TEST_DATA, adapters[i]);
        snprintf(text, sizeof text,
                 "{\"model\": \"%s/base\", \"adapter\": {\"path\": \"%s/adapter\"}, "
                 "\"data\": {\"format\": \"bytes\", \"train\": \"%s/text.bin\", "
                 "\"max_length\": 32}, \"steps\": %d, \"train_batch_size\": 7, "
                 "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-2}}, "
                 "\"out\": \"unused\"}",
                 path, path, path, STEPS);
        check((run_options){.text = text}, adapters[i]);
    }
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {cmocka_unit_test(heads_have_the_same_bits),
                                       cmocka_unit_test(adapters_have_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}
