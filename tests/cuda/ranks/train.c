// Run on W ranks: training on the CUDA backend, each rank on a device of the host's
// memory and threads. As on the CPU at the same cut, whatever the stage, the wave and
// the pace of the streams; in reproducible mode bit for bit as one process on the
// device ("bits"); "peers": where the devices exchange by themselves; "functions":
// where ranks exchange by functions of this program's, and no device does so by itself.
// Each step moves the bytes that the plan says, and allocates nothing.
#include "base/memory.h"
#include "cuda/device.h"
#include "cuda/trained.h"
#include "guard/guard.h"
#include "on_ranks.h"
#include "plan/flow/passes.h"

#include <math.h>
#include <mpi.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 2, SETTINGS = 7, SEEDS = 2 };

static tr_comm *comm;
static char own_device[32] = "device=cuda"; // that one process takes
static bool peers; // each rank has a device of its own, and they exchange

// A run file that is trained, with more settings.
typedef struct example {
    const char *folder; // of the tests' data
    const char *set[SETTINGS - 1];
} example;

#define ZERO       "zero_optimization."
#define STAGE      "zero_optimization.stage="
#define MICRO      "train_micro_batch_size_per_gpu="
#define WAVE       "execution.wave="
#define SHARED     "tensor_parallel.size="
#define TOKENS_CUT "tensor_parallel.sequence=true"
#define STAGES     "pipeline.stages="
#define SCHEDULE   "pipeline.schedule="
#define MUON       "optimizer={\"type\": \"Muon\", \"params\": {\"lr\": 0.003}}"
#define OFFLOAD    "zero_optimization.offload_optimizer.device=cpu"

static void go_to(const char *folder) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", TR_TEST_DATA, folder);
    assert_int_equal(chdir(path), 0);
}

static void open_run(const char *device, const example *of, tr_comm *ranks, trial *t) {
    const char *set[SETTINGS] = {device};
    size_t count = 1;
    for (; count < SETTINGS && of->set[count - 1]; count++) {
        set[count] = of->set[count - 1];
    }
    run_options options = {.file = "run.json",
                           .set = set,
                           .set_count = count,
                           .comm = ranks,
                           .resume = "never"};
    go_to(of->folder);
    trial_open(t, &options);
}

// Of one step: what the plan says, and no allocation.
static void check_traffic(trial *t) {
    const tr_traffic *planned = &t->plan->traffic;
    tr_comm_totals before = tr__comm_totals(comm);
    int64_t calls = tr__memory_calls();
    tr_step_result result = TR_STEP_RESULT_INIT;
    trial_steps(t, 1, &result);
    tr_comm_totals after = tr__comm_totals(comm);
    assert_false(result.skipped);
    assert_int_equal(after.gather_bytes - before.gather_bytes, planned->gather);
    assert_int_equal(after.reduce_bytes - before.reduce_bytes, planned->reduce);
    assert_true(tr__memory_calls() == calls || t->plan->request.reproducible);
}

// Where devices exchange by themselves, the walk goes on beside all exchanges of a
// step: queues of the device wait for them.
// (What stages have sent is gone when the data behind the last turn are given back.)
static bool ends_turns(const tr_plan_step *step) {
    return step->shape == TR_STEP_IS_FEED && step->payload.gives_back;
}

static void check_waits(const tr_plan *plan) {
    static const tr_stream theirs[] = {TR_STREAM_COMM, TR_STREAM_TENSOR, TR_STREAM_SEND,
                                       TR_STREAM_RECEIVE};
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    int64_t waits = 0;
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        for (size_t k = 0; k < sizeof theirs / sizeof *theirs; k++) {
            bool follows = tr__plan_follows(plan, step->stream, theirs[k]);
            assert_true(step->wait[theirs[k]] == 0 || follows ||
                        (ends_turns(step) && theirs[k] == TR_STREAM_SEND));
            waits += step->wait[theirs[k]] > 0;
        }
        assert_false(step->label.verb == TR_VERB_reduce &&
                     tr__step_operand(plan, step, TR_EXCHANGE_RECEIVE)->mode ==
                         TR_ACCESS_ADD);
    }
    assert_true(waits > 0);
}

