// The rate of the processor's matrix products on a language model's own shapes, forward
// and both backward products with accumulation, and the tokens a second that they would
// allow if a step were nothing else.
//
//     limits [context] [width] [layers] [vocabulary] [micro-batch] [f32|bf16]
//            [key-width] [inner-width]
//
// With the last two the blocks are Llama's: keys and values of that width, and an MLP
// with gates; else GPT-2's. In bf16 results are bf16 too, but for the gradients of
// weights and the logits.
#include "backend/cpu/matmul.h"
#include "base/arena.h"
#include "base/clock.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, HEAD_ROWS = 256 };

typedef struct shape {
    const char *name;
    int64_t m, n, k;
    bool a_transposed, b_transposed, accumulate;
    tr_dtype type, c_type;
    double times; // in one micro-batch
} shape;

static size_t room(int64_t elements) {
    return ((size_t)elements * sizeof(float) + PAGE - 1) / PAGE * PAGE;
}

static double best_seconds(tr_matmul *product, const shape *s, tr_arena *memory) {
    const void *a = tr__arena_view(memory, 0, room(s->m * s->k));
    size_t at = room(s->m * s->k);
    const void *b = tr__arena_view(memory, at, room(s->k * s->n));
    at += room(s->k * s->n);
    void *c = tr__arena_view(memory, at, room(s->m * s->n));
    at += room(s->m * s->n);
    void *workspace = tr__arena_view(memory, at, tr__matmul_workspace(product));
    double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k, best = 1e30;
    int tries = flops > 1e10 ? 4 : 12;
    for (int i = 0; i < tries; i++) {
        double begin = tr__seconds();
        tr__matmul_run(product, s->accumulate, a, b, NULL, c, workspace);
        double took = tr__seconds() - begin;
        best = took < best ? took : best;
    }
    return best;
}

static double measure(const shape *s) {
    tr_error err = {0};
    tr_matmul *product = NULL;
    tr_arena *memory = NULL;
    tr_matmul_desc desc = {.m = s->m,
                           .n = s->n,
                           .k = s->k,
                           .a_row = s->a_transposed ? 1 : s->k,
                           .a_col = s->a_transposed ? s->m : 1,
                           .b_row = s->b_transposed ? 1 : s->n,
                           .b_col = s->b_transposed ? s->k : 1,
                           .c_row = s->n,
                           .fresh = !s->accumulate,
                           .accumulate = s->accumulate,
                           .type = s->type,
                           .c_type = s->c_type,
                           .threads = omp_get_max_threads()};
    tr_status status = tr__matmul_create(&desc, &product, &err);
    if (status == TR_OK) {
        status = tr__arena_create("bench",
                                  room(s->m * s->k) + room(s->k * s->n) +
                                      room(s->m * s->n) + tr__matmul_workspace(product),
                                  &memory, &err);
    }
    if (status != TR_OK) {
        fprintf(stderr, "limits: %s\n", err.message);
        exit(tr_status_exit(status));
    }
    double seconds = best_seconds(product, s, memory);
    tr__arena_destroy(memory);
    tr__matmul_destroy(product);
    return seconds;
}

// x [rows, in] times a weight [in, out]: forward, dx, dweight.
static double measure_linear(const char *name, int64_t rows, int64_t in, int64_t out,
                             bool out_in, double times, tr_dtype type, bool logits,
                             double *flops) {
    tr_dtype y = logits ? TR_F32 : type;
    const shape shapes[] = {
        {"y", rows, out, in, false, out_in, false, type, y, times},
        {"dx", rows, in, out, false, !out_in, false, type, type, times},
        {"dw", out_in ? out : in, out_in ? in : out, rows, true, false, true, type,
         TR_F32, times},
    };
    double seconds = 0;
    for (int i = 0; i < 3; i++) {
        const shape *s = &shapes[i];
        double took = measure(s), work = 2.0 * (double)rows * (double)in * (double)out;
        printf("    %-8s %-3s %6lld x %6lld x %6lld  %7.1f GFLOP/s\n", name, s->name,
               (long long)s->m, (long long)s->n, (long long)s->k, work / took / 1e9);
        seconds += took * times;
        *flops += work * times;
    }
    return seconds;
}

typedef struct sizes {
    int64_t context, width, layers, vocabulary, rows;
    int64_t keys, inner; // of Llama's blocks; 0: GPT-2's
    tr_dtype type;
} sizes;

static int64_t argument(int argc, char **argv, int index, int64_t fallback) {
    return argc > index ? strtoll(argv[index], NULL, 10) : fallback;
}

static sizes read_sizes(int argc, char **argv) {
    sizes z = {.context = argument(argc, argv, 1, 1024),
               .width = argument(argc, argv, 2, 768),
               .layers = argument(argc, argv, 3, 12),
               .vocabulary = argument(argc, argv, 4, 50257),
               .keys = argument(argc, argv, 7, 0),
               .inner = argument(argc, argv, 8, 0),
               .type = argc > 6 && strcmp(argv[6], "bf16") == 0 ? TR_BF16 : TR_F32};
    z.rows = z.context * argument(argc, argv, 5, 1);
    return z;
}

// The products of one block's weights, in the form in which files have them.
static double measure_blocks(const sizes *z, double *flops) {
    int64_t C = z->width, rows = z->rows;
    bool llama = z->inner > 0;
    int64_t qkv = llama ? C + 2 * z->keys : 3 * C;
    int64_t inner = llama ? z->inner : 4 * C, up = llama ? 2 * inner : inner;
    double L = (double)z->layers, seconds = 0;
    seconds += measure_linear("qkv", rows, C, qkv, llama, L, z->type, false, flops);
    seconds += measure_linear("out", rows, C, C, llama, L, z->type, false, flops);
    seconds += measure_linear(llama ? "gate, up" : "fc", rows, C, up, llama, L, z->type,
                              false, flops);
    seconds += measure_linear(llama ? "down" : "proj", rows, inner, C, llama, L,
                              z->type, false, flops);
    return seconds;
}

int main(int argc, char **argv) {
    sizes z = read_sizes(argc, argv);
    int64_t head_rows = z.rows < HEAD_ROWS ? z.rows : HEAD_ROWS;
    double flops = 0, rows = (double)z.rows;
    if (!tr__matmul_has(z.type)) {
        fprintf(stderr, "limits: this processor has no products of %s\n",
                tr_dtype_name(z.type));
        return 2;
    }
    printf("products (m x n x k) of %s, %d threads\n", tr_dtype_name(z.type),
           omp_get_max_threads());
    double seconds = measure_blocks(&z, &flops);
    seconds += measure_linear("head", head_rows, z.width, z.vocabulary, true,
                              rows / (double)head_rows, z.type, true, &flops);
    double rate = flops / seconds;
    // Causal attention: two products of S x S / 2 x C forward, five backward.
    double attention =
        (double)z.layers * 14 * rows * (double)z.context / 2 * (double)z.width;
    printf("{\"product_gflops\": %.1f, \"step_gflop_per_token\": %.4f, "
           "\"limit_tokens_per_second\": %.1f}\n",
           rate / 1e9, (flops + attention) / rows / 1e9,
           rows / ((flops + attention) / rate));
    return 0;
}
