#include "cli/init_model.h"

#include <jansson.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    VALIDATED = 40, // samples from which some are set aside
    RECORD_LENGTH = 512,
    BYTES_OF_TOKEN = 4 // of text, about
};

static int64_t at_most(int64_t value, int64_t most) {
    return value < most ? value : most;
}

static int64_t at_least(int64_t value, int64_t least) {
    return value > least ? value : least;
}

// ---- a new model of text

typedef struct model_size {
    int64_t bytes; // of text from which it is used
    int layers, width, heads;
    int64_t positions, batch;
} model_size;

// A model much larger than its text learns it by heart. Few cores are not given more
// than they train in hours.
static const model_size *size_for(int64_t bytes) {
    static const model_size all[] = {{0, 2, 64, 4, 64, 8},
                                     {100000, 4, 128, 4, 128, 16},
                                     {4000000, 6, 256, 8, 256, 16},
                                     {100000000, 8, 512, 8, 512, 32},
                                     {2000000000, 12, 768, 12, 1024, 64}};
    enum { SIZES = sizeof all / sizeof *all };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int largest = cores >= 32 ? SIZES - 1 : cores >= 8 ? SIZES - 2 : SIZES - 3;
    int chosen = 0;
    while (chosen < largest && bytes >= all[chosen + 1].bytes) {
        chosen++;
    }
    return &all[chosen];
}

static int64_t windows_of(const cli_data *data, int64_t positions) {
    int64_t entries =
        data->kind == CLI_DATA_TOKENS ? data->bytes / data->id_width : data->bytes;
    return entries > positions ? (entries - 1) / positions : 0;
}

static tr_status choose_new(const cli_data *data, cli_init_choice *choice,
                            tr_error *err) {
    enum { FEW = 16, LEAST_POSITIONS = 8, PASSES = 20, MOST_STEPS = 2000 };
    int64_t bytes = data->kind == CLI_DATA_TOKENS
                        ? data->bytes / data->id_width * BYTES_OF_TOKEN
                        : data->bytes;
    const model_size *size = size_for(bytes);
    choice->layers = size->layers;
    choice->width = size->width;
    choice->heads = size->heads;
    choice->positions = size->positions;
    while (choice->positions > LEAST_POSITIONS &&
           windows_of(data, choice->positions) < FEW) {
        choice->positions /= 2;
    }
    choice->samples = windows_of(data, choice->positions);
    if (choice->samples < 1) {
        return tr_fail(err, TR_DATA,
                       "%" PRId64 " bytes are too few to train on: name more data",
                       data->bytes);
    }
    choice->batch = at_most(size->batch, choice->samples);
    int64_t pass = at_least(choice->samples / choice->batch, 1);
    choice->steps = at_most(at_least(PASSES * pass, 100), MOST_STEPS);
    return TR_OK;
}

// ---- an adapter of a model that is there

static int64_t positions_of(const char *model) {
    static const char *const names[] = {"max_position_embeddings", "n_positions"};
    char path[4096];
    int64_t positions = 0;
    snprintf(path, sizeof path, "%s/config.json", model);
    json_t *config = json_load_file(path, 0, NULL);
    for (int i = 0; i < 2 && positions == 0; i++) {
        positions = json_integer_value(json_object_get(config, names[i]));
    }
    json_decref(config);
    return positions > 0 ? positions : RECORD_LENGTH; // of the models that have names
}

static void choose_adapter(const cli_data *data, cli_init_choice *choice) {
    enum { BATCH = 16 };
    bool records = data->kind == CLI_DATA_RECORDS;
    choice->positions = at_most(positions_of(choice->model), RECORD_LENGTH);
    choice->samples =
        records ? data->rows
                : at_least(data->bytes / BYTES_OF_TOKEN / choice->positions, 1);
    choice->batch = at_most(BATCH, choice->samples);
    choice->epochs = 2;
}

// ---- a classifier

static tr_status choose_classifier(const cli_data *data, cli_init_choice *choice,
                                   tr_error *err) {
    enum { WIDEST = 512, NARROWEST = 16, BATCH = 64, EPOCHS = 20 };
    if (data->rows < 2 || data->classes < 2) {
        return tr_fail(err, TR_DATA,
                       "%" PRId64 " samples of %" PRId64
                       " classes: a classifier learns from two of each or more",
                       data->rows, data->classes);
    }
    choice->samples = data->rows;
    choice->hidden = at_least(at_most(4 * data->features, WIDEST), NARROWEST);
    choice->batch = at_most(BATCH, data->rows / 2);
    choice->epochs = EPOCHS;
    return TR_OK;
}

// Products of bf16 are faster than those of f32 where the processor has them, and only
// a large model gains from that.
static bool has_bf16(void) {
    char line[8192];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        found = strncmp(line, "flags", 5) == 0 && strstr(line, " avx512_bf16");
    }
    if (file) {
        fclose(file);
    }
    return found;
}

tr_status cli_init_choose(const cli_data *data, cli_init_choice *choice,
                          tr_error *err) {
    tr_status status = TR_OK;
    bool classes = data->kind == CLI_DATA_TABLE || data->kind == CLI_DATA_ARRAYS;
    if (choice->model && (classes || data->kind == CLI_DATA_TOKENS)) {
        return tr_fail(err, TR_USAGE,
                       "--model is for text and records; of these data a new model is "
                       "made");
    }
    if (data->kind == CLI_DATA_RECORDS && !choice->model) {
        return tr_fail(err, TR_USAGE,
                       "records need a model that has a tokenizer: name its folder, or "
                       "one of Hugging Face's local cache, with --model "
                       "(HuggingFaceTB/SmolLM2-135M-Instruct)");
    }
    if (classes) {
        status = choose_classifier(data, choice, err);
    } else if (choice->model) {
        choose_adapter(data, choice);
    } else {
        status = choose_new(data, choice, err);
    }
    choice->validation = choice->samples >= VALIDATED;
    choice->bf16 = has_bf16() && (choice->model || choice->width >= 512);
    return status;
}