static void train(const char *device, const example *of, tr_comm *ranks, trained *out) {
    trial t;
    int64_t exchanges = test_device_exchanges();
    open_run(device, of, ranks, &t);
    bool theirs = peers && ranks && t.plan->request.backend == TR_BACKEND_CUDA;
    assert_int_equal(t.plan->request.peers, theirs);
    if (theirs) {
        check_waits(t.plan);
    }
    trained_make(&t, STEPS, out);
    assert_int_equal(test_device_exchanges() > exchanges, theirs);
    trained_check_arenas(&t);
    if (ranks) {
        check_traffic(&t);
    }
    trial_close(&t);
}

static void print_words(const example *of, char words[512]) {
    snprintf(words, 512, "%s", of->folder);
    for (int i = 0; i < SETTINGS - 1 && of->set[i]; i++) {
        size_t length = strlen(words);
        snprintf(words + length, 512 - length, ", %s", of->set[i]);
    }
}

static const example examples[] = {
    {"goldens/mlp", {STAGE "0", MICRO "2", WAVE "1"}},
    {"goldens/mlp", {STAGE "1", MICRO "1", WAVE "1"}},
    {"goldens/mlp", {STAGE "2", MICRO "1", WAVE "1", ZERO "overlap_comm=false"}},
    {"goldens/mlp", {STAGE "3", MICRO "1", ZERO "overlap_comm=false"}},
    {"goldens/mlp-lamb", {STAGE "2", MICRO "1"}},
    {"goldens/gpt2", {STAGE "0", MICRO "1", WAVE "1"}},
    {"goldens/gpt2", {STAGE "1", MICRO "1"}},
    {"goldens/gpt2", {STAGE "2", MICRO "1", WAVE "1"}},
    {"goldens/gpt2", {STAGE "3", MICRO "1", WAVE "1"}},
    {"goldens/gpt2", {STAGE "3", MICRO "1", "execution.vocabulary_slices=3"}},
    {"goldens/gpt2", {STAGE "2", MICRO "1", OFFLOAD}},
    {
        "goldens/gpt2",
        {STAGE "3", MICRO "1", OFFLOAD, ZERO "offload_param.device=cpu"},
    },
    {"goldens/mlp-lamb", {STAGE "2", MICRO "1", OFFLOAD}},
    {"goldens/mlp-lamb", {STAGE "1", MICRO "1", OFFLOAD}},
    {"resnets/cifar", {STAGE "1", MICRO "2"}},
    {"goldens/gpt2", {STAGE "2", MICRO "1", STAGES "2"}},
    {"goldens/gpt2", {STAGE "3", MICRO "1", STAGES "2", SCHEDULE "zero_bubble"}},
    {"goldens/gpt2", {STAGE "2", MICRO "1", STAGES "2", OFFLOAD, WAVE "2"}},
    {"goldens/gpt2", {STAGE "3", MICRO "1", WAVE "2", ZERO "overlap_comm=false"}},
    // Ranks exchange inside of units, beside what data ranks exchange; with four ranks
    // there are two of each.
    {"goldens/gpt2", {STAGE "2", MICRO "1", WAVE "2", "tensor_parallel.size=2"}},
    {
        "goldens/gpt2",
        {STAGE "1", MICRO "1", WAVE "1", "tensor_parallel.size=2",
         "tensor_parallel.sequence=true"},
    },
    // Last: sums of 16 bits round by the order of their terms, which is the CPU's
    // unless devices exchange by themselves.
    {"goldens/mlp", {STAGE "2", MICRO "1", "data_types.grad_accum_dtype=bf16"}},
};
enum { EXAMPLES = sizeof examples / sizeof *examples };

static void as_on_the_cpu(void **state) {
    (void)state;
    for (int i = 0; i < EXAMPLES - peers; i++) {
        trained cpu, cuda;
        char words[512];
        print_words(&examples[i], words);
        test_guard_set_seed((uint64_t)i % 2);
        train("device=cpu", &examples[i], comm, &cpu);
        train("device=cuda", &examples[i], comm, &cuda);
        trained_assert_close(&cpu, &cuda, words);
        trained_free(&cpu);
        trained_free(&cuda);
    }
}

