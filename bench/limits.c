// The rate of the processor's matrix products on a language model's own shapes, forward
// and both backward products with accumulation, and the tokens a second that they would
// allow if a step were nothing else. Attention's products are counted at the same rate.
//
//     limits [context] [width] [layers] [vocabulary] [micro-batch] [f32|bf16]
//            [key-width] [inner-width] [rank]
//
// With the last two the blocks are Llama's: keys and values of that width, and an MLP
// with gates; else GPT-2's. In bf16 results are bf16 too, but for the gradients of
// weights and the logits. With a rank the weights are frozen (they have no gradient, so
// two products each), and beside those of blocks there are two thin ones, an adapter's.
//
// There are two rates. The first is that of each product alone, the best of several
// runs on the same operands, which are in the caches then. The second is that of all
// products of a micro-batch in the order of a step, the best of several passes: each
// layer has operands of its own there, as in a step, and they come from memory.
#include "backend/cpu/matmul.h"
#include "base/arena.h"
#include "base/clock.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, HEAD_ROWS = 256, BLOCK = 4, LINEARS = 3 * BLOCK + 1, PASSES = 4 };

typedef enum product { Y, DX, DW, PRODUCTS } product;

static const char *const product_names[PRODUCTS] = {"y", "dx", "dw"};

// A weight of [in, out], or [out, in] as files of Llama have it, and its products.
typedef struct linear {
    const char *name;
    int64_t rows, in, out, calls; // rows of one call, and calls in a layer
    int64_t weights;              // such weights in all layers
    bool out_in, logits, frozen;
    tr_matmul *products[PRODUCTS];
    double best[PRODUCTS];            // seconds
    size_t x, weight, gradient;       // where those of layer 0 are,
    size_t x_apart, w_apart, g_apart; // and how far those of the next one are from them
} linear;

typedef struct bench {
    linear linears[LINEARS]; // of blocks, then the head
    int count;
    int64_t layers;
    tr_dtype type;
    tr_arena *memory;
    size_t taken, dy, dx, workspace; // where results and gradients of results are
} bench;

static _Noreturn void fail(tr_status status, const tr_error *err) {
    fprintf(stderr, "limits: %s\n", err->message);
    exit(tr_status_exit(status));
}

// ---- what is multiplied

static tr_dtype result_type(const bench *b, const linear *l) {
    return l->logits ? TR_F32 : b->type;
}

// x [rows, in] times the weight: forward, dx, dweight
static tr_matmul_desc describe(const bench *b, const linear *l, product p) {
    tr_matmul_desc d = {.type = b->type,
                        .c_type = p == DW  ? TR_F32
                                  : p == Y ? result_type(b, l)
                                           : b->type,
                        .fresh = p != DW,
                        .accumulate = p == DW,
                        .threads = omp_get_max_threads()};
    if (p == DW) {
        d.m = l->out_in ? l->out : l->in;
        d.n = l->out_in ? l->in : l->out;
        d.k = l->rows;
        d.a_row = 1, d.a_col = d.m;
        d.b_row = d.n, d.b_col = 1;
    } else {
        bool transposed = (p == Y) == l->out_in;
        d.m = l->rows;
        d.n = p == Y ? l->out : l->in;
        d.k = p == Y ? l->in : l->out;
        d.a_row = d.k, d.a_col = 1;
        d.b_row = transposed ? 1 : d.n, d.b_col = transposed ? d.k : 1;
    }
    d.c_row = d.n;
    return d;
}

static void create_products(bench *b, linear *l) {
    for (product p = 0; p < PRODUCTS; p++) {
        tr_error err = {0};
        tr_matmul_desc desc = describe(b, l, p);
        tr_status status = tr__matmul_create(&desc, &l->products[p], &err);
        if (status != TR_OK) {
            fail(status, &err);
        }
        size_t workspace = tr__matmul_workspace(l->products[p]);
        b->workspace = workspace > b->workspace ? workspace : b->workspace;
    }
}

static size_t take(bench *b, size_t bytes) {
    size_t at = b->taken;
    b->taken += (bytes + PAGE - 1) / PAGE * PAGE;
    return at;
}

static size_t take_layers(bench *b, const linear *l, int64_t elements, tr_dtype type,
                          size_t *apart) {
    *apart = ((size_t)elements * tr_dtype_bytes(type) + PAGE - 1) / PAGE * PAGE;
    return take(b, *apart * (size_t)l->weights);
}

