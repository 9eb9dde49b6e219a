#include "exec/rig.h"

#include "base/rng.h"
#include "exec/walk.h"
#include "models/models.h"
#include "plan/flow/residency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { PARAM_STREAM = 100, INPUT_STREAM = 1, TARGET_STREAM = 2 };

static const tr_run_context context = {
    .seed = TEST_SEED, .step = 7, .loss_seed = TEST_LOSS_SEED};

tr_model *test_rig_gpt2(int64_t layers, double dropout) {
    tr_gpt2_config config = {.n_layer = layers,
                             .n_embd = 8,
                             .n_head = 2,
                             .n_positions = 4,
                             .vocab_size = 11,
                             .n_inner = 32,
                             .gelu_tanh = true,
                             .layer_norm_epsilon = 1e-2,
                             .initializer_range = 0.02,
                             .resid_pdrop = dropout,
                             .embd_pdrop = dropout,
                             .attn_pdrop = dropout};
    tr_model *model = NULL;
    tr_error err = {0};
    assert_int_equal(tr__model_gpt2(&config, &model, &err), TR_OK);
    return model;
}

tr_plan_request test_rig_request(const tr_model *model, int64_t m) {
    return (tr_plan_request){.model = model,
                             .train_batch_size = TEST_BATCH,
                             .micro_batch = m,
                             .accumulation_steps = (TEST_BATCH + m - 1) / m,
                             .mesh = tr_mesh_of_data(1, 0),
                             .threads = 2};
}

static tr_status read_samples(void *user, const int64_t *index, int64_t count,
                              void *const *rows, tr_error *err) {
    const tr_model *model = user;
    int64_t width = tr_shape_count(model->batch.tensor[0].desc.shape);
    int64_t targets = tr_model_targets(model);
    uint64_t classes = (uint64_t)model->classes;
    (void)err;
    for (int64_t r = 0; r < count; r++) {
        int64_t first = index[r] * width;
        float *features = (float *)rows[0] + r * width;
        int32_t *ids = (int32_t *)rows[0] + r * width;
        int32_t *labels = (int32_t *)rows[1] + r * targets;
        if (model->batch.tensor[0].desc.dtype == TR_F32) {
            tr__fill_normal(features, first, width, 0, 1, TEST_SEED, INPUT_STREAM);
        }
        for (int64_t i = 0; i < width && model->batch.tensor[0].desc.dtype == TR_I32;
             i++) {
            ids[i] = (int32_t)tr__draw_below(classes, (uint64_t)(first + i), TEST_SEED,
                                             INPUT_STREAM);
        }
        for (int64_t i = 0; i < targets; i++) {
            uint64_t at = (uint64_t)(index[r] * targets + i);
            labels[i] = (int32_t)tr__draw_below(classes, at, TEST_SEED, TARGET_STREAM);
            labels[i] = at % 5 == 3 ? TR_NO_TARGET : labels[i];
        }
    }
    return TR_OK;
}

static void make_dataset(test_rig *rig, const tr_model *model) {
    tr_error err = {0};
    tr_dataset_source source = {.size = sizeof(tr_dataset_source),
                                .samples = TEST_SAMPLES,
                                .tensors = model->batch,
                                .read = read_samples,
                                .user = (void *)model};
    assert_int_equal(tr_dataset_create_callback(&source, &rig->dataset, &err), TR_OK);
}

float *test_rig_param(const test_rig *rig, int param) {
    const tr_plan_param *p = &rig->plan->params[param];
    const tr_flat *flat = &rig->plan->flats[p->flat];
    return tr__backend_reach(rig->executor->backend,
                             tr__kept_f32(rig->executor, &flat->master, p->offset));
}

float *test_rig_grad(const test_rig *rig, int param) {
    const tr_plan_param *p = &rig->plan->params[param];
    const tr_flat *flat = &rig->plan->flats[p->flat];
    bool here = flat->grad.buffer >= 0 && rig->plan->request.sums == TR_F32 &&
                !tr__is_on_nvme(rig->plan, &flat->grad);
    return here ? tr__backend_reach(rig->executor->backend,
                                    tr__kept_sum(rig->executor, &flat->grad, p->offset))
                : NULL;
}

static void draw_params(const test_rig *rig) {
    for (size_t i = 0; i < rig->plan->param_count; i++) {
        const tr_plan_param *param = &rig->plan->params[i];
        float *grad = test_rig_grad(rig, (int)i);
        tr__fill_normal(test_rig_param(rig, (int)i), 0, param->count,
                        param->shape.rank == 1 ? 0.5f : 0, 0.4f, TEST_SEED,
                        PARAM_STREAM + i);
        if (grad) {
            memset(grad, 0xFF, (size_t)param->count * sizeof *grad);
        }
    }
}

