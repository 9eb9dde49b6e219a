// Run on ranks: GPT-2, Llama with fewer heads of keys, Qwen2 whose embedding is its
// head, and BERT with two losses, of as many units as there are ranks at most; and, on
// more tensor ranks than they have heads of keys, Llama, Qwen2 and Qwen3: they take
// PyTorch's ten updates (tests/data/goldens) on meshes of all ranks, with every
// schedule, in micro-batches that do not fill the batch. Neither the vocabulary nor the
// width of MLPs is a multiple of the tensor ranks.
//
// `elastic`, FOLDER and a number from 1 on: a part of a run that goes from mesh to
// mesh.
#include "comm/mesh.h"
#include "on_ranks.h"
#include "train/golden.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 10, SETTINGS = 12, TEXT = 64 };

static tr_comm *comm;

static const struct {
    const char *name;
    int64_t units;
    int64_t tensor; // ranks on that axis, for which heads of keys are repeated; 0: any
} models[] = {{"gpt2-deep", 8, 0}, {"llama-deep", 8, 0}, {"qwen2-deep", 8, 0},
              {"bert-next", 4, 0}, {"llama", 4, 4},      {"qwen2", 4, 2},
              {"qwen3", 4, 4}};

// Data, tensor, pipeline. Those that are `more` run where TR_TEST_ALL_MESHES is set.
static const struct {
    tr_mesh mesh;
    bool more;
} meshes[] = {
    {{.size = {1, 2, 1}}, false}, {{.size = {1, 1, 2}}, false},
    {{.size = {1, 1, 3}}, false}, {{.size = {1, 4, 1}}, false},
    {{.size = {1, 1, 4}}, false}, {{.size = {2, 2, 1}}, false},
    {{.size = {2, 1, 2}}, false}, {{.size = {1, 2, 2}}, false},
    {{.size = {3, 2, 1}}, true},  {{.size = {1, 2, 3}}, true},
    {{.size = {3, 1, 2}}, true},  {{.size = {2, 1, 3}}, true},
    {{.size = {1, 1, 6}}, true},  {{.size = {2, 2, 2}}, false},
    {{.size = {1, 1, 8}}, false}, {{.size = {1, 4, 2}}, true},
    {{.size = {1, 2, 4}}, true},  {{.size = {2, 4, 1}}, true},
    {{.size = {2, 1, 4}}, true},  {{.size = {4, 2, 1}}, true},
    {{.size = {4, 1, 2}}, true},
};

// How the batch is cut, and what is beside it. Six samples: of four data ranks two have
// one less than the others, and micro-batches of four leave the last one half empty.
typedef struct way {
    const char *set[4];
    bool stages; // on several stages alone
    bool more;   // as above
} way;

static const way ways[] = {
    {{"train_micro_batch_size_per_gpu=1", NULL}, false, false},
    {{"train_micro_batch_size_per_gpu=4", "zero_optimization.stage=1", NULL},
     false,
     false},
    {{"train_micro_batch_size_per_gpu=1", "zero_optimization.stage=3",
      "execution.recompute=unit", NULL},
     false,
     true},
    {{"train_micro_batch_size_per_gpu=2", "zero_optimization.stage=2",
      "tensor_parallel.sequence=true", NULL},
     false,
     true},
    {{"train_micro_batch_size_per_gpu=1", "pipeline.schedule=interleaved", NULL},
     true,
     false},
    {{"train_micro_batch_size_per_gpu=1", "pipeline.schedule=breadth_first",
      "zero_optimization.stage=3", NULL},
     true,
     false},
    {{"train_micro_batch_size_per_gpu=1", "pipeline.schedule=breadth_first",
      "pipeline.virtual_stages=2", NULL},
     true,
     true},
    {{"train_micro_batch_size_per_gpu=1", "pipeline.schedule=zero_bubble",
      "zero_optimization.stage=2", NULL},
     true,
     false},
    {{"train_micro_batch_size_per_gpu=1", "pipeline.schedule=v",
      "pipeline.virtual_stages=2", "zero_optimization.stage=3"},
     true,
     true},
};

static bool runs_more(void) {
    return getenv("TR_TEST_ALL_MESHES") != NULL;
}

// Eight units are too few for two parts on each of more than four stages.
static bool is_possible(const way *at, const tr_mesh *mesh, int64_t units) {
    int64_t stages = mesh->size[TR_AXIS_PIPELINE];
    bool parts = strcmp(at->set[1] ? at->set[1] : "", ways[4].set[1]) == 0 ||
                 (at->set[2] && strncmp(at->set[2], "pipeline.virtual", 16) == 0);
    return (stages > 1 || !at->stages) && stages * (parts ? 2 : 1) <= units;
}

// The settings of a run on the mesh. text: [3] for those that are written here.
static int settings_of(const way *at, const tr_mesh *mesh, char text[][TEXT],
                       const char *set[SETTINGS]) {
    int count = 0;
    snprintf(text[0], TEXT, "tensor_parallel.size=%d", (int)mesh->size[TR_AXIS_TENSOR]);
    snprintf(text[1], TEXT, "pipeline.stages=%d", (int)mesh->size[TR_AXIS_PIPELINE]);
    set[count++] = text[0];
    set[count++] = text[1];
    set[count++] = "execution.threads=1";
    for (int i = 0; i < 4 && at->set[i]; i++) {
        bool idle = strncmp(at->set[i], "tensor_parallel.seq", 19) == 0 &&
                    mesh->size[TR_AXIS_TENSOR] == 1;
        set[count] = at->set[i];
        count += !idle;
    }
    return count;
}

