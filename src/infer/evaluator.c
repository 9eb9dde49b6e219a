// A trained model on data, forward only: an inference plan that gives the logits of
// every position, and what follows from them.
#include "infer/evaluator.h"
#include "base/arguments.h"
#include "base/batch.h"
#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"
#include "data/sources/ids.h"
#include "files/safetensors/tensor_set.h"
#include "infer/logits.h"
#include "infer/trained_base.h"
#include "models/models.h"
#include "plan/flow/request.h"
#include "train/state/read_tensors.h"

#include <tranche/checkpoint.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    ROWS = 256, // positions computed together, at least, where there are so many
};

// ---- the run

// The run file that belongs to a folder: in it, or, of a checkpoint, two folders above.
static bool find_run_file(const char *path, char *file) {
    char state[PATH_MAX];
    if (tr__path_join(file, PATH_MAX, path, "run.json", NULL) == TR_OK &&
        access(file, F_OK) == 0) {
        return true;
    }
    return tr__path_join(state, sizeof state, path, "state.json", NULL) == TR_OK &&
           access(state, F_OK) == 0 &&
           tr__path_join(file, PATH_MAX, path, "../../run.json", NULL) == TR_OK &&
           access(file, F_OK) == 0;
}

static bool has_tokenizer(const char *folder) {
    char file[PATH_MAX];
    return tr__path_join(file, sizeof file, folder, "tokenizer.json", NULL) == TR_OK &&
           access(file, F_OK) == 0;
}

// Are the data JSON lines, by their names?
static bool are_records(const tr_evaluator_options *o) {
    static const char end[] = ".jsonl";
    size_t records = 0;
    for (size_t i = 0; i < o->data_count; i++) {
        size_t length = strlen(o->data[i]);
        records += length >= sizeof end &&
                   strcmp(o->data[i] + length + 1 - sizeof end, end) == 0;
    }
    return records > 0 && records == o->data_count;
}

// Every key of `keys` [count] is left out.
static tr_status leave_out(tr_run *run, const char *const *keys, size_t count,
                           tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        status = tr_run_set(run, keys[i], "null", err);
    }
    return status;
}

// What the run file says of its own data does not hold for other data; a folder that
// has a tokenizer and no run file is for text or for records; --set has the last word.
static tr_status set_keys(tr_run *run, const tr_evaluator_options *o,
                          const char *folder, bool has_file, tr_error *err) {
    static const char *const own_data[] = {"data.validation", "data.labels",
                                           "data.validation_labels"};
    static const char *const own_text[] = {"data.tokenizer"};
    const char *read_as = o->format                            ? o->format
                          : has_file || !has_tokenizer(folder) ? NULL
                          : are_records(o)                     ? "jsonl"
                                                               : "text";
    tr_status status = tr_run_set(run, "execution.vocabulary_slices", "1", err);
    if (status == TR_OK && o->data_count > 0) {
        status = leave_out(run, own_data, sizeof own_data / sizeof *own_data, err);
    }
    if (status == TR_OK && has_tokenizer(folder)) { // that of these weights
        status = leave_out(run, own_text, 1, err);
    }
    if (status == TR_OK && read_as) {
        status = tr_run_set(run, "data.format", read_as, err);
    }
    if (status == TR_OK && o->base) {
        status = tr_run_set_text(run, "base", o->base, err);
    }
    for (size_t i = 0; i < o->set_count && status == TR_OK; i++) {
        status = tr_run_assign(run, o->set[i], err);
    }
    for (size_t i = 0; i < o->data_count && status == TR_OK; i++) {
        status = i == 0 ? tr_run_name_source(run, "command line", err) : TR_OK;
        status = status == TR_OK ? tr_run_add_text(run, "data.train", o->data[i], err)
                                 : status;
    }
    return status == TR_OK && !o->own_model ? tr_run_set_text(run, "model", folder, err)
                                            : status;
}

static tr_status open_run(tr_evaluator *e, const tr_evaluator_options *o,
                          const char *folder, tr_error *err) {
    char file[PATH_MAX];
    unsigned flags = TR_OPEN_MODEL_AS_IT_IS | TR_OPEN_OTHER_DATA |
                     (o->labels_optional ? TR_OPEN_LABELS_OPTIONAL : 0) |
                     (o->rows_only ? TR_OPEN_NO_DATA : 0);
    bool has_file = find_run_file(o->path, file) || find_run_file(folder, file);
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    parts.model = o->own_model;
    parts.train = o->own_data;
    parts.messages = o->messages;
    tr_status status = tr_run_create(&e->run, err);
    if (status == TR_OK) {
        status = has_file ? tr_run_load_file(e->run, file, err)
                          : tr_run_load_text(e->run, "{}", err);
    }
    if (status == TR_OK) {
        status = tr_run_give(e->run, &parts, err);
    }
    if (status == TR_OK) {
        status = tr_run_name_source(e->run, "--set", err);
    }
    if (status == TR_OK) {
        status = set_keys(e->run, o, folder, has_file, err);
    }
    return status == TR_OK ? tr__run_resolve_data_alone(e->run, flags, err) : status;
}

