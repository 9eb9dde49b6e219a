// "data": the samples, and whether the model can take them.
#include "base/memory.h"
#include "data/sources/paths.h"
#include "models/models.h"
#include "run/resolve/data_options.h"
#include "run/resolve/match_data.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

enum { PATHS_MAX = 4096, CHANNELS_MAX = 64, PLACE_MAX = 512 };

typedef struct path_list {
    const char **paths;
    size_t count;
} path_list;

static tr_status read_paths(const tr_run *run, const char *key, path_list *list,
                            tr_error *err) {
    list->count = tr__config_count(run->config, key);
    if (list->count > PATHS_MAX) {
        return tr_fail(err, TR_USAGE, "%s: more than %d paths; name a folder or a glob",
                       key, PATHS_MAX);
    }
    list->paths = tr__calloc(list->count, sizeof *list->paths);
    if (!list->paths) {
        return tr_fail(err, TR_MEMORY, "no memory for the data's paths");
    }
    for (size_t i = 0; i < list->count; i++) {
        list->paths[i] = tr__config_text_at(run->config, key, i);
    }
    return TR_OK;
}

// A number, or a list of them; values: [CHANNELS_MAX]. Returns how many.
static size_t read_numbers(const tr_run *run, const char *key, double *values) {
    if (tr__config_type(run->config, key) == TR_KEY_NUMBER) {
        values[0] = tr__config_number(run->config, key);
        return 1;
    }
    size_t count = tr__config_count(run->config, key);
    for (size_t i = 0; i < count && i < CHANNELS_MAX; i++) {
        values[i] = tr__config_number_at(run->config, key, i);
    }
    return count;
}

static void say(void *user, const char *line) {
    const tr_run *run = user;
    tr__note(&run->log, "%s", line);
}

static tr_header header_of(const tr_config *config) {
    if (!tr__config_is_set(config, "data.header") ||
        tr__config_is_auto(config, "data.header")) {
        return TR_HEADER_AUTO;
    }
    return tr__config_bool(config, "data.header") ? TR_HEADER_YES : TR_HEADER_NO;
}

// As many as the run file says; 0: it does not.
static int tokenizing_threads(const tr_config *config) {
    static const char key[] = "execution.threads";
    bool open = !tr__config_is_set(config, key) || tr__config_is_auto(config, key);
    return open ? 0 : (int)tr__config_int(config, key);
}

// A text where the format is the one that has a use for it.
static const char *of_records(const tr_config *config, const char *key) {
    bool records = strcmp(tr__config_text(config, "data.format"), "jsonl") == 0;
    return records || tr__config_is_given(config, key) ? tr__config_text(config, key)
                                                       : NULL;
}

static tr_data_fields data_fields(const tr_config *config) {
    return (tr_data_fields){.text = of_records(config, "data.fields.text"),
                            .prompt = of_records(config, "data.fields.prompt"),
                            .completion = of_records(config, "data.fields.completion"),
                            .messages = of_records(config, "data.fields.messages"),
                            .text_pair = of_records(config, "data.fields.text_pair"),
                            .label = of_records(config, "data.fields.label"),
                            .anchor = of_records(config, "data.fields.anchor"),
                            .positive = of_records(config, "data.fields.positive"),
                            .negative = of_records(config, "data.fields.negative")};
}

static tr_masking masking_of(const tr_config *config) {
    return (tr_masking){.probability = tr__config_number(config, "mlm.probability"),
                        .mask = tr__config_number(config, "mlm.mask"),
                        .random = tr__config_number(config, "mlm.random"),
                        .whole_words = tr__config_bool(config, "mlm.whole_words"),
                        .next_sentence = tr__config_bool(config, "mlm.next_sentence")};
}