static void place(bench *b) {
    int64_t widest = 0;
    for (int i = 0; i < b->count; i++) {
        linear *l = &b->linears[i];
        int64_t wider = l->in > l->out ? l->in : l->out;
        widest = l->rows * wider > widest ? l->rows * wider : widest;
        l->x = take_layers(b, l, l->rows * l->calls * l->in, b->type, &l->x_apart);
        l->weight = take_layers(b, l, l->in * l->out, b->type, &l->w_apart);
        l->gradient = take_layers(b, l, l->in * l->out, TR_F32, &l->g_apart);
    }
    size_t workspace = b->workspace;
    b->dy = take(b, (size_t)widest * sizeof(float));
    b->dx = take(b, (size_t)widest * sizeof(float));
    b->workspace = take(b, workspace);
    tr_error err = {0};
    tr_status status = tr__arena_create("bench", b->taken, &b->memory, &err);
    if (status != TR_OK) {
        fail(status, &err);
    }
    memset(tr__arena_view(b->memory, 0, b->taken), 0, b->taken); // its pages are there
}

static void *at(const bench *b, size_t offset, size_t apart, int64_t index) {
    return tr__arena_view(b->memory, offset + apart * (size_t)index, 0);
}

static void run(const bench *b, const linear *l, product p, int64_t layer,
                int64_t call) {
    size_t x_bytes = (size_t)(l->rows * l->in) * tr_dtype_bytes(b->type);
    void *x = at(b, l->x + x_bytes * (size_t)call, l->x_apart, layer);
    void *weight = at(b, l->weight, l->w_apart, layer);
    void *dy = at(b, b->dy, 0, 0), *dx = at(b, b->dx, 0, 0);
    const void *first = p == Y ? x : p == DX ? dy : l->out_in ? dy : x;
    const void *second = p != DW ? weight : l->out_in ? x : dy;
    void *to = p == Y ? dy : p == DX ? dx : at(b, l->gradient, l->g_apart, layer);
    tr_error err = {0};
    tr_status status = tr__matmul_run(l->products[p], p == DW, first, second, NULL, to,
                                      at(b, b->workspace, 0, 0));
    if (status != TR_OK) {
        snprintf(err.message, sizeof err.message, "%s of %s failed", product_names[p],
                 l->name);
        fail(status, &err);
    }
}

// ---- the rates

// How many of y, dx and dw the weight has.
static product products_of(const linear *l) {
    return l->frozen ? DW : PRODUCTS;
}

static double work_of(const linear *l) {
    return 2.0 * (double)l->rows * (double)l->in * (double)l->out;
}

static double times_of(const linear *l) {
    return (double)(l->weights * l->calls);
}

static void measure_alone(const bench *b, linear *l, product p) {
    int tries = work_of(l) > 1e10 ? 4 : 12;
    l->best[p] = 1e30;
    for (int i = 0; i < tries; i++) {
        double begin = tr__seconds();
        run(b, l, p, 0, 0);
        double took = tr__seconds() - begin;
        l->best[p] = took < l->best[p] ? took : l->best[p];
    }
    printf("    %-8s %-3s %6lld rows x %6lld x %6lld  %7.1f GFLOP/s\n", l->name,
           product_names[p], (long long)l->rows, (long long)l->in, (long long)l->out,
           work_of(l) / l->best[p] / 1e9);
}

// A layer may have several such weights.
static void run_layer(const bench *b, const linear *l, product p, int64_t layer) {
    int64_t each = l->weights / b->layers;
    for (int64_t i = 0; i < each; i++) {
        run(b, l, p, layer * each + i, 0);
    }
}

// The products of all layers, each after the one before; the head's calls are complete
// one after the other, as the loss makes them.
static void pass(const bench *b) {
    const linear *head = &b->linears[b->count - 1];
    for (int64_t layer = 0; layer < b->layers; layer++) {
        for (int i = 0; i < b->count - 1; i++) {
            run_layer(b, &b->linears[i], Y, layer);
        }
    }
    for (int64_t call = 0; call < head->calls; call++) {
        for (product p = 0; p < products_of(head); p++) {
            run(b, head, p, 0, call);
        }
    }
    for (int64_t layer = b->layers; layer-- > 0;) {
        for (int i = b->count - 1; i-- > 0;) {
            for (product p = DX; p < products_of(&b->linears[i]); p++) {
                run_layer(b, &b->linears[i], p, layer);
            }
        }
    }
}