// Logits are compared with one list of classes.
static tr_status need_classes(const tr_evaluator *e, tr_error *err) {
    const tr_model *model = e->model, *own = e->run->own_model;
    int targets = 0;
    bool numbers = false;
    bool masked = own && tr__model_type_reads_tokens(own->type) &&
                  tr__model_is_masked(own); // it may also tell what follows what
    if (model->labels > 0 || masked) {
        return TR_OK;
    }
    for (int i = 0; i < model->batch.count; i++) {
        const tr_batch_tensor *tensor = &model->batch.tensor[i];
        targets += tensor->role == TR_ROLE_TARGET;
        numbers |= tensor->role == TR_ROLE_TARGET && tensor->desc.dtype != TR_I32;
    }
    return targets == 1 && !numbers
               ? TR_OK
               : tr_fail(
                     err, TR_USAGE,
                     "a model of type %s is not evaluated so: that takes one target "
                     "of classes, and this model has %d%s; tr_engine_evaluate gives "
                     "its loss",
                     model->type, targets, numbers ? ", numbers among them" : "");
}

static tr_status choose_data(tr_evaluator *e, const tr_evaluator_options *o,
                             tr_error *err) {
    e->data = o->data_count > 0 || o->own_data ? e->run->train : e->run->validation;
    if (!e->data && !o->rows_only) {
        return tr_fail(err, TR_USAGE,
                       "%s: the run has no validation data: give --data PATH", o->path);
    }
    const char *format = tr__config_text(e->run->config, "data.format");
    e->bytes = !o->own_data && strcmp(format, "bytes") == 0;
    e->model = e->run->model;
    tr_status status = need_classes(e, err);
    if (status != TR_OK) {
        return status;
    }
    e->samples = e->data ? tr_dataset_samples(e->data) : 0;
    bool labels = e->model->labels > 0;
    e->positions = labels ? tr_batch_target(&e->model->batch)->desc.shape.dim[0]
                          : tr_model_targets(e->model);
    e->width = e->model->embedding_width > 0 ? e->model->embedding_width
               : labels                      ? e->model->labels
                                             : e->model->classes;
    int64_t tokens = tr__model_reads_tokens(e->model)
                         ? tr_shape_count(tr_batch_input(&e->model->batch)->desc.shape)
                         : 1;
    int64_t most = tr__max_i64(1, ROWS / tr__max_i64(e->positions, tokens));
    int64_t useful = e->data ? tr__min_i64(most, e->samples) : most;
    e->batch = o->micro_batch > 0 ? o->micro_batch : useful;
    bool texts = e->run->own_model && tr__model_type_reads_tokens(e->model->type);
    e->group = texts && e->data ? tr__model_group(e->run->own_model) : 0;
    return TR_OK;
}

// ---- the plan

static int threads_of(const tr_run *run) {
    const char *key = "execution.threads";
    return tr__config_is_auto(run->config, key) ? 0
                                                : (int)tr__config_int(run->config, key);
}

static tr_status make_plan(tr_evaluator *e, const char *folder, tr_error *err) {
    tr_plan_request request = {.model = e->model,
                               .train_batch_size = e->batch,
                               .micro_batch = e->batch,
                               .accumulation_steps = 1,
                               .mesh = tr_mesh_of_data(1, 0),
                               .inference = true,
                               .all_positions = e->positions > 1,
                               .compute = e->run->request.compute,
                               .backend = e->run->request.backend,
                               .device = e->run->request.device,
                               .fp8 = e->run->request.fp8,
                               .host_data_bytes =
                                   e->data ? tr_dataset_bytes(e->data) : 0,
                               .threads = threads_of(e->run)};
    tr__ask_for_trained_base(folder, e->model, &request);
    tr_status status = TR_OK;
    if (e->group > 0) {
        status = tr__retrieval_create(e->samples, e->group, e->width,
                                      tr__request_host(&request), &e->retrieval, err);
        request.host_data_bytes += (int64_t)tr__retrieval_bytes(e->retrieval);
    }
    return status == TR_OK ? tr_plan_make(&request, &e->plan, err) : status;
}

