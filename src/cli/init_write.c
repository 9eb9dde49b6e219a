// The run file, with a comment for what a reader may want to change.
#include "cli/init_model.h"
#include "cli/json.h"

#include <tranche/types.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// A path, or a name, as JSON; false: it is no UTF-8, which a run file cannot name.
static bool put_text(const char *text, FILE *to) {
    json_t *value = json_string(text);
    char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    if (quoted) {
        fputs(quoted, to);
    }
    free(quoted);
    json_decref(value);
    return quoted != NULL;
}

static bool put_paths(const cli_data *data, FILE *to) {
    bool good = true;
    fputs("        \"train\": [", to);
    for (size_t i = 0; i < data->count; i++) {
        fputs(i > 0 ? ", " : "", to);
        good = put_text(data->paths[i], to) && good;
    }
    fputc(']', to);
    return good;
}

static void put_head(const cli_data *data, FILE *to) {
    static const char *const what[] = {"text", "token ids", "records", "a table",
                                       "arrays"};
    char bytes[32], memory[32];
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    fprintf(to,
            "{\n"
            "    // Written by tranche init for %s: %" PRId64 " file%s, %s.\n"
            "    // This machine: %ld cores, %s of memory. Each key may be changed; "
            "those that are left\n"
            "    // out have defaults (docs/run-file.md).\n\n",
            data->kind == CLI_DATA_TEXT && !data->text ? "bytes" : what[data->kind],
            data->files, data->files == 1 ? "" : "s",
            tr_size_words(data->bytes, bytes, sizeof bytes),
            sysconf(_SC_NPROCESSORS_ONLN),
            tr_size_words((int64_t)pages * page, memory, sizeof memory));
}

// ---- the model

static void put_new(const cli_data *data, const cli_init_choice *c, FILE *to) {
    int64_t vocabulary = data->kind == CLI_DATA_TOKENS ? data->vocabulary : 256;
    fprintf(
        to,
        "    // A new GPT-2 of this many layers, this width and so many tokens at "
        "once. Larger ones\n"
        "    // learn more from more data, and take longer.\n"
        "    \"model\": {\"model_type\": \"gpt2\", \"n_layer\": %d, \"n_embd\": %d, "
        "\"n_head\": %d,\n"
        "              \"n_positions\": %" PRId64 ", \"vocab_size\": %" PRId64 ",\n"
        "              \"resid_pdrop\": 0, \"embd_pdrop\": 0, \"attn_pdrop\": 0},\n",
        c->layers, c->width, c->heads, c->positions, vocabulary);
}

static bool put_adapter(const cli_init_choice *c, FILE *to) {
    fputs("    // The model that is trained on; its tokenizer reads the data.\n"
          "    \"model\": ",
          to);
    bool good = put_text(c->model, to);
    fputs(",\n"
          "    // A few numbers beside each matrix learn, and the model stays as it is "
          "(LoRA). Without\n"
          "    // this key all of it is trained: 12 bytes a parameter; then lower the "
          "rate to 2e-5.\n"
          "    \"adapter\": {\"type\": \"lora\", \"r\": 8, \"lora_alpha\": 16, "
          "\"target_modules\": \"all-linear\"},\n",
          to);
    return good;
}

static void put_classifier(const cli_data *data, const cli_init_choice *c, FILE *to) {
    fprintf(to,
            "    // A new classifier: features, the widths of its layers, classes.\n"
            "    \"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [%" PRId64
            ", %" PRId64 ", %" PRId64 "]},\n",
            data->features, c->hidden, data->classes);
}

static bool put_model(const cli_data *data, const cli_init_choice *c, FILE *to) {
    if (c->model) {
        return put_adapter(c, to);
    }
    if (c->hidden > 0) {
        put_classifier(data, c, to);
    } else {
        put_new(data, c, to);
    }
    return true;
}

// ---- the data

static const char *format_of(const cli_data *data, const cli_init_choice *c) {
    switch (data->kind) {
    case CLI_DATA_TEXT:
        return c->model ? "text" : "bytes";
    case CLI_DATA_TOKENS:
        return "tokens";
    case CLI_DATA_RECORDS:
        return "jsonl";
    case CLI_DATA_TABLE:
        return "csv";
    case CLI_DATA_ARRAYS:
        return "npy";
    }
    return "bytes";
}

