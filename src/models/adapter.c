#include "models/adapter.h"

#include "base/hub.h"
#include "base/memory.h"
#include "files/safetensors/adapter.h"
#include "files/safetensors/json.h"
#include "models/fields.h"
#include "models/units.h"

#include <limits.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { RANK_MOST = 1 << 16, TRAINED_OWN = 3, PATTERN_MOST = 512 };

struct tr_adapter_config {
    tr_adapter adapter; // first: what the graph has is this
    double alpha;
    bool rslora;
    json_t *targets; // a list of texts, or one text: a regular expression
    regex_t regex;
    bool has_regex;
    json_t *saved;        // modules_to_save: a list of texts; NULL: none
    char **trained;       // patterns, the last one NULL
    size_t trained_count; // beside it
};

static const char all_linear[] = "all-linear";

// ---- which layers

// Is the module of this name, or the last part of its name this?
static bool ends_with(const char *module, const char *name) {
    size_t length = strlen(module), tail = strlen(name);
    return length >= tail && strcmp(module + length - tail, name) == 0 &&
           (length == tail || module[length - tail - 1] == '.');
}

// The output layer is none of all linear ones, as PEFT has it.
static bool is_output(const char *module) {
    return ends_with(module, "lm_head") || ends_with(module, "classifier") ||
           ends_with(module, "score");
}

static bool matches_whole(const tr_adapter_config *self, const char *module) {
    regmatch_t match;
    return regexec(&self->regex, module, 1, &match, 0) == 0 && match.rm_so == 0 &&
           module[match.rm_eo] == '\0';
}

const char *tr__adapter_target(const tr_adapter_config *self, size_t index) {
    if (json_is_string(self->targets)) {
        return index == 0 ? json_string_value(self->targets) : NULL;
    }
    return json_string_value(json_array_get(self->targets, index));
}

bool tr__adapter_names(const tr_adapter_config *self, size_t index,
                       const char *module) {
    const char *target = tr__adapter_target(self, index);
    if (!json_is_string(self->targets)) {
        return ends_with(module, target);
    }
    return self->has_regex ? matches_whole(self, module) : !is_output(module);
}

static bool adapts(const tr_adapter *adapter, const char *module) {
    const tr_adapter_config *self = (const tr_adapter_config *)adapter;
    for (size_t i = 0; tr__adapter_target(self, i); i++) {
        if (tr__adapter_names(self, i, module)) {
            return true;
        }
    }
    return false;
}

// ---- keys

// Those that say nothing of what an adapter computes.
static const char *const of_no_effect[] = {
    "auto_mapping",     "base_model_name_or_path",
    "inference_mode",   "peft_type",
    "peft_version",     "revision",
    "task_type",        "type",
    "loftq_config",     "eva_config",
    "corda_config",     "fan_in_fan_out",
    "init_lora_weights"};
static const char *const honoured[] = {
    "r",          "lora_alpha",     "lora_dropout",
    "use_rslora", "target_modules", "modules_to_save",
    "use_dora"};
// Of other keys, what asks for nothing.
static const struct {
    const char *name, *text;
    int64_t number;
} nothing[] = {
    {"bias", "none", 0},
    {"megatron_core", "megatron.core", 0},
    {"qalora_group_size", NULL, 16},
};

static bool is_among(const char *name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, list[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool asks_nothing(const char *name, const json_t *value) {
    if (json_is_null(value) || json_is_false(value) ||
        (json_is_object(value) && json_object_size(value) == 0) ||
        (json_is_array(value) && json_array_size(value) == 0)) {
        return true;
    }
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        const char *text = json_string_value(value);
        if (strcmp(name, nothing[i].name) == 0) {
            return text ? nothing[i].text && strcmp(text, nothing[i].text) == 0
                        : !nothing[i].text &&
                              json_integer_value(value) == nothing[i].number;
        }
    }
    return false;
}

// PiSSA and its kin change the base, too.
static bool begins_plainly(const json_t *object) {
    const char *how = json_string_value(json_object_get(object, "init_lora_weights"));
    return !how || strcmp(how, "gaussian") == 0;
}

static tr_status check_keys(const tr_model_keys *keys, tr_error *err) {
    const char *name;
    json_t *value;
    const char *type = json_string_value(json_object_get(keys->object, "peft_type"));
    if (type && strcmp(type, "LORA") != 0) {
        return tr_fail(err, TR_USAGE,
                       "%s: peft_type \"%.60s\" is not there; \"LORA\" is",
                       keys->origin, type);
    }
    if (!begins_plainly(keys->object)) {
        return tr_fail(err, TR_USAGE,
                       "%s: init_lora_weights names a way that changes the base, too; "
                       "true, false and \"gaussian\" are there",
                       keys->origin);
    }
    json_object_foreach((json_t *)keys->object, name, value) {
        bool known =
            is_among(name, of_no_effect, sizeof of_no_effect / sizeof *of_no_effect) ||
            is_among(name, honoured, sizeof honoured / sizeof *honoured);
        if (!known && !asks_nothing(name, value)) {
            return tr_fail(err, TR_USAGE,
                           "%s: %.60s asks for what is not there yet; leave it out, or "
                           "at its default",
                           keys->origin, name);
        }
    }
    return TR_OK;
}

// ---- reading

static const struct {
    const char *type, *targets[3];
} usual[] = {
    // PEFT's own choice
    {"llama", {"q_proj", "v_proj"}},
    {"mistral", {"q_proj", "v_proj"}},
    {"qwen2", {"q_proj", "v_proj"}},
    {"qwen3", {"q_proj", "v_proj"}},
    {"gpt2", {"c_attn"}},
    {"bert", {"query", "value"}},
    {"roberta", {"query", "value"}},
};

// NULL: nobody says which.
static json_t *usual_targets(const char *type) {
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (strcmp(usual[i].type, type) == 0) {
            return usual[i].targets[1]
                       ? json_pack("[ss]", usual[i].targets[0], usual[i].targets[1])
                       : json_pack("[s]", usual[i].targets[0]);
        }
    }
    return NULL;
}