static tr_data_options data_options(tr_run *run) {
    const tr_config *config = run->config;
    const tr_shape *shape = &tr_batch_input(&run->model->batch)->desc.shape;
    bool tokens = tr__model_reads_tokens(run->model);
    const tr_shape *image = shape->rank == 3 && !tokens ? shape : &(tr_shape){0};
    int64_t features = tr__config_int(config, "data.features");
    if (run->labels_optional && features == 0 && !tokens) {
        features = tr_shape_count(*shape);
    }
    bool texts = run->own_model && tr__model_reads_texts(run->own_model);
    bool masked = texts && tr__model_is_masked(run->own_model);
    const tr_batch_tensor *labels = tr_batch_target(&run->model->batch);
    return (tr_data_options){
        .size = sizeof(tr_data_options),
        .row_texts = texts && !masked ? labels->desc.shape.dim[0] : 0,
        .group_texts = texts ? tr__model_group(run->own_model) : 0,
        .masked = masked,
        .masking = masking_of(config),
        .token_types = texts ? tr__model_types(run->own_model) : 0,
        .label_kind = run->model->label_kind,
        .label_count = run->model->labels,
        .label_names = run->model->label_names,
        .labels_optional = run->labels_optional,
        .image_height = image->dim[0],
        .image_width = image->dim[1],
        .image_channels = image->dim[2],
        .image_layout = tr__config_text(config, "data.image_layout"),
        .format = tr__config_text(config, "data.format"),
        .order = tr__config_text(config, "data.order"),
        .leave_out = run->settings.out,
        .sequence_length = tokens ? tr_shape_count(*shape) : 0,
        .vocabulary = tokens ? run->model->classes : 0,
        .tokenizer = run->tokenizer,
        .eos_token = tr__config_text(config, "data.eos_token"),
        .document_separator = tr__config_text(config, "data.document_separator"),
        .packing = tr__config_bool(config, "data.packing"),
        .plain_special = tr__config_bool(config, "data.plain_special"),
        .loss_on = tr__config_text(config, "data.loss_on"),
        .fields = data_fields(config),
        .chat_template = tr__config_text(config, "data.chat_template"),
        .date = tr__config_text(config, "data.date"),
        .threads = tokenizing_threads(config),
        .dtype = tr__config_text(config, "data.dtype"),
        .labels = tr__config_text(config, "data.labels"),
        .validation_labels = tr__config_text(config, "data.validation_labels"),
        .samples = tr__config_int(config, "data.samples"),
        .features = features,
        .classes = tr__config_int(config, "data.classes"),
        .header = header_of(config),
        .seed = run->settings.seed,
        .say = say,
        .say_user = run,
    };
}

// The label's column by name or by number; text: [32], for a number.
static const char *label_column(const tr_run *run, char *text, size_t size) {
    if (tr__config_type(run->config, "data.label_column") == TR_KEY_INT) {
        snprintf(text, size, "%lld",
                 (long long)tr__config_int(run->config, "data.label_column"));
        return text;
    }
    return tr__config_text(run->config, "data.label_column");
}

// What a model takes and what there is: numbers, or the ids of tokens.
static tr_status check_kind(const tr_model *model, bool ids, const char *data,
                            tr_error *err) {
    bool wanted = tr__model_reads_tokens(model);
    if (ids == wanted) {
        return TR_OK;
    }
    return tr_fail(
        err, TR_USAGE,
        "the data (%s) is %s, but the model (%s) takes %s: set data.format "
        "to %s, or choose another model",
        data, ids ? "tokens" : "features", model->type, wanted ? "tokens" : "features",
        wanted ? "\"bytes\", \"text\", \"tokens\" or \"jsonl\"" : "\"csv\" or \"npy\"");
}

// A message that begins with a key gets the place where the run file has it.
static void place_error(const tr_run *run, tr_error *err) {
    static const char *const keys[] = {"data.format",
                                       "data.train",
                                       "data.validation",
                                       "data.labels",
                                       "data.tokenizer",
                                       "data.eos_token",
                                       "data.document_separator",
                                       "data.packing",
                                       "data.plain_special",
                                       "data.loss_on",
                                       "data.fields",
                                       "data.chat_template",
                                       "data.date",
                                       "data.validation_labels",
                                       "data.dtype",
                                       "data.label_column",
                                       "data.header",
                                       "data.image_layout",
                                       "data.image_mean",
                                       "data.image_std",
                                       "data.samples"};
    char name[TR_CONFIG_PATH_MAX + PLACE_MAX], rest[sizeof err->message];
    for (size_t i = 0; err && i < sizeof keys / sizeof *keys; i++) {
        size_t length = strlen(keys[i]);
        if (strncmp(err->message, keys[i], length) != 0 ||
            err->message[length] != ':' || !tr__config_is_given(run->config, keys[i])) {
            continue;
        }
        tr__config_name(run->config, keys[i], name, sizeof name);
        snprintf(rest, sizeof rest, "%s", err->message + length);
        snprintf(err->message, sizeof err->message, "%.512s%.400s", name, rest);
        return;
    }
}

