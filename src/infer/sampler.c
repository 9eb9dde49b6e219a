// Logits of the next token. Two plans share the weights and the cache of keys and
// values, which both have at the same places: one computes a piece of a prompt, the
// other one a single token.
#include "backend/backend.h"
#include "base/arguments.h"
#include "base/batch.h"
#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/wait.h"
#include "exec/executor.h"
#include "files/safetensors/tensor_set.h"
#include "infer/end_tokens.h"
#include "infer/trained_base.h"
#include "models/folder.h"
#include "models/models.h"
#include "train/state/read_tensors.h"

#include <tranche/sample.h>

#include <limits.h>
#include <string.h>

// One of the plans.
typedef struct way {
    tr_model model; // with the positions that are computed at once
    tr_plan *plan;
    tr_executor *executor;
    int64_t positions;
} way;

struct tr_sampler {
    tr_model *loaded; // as the folder has it
    way piece, token; // token.plan: NULL where nothing is kept
    tr_arena *arenas[TR_SPACES];
    int64_t context;
    int32_t *window; // [context] the tokens whose keys and values were made
    int64_t known;   // how many
    int64_t made;    // positions whose keys and values were made, of nothing included
    int64_t room;    // of these, how many of the latest every cache has
    tr_end_tokens ends;
    tr_messages messages;
    tr_log log; // passes lines on to these
};

enum {
    CONTEXT_LEAST = 16,
    PIECE = 128, // positions: products of so many rows come near to their best rate
};

// Contexts are powers of two: cheap for short texts.
static int64_t context_for(int64_t most, int64_t length) {
    int64_t context = CONTEXT_LEAST;
    while (context < length && context < most) {
        context *= 2;
    }
    return tr__min_i64(context, most);
}

static tr_status read_weights(tr_sampler *s, const char *folder, const char *base,
                              tr_error *err) {
    tr_tensor_set *set = NULL;
    const way *w = &s->piece;
    tr_status status = tr__tensor_set_open_over(base, folder, &set, err);
    if (status == TR_OK) {
        status = tr__read_parameters(
            &(tr_weights_source){.set = set, .path = folder, .log = &s->log}, w->plan,
            w->executor, -1, NULL, err);
    }
    if (status == TR_OK) {
        status = tr__read_states(set, folder, w->plan, w->executor, err);
    }
    tr__tensor_set_close(set);
    return status == TR_OK ? tr__executor_round(w->executor, err) : status;
}

// ---- the plans

static tr_status plan_way(tr_sampler *s, const tr_sampler_options *o,
                          const char *folder, int64_t positions, way *w,
                          tr_error *err) {
    w->positions = positions;
    w->model = *s->loaded;
    tr__model_set_length(&w->model, positions, false);
    tr_plan_request request = {.model = &w->model,
                               .train_batch_size = 1,
                               .micro_batch = 1,
                               .accumulation_steps = 1,
                               .mesh = tr_mesh_of_data(1, 0),
                               .inference = true,
                               .cache_positions = o->uncached ? 0 : s->context,
                               .cache_piece = s->piece.positions,
                               .compute = o->compute,
                               .threads = o->threads};
    tr__ask_for_trained_base(folder, &w->model, &request);
    tr_status status = tr__device_parse("device", o->device ? o->device : "cpu",
                                        &request.backend, &request.device, err);
    if (status == TR_OK) {
        status = tr_plan_make(&request, &w->plan, err);
    }
    return status == TR_OK && !o->plan_only
               ? tr_plan_check_memory(w->plan, "sampling from this model", err)
               : status;
}

// The larger one's memory is enough for both.
static tr_status take_memory(tr_sampler *s, tr_error *err) {
    if (s->token.plan && !tr__plans_same_places(s->piece.plan, s->token.plan)) {
        return tr_fail(err, TR_INTERNAL,
                       "the plans of a prompt and of a token have weights or cache at "
                       "different places");
    }
    s->window = tr__calloc((size_t)s->context, sizeof *s->window);
    if (!s->window) {
        return tr_fail(err, TR_MEMORY, "no memory for a sampler");
    }
    tr_status status = tr__arenas_fit(s->piece.plan, s->arenas, err);
    if (status == TR_OK && s->token.plan) {
        status = tr__arenas_fit(s->token.plan, s->arenas, err);
    }
    if (status == TR_OK) {
        status = tr__executor_create(s->piece.plan, s->arenas, NULL, NULL,
                                     &s->piece.executor, err);
    }
    return status == TR_OK && s->token.plan
               ? tr__executor_create(s->token.plan, s->arenas, NULL, NULL,
                                     &s->token.executor, err)
               : status;
}

