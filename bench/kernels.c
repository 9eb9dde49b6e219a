// What each kernel of a micro-batch takes: every instruction of every program that a
// training step runs, alone, on operands that no cache has. Each is launched several
// times in a row, and a device's own events tell the time, so that no launch is in it.
//
//     kernels RUN.json [--set KEY=VALUE]... [--times N] [--beyond MIB] [--ids N]
//             [--flops F] [--bytes B]
//
//     --times N       launches of each (20)
//     --beyond MIB    operands move on through so much memory beside their own (256)
//     --ids N         ids and targets are below it (256)
//     --flops, --bytes    what the device does at the most, a second: a kernel's share
//     of
//                         the nearer of both limits is in the last column
//
// Prints a row as soon as a kernel has been measured, then the sums of each op, and by
// which algorithms a library has computed products: it gives them numbers, and no
// names.
#include "alone.h"

#include "ops/operand.h"
#include "plan/flow/plan.h"

#include <tranche/run.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS_MAX = 64, PROGRAMS_MAX = 256, OPS_MAX = 256, PRODUCTS_MAX = 512 };

typedef struct options {
    const char *file;
    const char *set[SETS_MAX];
    size_t sets;
    double times, beyond, ids, flops, bytes;
} options;

// A program and how many of a step's micro-batches, over all units, run it.
typedef struct counted {
    const tr_program *program;
    const tr_plan_unit *unit;
    int64_t steps;
} counted;

typedef struct op_sum {
    const char *name;
    double calls, seconds, flops, bytes;
} op_sum;

typedef struct product {
    const tr_instruction *at;
    char said[96];
} product;

typedef struct bench {
    options how;
    alone alone;
    tr_machine machine;
    counted programs[PROGRAMS_MAX];
    int program_count;
    op_sum ops[OPS_MAX];
    int op_count;
    product products[PRODUCTS_MAX];
    int product_count;
} bench;

static _Noreturn void fail(tr_status status, const tr_error *err) {
    fprintf(stderr, "kernels: %s\n", err->message);
    exit(tr_status_exit(status));
}

static void check(tr_status status, const tr_error *err) {
    if (status != TR_OK) {
        fail(status, err);
    }
}

// ---- which programs

static void count_program(bench *b, const tr_plan *plan, const tr_plan_step *step) {
    const tr_program *program = tr__payload_program(step);
    int i = 0;
    if (!program || program->exchange) {
        return;
    }
    while (i < b->program_count && b->programs[i].program != program) {
        i++;
    }
    if (i == PROGRAMS_MAX) {
        return;
    }
    if (i == b->program_count) {
        b->programs[b->program_count++] =
            (counted){program, &plan->units[step->unit], 0};
    }
    b->programs[i].steps++;
}

static void count_programs(bench *b, const tr_plan *plan) {
    const tr_sequence *steps = &plan->sequences[TR_SEQUENCE_TRAIN];
    for (size_t i = 0; i < steps->count; i++) {
        count_program(b, plan, &steps->steps[i]);
    }
}

// ---- what is printed

static const char *role_name(tr_variant role) {
    static const char *const names[TR_VARIANTS] = {"forward",  "forward",   "evaluate",
                                                   "backward", "recompute", "inference",
                                                   "track"};
    return names[role];
}

static void shape_of(const tr_instruction *at, const tr_cost *cost, char *text,
                     size_t size) {
    char shape[TR_SHAPE_TEXT];
    if (cost->rows > 0) {
        snprintf(text, size, "%.0f x %.0f x %.0f", cost->rows, cost->columns,
                 cost->depth);
        return;
    }
    tr_tensor_desc first =
        at->desc.in[0].dtype == TR_NONE ? at->desc.out[0] : at->desc.in[0];
    snprintf(text, size, "%s", tr__shape_text(first.shape, shape));
}

