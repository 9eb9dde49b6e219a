// Schedules worked out by hand, and what must hold for all of them.
#include "plan/flow/wave.h"
#include "sim/helper.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const double nearly = 1e-9;

typedef struct expected {
    double seconds, compute, exposed, slowed;
} expected;

static void assert_times(const tr_plan_request *request, const char *more,
                         expected wanted) {
    tr_plan *plan = test_plan(request);
    tr_machine *machine = test_clockwork(more);
    tr_simulated *simulated = test_simulate(plan, machine);
    const tr_simulation *r = tr_simulated_result(simulated);
    assert_near(r->seconds, wanted.seconds, nearly);
    assert_near(r->compute_seconds, wanted.compute, nearly);
    assert_near(r->exposed_seconds, wanted.exposed, nearly);
    assert_near(r->slowed_seconds, wanted.slowed, nearly);
    tr_simulated_destroy(simulated);
    tr_machine_close(machine);
    tr_plan_destroy(plan);
}

// Three linear layers: forwards of 1, 1 and 0 kernels (the last has the loss),
// backwards of 2, 3 and 1, and a clear, a norm and three updates of one each: 13 s.
static tr_plan_request layers(const tr_model *model, int64_t ranks, int stage) {
    tr_plan_request request = test_request(model, 2, 1);
    request.mesh = tr_mesh_of_data(ranks, 0);
    request.train_batch_size *= ranks;
    request.stage = stage;
    return request;
}

static void test_one_rank(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = layers(model, 1, 0);
    assert_times(&request, "", (expected){14, 14, 0, 0});
    // A second micro-batch: eight kernels more.
    request.accumulation_steps = 2;
    request.train_batch_size = 4;
    assert_times(&request, "", (expected){22, 22, 0, 0});
    tr_model_destroy(model);
}

// Backwards end at 4, 7 and 9. Each has its gradient reduced and gathered: 4 to 8, 8 to
// 12, 12 to 16. Norm and its sum to 18, record
// to 20, updates to 23.
static void test_stage_0(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = layers(model, 2, 0);
    assert_times(&request, TEST_LINK, (expected){23, 14, 9, 0});
    // Where both take half of each other's speed, the backward of the second layer
    // needs 6 s from 4 on, that of the first 4 s; 7 s of messages are left then.
    assert_times(&request,
                 ", \"link\": {\"exchange\": \"nccl\", \"interference\": 0.5, "
                 "\"inside\": {\"bytes\": 1e30, \"latency\": 2}}",
                 (expected){28, 14, 9, 5});
    tr_model_destroy(model);
}

