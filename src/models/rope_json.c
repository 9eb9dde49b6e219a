#include "models/rope_json.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static const char *const types[] = {[TR_ROPE_DEFAULT] = "default",
                                    [TR_ROPE_LINEAR] = "linear",
                                    [TR_ROPE_LLAMA3] = "llama3",
                                    [TR_ROPE_YARN] = "yarn"};
enum { TYPES = sizeof types / sizeof *types };

// Numbers of a scaling that has them, by their keys.
typedef struct numbers {
    double factor, low, high, fast, slow, attention, mscale, mscale_all;
    int64_t original;
} numbers;

// YaRN's factor for a context that is `factor` times as long (Peng et al., eq. 22).
static double attention_of(double factor, double scale) {
    return factor <= 1 ? 1 : 0.1 * scale * log(factor) + 1;
}

static double attention_factor(const numbers *n) {
    if (n->attention > 0) {
        return n->attention;
    }
    return n->mscale > 0 && n->mscale_all > 0
               ? attention_of(n->factor, n->mscale) /
                     attention_of(n->factor, n->mscale_all)
               : attention_of(n->factor, 1);
}

static tr_status read_numbers(const tr_model_keys *keys, numbers *n, tr_error *err) {
    const tr_model_field fields[] = {
        {"factor", 1, 1e6, NULL, &n->factor},
        {"low_freq_factor", 1e-6, 1e6, NULL, &n->low},
        {"high_freq_factor", 1e-6, 1e6, NULL, &n->high},
        {"beta_fast", 1e-6, 1e6, NULL, &n->fast},
        {"beta_slow", 1e-6, 1e6, NULL, &n->slow},
        {"attention_factor", 1e-6, 1e6, NULL, &n->attention},
        {"mscale", 0, 1e6, NULL, &n->mscale},
        {"mscale_all_dim", 0, 1e6, NULL, &n->mscale_all},
        {"original_max_position_embeddings", 1, INT_MAX, &n->original, NULL},
    };
    return tr__fields_read(keys, fields, sizeof fields / sizeof *fields, err);
}

// The object that says how positions are scaled, NULL: none does. It may be in either
// form; where both are there, the newer one counts.
static const json_t *scaling_of(const tr_model_keys *keys) {
    const json_t *newer = json_object_get(keys->object, "rope_parameters");
    const json_t *older = json_object_get(keys->object, "rope_scaling");
    return json_is_object(newer) ? newer : json_is_object(older) ? older : NULL;
}

// Neither of them is passed over where it is no object.
static tr_status check_objects(const tr_model_keys *keys, tr_error *err) {
    static const char *const names[] = {"rope_parameters", "rope_scaling"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *given = json_object_get(keys->object, names[i]);
        if (given && !json_is_null(given) && !json_is_object(given)) {
            return tr_fail(err, TR_USAGE, "%s: %s must be an object, or null",
                           keys->origin, names[i]);
        }
    }
    return TR_OK;
}

static tr_status check_whole(const tr_model_keys *keys, tr_error *err) {
    const json_t *part = json_object_get(keys->object, "partial_rotary_factor");
    if (part && !json_is_null(part) && json_number_value(part) != 1) {
        return tr_fail(err, TR_USAGE,
                       "%s: partial_rotary_factor is %g; only 1 is supported: whole "
                       "heads are turned",
                       keys->origin, json_number_value(part));
    }
    return TR_OK;
}

static tr_status check_factors(const tr_model_keys *keys, const numbers *n,
                               tr_rope_scaling scaling, tr_error *err) {
    bool ordered = scaling == TR_ROPE_LLAMA3 ? n->low < n->high
                   : scaling == TR_ROPE_YARN ? n->slow < n->fast
                                             : true;
    if (!json_object_get(keys->object, "factor")) {
        return tr_fail(err, TR_USAGE, "%s: a scaling of type %s needs a factor",
                       keys->origin, types[scaling]);
    }
    return ordered
               ? TR_OK
               : tr_fail(err, TR_USAGE, "%s: %s must be below %s", keys->origin,
                         scaling == TR_ROPE_LLAMA3 ? "low_freq_factor" : "beta_slow",
                         scaling == TR_ROPE_LLAMA3 ? "high_freq_factor" : "beta_fast");
}