static bool is_list_of_texts(const json_t *value) {
    bool good = json_is_array(value) && json_array_size(value) > 0;
    for (size_t i = 0; good && i < json_array_size(value); i++) {
        const char *text = json_string_value(json_array_get(value, i));
        good = text && *text;
    }
    return good;
}

// Counted repetitions and references to what has matched take the C library's matcher
// any time and memory, and a file may be anybody's.
static bool is_tame(const char *pattern) {
    size_t length = strlen(pattern);
    for (size_t i = 0; i + 1 < length; i++) {
        if (pattern[i] == '\\' && pattern[i + 1] >= '0' && pattern[i + 1] <= '9') {
            return false;
        }
    }
    return length <= PATTERN_MOST && !strchr(pattern, '{');
}

static tr_status compile(tr_adapter_config *self, const char *origin, tr_error *err) {
    const char *text = json_string_value(self->targets);
    if (!text || strcmp(text, all_linear) == 0) {
        return TR_OK;
    }
    char why[128];
    if (!is_tame(text)) {
        return tr_fail(
            err, TR_USAGE,
            "%s: target_modules \"%.100s\" has a counted repetition ({n}), a "
            "reference (\\1), or more than %d bytes; a list of names is there",
            origin, text, (int)PATTERN_MOST);
    }
    int failed = regcomp(&self->regex, text, REG_EXTENDED);
    if (failed) {
        regerror(failed, &self->regex, why, sizeof why);
        return tr_fail(err, TR_USAGE,
                       "%s: target_modules \"%.100s\" is no regular expression: %s",
                       origin, text, why);
    }
    self->has_regex = true;
    return TR_OK;
}

static tr_status read_targets(tr_adapter_config *self, const tr_model_keys *keys,
                              const char *type, tr_error *err) {
    json_t *given = json_object_get(keys->object, "target_modules");
    self->targets =
        given && !json_is_null(given) ? json_deep_copy(given) : usual_targets(type);
    if (!self->targets) {
        return tr_fail(err, TR_USAGE,
                       "%s: target_modules is needed for a model of type %s: a list of "
                       "linear layers, or \"%s\"",
                       keys->origin, type, all_linear);
    }
    const char *text = json_string_value(self->targets);
    if (!(text && *text) && !is_list_of_texts(self->targets)) {
        return tr_fail(err, TR_USAGE,
                       "%s: target_modules is a list of layers' names, \"%s\", or a "
                       "regular expression of whole names",
                       keys->origin, all_linear);
    }
    return compile(self, keys->origin, err);
}

static tr_status read_saved(tr_adapter_config *self, const tr_model_keys *keys,
                            tr_error *err) {
    json_t *given = json_object_get(keys->object, "modules_to_save");
    if (!given || json_is_null(given) ||
        (json_is_array(given) && json_array_size(given) == 0)) {
        return TR_OK;
    }
    if (!is_list_of_texts(given)) {
        return tr_fail(err, TR_USAGE, "%s: modules_to_save is a list of names",
                       keys->origin);
    }
    self->saved = json_deep_copy(given);
    return self->saved ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for an adapter");
}

static tr_status read_numbers(tr_adapter_config *self, const tr_model_keys *keys,
                              tr_error *err) {
    tr_adapter *a = &self->adapter;
    double dropout = 0;
    a->rank = 8;
    self->alpha = 8;
    const tr_model_field fields[] = {
        {"r", 1, RANK_MOST, &a->rank, NULL},
        {"lora_alpha", 0, 1e9, NULL, &self->alpha},
        {"lora_dropout", 0, 0.999, NULL, &dropout},
    };
    tr_status status =
        tr__fields_read(keys, fields, sizeof fields / sizeof *fields, err);
    self->rslora = json_is_true(json_object_get(keys->object, "use_rslora"));
    a->magnitudes = json_is_true(json_object_get(keys->object, "use_dora"));
    double rank = (double)a->rank;
    a->scale = (float)(self->alpha / (self->rslora ? sqrt(rank) : rank));
    a->dropout = (float)dropout;
    a->adapts = adapts;
    return status;
}