// As above, but a kernel's time varies by a tenth of it. The first reduction, at 4,
// waits for the slower of two ranks, which is 2 tenths apart after four kernels;
// meanwhile the backward goes on. All later ones are behind it, until 16. Then ranks
// are together: the record waits once more, after two kernels.
static void test_spread(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = layers(model, 2, 0);
    double late = 0.1 * tr__reached_slowest(2);
    tr_plan *plan = test_plan(&request);
    tr_machine *machine = test_clockwork(TEST_LINK ", \"reached\": {\"spread\": 0.1}");
    tr_simulated *simulated = test_simulate(plan, machine);
    const tr_simulation *r = tr_simulated_result(simulated);
    assert_near(r->seconds, 23 + (2 + sqrt(2)) * late, nearly);
    assert_near(r->exposed_seconds, 9 + 2 * late, nearly);
    assert_near(r->slower_seconds, sqrt(2) * late, nearly);
    assert_near(r->compute_seconds, 14, nearly);
    tr_simulated_destroy(simulated);
    tr_machine_close(machine);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// Gathers 1 to 3, 3 to 5, 5 to 7, 7 to 9 are each waited for: the forwards run 3 to 4
// and 5 to 6, the backwards 7 to 8, 9 to 12 and 12 to 14. Reductions 9 to 11, 12 to 14,
// 14 to 16; norm and its sum to 18, record to 20, updates to 23.
static void test_stage_3(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = layers(model, 2, 3);
    assert_times(&request, TEST_LINK, (expected){23, 14, 9, 0});
    tr_model_destroy(model);
}

// Eight messages with nothing beside them.
static void test_no_overlap(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = layers(model, 2, 3);
    request.no_overlap = true;
    assert_times(&request, TEST_LINK, (expected){30, 14, 16, 0});
    tr_model_destroy(model);
}

// The message of a tree over four ranks takes two times as long.
static void test_four_ranks(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = layers(model, 4, 3);
    request.no_overlap = true;
    assert_times(&request, TEST_LINK, (expected){46, 14, 32, 0});
    tr_model_destroy(model);
}

// ---- offload

#define TEST_COPY(interference)                                                        \
    ", \"host\": {\"bytes\": 1e30}, \"copy\": {\"interference\": " interference        \
    ", \"to_device\": {\"bytes\": 1e30, \"latency\": 2}, "                             \
    "\"to_host\": {\"bytes\": 1e30, \"latency\": 2}}"

static void assert_offloads(const tr_plan_request *request, const char *more,
                            expected wanted) {
    tr_plan *plan = test_plan(request);
    tr_machine *machine = test_clockwork(more);
    tr_simulated *simulated = test_simulate(plan, machine);
    const tr_simulation *r = tr_simulated_result(simulated);
    assert_near(r->seconds, wanted.seconds, nearly);
    assert_near(r->compute_seconds, wanted.compute, nearly);
    assert_near(r->exposed_copy_seconds, wanted.exposed, nearly);
    assert_near(r->exposed_seconds, 0, nearly);
    assert_near(r->slowed_seconds, wanted.slowed, nearly);
    assert_true(plan->traffic.device_host > 0);
    assert_int_equal(r->copied_bytes, plan->traffic.device_host);
    tr_simulated_destroy(simulated);
    tr_machine_close(machine);
    tr_plan_destroy(plan);
}

// What was updated is fetched while the step begins; gradients leave behind the
// backward. Updates, on the host, take no time here; squares are added up on the
// device.
static void test_offload(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = layers(model, 1, 0);
    request.optimizer_placement = TR_SPACE_HOST;
    assert_offloads(&request, TEST_COPY("0"), (expected){16, 10, 6, 0});
    assert_offloads(&request, TEST_COPY("0.5"), (expected){22, 10, 6, 6});
    request.param_placement = TR_SPACE_HOST;
    assert_offloads(&request, TEST_COPY("0"), (expected){17, 10, 7, 0});
    // Clear to 1; layers fetched to 3, 5, 7 and 9, of which 5 s are waited for; norm
    // and updates are here.
    request.optimizer_placement = TR_SPACE_DEVICE;
    assert_offloads(&request, TEST_COPY("0"), (expected){19, 14, 5, 0});
    tr_model_destroy(model);
}

static tr_machine *open_machine(const char *path) {
    tr_machine *machine = NULL;
    tr_error err = {0};
    if (tr_machine_open(path, &machine, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return machine;
}

// Seconds of a span beside those of a verb.
static double beside_verb(const tr_simulated *s, const tr_span *span, tr_verb verb) {
    double seconds = 0;
    for (size_t i = 0; i < s->span_count; i++) {
        const tr_span *other = &s->spans[i];
        double begin = span->begin > other->begin ? span->begin : other->begin;
        double end = span->end < other->end ? span->end : other->end;
        seconds += other->verb == verb && end > begin ? end - begin : 0;
    }
    return seconds;
}

static double beside(const tr_simulated *s, tr_verb a, tr_verb b) {
    double seconds = 0;
    for (size_t i = 0; i < s->span_count; i++) {
        seconds += s->spans[i].verb == a ? beside_verb(s, &s->spans[i], b) : 0;
    }
    return seconds;
}

// On a machine whose host has processors of its own, the update that the step before
// has left goes on beside the forwards; where it is not left, and where the host's
// processors are the device, it is waited for whole.
static void test_update_beside_forwards(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_machine *machine =
        open_machine(TR_SOURCE_DIR "/examples/machines/dgx-h100.json");
    tr_plan_request request = test_request(model, 8, 64);
    request.optimizer_placement = TR_SPACE_HOST;
    machine->host_rate /= 500; // as much work as a larger model's
    machine->launch = 0;
    tr_plan *plan = test_plan(&request);
    tr_simulated *left = test_simulate(plan, machine);
    const tr_simulation *with = tr_simulated_result(left);
    assert_true(with->host_seconds > 0);
    assert_true(beside(left, TR_VERB_update, TR_VERB_forward) > 0);
    assert_true(with->exposed_host_seconds < with->host_seconds);
    machine->host_is_device = true;
    tr_simulated *in_order = test_simulate(plan, machine);
    const tr_simulation *without = tr_simulated_result(in_order);
    assert_true(beside(in_order, TR_VERB_update, TR_VERB_forward) == 0);
    assert_true(without->host_seconds == 0);
    assert_near(without->compute_seconds, with->compute_seconds + with->host_seconds,
                nearly);
    assert_true(with->seconds < without->seconds);
    tr_simulated_destroy(left);
    tr_simulated_destroy(in_order);
    tr_machine_close(machine);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// An update here of parameters that live on the host takes the time of their way.
static void test_reach(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = layers(model, 1, 0);
    request.param_placement = TR_SPACE_HOST;
    tr_plan *plan = test_plan(&request);
    tr_machine *machine =
        test_clockwork(", \"host\": {\"bytes\": 1e30}, \"copy\": {\"to_device\": "
                       "{\"bytes\": 100}, \"to_host\": {\"bytes\": 50}}");
    tr_simulated *simulated = test_simulate(plan, machine);
    double each = 0; // what lies between tensors is updated, too
    for (size_t f = 0; f < plan->flat_count; f++) {
        each += 4 * (double)plan->flats[f].count;
    }
    assert_true(each >= 4 * (double)tr_plan_parameters(plan));
    assert_int_equal(plan->traffic.reached, 2 * each);
    assert_near(tr_simulated_result(simulated)->compute_seconds,
                14 + each / 100 + each / 50, nearly);
    tr_simulated_destroy(simulated);
    tr_machine_close(machine);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// The state on NVMe, in pieces of one flat each. Clear to 1; reads of the three flats'
// parameters to 2, 3 and 4; two are waited for, to be fetched before the first forward;
// forwards from 3 on, backwards to 11. Each of the update's three pieces reads
// parameters and two states, 1 s each, all nine before the first of nine writes of 3 s.
static void test_nvme_schedule(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = layers(model, 1, 0);
    request.optimizer_placement = TR_SPACE_NVME;
    tr_plan *plan = test_plan(&request);
    tr_machine *machine = test_clockwork(
        ", \"host\": {\"bytes\": 1e30}, \"copy\": {\"to_device\": {\"bytes\": 1e30}, "
        "\"to_host\": {\"bytes\": 1e30}}, \"nvme\": {\"read\": {\"bytes\": 1e30, "
        "\"latency\": 1}, \"write\": {\"bytes\": 1e30, \"latency\": 3}}");
    tr_simulated *simulated = test_simulate(plan, machine);
    const tr_simulation *r = tr_simulated_result(simulated);
    assert_near(r->compute_seconds, 10, nearly);
    assert_near(r->nvme_seconds, 3 + 9 + 27, nearly);
    assert_near(r->exposed_nvme_seconds, 2 + 9 + 27, nearly);
    assert_near(r->seconds, 12 + 9 + 27, nearly);
    tr_simulated_destroy(simulated);
    tr_machine_close(machine);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// Everything on NVMe: the walk's time is what is computed and what is waited for, each
// thing that moves is counted once, and slower reads never make the step shorter.
static void test_nvme(void **state) {
    (void)state;
    static const char format[] =
        ", \"host\": {\"bytes\": 1e30}, \"copy\": {\"to_device\": {\"bytes\": 1e30, "
        "\"latency\": 2}, \"to_host\": {\"bytes\": 1e30, \"latency\": 2}}, \"nvme\": "
        "{\"interference\": %g, \"read\": {\"bytes\": 1e30, \"latency\": %g}, "
        "\"write\": {\"bytes\": 1e30, \"latency\": 3}}";
    tr_model *model = test_model_mlp();
    tr_plan_request request = layers(model, 1, 0);
    request.optimizer_placement = request.param_placement = request.grad_placement =
        TR_SPACE_NVME;
    tr_plan *plan = test_plan(&request);
    double before = 0;
    for (int latency = 0; latency <= 8; latency += 2) {
        for (int slowed = 0; slowed < 2; slowed++) {
            char more[512];
            snprintf(more, sizeof more, format, slowed * 0.5, (double)latency);
            tr_machine *machine = test_clockwork(more);
            tr_simulated *simulated = test_simulate(plan, machine);
            const tr_simulation *r = tr_simulated_result(simulated);
            int64_t reads = simulated->verb_steps[TR_VERB_read];
            int64_t writes = simulated->verb_steps[TR_VERB_write];
            double waited =
                r->exposed_seconds + r->exposed_copy_seconds + r->exposed_nvme_seconds;
            assert_true(reads > 0 && writes > 0);
            assert_int_equal(r->stored_bytes, plan->traffic.nvme);
            assert_near(r->seconds, r->compute_seconds + r->slowed_seconds + waited,
                        nearly);
            assert_true(r->nvme_seconds >=
                        (double)(reads * latency + 3 * writes) - 1e-9);
            assert_true(slowed || r->slowed_seconds < 1e-9);
            assert_true(r->seconds >= before);
            before = slowed ? before : r->seconds;
            tr_simulated_destroy(simulated);
            tr_machine_close(machine);
        }
    }
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void assert_refused(const tr_plan *plan, const tr_machine *machine,
                           const char *key) {
    tr_simulated *simulated = NULL;
    tr_error err = {0};
    assert_int_equal(tr_simulate(plan, machine, &simulated, &err), TR_USAGE);
    assert_non_null(strstr(err.message, key));
    assert_null(simulated);
}

static void test_offload_refusals(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = layers(model, 1, 0);
    request.optimizer_placement = TR_SPACE_HOST;
    tr_plan *plan = test_plan(&request);
    tr_machine *machine = test_clockwork("");
    assert_refused(plan, machine, "copy.to_device.bytes");
    machine->way[TR_WAY_TO_DEVICE].rate = 1;
    assert_refused(plan, machine, "copy.to_host.bytes");
    machine->way[TR_WAY_TO_HOST].rate = 1;
    assert_refused(plan, machine, "host.bytes");
    tr_plan_destroy(plan);
    request.optimizer_placement = TR_SPACE_NVME;
    plan = test_plan(&request);
    assert_refused(plan, machine, "nvme.read.bytes");
    machine->way[TR_WAY_NVME_READ].rate = 1;
    assert_refused(plan, machine, "nvme.write.bytes");
    tr_machine_close(machine);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// ---- messages by their bytes

static double transfer_seconds(const char *link, int64_t ranks, tr_transfer transfer) {
    tr_machine *machine = test_clockwork(link);
    tr_share share = tr__machine_share(machine, ranks, 0);
    transfer.members = transfer.members ? transfer.members : ranks;
    transfer.stride = transfer.stride ? transfer.stride : 1;
    double seconds = tr__transfer_seconds(&share, &transfer);
    tr_machine_close(machine);
    return seconds;
}

static const char direct[] = ", \"link\": {\"inside\": {\"bytes\": 1000}, "
                             "\"between\": {\"bytes\": 100}}";
static const char late[] = ", \"link\": {\"inside\": {\"bytes\": 1000, "
                           "\"latency\": 8}}";
static const char tree[] = ", \"link\": {\"exchange\": \"nccl\", "
                           "\"inside\": {\"bytes\": 1000}, "
                           "\"between\": {\"bytes\": 100}}";

// 8 ranks, 4 on a node; 250 elements of 4 bytes each: 1,000 bytes to 3 ranks inside and
// to 4 between.
static void test_exchanges(void **state) {
    (void)state;
    tr_transfer even = {
        .kind = TR_COMM_GATHER, .count = 2000, .shard = 250, .bytes = 4};
    assert_near(transfer_seconds(direct, 8, even), 3 + 40, nearly);
    even.kind = TR_COMM_REDUCE;
    assert_near(transfer_seconds(direct, 8, even), 3 + 40, nearly);
    // 8,000 bytes in all: a quarter of it between, half of that from the other node;
    // three quarters inside.
    assert_near(transfer_seconds(tree, 8, even), 10, nearly);
    assert_near(transfer_seconds(tree, 4, even), 6, nearly);
    // By nodes: 1,000 bytes to the other node, and for each of the two to 3 ranks
    // inside.
    tr_transfer by_nodes = even;
    by_nodes.near = by_nodes.node_ranks = 4;
    assert_near(transfer_seconds(direct, 8, by_nodes), 10 + 2 * 3, nearly);
    by_nodes.kind = TR_COMM_GATHER;
    assert_near(transfer_seconds(direct, 8, by_nodes), 10 + 2 * 3, nearly);
    // Sums of nodes go 2 MiB of each part at a time: in three slices, each of which
    // waits for its first messages, and then for a quarter of every latency.
    static const char slow[] = ", \"link\": {\"inside\": {\"bytes\": 1e30}, "
                               "\"between\": {\"bytes\": 1e30, \"latency\": 8}}";
    tr_transfer slices = by_nodes;
    slices.kind = TR_COMM_REDUCE;
    slices.shard = 3 << 19;
    slices.count = 8 * slices.shard;
    assert_near(transfer_seconds(slow, 8, slices), 3 * (8 + 8 * 2), nearly);
}

static const char shared[] = ", \"link\": {\"inside\": {\"bytes\": 1000}, \"between\": "
                             "{\"bytes\": 100, \"shared\": true}}";

static void test_exchanges_around_a_ring(void **state) {
    (void)state;
    tr_transfer ring = {.kind = TR_COMM_GATHER,
                        .count = 2000,
                        .shard = 250,
                        .bytes = 4,
                        .algorithm = TR_EXCHANGE_RING};
    // 1,000 bytes seven times over the slowest link; alone, it has the rate of four.
    assert_near(transfer_seconds(direct, 8, ring), 70, nearly);
    assert_near(transfer_seconds(shared, 8, ring), 17.5, nearly);
    ring.kind = TR_COMM_REDUCE;
    assert_near(transfer_seconds(shared, 8, ring), 17.5, nearly);
    // On one node; and where every message is late, they wait for each other.
    assert_near(transfer_seconds(direct, 4, ring), 3, nearly);
    ring.members = 4;
    assert_near(transfer_seconds(late, 4, ring), 3 * (8 + 1), nearly);
    // 16 chunks of a part are sent on before all of it is there: three times 16, each a
    // quarter of 8. A sum goes around with two of them at a time.
    static const char quick[] = ", \"link\": {\"inside\": {\"bytes\": 1e30, "
                                "\"latency\": 8}}";
    ring.kind = TR_COMM_GATHER;
    ring.shard = 1 << 20;
    ring.count = 1 << 22;
    assert_near(transfer_seconds(quick, 4, ring), 8 + 3 * 16 * 2, nearly);
    ring.kind = TR_COMM_REDUCE;
    assert_near(transfer_seconds(quick, 4, ring), 8 * 3 * 8, nearly);
}

static void test_exchanges_along_a_tree(void **state) {
    (void)state;
    tr_transfer tree_of_8 = {.kind = TR_COMM_GATHER,
                             .count = 2000,
                             .shard = 250,
                             .bytes = 4,
                             .algorithm = TR_EXCHANGE_TREE};
    // 1, 2 and 4 parts of 1,000 bytes, of some rank to another node; or on one.
    assert_near(transfer_seconds(direct, 8, tree_of_8), 70, nearly);
    tree_of_8.members = 4;
    assert_near(transfer_seconds(late, 4, tree_of_8), 8 + 1 + 8 + 2, nearly);
    tree_of_8.members = 3; // the second round has one part
    assert_near(transfer_seconds(late, 4, tree_of_8), 8 + 1 + 8 + 1, nearly);
    tree_of_8.kind = TR_COMM_REDUCE;
    assert_near(transfer_seconds(late, 4, tree_of_8), 8 + 1 + 8 + 1, nearly);
}

static void test_exchanges_of_some(void **state) {
    (void)state;
    // Shorter than a shard: the first rank has it all.
    tr_transfer small = {
        .kind = TR_COMM_GATHER, .count = 250, .shard = 1024, .bytes = 4};
    assert_near(transfer_seconds(direct, 4, small), 3, nearly);
    // Four messages are under way at a time: each of three waits two seconds, once
    // eight have gone by.
    assert_near(transfer_seconds(late, 4, small), 8 + 6, nearly);
    // Of every second rank: 2 of 4 are on a node; of every fourth, 1 of 2.
    tr_transfer apart = {.kind = TR_COMM_GATHER,
                         .count = 1000,
                         .shard = 250,
                         .bytes = 4,
                         .members = 4,
                         .stride = 2};
    assert_near(transfer_seconds(direct, 8, apart), 1 + 20, nearly);
    apart.count = 500;
    apart.members = 2;
    apart.stride = 4;
    assert_near(transfer_seconds(direct, 8, apart), 10, nearly);
    assert_near(transfer_seconds(tree, 8, apart), 10, nearly);
}

static void test_exchanges_by_the_host(void **state) {
    (void)state;
    // By way of the host's memory: 1,000 bytes out and 3,000 in, or all out and 1,000
    // in; the messages take less.
    static const char ways[] = ", \"link\": {\"inside\": {\"bytes\": 1000}}, "
                               "\"copy\": {\"to_host\": {\"bytes\": 10}, "
                               "\"to_device\": {\"bytes\": 100}}";
    tr_transfer away = {
        .kind = TR_COMM_GATHER, .count = 1000, .shard = 250, .bytes = 4, .away = true};
    assert_near(transfer_seconds(ways, 4, away), 100 + 30, nearly);
    away.kind = TR_COMM_REDUCE;
    assert_near(transfer_seconds(ways, 4, away), 400 + 10, nearly);
    away.away = false;
    assert_near(transfer_seconds(ways, 4, away), 3, nearly);
    // Nothing to send.
    tr_transfer none = {.kind = TR_COMM_GATHER, .bytes = 4};
    assert_near(transfer_seconds(direct, 8, none), 0, nearly);
}

// ---- what holds for all

enum { PLANS = 8 };

static tr_plan_request some_request(const tr_model *model, int index) {
    tr_plan_request request = test_request(model, 1, 4);
    request.mesh = tr_mesh_of_data(index % 2 ? 3 : 6, 0);
    request.train_batch_size *= tr__data_ranks(&request);
    request.stage = index / 2;
    request.wave = index % 3 ? 2 : 4;
    request.recomputed_units = index % 3;
    request.reproducible = index == 5;
    request.sums = index == 4 ? TR_BF16 : TR_NONE;
    request.node_ranks = 3;
    request.hierarchical = index % 4 == 0;
    request.algorithm = (tr_exchange_algorithm)(index % TR_EXCHANGE_ALGORITHMS);
    return request;
}

static double seconds_on(const tr_plan *plan, const char *text) {
    tr_machine *machine = test_machine(text);
    tr_simulated *simulated = test_simulate(plan, machine);
    double seconds = tr_simulated_result(simulated)->seconds;
    tr_simulated_destroy(simulated);
    tr_machine_close(machine);
    return seconds;
}

// One figure of the machine made better or worse never makes the step go the other way.
static void test_better_is_faster(void **state) {
    (void)state;
    static const char format[] =
        "{\"name\": \"m\", \"ranks_per_node\": 3, \"compute\": {\"flops\": %g, "
        "\"bytes\": %g, \"launch\": %g}, \"link\": {\"exchange\": \"%s\", "
        "\"interference\": %g, \"inside\": {\"bytes\": %g, \"latency\": %g}, "
        "\"between\": {\"bytes\": %g, \"latency\": %g}}}";
    enum { FIGURES = 8, TEXT_MAX = 512 };
    // flops, bytes, launch, interference, inside, its latency, between, its latency
    static const double usual[FIGURES] = {1e9, 1e9, 1e-6, 0.25, 1e8, 2e-6, 1e7, 5e-6};
    static const double better[FIGURES] = {2, 2, 0.5, 0.5, 2, 0.5, 2, 0.5};
    static const char *const exchanges[] = {"direct", "nccl"};
    tr_model *model = test_model_small_gpt2(0);
    for (int p = 0; p < PLANS; p++) {
        tr_plan_request request = some_request(model, p);
        tr_plan *plan = test_plan(&request);
        for (int e = 0; e < 2; e++) {
            double base = 0;
            for (int f = -1; f < FIGURES; f++) {
                double v[FIGURES];
                char text[TEXT_MAX];
                memcpy(v, usual, sizeof v);
                if (f >= 0) {
                    v[f] *= better[f];
                }
                snprintf(text, sizeof text, format, v[0], v[1], v[2], exchanges[e],
                         v[3], v[4], v[5], v[6], v[7]);
                double seconds = seconds_on(plan, text);
                base = f < 0 ? seconds : base;
                assert_true(seconds <= base * (1 + 1e-12));
            }
        }
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

// Of all ranks' parts of the one wave tensor of a segment, in words of 8 bytes.
static int64_t parts_bytes(const tr_plan *plan, const tr_plan_step *step) {
    int64_t parts =
        tr__wave_parts(plan, TR_SEQUENCE_TRAIN) * tr_mesh_ranks(&plan->request.mesh);
    tr_wave_segment of = {step->unit, step->segment, step->backward};
    tr_wave_tensor tensor, another;
    size_t next = 0;
    assert_true(tr__wave_next(plan, of, &next, &tensor));
    assert_false(tr__wave_next(plan, of, &next, &another));
    return (tensor.bytes + 7) / 8 * 8 * parts;
}

// Each element of a gather goes from one rank to W - 1; of a reduction, from W - 1 to
// one: over all ranks, both are the whole times W - 1.
static double sent_by_all(const tr_plan *plan) {
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    double sums = (double)tr_dtype_bytes(plan->request.sums), bytes = 0;
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        const tr_exchange *exchange = &step->payload.exchange;
        if (step->shape != TR_STEP_IS_EXCHANGE) {
            continue;
        }
        if (exchange->part == TR_PART_WAVE) {
            bytes += (double)parts_bytes(plan, step);
        } else if (exchange->part == TR_PART_STATISTICS) {
            bytes += 8 * (double)(plan->statistics.doubles *
                                  tr_mesh_ranks(&plan->request.mesh));
        } else if (exchange->part == TR_PART_PARAM) {
            bytes += 4 * (double)plan->flats[step->unit].count;
        } else {
            bytes += sums * (double)plan->flats[step->unit].count;
        }
    }
    return bytes * (double)(tr_mesh_ranks(&plan->request.mesh) - 1);
}

// What all ranks of a plan send to other nodes.
static double sent_between(tr_plan_request one) {
    double bytes = 0;
    int64_t ranks = tr__data_ranks(&one);
    for (int64_t rank = 0; rank < ranks; rank++) {
        one.mesh = tr_mesh_of_data(ranks, rank);
        tr_plan *plan = test_plan(&one);
        bytes += (double)plan->traffic.between;
        tr_plan_destroy(plan);
    }
    return bytes;
}

// By nodes, every part comes to another node once, and not to each of its ranks.
static void test_between_nodes(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    for (int index = 0; index < PLANS; index += 2) {
        tr_plan_request request = some_request(model, index);
        request.algorithm = TR_EXCHANGE_AUTO;
        request.hierarchical = true;
        double by_nodes = sent_between(request);
        request.hierarchical = false;
        assert_true(by_nodes > 0);
        assert_near(sent_between(request), 3 * by_nodes, 0);
        request.node_ranks = 0;
        assert_near(sent_between(request), 0, 0);
    }
    tr_model_destroy(model);
}

// What each rank's simulation sends is what its plan says, and in all what must be
// sent.
static void assert_conserved(const tr_plan_request *request) {
    tr_machine *machine = test_clockwork(TEST_LINK);
    tr_plan_request one = *request;
    double sent = 0, wanted = 0;
    int64_t ranks = tr__data_ranks(&one);
    for (int64_t rank = 0; rank < ranks; rank++) {
        one.mesh = tr_mesh_of_data(ranks, rank);
        tr_plan *plan = test_plan(&one);
        machine->ranks_per_node = ranks;
        tr_simulated *simulated = test_simulate(plan, machine);
        const tr_simulation *r = tr_simulated_result(simulated);
        assert_int_equal(r->gather_bytes, plan->traffic.gather);
        assert_int_equal(r->reduce_bytes, plan->traffic.reduce);
        assert_near(r->flops, tr_plan_flops(plan), r->flops * nearly);
        sent += (double)(r->gather_bytes + r->reduce_bytes);
        wanted = sent_by_all(plan);
        tr_simulated_destroy(simulated);
        tr_plan_destroy(plan);
    }
    assert_near(sent, wanted, 0.5);
    tr_machine_close(machine);
}

static void test_traffic(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0.1);
    for (int p = 0; p < PLANS; p++) {
        tr_plan_request request = some_request(model, p);
        assert_conserved(&request);
    }
    tr_plan_request request = test_request(&test_model_centered, 2, 2);
    request.mesh = tr_mesh_of_data(3, 0);
    request.train_batch_size *= 3;
    for (request.stage = 0; request.stage <= 3; request.stage++) {
        assert_conserved(&request);
    }
    tr_model_destroy(model);
}

// Many more messages than may be queued: the walk goes on, and none is lost.
static void test_full_queue(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 1, 200);
    request.mesh = tr_mesh_of_data(2, 0);
    request.train_batch_size *= 2;
    request.stage = 2;
    tr_plan *plan = test_plan(&request);
    tr_machine *machine = test_clockwork(TEST_LINK);
    machine->launch = 0;
    tr_simulated *simulated = test_simulate(plan, machine);
    const tr_simulation *r = tr_simulated_result(simulated);
    int64_t messages =
        simulated->verb_steps[TR_VERB_gather] + simulated->verb_steps[TR_VERB_reduce];
    assert_true(messages > TR_COMM_QUEUE);
    assert_near(r->seconds, 2 * (double)messages, nearly);
    assert_near(r->communication_seconds, r->seconds, nearly);
    assert_int_equal(r->reduce_bytes, plan->traffic.reduce);
    tr_simulated_destroy(simulated);
    tr_machine_close(machine);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void test_refusals(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = layers(model, 2, 0);
    tr_plan *plan = test_plan(&request);
    tr_machine *machine = test_clockwork("");
    tr_simulated *simulated = NULL;
    tr_error err = {0};
    assert_int_equal(tr_simulate(plan, machine, &simulated, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "link.inside.bytes"));
    machine->ranks_per_node = 1;
    err = (tr_error){0};
    assert_int_equal(tr_simulate(plan, machine, &simulated, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "link.between.bytes"));
    tr_plan_destroy(plan);
    request = layers(model, 1, 0);
    request.inference = true;
    plan = test_plan(&request);
    err = (tr_error){0};
    assert_int_equal(tr_simulate(plan, machine, &simulated, &err), TR_USAGE);
    assert_null(simulated);
    tr_plan_destroy(plan);
    tr_machine_close(machine);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_stage_0),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_stage_3),
        cmocka_unit_test(test_no_overlap),
        cmocka_unit_test(test_four_ranks),
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_exchanges_around_a_ring),
        cmocka_unit_test(test_exchanges_along_a_tree),
        cmocka_unit_test(test_exchanges_of_some),
        cmocka_unit_test(test_exchanges_by_the_host),
        cmocka_unit_test(test_better_is_faster),
        cmocka_unit_test(test_traffic),
        cmocka_unit_test(test_between_nodes),
        cmocka_unit_test(test_full_queue),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_nvme),
        cmocka_unit_test(test_nvme_schedule),
        cmocka_unit_test(test_offload),
        cmocka_unit_test(test_reach),
        cmocka_unit_test(test_update_beside_forwards),
        cmocka_unit_test(test_offload_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
