// How fast tokens are sampled one after the other, against what memory allows: a token
// reads every weight once, and the keys and values of the tokens before it.
//
//     sample FOLDER [f32|bf16|fp16] [PROMPT] [TOKENS]
//
// Prompt and tokens are counts; which tokens they are does not matter. The rate at
// which all threads read memory is measured before every few tokens, since that of a
// shared machine drifts: the share is the median over these rounds, and so are the
// rates. Prints a row of bench/sample.sh:
//
//     dtype prompt tokens/s prompt-tokens/s bytes-a-token GB/s-read share
#include "base/clock.h"
#include "base/memory.h"
#include "plan/flow/plan.h"

#include <tranche/sample.h>

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND = 4 }; // tokens between two measurements of memory

static const size_t read_bytes = (size_t)256 << 20;

typedef struct rounds {
    double *token, *read, *share; // [count] seconds of a token, of a byte; see above
    int64_t count;
} rounds;

// ---- what a token reads

static bool is_attention(const tr_instruction *at) {
    return at->in[at->desc.in_count - 1].place == TR_PLACE_CACHE;
}

static bool is_lookup(const tr_instruction *at) { // a row of the table alone
    return strcmp(at->desc.op->name, "embedding") == 0;
}

// Of the instruction, at a position.
static double bytes_of(const tr_instruction *at, int64_t position) {
    double bytes = 0;
    for (int i = 0; i < at->desc.in_count && !is_lookup(at); i++) {
        if (at->in[i].place == TR_PLACE_PARAM) {
            bytes += (double)tr_tensor_bytes(at->desc.in[i]);
        }
    }
    if (is_attention(at)) {
        tr_tensor_desc cache = at->desc.in[at->desc.in_count - 1];
        double share = (double)(position + 1) / (double)cache.shape.dim[2];
        bytes += share * (double)tr_tensor_bytes(cache);
    }
    return bytes;
}

static double bytes_of_token(const tr_plan *plan, int64_t position) {
    double bytes = 0;
    for (int u = 0; u < plan->unit_count; u++) {
        const tr_program *program =
            tr__unit_piece(plan->units[u].program, TR_VARIANT_INFERENCE, 0);
        for (size_t i = 0; i < program->count; i++) {
            bytes += bytes_of(&program->instructions[i], position);
        }
    }
    return bytes;
}

// ---- measuring

typedef uint64_t lanes __attribute__((vector_size(64)));

#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static uint64_t
sum_of(const lanes *at, size_t count) {
    lanes sum[4] = {{0}};
    for (size_t i = 0; i + 4 <= count; i += 4) {
        for (int k = 0; k < 4; k++) {
            sum[k] += at[i + (size_t)k];
        }
    }
    sum[0] += sum[1] + sum[2] + sum[3];
    return sum[0][0] + sum[0][7];
}

// Seconds a byte, all threads reading.
static double read_memory(const char *memory, uint64_t *check) {
    size_t count = read_bytes / sizeof(lanes);
    uint64_t sum = 0;
    double begin = tr__seconds();
#pragma omp parallel reduction(+ : sum)
    {
        size_t threads = (size_t)omp_get_num_threads();
        size_t part = count / threads, first = part * (size_t)omp_get_thread_num();
        sum += sum_of((const lanes *)memory + first, part);
    }
    *check += sum;
    return (tr__seconds() - begin) / (double)read_bytes;
}

static int fail(const tr_error *err) {
    fprintf(stderr, "sample: %s\n", err->message);
    return 1;
}

// Asks for the token behind `count`, and puts one there.
static tr_status next_token(tr_sampler *sampler, int32_t *tokens, int64_t count,
                            tr_error *err) {
    const float *logits;
    tr_status status = tr_sampler_logits(sampler, tokens, count, &logits, err);
    tokens[count] = (int32_t)(((uint64_t)count * 2654435761u) %
                              (uint64_t)tr_sampler_vocabulary(sampler));
    return status;
}

// Tokens behind a prompt, one by one, ROUND a round.
static tr_status measure(tr_sampler *sampler, int32_t *tokens, int64_t prompt,
                         const char *memory, rounds *r, tr_error *err) {
    const tr_plan *plan = tr_sampler_token_plan(sampler);
    uint64_t check = 0;
    tr_status status = TR_OK;
    for (int64_t i = 0; i < r->count && status == TR_OK; i++) {
        int64_t first = prompt + i * ROUND;
        r->read[i] = read_memory(memory, &check);
        double begin = tr__seconds();
        for (int64_t k = first; k < first + ROUND && status == TR_OK; k++) {
            status = next_token(sampler, tokens, k + 1, err);
        }
        r->token[i] = (tr__seconds() - begin) / ROUND;
        r->share[i] =
            bytes_of_token(plan, first + ROUND / 2) * r->read[i] / r->token[i];
    }
    if (check == 1) { // so that the sums are needed
        printf(" ");
    }
    return status;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static tr_dtype dtype_of(const char *name) {
    return strcmp(name, "bf16") == 0   ? TR_BF16
           : strcmp(name, "fp16") == 0 ? TR_F16
                                       : TR_F32;
}

int main(int argc, char **argv) {
    const char *type = argc > 2 ? argv[2] : "f32";
    int64_t prompt = argc > 3 ? atoll(argv[3]) : 128;
    int64_t count = argc > 4 ? atoll(argv[4]) : 128;
    tr_error err = {0};
    tr_sampler *sampler = NULL;
    if (argc < 2 || prompt < 1 || count < ROUND) {
        fprintf(stderr, "usage: sample FOLDER [f32|bf16|fp16] [PROMPT] [TOKENS]\n");
        return 2;
    }
    tr_sampler_options options = {.size = sizeof options,
                                  .path = argv[1],
                                  .length = prompt + count,
                                  .compute = dtype_of(type)};
    rounds r = {.count = count / ROUND};
    double *values = calloc((size_t)r.count, 3 * sizeof *values);
    int32_t *tokens = calloc((size_t)options.length + 1, sizeof *tokens);
    char *memory = aligned_alloc(64, read_bytes);
    if (!values || !tokens || !memory) {
        tr_fail(&err, TR_MEMORY, "no memory");
        return fail(&err);
    }
    r.token = values, r.read = values + r.count, r.share = values + 2 * r.count;
    if (tr_sampler_open(&options, &sampler, &err) != TR_OK) {
        return fail(&err);
    }
    memset(memory, 1, read_bytes);
    for (int64_t i = 0; i < prompt; i++) {
        tokens[i] = (int32_t)(i * 7919 % tr_sampler_vocabulary(sampler));
    }
    double begin = tr__seconds();
    tr_status status = next_token(sampler, tokens, prompt, &err);
    double first = tr__seconds() - begin;
    if (status == TR_OK) {
        status = measure(sampler, tokens, prompt, memory, &r, &err);
    }
    if (status != TR_OK) {
        return fail(&err);
    }
    double bytes = bytes_of_token(tr_sampler_token_plan(sampler), prompt + count / 2);
    printf("%s %lld %.1f %.0f %.0f %.1f %.2f\n", type, (long long)prompt,
           1 / median(r.token, r.count), (double)prompt / first, bytes,
           1e-9 / median(r.read, r.count), median(r.share, r.count));
    tr_sampler_destroy(sampler);
    free(values);
    free(tokens);
    free(memory);
    return 0;
}