// Has a checkpoint other weights than those that its run computed with?  In bf16 a run
// computes with the rounded ones.
static bool are_rounded(const tr_evaluator *e, const tr_tensor_set *set,
                        const char *folder) {
    char state[PATH_MAX];
    bool rounded = false;
    if (e->run->request.compute == TR_BF16 ||
        tr__path_join(state, sizeof state, folder, "state.json", NULL) != TR_OK ||
        access(state, F_OK) != 0) {
        return false;
    }
    for (size_t i = 0; i < e->plan->param_count && !rounded; i++) {
        const tr_stored_tensor *tensor =
            tr__tensor_set_find_prefixed(set, e->plan->params[i].stored);
        rounded = tensor && tensor->dtype == TR_BF16;
    }
    return rounded;
}

static tr_status read_weights(tr_evaluator *e, const char *folder, const char *base,
                              tr_error *err) {
    tr_tensor_set *set = NULL;
    tr_status status = tr__tensor_set_open_over(base, folder, &set, err);
    if (status == TR_OK) {
        status = tr__read_parameters(&(tr_weights_source){.set = set,
                                                          .path = folder,
                                                          .log = tr__run_log(e->run)},
                                     e->plan, e->executor, -1, NULL, err);
    }
    if (status == TR_OK) {
        status = tr__read_states(set, folder, e->plan, e->executor, err);
        e->rounded = are_rounded(e, set, folder);
    }
    tr__tensor_set_close(set);
    return status == TR_OK ? tr__executor_round(e->executor, err) : status;
}

static tr_status take_memory(tr_evaluator *e, tr_error *err) {
    e->index = tr__calloc((size_t)e->batch, sizeof *e->index);
    e->targets = tr__calloc((size_t)(e->batch * e->positions), sizeof *e->targets);
    if (tr__evaluator_has_numbers(e)) {
        e->numbers = tr__calloc((size_t)(e->batch * e->positions * e->width),
                                sizeof *e->numbers);
    }
    if (!e->index || !e->targets || (tr__evaluator_has_numbers(e) && !e->numbers)) {
        return tr_fail(err, TR_MEMORY, "no memory to evaluate");
    }
    tr_status status =
        e->retrieval ? tr__retrieval_take_memory(e->retrieval, err) : TR_OK;
    status = status == TR_OK ? tr__arenas_fit(e->plan, e->arenas, err) : status;
    return status == TR_OK
               ? tr__executor_create(e->plan, e->arenas, NULL, NULL, &e->executor, err)
               : status;
}

static tr_status load(tr_evaluator *e, const tr_evaluator_options *o, tr_error *err) {
    char folder[PATH_MAX];
    tr_status status = tr_checkpoint_locate(o->path, folder, sizeof folder, err);
    if (status == TR_OK) {
        status = open_run(e, o, folder, err);
    }
    if (status == TR_OK) {
        status = choose_data(e, o, err);
    }
    if (status == TR_OK) {
        status = make_plan(e, folder, err);
    }
    if (status != TR_OK || o->plan_only) {
        return status;
    }
    status = tr_plan_check_memory(e->plan, "evaluating this model", err);
    if (status == TR_OK) {
        status = take_memory(e, err);
    }
    return status == TR_OK ? read_weights(e, folder, o->base, err) : status;
}

tr_status tr_evaluator_create(const tr_evaluator_options *options, tr_evaluator **out,
                              tr_error *err) {
    static const char name[] = "tr_evaluator_create";
    static const tr_sized known = {"tr_evaluator_options", "TR_EVALUATOR_OPTIONS_INIT",
                                   sizeof(tr_evaluator_options), 0};
    tr_status good = tr__need_sized(options, &known, name, err);
    good = good == TR_OK ? tr__need(options->path, name, "path", err) : good;
    good = good == TR_OK ? tr__need(out, name, "out", err) : good;
    if (good != TR_OK) {
        return good;
    }
    tr_evaluator *e = tr__calloc(1, sizeof *e);
    if (!e) {
        return tr_fail(err, TR_MEMORY, "no memory to evaluate");
    }
    tr_status status = load(e, options, err);
    if (status != TR_OK) {
        tr_evaluator_destroy(e);
        return status;
    }
    *out = e;
    return TR_OK;
}

void tr_evaluator_destroy(tr_evaluator *e) {
    if (e) {
        tr__executor_destroy(e->executor);
        tr__arenas_destroy(e->arenas);
        tr__retrieval_destroy(e->retrieval);
        tr_plan_destroy(e->plan);
        tr_run_destroy(e->run);
        tr__free(e->index);
        tr__free(e->targets);
        tr__free(e->numbers);
        tr__free(e);
    }
}

// ---- asking

