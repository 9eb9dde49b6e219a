#include "saved_bits.h"

#include "base/checked.h"
#include "base/dynamic_map.h"
#include "base/quantized.h"
#include "files/safetensors/tensor_set.h"
#include "files/safetensors/tensor_writer.h"
#include "trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TENSORS = 128, JSON_BYTES = 512, PATH_BYTES = 2048 };

// What is written, one tensor after the other.
typedef struct bits {
    tr_tensor_spec specs[TENSORS];
    void *data[TENSORS];
    size_t count;
} bits;

// Takes over a copy of the data.
static void add(bits *b, const char *name, const char *end, tr_dtype dtype,
                tr_shape shape, const void *data) {
    size_t bytes = (size_t)tr_shape_count(shape) * tr_dtype_bytes(dtype);
    char *whole = malloc(strlen(name) + strlen(end) + 1);
    assert_true(b->count < TENSORS && whole);
    sprintf(whole, "%s%s", name, end);
    b->specs[b->count] = (tr_tensor_spec){whole, dtype, shape};
    b->data[b->count] = malloc(bytes);
    assert_non_null(b->data[b->count]);
    memcpy(b->data[b->count++], data, bytes);
}

static void add_state(bits *b, const char *name, const tr_stored_tensor *of,
                      const float *mean) {
    char json[JSON_BYTES], nested[JSON_BYTES / 2] = "";
    if (mean) {
        snprintf(nested, sizeof nested,
                 ", \"nested_blocksize\": 256, \"nested_offset\": %.17g",
                 (double)*mean);
    }
    int length =
        snprintf(json, sizeof json,
                 "{\"quant_type\": \"nf4\", \"blocksize\": 64, \"shape\": [%d, %d]%s}",
                 (int)of->dim[0], (int)of->dim[1], nested);
    add(b, name, ".quant_state.bitsandbytes__nf4", TR_U8, TR_SHAPE1(length), json);
}

static void add_bits(bits *b, const tr_stored_tensor *of, const float *x,
                     tr_quantization kind) {
    bool twice = kind == TR_QUANTIZED_NF4_DOUBLE;
    int64_t bytes = tr__code_bytes(kind, of->count);
    unsigned char *codes = malloc((size_t)bytes);
    tr_quantizer q;
    tr_error err = {0};
    assert_non_null(codes);
    trial_ok(tr__quantizer_begin(&q, kind, of->count, &err), &err);
    tr__quantizer_see(&q, 0, of->count, x);
    tr__quantizer_settle(&q);
    tr__quantizer_codes(&q, 0, of->count, x, codes);
    int64_t groups = tr__ceil_div(q.at.blocks, TR_NF4_NESTED);
    const float *nested = (const void *)(q.behind + (q.at.nested - q.at.scales));
    add(b, of->name, "", TR_U8, TR_SHAPE2(bytes, 1), codes);
    add(b, of->name, ".absmax", twice ? TR_U8 : TR_F32, TR_SHAPE1(q.at.blocks),
        q.behind);
    add(b, of->name, ".quant_map", TR_F32, TR_SHAPE1(16), tr__nf4_values);
    if (twice) {
        add(b, of->name, ".nested_absmax", TR_F32, TR_SHAPE1(groups), nested);
        add(b, of->name, ".nested_quant_map", TR_F32, TR_SHAPE1(TR_DYNAMIC_CODES),
            tr__dynamic_map());
    }
    add_state(b, of->name, of, twice ? nested + groups : NULL);
    tr__quantizer_end(&q);
    free(codes);
}

static void add_tensor(bits *b, const tr_tensor_set *set, const tr_stored_tensor *of,
                       tr_quantization kind) {
    tr_shape shape = {.rank = of->rank};
    tr_error err = {0};
    float *x = calloc((size_t)of->count, sizeof *x);
    assert_non_null(x);
    memcpy(shape.dim, of->dim, (size_t)of->rank * sizeof *shape.dim);
    trial_ok(tr__tensor_read_f32(set, of, 0, of->count, x, &err), &err);
    if (strstr(of->name, "_proj.weight")) {
        add_bits(b, of, x, kind);
    } else {
        add(b, of->name, "", TR_F32, shape, x);
    }
    free(x);
}

static void write_bits(bits *b, const char *path) {
    tr_tensor_writer *writer = NULL;
    tr_error err = {0};
    int64_t bytes;
    uint64_t hash;
    trial_ok(tr__tensor_writer_create(path, b->specs, b->count, &writer, &err), &err);
    for (size_t i = 0; i < b->count; i++) {
        trial_ok(tr__tensor_writer_put(writer, i, 0, tr_shape_count(b->specs[i].shape),
                                       b->data[i], &err),
                 &err);
        free((char *)b->specs[i].name);
        free(b->data[i]);
    }
    trial_ok(tr__tensor_writer_finish(writer, &bytes, &hash, &err), &err);
    tr__tensor_writer_destroy(writer);
}

static void copy_config(const char *base, const char *folder) {
    char path[PATH_BYTES], text[4 * PATH_BYTES];
    snprintf(path, sizeof path, "%s/config.json", base);
    FILE *from = fopen(path, "rb");
    assert_non_null(from);
    size_t bytes = fread(text, 1, sizeof text, from);
    fclose(from);
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *to = fopen(path, "wb");
    assert_non_null(to);
    assert_int_equal(fwrite(text, 1, bytes, to), bytes);
    assert_int_equal(fclose(to), 0);
}

void save_in_bits(const char *base, tr_quantization kind, const char *folder) {
    char path[PATH_BYTES];
    tr_tensor_set *set = NULL;
    tr_error err = {0};
    bits *b = calloc(1, sizeof *b);
    assert_non_null(b);
    assert_int_equal(mkdir(folder, 0777), 0);
    copy_config(base, folder);
    trial_ok(tr__tensor_set_open(base, &set, &err), &err);
    for (size_t i = 0; i < tr__tensor_set_count(set); i++) {
        add_tensor(b, set, tr__tensor_set_at(set, i), kind);
    }
    tr__tensor_set_close(set);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    write_bits(b, path);
    free(b);
}
