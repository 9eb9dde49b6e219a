#include "base/files.h"
#include "base/memory.h"
#include "ckpt/tensor_set.h"
#include "exec/executor.h"
#include "models/models.h"
#include "train/end_tokens.h"
#include "train/folder.h"

#include <tranche/sample.h>

#include <limits.h>
#include <string.h>

struct tr_sampler {
    tr_model *loaded; // as the folder has it
    tr_model model;   // with the context that is used
    tr_plan *plan;
    tr_arena *arenas[TR_SPACES];
    tr_executor *executor;
    int64_t context;
    tr_end_tokens ends;
};

enum { CONTEXT_LEAST = 16 };

// Contexts are powers of two: cheap for short texts.
static int64_t context_for(const tr_model *model, int64_t length) {
    int64_t most = tr_shape_count(model->input.shape), context = CONTEXT_LEAST;
    while (context < length && context < most) {
        context *= 2;
    }
    return context < most ? context : most;
}

static tr_status read_weights(tr_sampler *s, const char *folder, tr_error *err) {
    tr_tensor_set *set = NULL;
    tr_status status = tr__tensor_set_open(folder, &set, err);
    if (status == TR_OK) {
        status = tr__read_parameters(&(tr_weights_source){set, folder, 0, 0}, s->plan,
                                     s->executor, -1, NULL, err);
    }
    if (status == TR_OK) {
        status = tr__read_states(set, folder, s->plan, s->executor, err);
    }
    tr__tensor_set_close(set);
    return status;
}

static tr_status load(tr_sampler *s, const char *folder, int64_t length, int threads,
                      tr_error *err) {
    tr_status status = tr__model_from_folder(folder, &s->loaded, err);
    if (status != TR_OK) {
        return status;
    }
    if (s->loaded->classifier) {
        return tr_fail(err, TR_USAGE,
                       "%s: holds a classifier; only language models can "
                       "be sampled from",
                       folder);
    }
    status = tr__end_tokens_read(folder, &s->ends, err);
    if (status != TR_OK) {
        return status;
    }
    s->context = context_for(s->loaded, length);
    s->model = *s->loaded;
    s->model.input.shape = s->model.target.shape = TR_SHAPE1(s->context);
    tr_plan_request request = {.model = &s->model,
                               .train_batch_size = 1,
                               .micro_batch = 1,
                               .accumulation_steps = 1,
                               .ranks = 1,
                               .inference = true,
                               .threads = threads};
    status = tr_plan_make(&request, &s->plan, err);
    if (status == TR_OK) {
        status = tr__arenas_create(s->plan, s->arenas, err);
    }
    if (status == TR_OK) {
        status = tr__executor_create(s->plan, s->arenas, NULL, NULL, &s->executor, err);
    }
    return status == TR_OK ? read_weights(s, folder, err) : status;
}

tr_status tr_sampler_create(const char *path, int64_t length, int threads,
                            tr_sampler **out, tr_error *err) {
    char folder[PATH_MAX];
    tr_status status = tr_checkpoint_locate(path, folder, sizeof folder, err);
    if (status != TR_OK) {
        return status;
    }
    tr_sampler *s = tr__calloc(1, sizeof *s);
    if (!s) {
        return tr_fail(err, TR_MEMORY, "no memory for a sampler");
    }
    status = load(s, folder, length, threads, err);
    if (status != TR_OK) {
        tr_sampler_destroy(s);
        return status;
    }
    *out = s;
    return TR_OK;
}

void tr_sampler_destroy(tr_sampler *sampler) {
    if (sampler) {
        tr__executor_destroy(sampler->executor);
        tr__arenas_destroy(sampler->arenas);
        tr_plan_destroy(sampler->plan);
        tr_model_destroy(sampler->loaded);
        tr__free(sampler);
    }
}

int64_t tr_sampler_vocabulary(const tr_sampler *sampler) {
    return sampler->model.classes;
}

bool tr_sampler_ends(const tr_sampler *sampler, int32_t token) {
    return tr__end_tokens_have(&sampler->ends, token);
}

tr_status tr_sampler_logits(tr_sampler *s, const int32_t *tokens, int64_t count,
                            const float **logits, tr_error *err) {
    char *slot = tr__executor_ring(s->executor, 1);
    int32_t *ids = (int32_t *)slot; // [1, context]
    int32_t *wanted =
        (int32_t *)(slot + tr__data_offset(s->plan->data, 1,
                                           TR_DATA_TARGET)); // [1, context]
    int64_t used = count < s->context ? count : s->context;
    if (used < 1) {
        return tr_fail(err, TR_USAGE, "a prompt needs at least one token");
    }
    for (int64_t i = 0; i < s->context; i++) {
        ids[i] = i < used ? tokens[count - used + i] : 0;
        wanted[i] = i == used - 1 ? 0 : -100; // logits of this row
        if (ids[i] < 0 || ids[i] >= s->model.classes) {
            return tr_fail(err, TR_USAGE,
                           "token %d is outside of the model's vocabulary of %lld",
                           (int)ids[i], (long long)s->model.classes);
        }
    }
    tr_run_context context = {0};
    tr_status status =
        tr__executor_run(s->executor, TR_SEQUENCE_ANSWER, &context, NULL, err);
    *logits = tr__executor_answer(s->executor);
    return status;
}