static bool is_ids(const char *format) {
    return strcmp(format, "bytes") == 0 || strcmp(format, "tokens") == 0 ||
           strcmp(format, "text") == 0 || strcmp(format, "jsonl") == 0;
}

static tr_status open_files(tr_run *run, tr_error *err) {
    tr_data_options options = data_options(run);
    path_list train = {0}, validation = {0};
    char column[32];
    double mean[CHANNELS_MAX], deviation[CHANNELS_MAX];
    options.image_mean = mean;
    options.image_mean_count = read_numbers(run, "data.image_mean", mean);
    options.image_std = deviation;
    options.image_std_count = read_numbers(run, "data.image_std", deviation);
    options.sizes_only = run->settings.plan_only;
    options.stop = run->given.parts.stop;
    options.stop_user = run->given.parts.stop_user;
    options.label_column = label_column(run, column, sizeof column);
    bool ids = is_ids(options.format);
    tr_status status = check_kind(run->model, ids, options.format, err);
    if (status == TR_OK) {
        status = read_paths(run, "data.train", &train, err);
    }
    bool fraction = tr__config_type(run->config, "data.validation") == TR_KEY_NUMBER;
    if (fraction) {
        options.validation_fraction = tr__config_number(run->config, "data.validation");
    } else if (status == TR_OK) {
        status = read_paths(run, "data.validation", &validation, err);
    }
    if (status == TR_OK) {
        options.paths = train.paths;
        options.path_count = train.count;
        options.validation_paths = validation.paths;
        options.validation_path_count = validation.count;
        run->own_data = true;
        status = tr_dataset_open(&options, &run->train, &run->validation, err);
        if (status != TR_OK) {
            place_error(run, err);
        }
    }
    tr__free(train.paths);
    tr__free(validation.paths);
    return status;
}

tr_status tr__run_survey_labels(tr_run *run, tr_label_kind kind, tr_label_survey *out,
                                tr_error *err) {
    path_list train = {0};
    const char *format = tr__config_text(run->config, "data.format");
    bool known = tr__config_count(run->config, "data.train") > 0;
    if (!known || strcmp(format, "jsonl") != 0) {
        return tr_fail(err, TR_USAGE,
                       "task: \"classification\" takes the labels of the model's "
                       "id2label or, where there is none, of records: %s",
                       known ? "set data.format to \"jsonl\", or give the model an "
                               "id2label"
                             : "name these in data.train, or give the model an "
                               "id2label");
    }
    tr_status status = read_paths(run, "data.train", &train, err);
    const tr_data_options options = {.size = sizeof(tr_data_options),
                                     .format = format,
                                     .paths = train.paths,
                                     .path_count = train.count,
                                     .leave_out = run->settings.out,
                                     .fields = data_fields(run->config)};
    status = status == TR_OK ? tr__label_survey(&options, kind, out, err) : status;
    tr__free(train.paths);
    return status;
}

// A path of the data that leads nowhere; NULL: none does.
static const char *missing_path(const tr_run *run) {
    static const char *const keys[] = {"data.train", "data.validation", "data.labels",
                                       "data.validation_labels"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        bool paths = tr__config_type(run->config, keys[k]) != TR_KEY_NUMBER;
        size_t count = paths ? tr__config_count(run->config, keys[k]) : 0;
        for (size_t i = 0; i < count; i++) {
            const char *path = tr__config_text_at(run->config, keys[k], i);
            if (!tr__path_is_found(path)) {
                return path;
            }
        }
    }
    return NULL;
}