// In 16 bits sums are rounded elsewhere than on the CPU.
static void half_as_on_the_cpu(const example *half) {
    trained cpu, cuda;
    test_guard_set_seed(1);
    train("device=cpu", half, comm, &cpu);
    train("device=cuda", half, comm, &cuda);
    for (int s = 0; s < STEPS; s++) {
        double off = cuda.steps[s].loss / cpu.steps[s].loss - 1;
        if (!(fabs(off) <= (s == 0 ? 2e-3 : 1e-2))) {
            fail_msg("step %d: loss %.9g for %.9g", s + 1, cuda.steps[s].loss,
                     cpu.steps[s].loss);
        }
    }
    trained_free(&cpu);
    trained_free(&cuda);
}

static void in_16_bits(void **state) {
    static const example half[] = {
        {"goldens/gpt2", {STAGE "3", MICRO "1", "bf16.enabled=true"}},
        {"goldens/gpt2",
         {STAGE "2", MICRO "1", WAVE "1", "bf16.enabled=true",
          "data_types.grad_accum_dtype=bf16"}},
        {"goldens/gpt2", {STAGE "1", MICRO "1", "fp8.enabled=true", SHARED "2"}},
        {"goldens/gpt2",
         {STAGE "0", MICRO "2", "fp8.enabled=true", SHARED "2", TOKENS_CUT}},
        {"goldens/gpt2", {STAGE "1", MICRO "1", "bf16.enabled=true", SHARED "2", MUON}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof half / sizeof *half; i++) {
        half_as_on_the_cpu(&half[i]);
    }
}

static void assert_same(const trained *a, const trained *b) {
    for (int s = 0; s < STEPS; s++) {
        const tr_step_result *x = &a->steps[s], *y = &b->steps[s];
        assert_memory_equal(&x->loss, &y->loss, sizeof x->loss);
        assert_memory_equal(&x->grad_norm, &y->grad_norm, sizeof x->grad_norm);
    }
    snapshot_assert_same(&a->end, &b->end);
}

#define REPRODUCIBLE "execution.reproducible=true"

// However the batch is cut among ranks, and whatever they keep: where the device
// updates and where the host does.
static void come_to_same_bits(const char *folder, const example *cuts, int count) {
    example of = cuts[0];
    trained alone, together;
    of.folder = folder;
    test_guard_set_seed(0);
    train(own_device, &of, NULL, &alone);
    for (int i = 0; i < count; i++) {
        of = cuts[i];
        of.folder = folder;
        test_guard_set_seed((uint64_t)i);
        train("device=cuda", &of, comm, &together);
        assert_same(&alone, &together);
        trained_free(&together);
    }
    trained_free(&alone);
}

static void reproducible(void **state) {
    static const example cuts[] = {
        {"", {STAGE "0", MICRO "1", REPRODUCIBLE, WAVE "1"}},
        {"", {STAGE "1", MICRO "1", REPRODUCIBLE, WAVE "1"}},
        {"", {STAGE "2", MICRO "1", REPRODUCIBLE}},
        {"", {STAGE "3", MICRO "1", REPRODUCIBLE, WAVE "1"}},
        {"", {STAGE "1", MICRO "1", REPRODUCIBLE, STAGES "2"}},
        {"", {STAGE "3", MICRO "1", REPRODUCIBLE, STAGES "2", SCHEDULE "zero_bubble"}},
    };
    static const example offloaded[] = {
        {"", {STAGE "0", MICRO "1", REPRODUCIBLE, WAVE "1", OFFLOAD}},
        {"", {STAGE "2", MICRO "1", REPRODUCIBLE, WAVE "1", OFFLOAD}},
        {"", {STAGE "3", MICRO "1", REPRODUCIBLE, WAVE "2", OFFLOAD}},
        {"", {STAGE "2", MICRO "1", REPRODUCIBLE, WAVE "1", OFFLOAD, STAGES "2"}},
    };
    come_to_same_bits(*state, cuts, 6);
    come_to_same_bits(*state, offloaded, 4);
}

// The streams' pace changes no bit.
static void at_any_pace(void **state) {
    static const example of = {"goldens/gpt2", {STAGE "3", MICRO "1", WAVE "1"}};
    trained first, other;
    (void)state;
    test_guard_set_seed(0);
    train("device=cuda", &of, comm, &first);
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        test_guard_set_seed(seed);
        train("device=cuda", &of, comm, &other);
        assert_same(&first, &other);
        trained_free(&other);
    }
    trained_free(&first);
}