static void add_to_op(bench *b, const char *name, const op_sum *more) {
    int i = 0;
    while (i < b->op_count && strcmp(b->ops[i].name, name) != 0) {
        i++;
    }
    if (i == OPS_MAX) {
        return;
    }
    b->op_count += i == b->op_count;
    op_sum *sum = &b->ops[i];
    sum->name = name;
    sum->calls += more->calls;
    sum->seconds += more->seconds;
    sum->flops += more->flops;
    sum->bytes += more->bytes;
}

static double share_of(const bench *b, const op_sum *sum) {
    double by_flops = b->how.flops > 0 ? sum->flops / b->how.flops : 0;
    double by_bytes = b->how.bytes > 0 ? sum->bytes / b->how.bytes : 0;
    return (by_flops > by_bytes ? by_flops : by_bytes) / sum->seconds;
}

static void print_rates(const bench *b, const op_sum *sum) {
    printf(" %9.2f | %8.2f | %7.1f | ", sum->seconds / sum->calls * 1e6,
           sum->flops / sum->seconds / 1e12, sum->bytes / sum->seconds / 1e9);
    if (b->how.flops > 0 || b->how.bytes > 0) {
        printf("%5.3f |\n", share_of(b, sum));
    } else {
        printf("%5s |\n", "-");
    }
    fflush(stdout);
}

// The last product of the instruction, if its kernel has any.
static void note_product(bench *b, const tr_instruction *at) {
    const tr_backend *backend = b->alone.m.backend;
    product *to = &b->products[b->product_count];
    if (!backend->say_product || b->product_count == PRODUCTS_MAX) {
        return;
    }
    to->at = at;
    backend->say_product(to->said, sizeof to->said);
    b->product_count += to->said[0] != '\0';
}

static void print_products(const bench *b) {
    if (b->product_count > 0) {
        printf("\n| %-34s | %-22s | %s |\n", "kernel", "shape", "its last product");
    }
    for (int i = 0; i < b->product_count; i++) {
        const tr_instruction *at = b->products[i].at;
        tr_cost cost = {0};
        char shape[96];
        at->kernel->cost(&at->desc, &cost);
        shape_of(at, &cost, shape, sizeof shape);
        printf("| %-34s | %-22s | %s |\n", at->kernel->name, shape,
               b->products[i].said);
    }
}

static tr_status measure_program(bench *b, const counted *of, double micro_batches) {
    const tr_program *program = of->program;
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        tr_cost cost = {0};
        char shape[96];
        tr_op_desc desc = tr__desc_alone(at);
        if (at->kernel->cost) {
            at->kernel->cost(&desc, &cost);
        }
        shape_of(at, &cost, shape, sizeof shape);
        double calls = (double)of->steps / micro_batches,
               seconds = alone_seconds(&b->alone, at);
        if (b->alone.m.fault.status != TR_OK) {
            return b->alone.m.fault.status;
        }
        seconds = seconds > 1e-9 ? seconds : 1e-9;
        op_sum sum = {at->desc.op->name, calls, calls * seconds, calls * cost.flops,
                      calls * (cost.bytes + cost.prepare)};
        printf("| %-12s | %-9s | %-34s | %-22s | %5.4g |", of->unit->program->kind,
               role_name(program->variant), at->kernel->name, shape, calls);
        print_rates(b, &sum);
        add_to_op(b, sum.name, &sum);
        note_product(b, at);
    }
    return TR_OK;
}