// start: as snapshot_assert_close.
static void check_end(const char *model, trial *t, const snapshot *start) {
    snapshot end, final;
    snapshot_gather(&end, t);
    golden_read_final(t->engine->settings->optimizer, &end, &final);
    snapshot_assert_close(start, &final, &end, 1e-4, model);
    snapshot_free(&end);
    snapshot_free(&final);
}

static void check_way(const char *model, const way *at, const tr_mesh *mesh,
                      const json_t *expected) {
    char text[2][TEXT];
    const char *set[SETTINGS];
    run_options options = {.file = "run.json",
                           .set = set,
                           .set_count = settings_of(at, mesh, text, set),
                           .comm = comm,
                           .resume = "never"};
    tr_step_result results[STEPS];
    snapshot start;
    trial t;
    trial_open(&t, &options);
    assert_memory_equal(t.plan->request.mesh.size, mesh->size, sizeof mesh->size);
    snapshot_gather(&start, &t);
    trial_steps(&t, STEPS, results);
    for (size_t s = 0; s < STEPS; s++) {
        golden_check_step(model, &results[s], json_array_get(expected, s));
    }
    check_end(model, &t, &start);
    trial_close(&t);
    snapshot_free(&start);
}

static void as_pytorch(void **state) {
    int tried = 0, left_out = 0;
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        golden_go_to(models[m].name);
        json_t *all = json_load_file("expected.json", 0, NULL);
        const json_t *expected = json_object_get(all, "steps");
        assert_int_equal(json_array_size(expected), STEPS);
        for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
            const tr_mesh *mesh = &meshes[i].mesh;
            bool of_tensor =
                models[m].tensor == 0 || mesh->size[TR_AXIS_TENSOR] == models[m].tensor;
            bool here = tr_mesh_ranks(mesh) == tr_comm_ranks(comm) && of_tensor;
            for (size_t w = 0; here && w < sizeof ways / sizeof *ways; w++) {
                bool more = meshes[i].more || ways[w].more;
                bool runs = is_possible(&ways[w], mesh, models[m].units) &&
                            (!more || runs_more());
                left_out += is_possible(&ways[w], mesh, models[m].units) && !runs;
                tried += runs;
                if (runs) {
                    check_way(models[m].name, &ways[w], mesh, expected);
                }
            }
        }
        json_decref(all);
    }
    assert_true(tried > 0);
    if (tr_comm_rank(comm) == 0) {
        printf("%d runs, %d left out (TR_TEST_ALL_MESHES)\n", tried, left_out);
    }
}

// ---- from mesh to mesh

// The parts of a run, which each begin where the one before has saved.
static const struct {
    tr_mesh mesh;
    int steps;
} parts[] = {
    {{.size = {2, 2, 1}}, 4}, {{.size = {1, 1, 3}}, 3}, {{.size = {4, 1, 1}}, 3}};
enum { PARTS = sizeof parts / sizeof *parts };

static const char *out;
static int part;

static void goes_on(void **state) {
    const way one = {{"train_micro_batch_size_per_gpu=1", NULL}, false, false};
    char text[2][TEXT], place[512];
    const char *set[SETTINGS];
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        int first = 0;
        golden_go_to(models[m].name);
        json_t *all = json_load_file("expected.json", 0, NULL);
        const json_t *expected = json_object_get(all, "steps");
        int count = settings_of(&one, &parts[part].mesh, text, set);
        snprintf(place, sizeof place, "out=%s/%s", out, models[m].name);
        set[count++] = place;
        run_options options = {.file = "run.json",
                               .set = set,
                               .set_count = count,
                               .comm = comm,
                               .resume = part == 0 ? "never" : "auto"};
        tr_step_result results[STEPS];
        tr_error err = {0};
        trial t;
        for (int i = 0; i < part; i++) {
            first += parts[i].steps;
        }
        trial_open(&t, &options);
        trial_steps(&t, parts[part].steps, results);
        for (int s = 0; s < parts[part].steps; s++) {
            golden_check_step(models[m].name, &results[s],
                              json_array_get(expected, (size_t)(first + s)));
        }
        if (part == PARTS - 1) {
            check_end(models[m].name, &t, NULL);
        }
        trial_ok(tr_engine_save(t.engine, &err), &err);
        trial_close(&t);
        json_decref(all);
    }
}

static int run(const char *which) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_pytorch)};
    const struct CMUnitTest elastic[] = {cmocka_unit_test(goes_on)};
    return strcmp(which, "elastic") == 0 ? cmocka_run_group_tests(elastic, NULL, NULL)
                                         : cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    if (argc > 3) {
        out = argv[2];
        part = atoi(argv[3]) - 1;
    }
    if (part < 0 || part >= PARTS) {
        fprintf(stderr, "there is no such part\n");
        return 1;
    }
    return on_ranks(&comm, run, argc, argv);
}