// Samples [first, first + count) of a data set. Rows that a short batch lacks are zeros
// without a target.
tr_status tr__evaluator_fill(tr_evaluator *e, tr_dataset *from, int64_t first,
                             int64_t count, tr_error *err) {
    char *slot = tr__executor_ring(e->executor, 1);
    const tr_batch_tensors *data = tr_dataset_tensors(from);
    int target = (int)(tr_batch_target(data) - data->tensor);
    void *rows[TR_BATCH_TENSORS_MAX];
    tr__batch_rows(data, &e->plan->batch, slot, e->batch, 0, rows);
    int32_t *wanted = rows[target];
    rows[target] = tr__evaluator_has_numbers(e) ? (void *)e->numbers : e->targets;
    int64_t targets = e->batch * e->positions;
    memset(slot, 0, (size_t)e->plan->slot_bytes);
    for (int64_t i = 0; i < targets; i++) {
        e->targets[i] = -1;
    }
    for (int64_t i = 0; i < count; i++) {
        e->index[i] = first + i;
    }
    tr_status status = tr_dataset_read(from, e->index, count, rows, err);
    for (int64_t i = 0; i < count * e->group; i++) {
        e->targets[i] = (int32_t)(first * e->group + i); // equal texts have one number
    }
    bool numbers = tr__evaluator_has_numbers(e);
    for (int64_t i = 0; numbers && i < count * e->positions; i++) {
        e->targets[i] = isnan(e->numbers[i * e->width]) ? -1 : 0;
    }
    if (status == TR_OK) {
        status = tr__ids_check_rows(from, e->model, rows,
                                    (tr_sample_list){e->index, count}, err);
    }
    // A sample of one position is answered for where it has a target: all are.
    for (int64_t i = 0; i < targets && e->positions > 1 && !numbers; i++) {
        wanted[i] = e->targets[i];
    }
    return status;
}

// Neither a loss nor a class comes of what is not finite.
static tr_status check_logits(const tr_evaluator *e, const float *logits, int64_t first,
                              int64_t count, tr_error *err) {
    int64_t classes = e->width;
    tr_error why = {0};
    for (int64_t i = 0; i < count * e->positions; i++) {
        if (tr__logits_check(logits + i * classes, classes, &why) != TR_OK) {
            return tr_fail(err, why.status, "sample %lld of the data: %s",
                           (long long)(first + i / e->positions), why.message);
        }
    }
    return TR_OK;
}

tr_status tr__evaluator_computes(const tr_evaluator *e, tr_error *err) {
    return e->executor ? TR_OK
                       : tr_fail(err, TR_USAGE,
                                 "this evaluator was created with plan_only: it "
                                 "computes nothing");
}

// What the slot holds: samples [first, first + count).
tr_status tr__evaluator_compute(tr_evaluator *e, int64_t first, int64_t count,
                                const float **logits, tr_error *err) {
    tr_run_context context = {0};
    tr_status status =
        tr__executor_run(e->executor, TR_SEQUENCE_INFERENCE, &context, NULL, err);
    if (status == TR_OK) {
        *logits = tr__executor_logits(e->executor);
        status = check_logits(e, *logits, first, count, err);
    }
    return status;
}

tr_status tr_evaluator_next(tr_evaluator *e, tr_predictions *predictions,
                            tr_error *err) {
    static const tr_sized known = {"tr_predictions", "TR_PREDICTIONS_INIT",
                                   sizeof *predictions, 0};
    const float *logits = NULL;
    tr_status status = tr__need(e, "tr_evaluator_next", "evaluator", err);
    if (status == TR_OK) {
        status = tr__need_sized(predictions, &known, "tr_evaluator_next", err);
    }
    if (status != TR_OK) {
        return status;
    }
    int64_t count = tr__min_i64(e->batch, e->samples - e->next);
    tr_predictions made = {.first = e->next};
    tr__give_sized(predictions, &made);
    status = tr__evaluator_computes(e, err);
    if (status != TR_OK || count == 0) {
        return status;
    }
    status = tr__evaluator_fill(e, e->data, e->next, count, err);
    if (status == TR_OK) {
        status = tr__evaluator_compute(e, e->next, count, &logits, err);
    }
    if (status != TR_OK) {
        return status;
    }
    for (int64_t i = 0; i < count * e->positions; i++) {
        if (e->targets[i] >= 0 && e->model->embedding_width > 0) {
            e->count += 1; // a text, with nothing to score
        } else if (e->targets[i] >= 0) {
            tr__evaluator_score(e, logits + i * e->width, i);
        }
    }
    if (e->retrieval) {
        tr__retrieval_put(e->retrieval, e->next, count, logits);
    }
    made =
        (tr_predictions){sizeof made, e->next, count, logits, e->targets, e->numbers};
    tr__give_sized(predictions, &made);
    e->next += count;
    return TR_OK;
}
