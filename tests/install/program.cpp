// A program in C++: a run of its own data, a step at a time, its plan as text, and a
// checkpoint with bytes of its own.
#include <tranche.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

static const char text[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [4, 8, 3]}, \"steps\": 5, "
    "\"train_batch_size\": 6, \"optimizer\": {\"type\": \"Adam\"}}";

static tr_status read_rows(void *user, const int64_t *index, int64_t count,
                           void *const *rows, tr_error *) {
    ++*static_cast<int *>(user);
    for (int64_t i = 0; i < count; i++) {
        for (int f = 0; f < 4; f++) {
            static_cast<float *>(rows[0])[4 * i + f] = float((index[i] * 7 + f) % 5);
        }
        static_cast<int32_t *>(rows[1])[i] = int32_t(index[i] % 3);
    }
    return TR_OK;
}

static bool append(void *user, const char *piece, size_t bytes) {
    static_cast<std::string *>(user)->append(piece, bytes);
    return true;
}

static int fail(const tr_error &err) {
    std::fprintf(stderr, "%s\n", err.message);
    return 1;
}

int main() {
    tr_error err = tr_error();
    tr_dataset *data = nullptr;
    tr_run *run = nullptr;
    tr_plan *plan = nullptr;
    tr_engine *engine = nullptr;
    int reads = 0;
    std::string printed;
    tr_dataset_source source = TR_DATASET_SOURCE_INIT;
    source.samples = 30;
    source.tensors = tr_batch_features(4);
    source.classes = 3;
    source.read = read_rows;
    source.user = &reads;
    source.on_calling_thread = true;
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    const tr_sink sink = {append, &printed};
    if (tr_dataset_create_callback(&source, &data, &err) != TR_OK) {
        return fail(err);
    }
    parts.train = data;
    if (tr_run_create(&run, &err) != TR_OK ||
        tr_run_load_text(run, text, &err) != TR_OK ||
        tr_run_set(run, "resume", "never", &err) != TR_OK ||
        tr_run_give(run, &parts, &err) != TR_OK || tr_run_resolve(run, &err) != TR_OK ||
        tr_run_make_plan(run, &plan, &err) != TR_OK ||
        tr_plan_print(plan, &sink, &err) != TR_OK ||
        tr_engine_create(run, plan, &engine, &err) != TR_OK) {
        return fail(err);
    }
    for (int64_t i = 0; i < tr_run_steps(run); i++) {
        tr_step_result result = TR_STEP_RESULT_INIT;
        if (tr_engine_step(engine, &result, &err) != TR_OK) {
            return fail(err);
        }
    }
    tr_save_options options = TR_SAVE_OPTIONS_INIT;
    options.folder = "saved";
    options.bytes = "mine";
    options.byte_count = 4;
    void *bytes = nullptr;
    size_t count = 0;
    if (tr_engine_save_as(engine, &options, &err) != TR_OK ||
        tr_checkpoint_bytes("saved", &bytes, &count, &err) != TR_OK) {
        return fail(err);
    }
    bool good = count == 4 && std::memcmp(bytes, "mine", 4) == 0 && reads > 0 &&
                printed.find("parameters") != std::string::npos;
    tr_checkpoint_bytes_release(bytes);
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    tr_dataset_destroy(data);
    return good ? 0 : 2;
}
