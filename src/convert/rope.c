#include "convert/rope.h"

#include "base/memory.h"
#include "convert/values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

// ---- llama3

// In f32, as PyTorch computes them. A wave that is short against the original context
// stays, a long one is stretched by the factor, and those between by something between.
void tr__rope_factors(const tr_rope_options *rope, int head_dim, float *factors) {
    float low = rope->low, high = rope->high, original = (float)rope->original;
    for (int i = 0; i < head_dim / 2; i++) {
        float frequency =
            1 / powf((float)rope->theta, (float)(2 * i) / (float)head_dim);
        float wave = (float)(2 * pi) / frequency;
        if (wave < original / high) {
            factors[i] = 1;
        } else if (wave > original / low) {
            factors[i] = rope->factor;
        } else {
            float smooth = (original / wave - low) / (high - low);
            factors[i] = 1 / ((1 - smooth) / rope->factor + smooth);
        }
    }
}

static bool are_near(const float *a, const float *b, int count) {
    for (int i = 0; i < count; i++) {
        if (!(fabsf(a[i] - b[i]) <= 1e-5f * fabsf(b[i]))) {
            return false;
        }
    }
    return true;
}

// The numbers of a published scaling that gives these factors. false: none does.
static bool find_scaling(const float *wanted, int head_dim, double theta,
                         tr_rope_options *out) {
    static const float factors[] = {8, 32, 2, 4, 16, 64};
    enum { COUNT = sizeof factors / sizeof *factors, FIRST = 1, LAST = 1 << 20 };
    float made[TR_GGUF_BLOCK_MAX * 2], most = 1;
    int half = head_dim / 2;
    for (int i = 0; i < half; i++) {
        most = fmaxf(most, wanted[i]);
    }
    for (int f = -1; f < COUNT; f++) {
        for (int original = FIRST; original <= LAST; original *= 2) {
            *out = (tr_rope_options){.theta = theta,
                                     .scaling = TR_ROPE_LLAMA3,
                                     .factor = f < 0 ? most : factors[f],
                                     .low = 1,
                                     .high = 4,
                                     .original = original};
            tr__rope_factors(out, head_dim, made);
            if (are_near(made, wanted, half)) {
                return true;
            }
        }
    }
    return false;
}

static tr_status fail_factors(const tr_gguf *gguf, tr_error *err) {
    return tr_fail(err, TR_IO,
                   "%s: tensor " TR_GGUF_ROPE_TENSOR " is none of a scaling \"llama3\" "
                   "with low_freq_factor 1 and high_freq_factor 4; no other is "
                   "supported",
                   tr__gguf_path(gguf));
}

static tr_status read_factors(const tr_gguf *gguf, int head_dim, double theta,
                              json_t **out, tr_error *err) {
    const tr_gguf_tensor *tensor = tr__gguf_find_tensor(gguf, TR_GGUF_ROPE_TENSOR);
    float wanted[TR_GGUF_BLOCK_MAX * 2];
    tr_rope_options found;
    if (!tensor) {
        return TR_OK;
    }
    if (tensor->count != head_dim / 2 || tensor->count > TR_GGUF_BLOCK_MAX * 2) {
        return fail_factors(gguf, err);
    }
    tr_status status = tr__gguf_read(gguf, tensor, 0, tensor->count, wanted, err);
    if (status != TR_OK) {
        return status;
    }
    if (!find_scaling(wanted, head_dim, theta, &found)) {
        return fail_factors(gguf, err);
    }
    *out = json_pack("{s:s, s:f, s:f, s:f, s:i}", "rope_type", "llama3", "factor",
                     (double)found.factor, "low_freq_factor", (double)found.low,
                     "high_freq_factor", (double)found.high,
                     "original_max_position_embeddings", found.original);
    return *out ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a config.json");
}

// ---- to files

// What llama.cpp multiplies by itself with YaRN: 0.1 ln(factor) + 1.
static double usual_attention(double factor) {
    return factor <= 1 ? 1 : 0.1 * log(factor) + 1;
}

static void put_text(tr_gguf_writer *writer, const char *architecture, const char *name,
                     const char *text) {
    char key[TR_VALUE_KEY_MAX];
    tr__gguf_put_text(writer, tr__value_key(key, architecture, name), text,
                      strlen(text));
}

static void describe_yarn(tr_gguf_writer *writer, const char *architecture,
                          const tr_rope_options *rope) {
    double attention = (double)rope->attention / usual_attention((double)rope->factor);
    tr__value_put_u32(writer, architecture, "rope.scaling.original_context_length",
                      rope->original);
    if (fabs(attention - 1) > 1e-6) {
        tr__value_put_float(writer, architecture, "rope.scaling.attn_factor",
                            attention);
    }
    if (rope->high != 32) {
        tr__value_put_float(writer, architecture, "rope.scaling.yarn_beta_fast",
                            (double)rope->high);
    }
    if (rope->low != 1) {
        tr__value_put_float(writer, architecture, "rope.scaling.yarn_beta_slow",
                            (double)rope->low);
    }
}