static bool put_data(const cli_data *data, const cli_init_choice *c, FILE *to) {
    fprintf(to, "\n    \"data\": {\n        \"format\": \"%s\",\n", format_of(data, c));
    bool good = put_paths(data, to);
    if (data->labels) {
        fputs(",\n        \"labels\": ", to);
        good = put_text(data->labels, to) && good;
    }
    if (data->kind == CLI_DATA_TOKENS) {
        fprintf(to, ",\n        \"dtype\": \"u%d\"", 8 * data->id_width);
    }
    if (c->model) {
        fprintf(to,
                ",\n        // Tokens of a sample; longer records are cut.\n"
                "        \"max_length\": %" PRId64,
                c->positions);
    }
    if (data->chats) {
        fputs(",\n        // What the loss counts: what the assistant says; \"all\": "
              "every token.\n"
              "        \"loss_on\": \"assistant\"",
              to);
    }
    if (c->validation) {
        fputs(",\n        // The part that is set aside, to see whether what is learnt "
              "holds for other data.\n"
              "        \"validation\": 0.05",
              to);
    }
    fputs("\n    },\n", to);
    return good;
}

// ---- how it is trained

static void put_length(const cli_init_choice *c, FILE *to) {
    if (c->epochs > 0) {
        fprintf(to, "\n    // Passes over the data.\n    \"epochs\": %" PRId64 ",\n",
                c->epochs);
    } else {
        fprintf(to,
                "\n    // Updates of the model; a pass over the data takes about "
                "%" PRId64 ".\n    \"steps\": %" PRId64 ",\n",
                c->samples / c->batch, c->steps);
    }
    if (c->validation) {
        fprintf(to, "    \"evaluation\": {\"every\": %" PRId64 "},\n",
                c->steps > 0                ? c->steps / 10
                : c->samples / c->batch > 1 ? c->samples / c->batch
                                            : 1);
    }
}

static void put_training(const cli_init_choice *c, FILE *to) {
    bool adapter = c->model != NULL, classifier = c->hidden > 0;
    fprintf(to,
            "\n    // Samples of an update, and how many of them are computed at once: "
            "fewer take less\n"
            "    // memory, and train the same.\n"
            "    \"train_batch_size\": %" PRId64 ",\n"
            "    \"train_micro_batch_size_per_gpu\": %" PRId64 ",\n",
            c->batch, c->micro_batch);
    fprintf(to,
            "\n    // The rate: where the loss jumps, lower it; where it hardly falls, "
            "raise it.\n"
            "    \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": %s, "
            "\"weight_decay\": %s}},\n",
            adapter ? "2e-4" : "1e-3", adapter || classifier ? "0.01" : "0.1");
    if (!adapter && !classifier) {
        fprintf(to,
                "    // Up in a line, then down by a cosine.\n"
                "    \"scheduler\": {\"type\": \"WarmupCosineLR\", \"params\": "
                "{\"total_num_steps\": \"auto\",\n"
                "                  \"warmup_num_steps\": %" PRId64
                ", \"warmup_type\": \"linear\"}},\n",
                c->steps / 20);
    }
    if (c->bf16) {
        fputs("\n    // This processor multiplies 16-bit numbers faster than 32-bit "
              "ones.\n"
              "    \"bf16\": {\"enabled\": true},\n",
              to);
    }
}

tr_status cli_init_write(const cli_data *data, const cli_init_choice *choice,
                         char **text, tr_error *err) {
    size_t bytes = 0;
    FILE *to = open_memstream(text, &bytes);
    if (!to) {
        return tr_fail(err, TR_MEMORY, "no memory for a run file");
    }
    put_head(data, to);
    bool good = put_model(data, choice, to);
    good = put_data(data, choice, to) && good;
    put_length(choice, to);
    put_training(choice, to);
    fputs("\n    // Metrics, the plan and checkpoints.\n    \"out\": \"out\"\n}\n", to);
    if (fclose(to) != 0) {
        return tr_fail(err, TR_MEMORY, "no memory for a run file");
    }
    return good ? TR_OK
                : tr_fail(err, TR_USAGE,
                          "a path is no UTF-8 text, so that no run file can name it: "
                          "rename the file");
}