static int64_t room_of(const tr_plan *plan) {
    int64_t room = INT64_MAX;
    for (int u = 0; u < plan->unit_count; u++) {
        room = tr__min_i64(room, plan->units[u].program->cache_room);
    }
    return room;
}

static tr_status make_plans(tr_sampler *s, const tr_sampler_options *o,
                            const char *folder, tr_error *err) {
    int64_t most =
        o->uncached ? tr_model_targets(s->loaded) : tr__model_positions(s->loaded);
    s->context = context_for(most, o->length);
    int64_t piece = o->uncached ? s->context : o->piece > 0 ? o->piece : PIECE;
    tr_status status =
        plan_way(s, o, folder, tr__min_i64(piece, s->context), &s->piece, err);
    if (status == TR_OK && !o->uncached) {
        s->room = room_of(s->piece.plan);
        status = plan_way(s, o, folder, 1, &s->token, err);
    }
    return status;
}

// ---- opening

static void pass_on(void *user, tr_log_level level, const char *line) {
    const tr_messages *messages = user;
    if (messages->write) {
        messages->write(messages->user,
                        level == TR_LOG_WARNING ? TR_MESSAGE_WARNING : TR_MESSAGE_NOTE,
                        line);
    }
}

static tr_status load(tr_sampler *s, const tr_sampler_options *o, const char *folder,
                      tr_error *err) {
    tr_status status = tr__model_from_folder(folder, o->base, &s->loaded, err);
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
    if (status == TR_OK) {
        status = make_plans(s, o, folder, err);
    }
    if (status != TR_OK || o->plan_only) {
        return status;
    }
    status = take_memory(s, err);
    return status == TR_OK ? read_weights(s, folder, o->base, err) : status;
}