// Nothing is known of what the plan passes through.
static void spoil_passing(const test_rig *rig) {
    for (size_t i = 0; i < rig->plan->buffer_count; i++) {
        const tr_buffer *b = &rig->plan->buffers[i];
        if (b->sequence >= 0 && b->space != TR_SPACE_NVME && b->bytes > 0) {
            void *memory = tr__arena_view(rig->arenas[b->space], (size_t)b->offset,
                                          (size_t)b->bytes);
            memset(tr__backend_reach(rig->executor->backend, memory), 0xFF,
                   (size_t)b->bytes);
        }
    }
}

void test_rig_begin(test_rig *rig, const tr_plan_request *request) {
    tr_error err = {0};
    *rig = (test_rig){0};
    if (tr_plan_make(request, &rig->plan, &err) != TR_OK) {
        fail_msg("no plan: %s", err.message);
    }
    assert_int_equal(tr__arenas_fit(rig->plan, rig->arenas, &err), TR_OK);
    assert_int_equal(
        tr__executor_create(rig->plan, rig->arenas, NULL, ".", &rig->executor, &err),
        TR_OK);
    spoil_passing(rig);
    if (!tr__plan_uses_nvme(rig->plan)) {
        draw_params(rig);
    }
    make_dataset(rig, request->model);
}

void test_rig_end(test_rig *rig) {
    tr__executor_destroy(rig->executor);
    tr__arenas_destroy(rig->arenas);
    tr_dataset_destroy(rig->dataset);
    tr_plan_destroy(rig->plan);
}

static tr_feed *make_feed(test_rig *rig, int ring) {
    const tr_plan_request *r = &rig->plan->request;
    int64_t batch = ring == 0 ? r->train_batch_size : r->micro_batch;
    tr_feed_options options = {
        .dataset = rig->dataset,
        .order = {.samples = TEST_SAMPLES},
        .batcher = {.samples = TEST_SAMPLES, .batch = batch},
        .micro_batch = r->micro_batch,
        .micros = ring == 0 ? r->accumulation_steps : 1,
        .rounds = ring == 0 ? tr__plan_rounds(rig->plan) : 1,
        .slots = rig->plan->slots[ring],
        .memory = tr__executor_ring(rig->executor, ring),
    };
    tr_feed *feed = NULL;
    tr_error err = {0};
    if (tr__feed_create(&options, &feed, &err) != TR_OK) {
        fail_msg("no feed: %s", err.message);
    }
    tr__executor_feed(rig->executor, ring, feed);
    return feed;
}

static void run(test_rig *rig, tr_sequence_kind kind, const tr_walk_calls *calls) {
    tr_error err = {0};
    if (tr__executor_run(rig->executor, kind, &context, calls, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
}

void test_rig_train(test_rig *rig) {
    test_rig_follow(rig, NULL, NULL);
}

tr_status test_rig_walk(test_rig *rig, const tr_walk_calls *calls) {
    tr_feed *feed = make_feed(rig, 0);
    tr_error err = {0};
    tr_status status =
        tr__executor_run(rig->executor, TR_SEQUENCE_TRAIN, &context, calls, &err);
    tr__feed_destroy(feed);
    return status;
}

void test_rig_follow(test_rig *rig, bool (*follow)(void *user), void *user) {
    tr_feed *feed = make_feed(rig, 0);
    run(rig, TR_SEQUENCE_TRAIN, &(tr_walk_calls){.stop = follow, .user = user});
    tr__feed_destroy(feed);
}

tr_step_statistics test_rig_statistics(const test_rig *rig) {
    tr_step_statistics statistics;
    tr__executor_statistics(rig->executor, &statistics);
    return statistics;
}

void test_rig_evaluate(test_rig *rig) {
    const tr_plan_request *r = &rig->plan->request;
    tr_feed *feed = make_feed(rig, 1);
    memset(tr__executor_sums(rig->executor), 0, TR_SUMS * sizeof(double));
    for (int64_t done = 0; done < r->train_batch_size; done += r->micro_batch) {
        run(rig, TR_SEQUENCE_EVALUATE, NULL);
    }
    tr__feed_destroy(feed);
}

int64_t test_rig_count(const test_rig *rig, int param) {
    return rig->plan->params[param].count;
}

const char *test_rig_name(const test_rig *rig, int param) {
    return rig->plan->params[param].name;
}