static int by_seconds(const void *a, const void *b) {
    double x = ((const op_sum *)a)->seconds, y = ((const op_sum *)b)->seconds;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void print_ops(bench *b) {
    op_sum all = {"all", 0, 0, 0, 0};
    qsort(b->ops, (size_t)b->op_count, sizeof *b->ops, by_seconds);
    printf("\n| %-34s | %7s | %9s | %9s | %8s | %7s | %5s |\n", "op, of a micro-batch",
           "calls", "ms", "us", "TFLOP/s", "GB/s", "share");
    for (int i = 0; i <= b->op_count; i++) {
        const op_sum *sum = i < b->op_count ? &b->ops[i] : &all;
        if (sum->calls > 0) {
            printf("| %-34s | %7.4g | %9.3f |", sum->name, sum->calls,
                   sum->seconds * 1e3);
            print_rates(b, sum);
        }
        all.calls += sum->calls;
        all.seconds += sum->seconds;
        all.flops += sum->flops;
        all.bytes += sum->bytes;
    }
}

static void need_all(bench *b) {
    b->alone.times = (int)b->how.times;
    b->alone.ids = (int64_t)b->how.ids;
    for (int p = 0; p < b->program_count; p++) {
        const tr_program *program = b->programs[p].program;
        for (size_t i = 0; i < program->count; i++) {
            alone_need(&b->alone, &program->instructions[i]);
        }
    }
}

static tr_status measure_all(bench *b, tr_error *err) {
    double micro_batches = (double)b->alone.m.request->accumulation_steps;
    need_all(b);
    tr_status status = alone_open(&b->alone, (size_t)b->how.beyond << 20, err);
    if (status == TR_OK) {
        printf("| %-12s | %-9s | %-34s | %-22s | %5s | %9s | %8s | %7s | %5s |\n",
               "unit", "pass", "kernel", "shape", "calls", "us", "TFLOP/s", "GB/s",
               "share");
    }
    for (int i = 0; i < b->program_count && status == TR_OK; i++) {
        status = tr__program_bind(b->programs[i].program, err);
        if (status == TR_OK) {
            status = measure_program(b, &b->programs[i], micro_batches);
        }
    }
    print_ops(b);
    print_products(b);
    if (b->alone.m.fault.status != TR_OK) {
        status = tr_fail(err, b->alone.m.fault.status, "%s", b->alone.m.fault.message);
    }
    alone_close(&b->alone);
    return status;
}

// ---- the command line

static bool number_option(options *how, const char *name, const char *value) {
    const struct {
        const char *name;
        double *to;
    } numbers[] = {{"--times", &how->times},
                   {"--beyond", &how->beyond},
                   {"--ids", &how->ids},
                   {"--flops", &how->flops},
                   {"--bytes", &how->bytes}};
    char *end = NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].to = strtod(value, &end);
            return end != value && *end == '\0' && *numbers[i].to >= 0;
        }
    }
    return false;
}

static bool read_options(options *how, int argc, char **argv) {
    *how = (options){.times = 20, .beyond = 256, .ids = 256};
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--set") == 0 && more && how->sets < SETS_MAX) {
            how->set[how->sets++] = argv[++i];
        } else if (argv[i][0] != '-' && !how->file) {
            how->file = argv[i];
        } else if (more && number_option(how, argv[i], argv[i + 1])) {
            i++;
        } else {
            return false;
        }
    }
    return how->file && how->times >= 1 && how->ids >= 1;
}

static tr_status open_run(const options *how, tr_run **run, tr_plan **plan,
                          tr_error *err) {
    tr_status status = tr_run_create(run, err);
    if (status == TR_OK) {
        status = tr_run_load_file(*run, how->file, err);
    }
    for (size_t i = 0; i < how->sets && status == TR_OK; i++) {
        status = tr_run_assign(*run, how->set[i], err);
    }
    if (status == TR_OK) {
        status = tr_run_resolve(*run, err);
    }
    return status == TR_OK ? tr_run_make_plan(*run, plan, err) : status;
}

int main(int argc, char **argv) {
    static bench b; // large
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_error err = {0};
    if (!read_options(&b.how, argc, argv)) {
        fprintf(stderr, "usage: kernels RUN.json [--set KEY=VALUE]... [--times N] "
                        "[--beyond MIB] [--ids N] [--flops F] [--bytes B]\n");
        return tr_status_exit(TR_USAGE);
    }
    check(open_run(&b.how, &run, &plan, &err), &err);
    const tr_backend *backend = tr__backend(plan->request.backend);
    b.alone.m = (tr_measuring){.request = &plan->request,
                               .backend = backend,
                               .machine = &b.machine,
                               .plans = {plan},
                               .plan_count = 1,
                               .err = &err};
    count_programs(&b, plan);
    int before = backend->begin(plan->target.workers);
    tr_status status = measure_all(&b, &err);
    backend->end(before);
    check(status, &err);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    return 0;
}