static tr_status read_scaling(const tr_model_keys *keys, int64_t positions,
                              tr_rope_options *out, tr_error *err) {
    numbers n = {.low = 1, .high = 4, .fast = 32, .slow = 1, .original = positions};
    const char *name =
        json_object_get(keys->object, "rope_type") ? "rope_type" : "type";
    int type = tr__field_choice(keys, name, types, TYPES, TR_ROPE_DEFAULT, err);
    const json_t *whole = json_object_get(keys->object, "truncate");
    tr_status status = type < 0 ? TR_USAGE : check_whole(keys, err);
    if (status == TR_OK) {
        status = read_numbers(keys, &n, err);
    }
    if (status != TR_OK || type == TR_ROPE_DEFAULT) {
        return status;
    }
    bool yarn = type == TR_ROPE_YARN;
    out->scaling = (tr_rope_scaling)type;
    out->factor = (float)n.factor;
    out->low = (float)(yarn ? n.slow : n.low);
    out->high = (float)(yarn ? n.fast : n.high);
    out->attention = (float)attention_factor(&n);
    out->original = (int)n.original;
    out->truncate = !json_is_false(whole);
    return check_factors(keys, &n, out->scaling, err);
}

tr_status tr__rope_read(const tr_model_keys *keys, int64_t positions,
                        tr_rope_options *out, tr_error *err) {
    const tr_model_field theta = {"rope_theta", 1, 1e15, NULL, &out->theta};
    tr_model_keys inside = {scaling_of(keys), keys->origin};
    *out = (tr_rope_options){.theta = 10000};
    tr_status status = tr__fields_read(keys, &theta, 1, err);
    if (status == TR_OK) {
        status = check_objects(keys, err);
    }
    if (status == TR_OK) {
        status = check_whole(keys, err);
    }
    if (status == TR_OK && inside.object) {
        status = tr__fields_read(&inside, &theta, 1, err);
    }
    return status == TR_OK && inside.object ? read_scaling(&inside, positions, out, err)
                                            : status;
}

// ---- back

// A float in the fewest digits that read back to it.
static json_t *number(float value) {
    return json_real((double)value);
}

static bool set(json_t *to, const char *key, json_t *value) {
    return value && json_object_set_new(to, key, value) == 0;
}

static bool write_scaling(const tr_rope_options *o, json_t *to) {
    bool good = set(to, "rope_type", json_string(types[o->scaling]));
    if (o->scaling == TR_ROPE_DEFAULT) {
        return good;
    }
    good = good && set(to, "factor", number(o->factor));
    if (o->scaling == TR_ROPE_LLAMA3) {
        good = good && set(to, "low_freq_factor", number(o->low)) &&
               set(to, "high_freq_factor", number(o->high));
    } else if (o->scaling == TR_ROPE_YARN) {
        good = good && set(to, "beta_slow", number(o->low)) &&
               set(to, "beta_fast", number(o->high)) &&
               set(to, "attention_factor", number(o->attention)) &&
               set(to, "truncate", json_boolean(o->truncate));
    }
    return o->scaling == TR_ROPE_LINEAR
               ? good
               : good && set(to, "original_max_position_embeddings",
                             json_integer(o->original));
}

bool tr__rope_write(const tr_rope_options *options, json_t *to) {
    json_t *parameters = json_object(), *scaling = json_object();
    bool good = parameters && scaling && write_scaling(options, scaling) &&
                write_scaling(options, parameters) &&
                set(parameters, "rope_theta", json_real(options->theta)) &&
                set(to, "rope_theta", json_real(options->theta));
    bool plain = options->scaling == TR_ROPE_DEFAULT;
    good = good && json_object_set(to, "rope_parameters", parameters) == 0 &&
           json_object_set(to, "rope_scaling", plain ? json_null() : scaling) == 0;
    json_decref(parameters);
    json_decref(scaling);
    return good;
}
