#include "train/guard.h"

#include <math.h>

// A spread below this share of its mean is taken for this: the loss of a run that has
// converged hardly moves.
static const double least_spread = 0.01;

tr_guard tr__guard_begin(void) {
    return (tr_guard){.rate = 1, .warm = -1, .target = -1};
}

const char *tr__spike_name(tr_spike spike) {
    static const char *const names[] = {"", "loss", "grad_norm", "not_finite"};
    return names[spike];
}

static double deviation(const tr_spread_of *of, double least) {
    return fmax(sqrt(of->variance), least);
}

// Weighted so that the first steps make a plain mean.
static void take_in(tr_spread_of *of, double value, int64_t steps, int64_t window) {
    double weight = fmax(1 / (double)(steps + 1), 1 / (double)window);
    double difference = value - of->mean;
    of->mean += weight * difference;
    of->variance = (1 - weight) * (of->variance + weight * difference * difference);
}

static tr_status too_many(const tr_guard_rules *rules, const tr_guard *guard,
                          tr_error *err) {
    return tr_fail(
        err, TR_NUMBERS,
        "spike_guard: %lld spikes of the loss or the gradient norm, more than "
        "spike_guard.limit %lld with one forgiven every %lld steps: look at "
        "the data, lower the learning rate, or raise the limit",
        (long long)guard->spikes, (long long)rules->limit,
        (long long)rules->forgive_steps);
}

static tr_spike find(const tr_guard_rules *rules, const tr_guard *guard, double loss,
                     double norm, double *loss_most, double *norm_most) {
    double floor_of_loss = least_spread * fabs(guard->loss.mean);
    *loss_most =
        guard->loss.mean + rules->threshold * deviation(&guard->loss, floor_of_loss);
    *norm_most =
        guard->norm.mean + rules->threshold * deviation(&guard->norm, least_spread);
    if (guard->steps < rules->after) {
        *loss_most = *norm_most = INFINITY;
    }
    return loss > *loss_most   ? TR_SPIKE_LOSS
           : norm > *norm_most ? TR_SPIKE_NORM
                               : TR_SPIKE_NONE;
}

tr_status tr__guard_look(const tr_guard_rules *rules, tr_guard *guard, double loss,
                         double norm, bool finite, bool searching, tr_spike *spike,
                         tr_error *err) {
    *spike = TR_SPIKE_NONE;
    if (rules->action == TR_GUARD_NONE || (!finite && searching)) {
        return TR_OK;
    }
    guard->pressure = fmax(guard->pressure - 1 / (double)rules->forgive_steps, 0);
    if (finite) {
        double loss_most, norm_most, size = log(fmax(norm, 1e-300));
        *spike = find(rules, guard, loss, size, &loss_most, &norm_most);
        take_in(&guard->loss, fmin(loss, loss_most), guard->steps, rules->window);
        take_in(&guard->norm, fmin(size, norm_most), guard->steps, rules->window);
        guard->steps++;
    } else {
        *spike = TR_SPIKE_NOT_FINITE;
    }
    if (*spike != TR_SPIKE_NONE) {
        guard->spikes++;
        guard->pressure++;
    }
    return guard->pressure > (double)rules->limit ? too_many(rules, guard, err) : TR_OK;
}

double tr__guard_rate(const tr_guard_rules *rules, const tr_guard *guard) {
    bool warming = guard->warm >= 0 && guard->warm < rules->warmup_steps;
    double share =
        warming ? (double)(guard->warm + 1) / (double)(rules->warmup_steps + 1) : 1;
    return guard->rate * share;
}

void tr__guard_updated(tr_guard *guard) {
    guard->warm += guard->warm >= 0;
}

void tr__guard_rolled_back(const tr_guard_rules *rules, int64_t target, int64_t now,
                           tr_guard *guard) {
    guard->rate *= rules->rate_factor;
    guard->warm = 0;
    guard->target = target;
    guard->since = now;
}