tr_status tr__rope_describe(tr_gguf_writer *writer, const char *architecture,
                            const tr_rope_options *rope, tr_error *err) {
    bool yarn = rope->scaling == TR_ROPE_YARN;
    tr__value_put_float(writer, architecture, "rope.freq_base", rope->theta);
    if (rope->scaling == TR_ROPE_LLAMA3 && strcmp(architecture, "llama") != 0) {
        return tr_fail(err, TR_USAGE,
                       "the scaling \"llama3\" of positions cannot be exported: GGUF "
                       "files of %s have no place for it",
                       architecture);
    }
    if (yarn && !rope->truncate) {
        return tr_fail(err, TR_USAGE,
                       "the scaling \"yarn\" with \"truncate\": false cannot be "
                       "exported: llama.cpp truncates always");
    }
    if (yarn || rope->scaling == TR_ROPE_LINEAR) {
        put_text(writer, architecture, "rope.scaling.type", yarn ? "yarn" : "linear");
        tr__value_put_float(writer, architecture, "rope.scaling.factor",
                            (double)rope->factor);
    }
    if (yarn) {
        describe_yarn(writer, architecture, rope);
    }
    return TR_OK;
}

// ---- and back

static tr_status read_yarn(const tr_gguf *gguf, const char *architecture, double factor,
                           json_t **out, tr_error *err) {
    char key[TR_VALUE_KEY_MAX];
    double fast = 32, slow = 1, attention = 1;
    int64_t original = 0;
    tr_status status = tr__value_integer(
        gguf, tr__value_key(key, architecture, "rope.scaling.original_context_length"),
        &original, err);
    if (status == TR_OK && original <= 0) {
        return tr_fail(err, TR_IO, "%s: has the scaling \"yarn\" without %s",
                       tr__gguf_path(gguf), key);
    }
    const struct {
        const char *name;
        double *to;
    } numbers[] = {{"rope.scaling.yarn_beta_fast", &fast},
                   {"rope.scaling.yarn_beta_slow", &slow},
                   {"rope.scaling.attn_factor", &attention}};
    for (size_t i = 0; i < 3 && status == TR_OK; i++) {
        status =
            tr__value_number(gguf, tr__value_key(key, architecture, numbers[i].name),
                             numbers[i].to, err);
    }
    if (status != TR_OK) {
        return status;
    }
    *out = json_pack("{s:s, s:f, s:f, s:f, s:f, s:I}", "rope_type", "yarn", "factor",
                     factor, "beta_fast", fast, "beta_slow", slow, "attention_factor",
                     attention * usual_attention(factor),
                     "original_max_position_embeddings", (json_int_t)original);
    return *out ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a config.json");
}

static tr_status read_scaling(const tr_gguf *gguf, const char *architecture,
                              json_t **out, tr_error *err) {
    char key[TR_VALUE_KEY_MAX];
    const char *type = "none";
    double factor = 0;
    tr_status status = tr__value_number(
        gguf, tr__value_key(key, architecture, "rope.scaling.factor"), &factor, err);
    if (status == TR_OK) {
        status = tr__value_text(
            gguf, tr__value_key(key, architecture, "rope.scaling.type"), &type, err);
    }
    if (status != TR_OK || strcmp(type, "none") == 0) {
        return status;
    }
    bool linear = strcmp(type, "linear") == 0;
    if ((!linear && strcmp(type, "yarn") != 0) || factor < 1) {
        return tr_fail(err, TR_IO,
                       "%s: a scaling of positions \"%.40s\" by %g is not supported; "
                       "supported are \"linear\" and \"yarn\", with a factor",
                       tr__gguf_path(gguf), type, factor);
    }
    if (!linear) {
        return read_yarn(gguf, architecture, factor, out, err);
    }
    *out = json_pack("{s:s, s:f}", "rope_type", "linear", "factor", factor);
    return *out ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a config.json");
}

tr_status tr__rope_config(const tr_gguf *gguf, const char *architecture, int head_dim,
                          json_t *keys, tr_error *err) {
    char key[TR_VALUE_KEY_MAX];
    double theta = 10000;
    int64_t turned = head_dim;
    json_t *scaling = NULL;
    tr_status status = tr__value_number(
        gguf, tr__value_key(key, architecture, "rope.freq_base"), &theta, err);
    if (status == TR_OK) {
        status = tr__value_integer(
            gguf, tr__value_key(key, architecture, "rope.dimension_count"), &turned,
            err);
    }
    if (status == TR_OK && turned != head_dim) {
        return tr_fail(err, TR_IO,
                       "%s: %s is %lld, and heads have %d: parts of heads that are not "
                       "turned are not supported",
                       tr__gguf_path(gguf), key, (long long)turned, head_dim);
    }
    status = status == TR_OK ? read_scaling(gguf, architecture, &scaling, err) : status;
    if (status == TR_OK && !scaling) {
        status = read_factors(gguf, head_dim, theta, &scaling, err);
    }
    if (status != TR_OK) {
        json_decref(scaling);
        return status;
    }
    bool good = json_object_set_new(keys, "rope_theta", json_real(theta)) == 0 &&
                (!scaling || json_object_set(keys, "rope_scaling", scaling) == 0);
    json_decref(scaling);
    return good ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a config.json");
}
