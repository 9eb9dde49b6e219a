// Run on two or four ranks: a vocabulary so large that ranks of the tensor axis go
// through the rows of the head in parts, against one rank. Losses, weights and moments
// are the same but for rounding. A step multiplies a part's logits out once.
#include "on_meshes.h"
#include "on_ranks.h"
#include "ops/nn/linear_cross_entropy_slice/linear_cross_entropy_slice.h"
#include "plan/units/program.h"

#include <stdio.h>

enum { WORDS = 300007, CONTEXT = 61, PARTS = 2, OF = 3 };

// Two ranks have 37 MB of logits of a sample each. Of four, each has half of that.
static const char of_gpt2[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 8, \"n_head\": 2, "
    "\"n_positions\": 61, \"vocab_size\": 300007}";
static const char of_llama[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 8, \"intermediate_size\": 11, "
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 4, "
    "\"max_position_embeddings\": 61, \"vocab_size\": 300007}";

// Data, tensor, pipeline.
static const tr_mesh of[OF] = {
    {.size = {1, 2, 1}}, {.size = {1, 2, 2}}, {.size = {2, 2, 1}}};

typedef struct way {
    const char *model;
    int micro;
    const char *schedule, *cut;
} way;

static const way ways[] = {
    {of_gpt2, 2, ", \"schedule\": \"zero_bubble\"", ZERO(1)},
    {of_llama, 3, "", ONE_THREAD RECOMPUTED},
};

static int64_t count_in(const tr_unit_program *unit, tr_variant variant) {
    int64_t count = 0;
    for (int i = 0; i < tr__unit_pieces(unit, variant); i++) {
        const tr_program *program = tr__unit_piece(unit, variant, i);
        for (size_t k = 0; k < program->count; k++) {
            count +=
                program->instructions[k].desc.op == &tr__op_linear_cross_entropy_slice;
        }
    }
    return count;
}

static void assert_made_once(const run_options *options) {
    trial t;
    trial_open(&t, options);
    const tr_unit_program *head = t.plan->units[t.plan->unit_count - 1].program;
    if (head) { // of this rank's stage
        assert_int_equal(count_in(head, TR_VARIANT_FORWARD), 0);
        assert_int_equal(count_in(head, TR_VARIANT_BACKWARD), PARTS);
        assert_int_equal(count_in(head, TR_VARIANT_EVALUATE), PARTS);
    }
    trial_close(&t);
}

static void try_mesh(const way *at, const tr_mesh *mesh, const samples *data,
                     const outcome *alone_is) {
    char text[TEXT_MAX], what[TEXT_MAX];
    outcome many;
    snprintf(what, sizeof what, "%s in micro-batches of %d%s%s on %d x %d x %d ranks",
             at->model, at->micro, at->schedule, at->cut, (int)mesh->size[TR_AXIS_DATA],
             (int)mesh->size[TR_AXIS_TENSOR], (int)mesh->size[TR_AXIS_PIPELINE]);
    schedule = at->schedule;
    write_run_of(text, at->model, at->micro, mesh, "unused", ADAM, at->cut);
    schedule = "";
    run_options options = options_of(text, data, world, "never");
    assert_made_once(&options);
    take_steps(&options, 1, false, &many);
    assert_near(alone_is, &many, what);
    free_outcome(&many);
}

static void a_head_in_parts(void **state) {
    samples data;
    (void)state;
    samples_tokens(&data, STEPS * BATCH, CONTEXT, WORDS, 6);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char text[TEXT_MAX];
        outcome alone_is;
        write_run_of(text, ways[i].model, 2, &alone, "unused", ADAM, ONE_THREAD);
        run_options options = options_of(text, &data, NULL, "never");
        take_steps(&options, 1, false, &alone_is);
        for (size_t m = 0; m < OF; m++) {
            if (is_of_all(&of[m])) {
                try_mesh(&ways[i], &of[m], &data, &alone_is);
            }
        }
        free_outcome(&alone_is);
    }
    samples_free(&data);
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_head_in_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&world, run, argc, argv);
}