// Seconds of a pass: so many at a time that they take about one together.
static double measure_passes(const bench *b, double alone) {
    int together = alone < 1 ? (int)(1 / alone) + 1 : 1;
    double best = 1e30;
    for (int i = 0; i < PASSES; i++) {
        double begin = tr__seconds();
        for (int j = 0; j < together; j++) {
            pass(b);
        }
        double took = (tr__seconds() - begin) / together;
        best = took < best ? took : best;
    }
    return best;
}

// ---- the model

typedef struct sizes {
    int64_t context, width, layers, vocabulary, rows;
    int64_t keys, inner; // of Llama's blocks; 0: GPT-2's
    int64_t rank;        // of adapters; 0: there are none
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
               .rank = argument(argc, argv, 9, 0),
               .type = argc > 6 && strcmp(argv[6], "bf16") == 0 ? TR_BF16 : TR_F32};
    z.rows = z.context * argument(argc, argv, 5, 1);
    return z;
}

// The products beside a weight, of which several layers' may be stacked: those of a
// layer's mean width.
static void list_adapter(const sizes *z, const linear *of, int64_t stacked, bench *b) {
    b->linears[b->count++] = (linear){
        "lora A", of->rows, of->in, z->rank, 1, of->weights * stacked, .out_in = true};
    b->linears[b->count++] = (linear){
        "lora B",      of->rows, z->rank, of->out / stacked, 1, of->weights * stacked,
        .out_in = true};
}

// The weights of one block, in the form in which files have them, and the head.
static void list_linears(const sizes *z, bench *b) {
    int64_t C = z->width, L = z->layers, rows = z->rows;
    bool llama = z->inner > 0;
    int64_t qkv = llama ? C + 2 * z->keys : 3 * C;
    int64_t inner = llama ? z->inner : 4 * C, up = llama ? 2 * inner : inner;
    int64_t head = rows < HEAD_ROWS ? rows : HEAD_ROWS;
    const linear all[BLOCK + 1] = {
        {"qkv", rows, C, qkv, 1, L, .out_in = llama},
        {"out", rows, C, C, 1, L, .out_in = llama},
        {llama ? "gate, up" : "fc", rows, C, up, 1, L, .out_in = llama},
        {llama ? "down" : "proj", rows, inner, C, 1, L, .out_in = llama},
        {"head", head, C, z->vocabulary, rows / head, 1, .out_in = true,
         .logits = true},
    };
    const int64_t stacked[BLOCK] = {llama ? 3 : 1, 1, llama ? 2 : 1, 1};
    b->layers = L;
    for (int i = 0; i <= BLOCK; i++) {
        if (z->rank > 0 && i < BLOCK) {
            list_adapter(z, &all[i], stacked[i], b);
        }
        b->linears[b->count] = all[i];
        b->linears[b->count++].frozen = z->rank > 0;
    }
}

int main(int argc, char **argv) {
    sizes z = read_sizes(argc, argv);
    bench b = {.type = z.type};
    double flops = 0, alone = 0;
    if (!tr__matmul_has(z.type)) {
        fprintf(stderr, "limits: this processor has no products of %s\n",
                tr_dtype_name(z.type));
        return 2;
    }
    list_linears(&z, &b);
    for (int i = 0; i < b.count; i++) {
        create_products(&b, &b.linears[i]);
    }
    place(&b);
    printf("products of %s, %d threads, each alone\n", tr_dtype_name(z.type),
           omp_get_max_threads());
    for (int i = 0; i < b.count; i++) {
        for (product p = 0; p < products_of(&b.linears[i]); p++) {
            measure_alone(&b, &b.linears[i], p);
            flops += work_of(&b.linears[i]) * times_of(&b.linears[i]);
            alone += b.linears[i].best[p] * times_of(&b.linears[i]);
        }
    }
    double passed = measure_passes(&b, alone), rows = (double)z.rows;
    // Causal attention: two products of S x S / 2 x C forward, five backward.
    double attention =
        (double)z.layers * 14 * rows * (double)z.context / 2 * (double)z.width;
    double step = flops + attention;
    printf("{\"product_gflops\": %.1f, \"step_gflop_per_token\": %.4f, "
           "\"limit_tokens_per_second\": %.1f, \"pass_gflops\": %.1f, "
           "\"pass_tokens_per_second\": %.1f}\n",
           flops / alone / 1e9, step / rows / 1e9, rows * flops / alone / step,
           flops / passed / 1e9, rows * flops / passed / step);
    for (int i = 0; i < b.count; i++) {
        for (product p = 0; p < PRODUCTS; p++) {
            tr__matmul_destroy(b.linears[i].products[p]);
        }
    }
    tr__arena_destroy(b.memory);
    return 0;
}