tr_status tr__run_survey_groups(tr_run *run, int64_t *texts, tr_error *err) {
    path_list train = {0};
    const char *format = tr__config_text(run->config, "data.format");
    *texts = run->vocabulary_fixed ? 0 : 2;
    if (run->rows_alone || (run->vocabulary_fixed && run->given.parts.train) ||
        tr__config_count(run->config, "data.train") == 0 ||
        strcmp(format, "jsonl") != 0 ||
        (run->settings.plan_only && missing_path(run))) {
        return TR_OK; // another function says what is wrong, if anything is
    }
    tr_status status = read_paths(run, "data.train", &train, err);
    const tr_data_options options = {.size = sizeof(tr_data_options),
                                     .format = format,
                                     .paths = train.paths,
                                     .path_count = train.count,
                                     .leave_out = run->settings.out,
                                     .fields = data_fields(run->config)};
    status = status == TR_OK ? tr__group_survey(&options, texts, err) : status;
    if (*texts < 2) { // texts by themselves, which embeddings are not trained on
        *texts = run->vocabulary_fixed ? 0 : 2;
    }
    tr__free(train.paths);
    return status;
}

static bool is_random(const tr_run *run) {
    return strcmp(tr__config_text(run->config, "data.format"), "random") == 0;
}

bool tr__run_names_data(const tr_run *run) {
    return is_random(run) || tr__config_count(run->config, "data.train") > 0;
}

bool tr__run_is_fed(const tr_run *run) {
    const tr_model *model = run->given.parts.model;
    return model && !tr_batch_target(&model->batch) && !run->given.parts.train &&
           !tr__run_names_data(run);
}

static bool is_complete(const tr_run *run) {
    return tr__run_names_data(run) &&
           (!is_random(run) || tr__config_is_set(run->config, "data.samples"));
}

// A plan needs the size of the data where epochs are to be steps, and else nothing.
static tr_status without_data(const tr_run *run, const char *path, tr_error *err) {
    if (tr__config_is_set(run->config, "epochs")) {
        return tr_fail(err, TR_DATA,
                       "%s: not found, and \"epochs\" is counted in the samples of the "
                       "data: name data that is there, or give \"steps\" in its place",
                       path);
    }
    tr__note(&run->log,
             "%s: not found; the plan is made without the data, and what that would "
             "hold in memory is not in the ledger",
             path);
    return TR_OK;
}

static tr_status check_fit(const tr_run *run, const tr_dataset *data, tr_error *err) {
    const tr_model *model = run->model;
    const tr_batch_tensor *input = tr_batch_input(tr_dataset_tensors(data));
    tr_status status =
        check_kind(model, input->desc.dtype == TR_I32, tr_dataset_about(data), err);
    if (status != TR_OK) {
        return status;
    }
    return tr__data_match(data, model, err);
}

tr_status tr__run_resolve_data(tr_run *run, tr_error *err) {
    tr_status status = TR_OK;
    run->request.own_rows = tr__run_is_fed(run);
    if (run->given.parts.train) {
        run->train = run->given.parts.train;
        run->validation = run->given.parts.validation;
    } else if (tr__run_is_fed(run) || (run->settings.plan_only && !is_complete(run))) {
        return TR_OK; // a plan needs no data; a run file without any is fine
    } else if (run->settings.plan_only && missing_path(run)) {
        return without_data(run, missing_path(run), err);
    } else {
        status = open_files(run, err);
    }
    if (status == TR_OK) {
        status = check_fit(run, run->train, err);
    }
    if (status == TR_OK && run->validation) {
        status = check_fit(run, run->validation, err);
    }
    if (status != TR_OK) {
        return status;
    }
    run->has_data = true;
    bool shuffled = strcmp(tr__config_text(run->config, "data.order"), "shuffled") == 0;
    run->order =
        (tr_order){tr_dataset_samples(run->train), shuffled, run->settings.seed};
    run->request.host_data_bytes = tr_dataset_bytes(run->train);
    if (run->validation) {
        run->request.host_data_bytes += tr_dataset_bytes(run->validation);
    }
    return TR_OK;
}