// Two ranks on the data axis by two on the tensor axis, along which nothing is split:
// groups exchange at the same time, and come to the bits of one process.
static void on_a_mesh(void **state) {
    static const example of = {"goldens/gpt2", {STAGE "3", MICRO "1", REPRODUCIBLE}};
    static const tr_mesh mesh = {.size = {2, 2, 1}};
    trained alone, together;
    tr_error err = {0};
    trial t;
    (void)state;
    if (tr_comm_ranks(comm) != 4) {
        skip();
    }
    train(own_device, &of, NULL, &alone);
    open_run("device=cuda", &of, comm, &t);
    tr_plan_request request = t.plan->request;
    tr_engine_destroy(t.engine);
    tr_plan_destroy(t.plan);
    request.tensor_ranks_alike = true;
    request.mesh = tr__mesh_of_rank(&mesh, tr_comm_rank(comm));
    request.accumulation_steps = request.train_batch_size / 2;
    request.wave = 1;
    trial_ok(tr__plan_build(&request, &t.plan, &err), &err);
    trial_ok(tr_engine_create(t.run, t.plan, &t.engine, &err), &err);
    trained_make(&t, STEPS, &together);
    trial_close(&t);
    assert_same(&alone, &together);
    trained_free(&alone);
    trained_free(&together);
}

static int run(const char *which) {
    const struct CMUnitTest close[] = {
        cmocka_unit_test(as_on_the_cpu),
        cmocka_unit_test(in_16_bits),
    };
    const struct CMUnitTest bits[] = {
        cmocka_unit_test_prestate(reproducible, "goldens/mlp"),
        cmocka_unit_test_prestate(reproducible, "goldens/gpt2"),
        cmocka_unit_test(at_any_pace),
        cmocka_unit_test(on_a_mesh),
    };
    const struct CMUnitTest by_themselves[] = {
        cmocka_unit_test(as_on_the_cpu),
        cmocka_unit_test(in_16_bits),
        cmocka_unit_test_prestate(reproducible, "goldens/mlp"),
        cmocka_unit_test(on_a_mesh),
    };
    if (strcmp(which, "peers") == 0) {
        peers = true;
        snprintf(own_device, sizeof own_device, "device=cuda:%d", tr_comm_rank(comm));
        test_device_set_peers(true);
        test_device_set_count(tr_comm_ranks(comm));
        return cmocka_run_group_tests(by_themselves, NULL, NULL);
    }
    return strcmp(which, "bits") == 0 ? cmocka_run_group_tests(bits, NULL, NULL)
                                      : cmocka_run_group_tests(close, NULL, NULL);
}

// ---- by functions of the program's

static tr_status exchange(void *user, int to, const void *out, size_t out_bytes,
                          int from, void *in, size_t in_bytes, tr_error *err) {
    MPI_Request under_way[2];
    MPI_Status done[2];
    int count = 0;
    (void)user, (void)err;
    if (in_bytes > 0) {
        MPI_Irecv(in, (int)in_bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD,
                  &under_way[count++]);
    }
    if (out_bytes > 0) {
        MPI_Isend(out, (int)out_bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD,
                  &under_way[count++]);
    }
    MPI_Waitall(count, under_way, done);
    return TR_OK;
}

static void abandon(void *user, const tr_error *error) {
    (void)user;
    fprintf(stderr, "%s\n", error->message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int by_functions(int *argc, char ***argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_on_the_cpu),
        cmocka_unit_test_prestate(reproducible, "goldens/mlp"),
    };
    tr_comm_functions functions = TR_COMM_FUNCTIONS_INIT;
    tr_error err = {0};
    setenv("CMOCKA_TEST_ABORT", "1", 1); // the others would wait for this rank
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &functions.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &functions.ranks);
    functions.exchange = exchange;
    functions.abandon = abandon;
    trial_ok(tr_comm_create_callback(&functions, &comm, &err), &err);
    snprintf(own_device, sizeof own_device, "device=cuda:%d", functions.rank);
    test_device_set_peers(true);
    test_device_set_count(functions.ranks);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tr_comm_close(comm);
    MPI_Finalize();
    return failed;
}

int main(int argc, char **argv) {
    return argc > 1 && strcmp(argv[1], "functions") == 0
               ? by_functions(&argc, &argv)
               : on_ranks(&comm, run, argc, argv);
}