tr_status tr_sampler_open(const tr_sampler_options *options, tr_sampler **out,
                          tr_error *err) {
    static const char name[] = "tr_sampler_open";
    static const tr_sized known = {"tr_sampler_options", "TR_SAMPLER_OPTIONS_INIT",
                                   sizeof(tr_sampler_options), 0};
    char folder[PATH_MAX];
    tr_status status = tr__need_sized(options, &known, name, err);
    status = status == TR_OK ? tr__need(options->path, name, "path", err) : status;
    status = status == TR_OK ? tr__need(out, name, "out", err) : status;
    if (status == TR_OK) {
        status = tr_checkpoint_locate(options->path, folder, sizeof folder, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_sampler *s = tr__calloc(1, sizeof *s);
    if (!s) {
        return tr_fail(err, TR_MEMORY, "no memory for a sampler");
    }
    s->messages = options->messages;
    s->log = (tr_log){pass_on, &s->messages};
    status = load(s, options, folder, err);
    if (status != TR_OK) {
        tr_sampler_destroy(s);
        return status;
    }
    *out = s;
    return TR_OK;
}

tr_status tr_sampler_create(const char *path, int64_t length, int threads,
                            tr_sampler **out, tr_error *err) {
    tr_sampler_options options = TR_SAMPLER_OPTIONS_INIT;
    options.path = path;
    options.length = length;
    options.threads = threads;
    return tr_sampler_open(&options, out, err);
}

void tr_sampler_destroy(tr_sampler *sampler) {
    if (sampler) {
        tr__executor_destroy(sampler->piece.executor);
        tr__executor_destroy(sampler->token.executor);
        tr__arenas_destroy(sampler->arenas);
        tr_plan_destroy(sampler->piece.plan);
        tr_plan_destroy(sampler->token.plan);
        tr_model_destroy(sampler->loaded);
        tr__free(sampler->window);
        tr__free(sampler);
    }
}

// ---- asking

int64_t tr_sampler_vocabulary(const tr_sampler *sampler) {
    return sampler ? sampler->loaded->classes : 0;
}

bool tr_sampler_ends(const tr_sampler *sampler, int32_t token) {
    return sampler && tr__end_tokens_have(&sampler->ends, token);
}

const tr_plan *tr_sampler_prompt_plan(const tr_sampler *sampler) {
    return sampler ? sampler->piece.plan : NULL;
}

const tr_plan *tr_sampler_token_plan(const tr_sampler *sampler) {
    return sampler ? sampler->token.plan : NULL;
}

static tr_status check_tokens(const tr_sampler *s, const int32_t *tokens, int64_t count,
                              tr_error *err) {
    if (!s->window) {
        return tr_fail(err, TR_USAGE,
                       "this sampler was created with plan_only: it computes nothing");
    }
    if (count < 1) {
        return tr_fail(err, TR_USAGE, "a prompt needs at least one token");
    }
    for (int64_t i = 0; i < count; i++) {
        if (tokens[i] < 0 || tokens[i] >= s->loaded->classes) {
            return tr_fail(err, TR_USAGE,
                           "token %d is outside of the model's vocabulary of %lld",
                           (int)tokens[i], (long long)s->loaded->classes);
        }
    }
    return TR_OK;
}

// A tensor of the batch of one sample.
static int32_t *tensor_of(const way *w, char *slot, const char *name) {
    const tr_batch_tensors *batch = &w->plan->batch;
    return (int32_t *)(void *)(slot +
                               tr__batch_offset(batch, 1, tr_batch_find(batch, name)));
}

// Runs a plan on the tokens from `position` on. What lies behind token `count` - 1 is
// made of nothing, and is made anew before anybody reads it.
static tr_status run_way(const way *w, const int32_t *tokens, int64_t position,
                         int64_t count, tr_error *err) {
    char *slot = tr__executor_ring(w->executor, 1);
    int32_t *ids = tensor_of(w, slot, "input_ids"); // [1, positions]
    int32_t *wanted = tensor_of(w, slot, "labels"); // [1, positions]
    for (int64_t i = 0; i < w->positions; i++) {
        ids[i] = position + i < count ? tokens[position + i] : 0;
        wanted[i] = position + i == count - 1 ? 0 : -100; // logits of this row
    }
    tr_run_context context = {.position = position};
    return tr__executor_run(w->executor, TR_SEQUENCE_INFERENCE, &context, NULL, err);
}

// The window's tokens that are known from the call before; the last one is asked anew.
static int64_t known_of(const tr_sampler *s, const int32_t *window, int64_t count) {
    int64_t known = 0, most = tr__min_i64(s->known, count - 1);
    while (s->token.plan && known < most && window[known] == s->window[known]) {
        known++;
    }
    return known;
}

// The plan that goes on from position `next` of `used`, and the position from which:
// the last piece of a context may begin with what is known.
static const way *way_from(const tr_sampler *s, int64_t next, int64_t used,
                           int64_t *position) {
    const way *w = s->token.plan && next == used - 1 ? &s->token : &s->piece;
    *position = tr__min_i64(next, s->context - w->positions);
    return w;
}

// Where to go on from, `known` tokens being those of the call before. Rings have room
// for a window and a piece: what a query before the last piece sees may be gone.
static int64_t begin_from(tr_sampler *s, int64_t known, int64_t used) {
    int64_t position;
    way_from(s, known, used, &position);
    if (s->made > s->room && position + s->piece.positions < s->made) {
        known = 0;
    }
    s->made = known > 0 ? s->made : 0;
    return known;
}

tr_status tr_sampler_logits(tr_sampler *s, const int32_t *tokens, int64_t count,
                            const float **logits, tr_error *err) {
    static const char own_name[] = "tr_sampler_logits";
    tr_status given = tr__need(s, own_name, "sampler", err);
    given = given == TR_OK ? tr__need(tokens, own_name, "tokens", err) : given;
    given = given == TR_OK ? tr__need(logits, own_name, "logits", err) : given;
    if (given != TR_OK) {
        return given;
    }
    int64_t used = tr__min_i64(count, s->context), position;
    tr_status status = check_tokens(s, tokens + (count - used), used, err);
    if (status != TR_OK) {
        return status;
    }
    const int32_t *window = tokens + count - used;
    const way *w = &s->piece;
    int64_t next = begin_from(s, known_of(s, window, used), used);
    tr_wait wait = tr__wait_begin(&s->log, "reading the prompt");
    int64_t begun = next;
    s->known = next;
    while (next < used && status == TR_OK) {
        tr__wait_part(&wait, (double)(next - begun), (double)(used - begun));
        w = way_from(s, next, used, &position);
        status = run_way(w, window, position, used, err);
        next = position + w->positions;
        s->made = tr__max_i64(s->made, next);
    }
    if (status == TR_OK) {
        memcpy(s->window, window, (size_t)used * sizeof *window);
        s->known = used;
        *logits = tr__executor_logits(w->executor);
    }
    return status;
}
