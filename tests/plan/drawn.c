#include "plan/drawn.h"

#include "graph/centered_model.h"
#include "plan/draw.h"
#include "plan/models.h"

void test_models_make(test_models *models) {
    // None of its own: the centered model, and those without a loss.
    *models = (test_models){
        .owned = {test_model_small_gpt2(0), test_model_small_gpt2(0.1),
                  test_model_sliced_gpt2(0, 2), test_model_sliced_gpt2(0.1, 3),
                  test_model_mlp(), NULL, test_model_resnet(TR_EFFECTIVE_BATCH),
                  test_model_resnet(TR_RANK_BATCH), test_model_resnet(TR_MICRO_BATCH),
                  test_model_qwen3(0.1), test_model_pairs(0, 60),
                  test_model_pairs(0.1, 60)}};
    for (int i = 0; i < TEST_DRAWN_MODELS; i++) {
        models->of[i] = models->owned[i] ? models->owned[i] : &test_model_centered;
    }
    models->of[TEST_DRAWN_MODELS - 2] = &test_model_open;
    models->of[TEST_DRAWN_MODELS - 1] = &test_model_open_cut;
}

void test_models_destroy(test_models *models) {
    for (int i = 0; i < TEST_DRAWN_MODELS; i++) {
        tr_model_destroy(models->owned[i]);
    }
}

static void draw_batch(draws *d, tr_plan_request *r) {
    r->micro_batch = 1 + draw(d, 3);
    r->accumulation_steps = 1 + draw(d, 5);
    int64_t ranks = one_in(d, 2) ? 1 : 2 + draw(d, 3);
    r->mesh = tr_mesh_of_data(ranks, draw(d, ranks));
    int64_t most = r->micro_batch * r->accumulation_steps * ranks;
    r->train_batch_size = most - (one_in(d, 3) ? draw(d, most) : 0); // ragged
    // Most that is refused is so for its wave, which some models and homes fix.
    r->wave = one_in(d, 2) ? 0 : draw(d, r->accumulation_steps + 1);
}

static void draw_placements(draws *d, tr_plan_request *r) {
    static const tr_space spaces[] = {TR_SPACE_DEVICE, TR_SPACE_HOST, TR_SPACE_NVME};
    r->stage = (int)draw(d, 4);
    r->optimizer_placement = spaces[draw(d, 3)];
    r->param_placement = one_in(d, 2) ? TR_SPACE_DEVICE : spaces[draw(d, 3)];
    r->grad_placement = one_in(d, 2) ? TR_SPACE_DEVICE : spaces[draw(d, 3)];
    r->optimizer_stays = one_in(d, 4) ? 0.5 : 0;
    r->boundary_placement = one_in(d, 3) ? TR_SPACE_HOST : TR_SPACE_DEVICE;
    r->update_elements = one_in(d, 2) ? 0 : 1024;
    r->update_slots = one_in(d, 2) ? 0 : (int)(2 + draw(d, 4));
}

static void draw_numbers(draws *d, tr_plan_request *r) {
    static const tr_dtype types[] = {TR_F32, TR_BF16, TR_F16};
    r->optimizer_states = (int)draw(d, 3);
    r->tensor_norms = one_in(d, 3);
    r->compute = types[draw(d, 3)];
    r->reproducible = one_in(d, 4);
    r->sums = r->reproducible || one_in(d, 2) ? TR_NONE : types[draw(d, 3)];
    r->measure = (tr_measure)draw(d, 3);
}

static void draw_recomputation(draws *d, tr_plan_request *r) {
    r->recomputed_units = one_in(d, 2) ? 0 : draw(d, 5) - 1;
    r->recomputed_ops = one_in(d, 3)   ? 0
                        : one_in(d, 2) ? TR_RECOMPUTE_NOTHING
                                       : (uint32_t)(1 + draw(d, TR_RECOMPUTE_ALL));
    r->recomputed_ops_units = one_in(d, 2) ? 0 : draw(d, 4);
}

// Some rows of a table: units as a whole, and parts of units, of all the models.
static void draw_frozen(draws *d, tr_plan_request *r) {
    static const char *const patterns[] = {
        "*h.0.*",   "*wte*",  "*.bias",  "*layers.0*", "*embed*", "*.weight",
        "*ln_1.*",  "*wpe*",  "*norm*",  "*h.1.*",     "*attn*",  "*conv*",
        "*layer1*", "*mlp.*", "*0.bias", "*a",         "*b",      "*.1.*"};
    enum { PATTERNS = sizeof patterns / sizeof *patterns };
    if (one_in(d, 2)) {
        r->frozen = &patterns[draw(d, PATTERNS - 2)];
        r->frozen_count = (size_t)(1 + draw(d, 3));
        r->frozen_half = one_in(d, 2);
    }
}

// States of few bits, or another optimizer for what is no matrix.
static void draw_states(draws *d, tr_plan_request *r) {
    bool bf16 = one_in(d, 2);
    if (one_in(d, 4) && !r->tensor_norms) {
        r->apart_state_count = r->optimizer_states;
        r->apart = bf16 ? TR_APART_NOTHING : TR_APART_SMALL;
        for (int s = 0; s < r->optimizer_states; s++) {
            r->states[s].type = bf16 ? TR_STATE_BF16 : s ? TR_STATE_U8 : TR_STATE_I8;
        }
    } else if (one_in(d, 4) && !r->tensor_norms) {
        r->matrices = true;
        r->optimizer_states = 1;
        r->apart = TR_APART_NO_MATRIX;
        r->apart_state_count = 2;
    }
}

static void draw_quantization(draws *d, tr_plan_request *r) {
    if (r->frozen_count > 0 && !r->fp8.enabled && one_in(d, 2)) {
        r->quantization = (tr_quantization)(1 + draw(d, TR_QUANTIZED_Q8_0));
    }
}

tr_plan_request test_draw_request(const test_models *models, uint64_t index) {
    draws d = {.request = index};
    tr_plan_request r = {.model = models->of[draw(&d, TEST_DRAWN_MODELS)],
                         .threads = 1};
    draw_batch(&d, &r);
    draw_placements(&d, &r);
    draw_numbers(&d, &r);
    draw_recomputation(&d, &r);
    r.no_overlap = one_in(&d, 5);
    bool discrete = one_in(&d, 3);
    draw_frozen(&d, &r);
    if (one_in(&d, 50)) { // one micro-batch, everything on the device
        r = (tr_plan_request){.model = r.model,
                              .train_batch_size = r.micro_batch,
                              .micro_batch = r.micro_batch,
                              .accumulation_steps = 1,
                              .mesh = tr_mesh_of_data(1, 0),
                              .compute = r.compute,
                              .threads = 1,
                              .inference = true};
    }
    r.discrete = discrete;
    r.fp8.enabled = r.compute == TR_BF16 && one_in(&d, 2);
    r.fp8.first_blocks_bf16 = draw(&d, 2);
    r.fp8.repack = one_in(&d, 3);
    r.peers = discrete && tr_mesh_ranks(&r.mesh) > 1 && one_in(&d, 2);
    if (!r.inference) {
        draw_states(&d, &r);
        draw_quantization(&d, &r);
    }
    r.passes = one_in(&d, 2) ? 2 : 0;
    r.saved_placement = !r.inference && one_in(&d, 3) ? TR_SPACE_HOST : TR_SPACE_DEVICE;
    r.parts_on_device = one_in(&d, 2);
    r.own_rows = one_in(&d, 2);
    return r;
}