// ---- what is trained

static bool add_pattern(tr_adapter_config *self, char *pattern) {
    self->trained[self->trained_count] = pattern;
    self->trained_count += pattern != NULL;
    return pattern != NULL;
}

static tr_status list_trained(tr_adapter_config *self, tr_error *err) {
    size_t saved = json_array_size(self->saved);
    self->trained = tr__calloc(TRAINED_OWN + saved + 1, sizeof *self->trained);
    bool good =
        self->trained && add_pattern(self, tr__strdup("*." TR_LORA_A)) &&
        add_pattern(self, tr__strdup("*." TR_LORA_B)) &&
        (!self->adapter.magnitudes || add_pattern(self, tr__strdup("*." TR_DORA_M)));
    for (size_t i = 0; good && i < saved; i++) {
        const char *name = json_string_value(json_array_get(self->saved, i));
        // PEFT's rule: a module whose name ends with this, and all below it.
        good = add_pattern(self, tr__format("*%s.*", name));
    }
    return good ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for an adapter");
}

const char *const *tr__adapter_trained(const tr_adapter_config *adapter) {
    return (const char *const *)adapter->trained;
}

// ---- beginning and end

tr_status tr__adapter_from_json(const json_t *object, const char *origin,
                                const char *type, tr_adapter_config **out,
                                tr_error *err) {
    const tr_model_keys keys = {object, origin};
    tr_adapter_config *self = tr__calloc(1, sizeof *self);
    if (!self) {
        return tr_fail(err, TR_MEMORY, "no memory for an adapter");
    }
    tr_status status = check_keys(&keys, err);
    status = status == TR_OK ? read_numbers(self, &keys, err) : status;
    status = status == TR_OK ? read_targets(self, &keys, type, err) : status;
    status = status == TR_OK ? read_saved(self, &keys, err) : status;
    status = status == TR_OK ? list_trained(self, err) : status;
    if (status != TR_OK) {
        tr__adapter_destroy(self);
        return status;
    }
    *out = self;
    return TR_OK;
}

tr_status tr__adapter_from_folder(const char *folder, const char *type,
                                  tr_adapter_config **out, tr_error *err) {
    char path[PATH_MAX];
    json_t *keys = NULL;
    tr_status status = tr__adapter_keys(folder, path, &keys, err);
    if (status == TR_OK) {
        status = tr__adapter_from_json(keys, path, type, out, err);
    }
    json_decref(keys);
    return status;
}

void tr__adapter_destroy(tr_adapter_config *self) {
    if (!self) {
        return;
    }
    if (self->has_regex) {
        regfree(&self->regex);
    }
    for (size_t i = 0; i < self->trained_count; i++) {
        tr__free(self->trained[i]);
    }
    tr__free(self->trained);
    json_decref(self->targets);
    json_decref(self->saved);
    tr__free(self);
}

float tr__adapter_scale(const tr_adapter_config *self) {
    return self->adapter.scale;
}

int64_t tr__adapter_rank(const tr_adapter_config *self) {
    return self->adapter.rank;
}

bool tr__weights_are_in_out(const char *type) {
    return strcmp(type, "gpt2") == 0;
}

// ---- writing

// PEFT's own files have whole numbers without a point.
static json_t *number(double value) {
    return value == floor(value) ? json_integer((json_int_t)value) : json_real(value);
}

char *tr__adapter_text(const tr_adapter_config *self, const char *type, bool classifies,
                       const char *base) {
    // PEFT draws a head for the former, and asks for one in the file.
    const char *task = classifies ? "SEQ_CLS" : "CAUSAL_LM";
    // GPT-2's products have [in, out], which PEFT has to know.
    json_t *keys = json_pack(
        "{s:s, s:s, s:s, s:b, s:b, s:b, s:I, s:o, s:f, s:b, s:b, s:O, s:O?}",
        "peft_type", "LORA", "task_type", task, "bias", "none", "inference_mode", 1,
        "init_lora_weights", 1, "fan_in_fan_out", tr__weights_are_in_out(type), "r",
        (json_int_t)self->adapter.rank, "lora_alpha", number(self->alpha),
        "lora_dropout", (double)self->adapter.dropout, "use_rslora", self->rslora,
        "use_dora", self->adapter.magnitudes, "target_modules", self->targets,
        "modules_to_save", self->saved);
    char place[PATH_MAX];
    bool named = tr__hub_name_of(base, place) || realpath(base, place);
    json_t *path = tr__json_path(named ? place : base);
    bool good =
        keys && path && json_object_set_new(keys, "base_model_name_or_path", path) == 0;
    char *text = good ? tr__json_text(keys, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    json_decref(keys);
    return text;
}

// ---- of a model

void tr__model_adapt(tr_model *model, tr_adapter_config *adapter) {
    tr_units *own = model->owned;
    tr__adapter_destroy(own->adapter);
    own->adapter = adapter;
    model->adapter = &adapter->adapter;
}

const tr_adapter_config *tr__model_adapter(const tr_model *model) {
    return (const tr_adapter_config *)model->adapter;
}
