// Format jsonl: records of each kind as ids and labels, what is cut and left out, and
// what is refused. (tools/compare_records.py compares with TRL on drawn records.)
#include "data/scratch.h"

#include "base/memory.h"

#include <tranche/data.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOKENIZER TR_TEST_DATA "/tokenizers/smollm.json"
#define END       "<|end|>"

enum { LENGTH = 64, FILE_BYTES = 1 << 14 };

static const char chat_template[] =
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}" END "{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";
// The same with marks, and without the end of a turn in them.
static const char marked_template[] =
    "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}"
    "{% endif %}" END "{% endfor %}";

static const char conversation[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"the men\"},{\"role\":"
    "\"assistant\",\"content\":\"it is\"},{\"role\":\"user\",\"content\":\"and\"},"
    "{\"role\":\"assistant\",\"content\":\"said\"}]}\n";

// A folder of its own with a cache, and what the options say of lines told.
static char said[FILE_BYTES];

static int own_cache(void **state) {
    char folder[SCRATCH_PATH_MAX];
    said[0] = '\0';
    if (scratch_make(state) != 0) {
        return -1;
    }
    return setenv("XDG_CACHE_HOME", scratch_path(folder, state, ".cache"), 1);
}

static void hear(void *user, const char *line) {
    (void)user;
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static tr_data_options record_options(const char *const *path) {
    return (tr_data_options){.size = sizeof(tr_data_options),
                             .format = "jsonl",
                             .paths = path,
                             .path_count = 1,
                             .sequence_length = LENGTH,
                             .tokenizer = TOKENIZER,
                             .eos_token = END,
                             .say = hear};
}

// A sample as text; what is learnt stands between < and >.
static const char *shown(tr_dataset *dataset, int64_t sample, char *text) {
    static int32_t input[LENGTH], target[LENGTH];
    tr_tokenizer *tokenizer = NULL;
    assert_int_equal(tr_tokenizer_load(TOKENIZER, &tokenizer, NULL), TR_OK);
    assert_int_equal(
        tr_dataset_read(dataset, &sample, 1, (void *[]){input, target}, NULL), TR_OK);
    int64_t length = tr_dataset_tensors(dataset)->tensor[0].desc.shape.dim[0];
    bool inside = false;
    text[0] = '\0';
    for (int64_t i = 0; i < length; i++) {
        char *part = NULL;
        size_t bytes = 0;
        bool learnt = i > 0 && target[i - 1] != TR_NO_TARGET;
        if (learnt) {
            assert_int_equal(target[i - 1], input[i]);
        }
        if (learnt != inside) {
            strcat(text, learnt ? "<" : ">");
        }
        inside = learnt;
        assert_int_equal(
            tr_tokenizer_decode(tokenizer, &input[i], 1, false, &part, &bytes, NULL),
            TR_OK);
        bool padding = input[i] == 0 && !learnt && i > 0 && input[i - 1] == 0;
        strcat(text, padding ? "" : part);
        tr_tokenizer_text_release(part);
    }
    strcat(text, inside ? ">" : "");
    assert_int_equal(target[length - 1], TR_NO_TARGET);
    tr_tokenizer_destroy(tokenizer);
    return text;
}

static void expect(void **state, tr_data_options options, const char *record,
                   const char *wanted) {
    char path[SCRATCH_PATH_MAX], text[FILE_BYTES];
    const char *paths[] = {scratch_text(path, state, "data.jsonl", record)};
    options.paths = paths;
    tr_dataset *dataset = scratch_open(&options);
    assert_int_equal(tr_dataset_samples(dataset), 1);
    assert_string_equal(shown(dataset, 0, text), wanted);
    tr_dataset_destroy(dataset);
}

// ---- kinds

static void texts_end(void **state) {
    tr_data_options options = record_options(NULL);
    expect(state, options, "{\"text\":\"the men\"}", "th<e men" END ">");
    expect(state, options, "{\"text\":\"the men" END "\"}\n", "th<e men" END ">");
    options.fields.text = "body";
    expect(state, options, "\xef\xbb\xbf{\"body\":\"the men\",\"id\":7}\r\n",
           "th<e men" END ">");
}

static void completions_are_learnt(void **state) {
    static const char record[] = "{\"prompt\":\"the men\",\"completion\":\" said\"}\n";
    tr_data_options options = record_options(NULL);
    expect(state, options, record, "the men< said" END ">");
    options.loss_on = "completion";
    expect(state, options, record, "the men< said" END ">");
    options.loss_on = "all";
    expect(state, options, record, "th<e men said" END ">");
}

static void conversations(void **state) {
    char path[SCRATCH_PATH_MAX];
    tr_data_options options = record_options(NULL);
    options.chat_template = scratch_text(path, state, "t.jinja", chat_template);
    expect(state, options, conversation,
           "[<user]the men" END "[assistant]it is" END "[user]and" END
           "[assistant]said" END ">");
    options.loss_on = "assistant";
    expect(state, options, conversation,
           "[user]the men" END "[assistant]<it is" END ">[user]and" END
           "[assistant]<said" END ">");
    options.chat_template = scratch_text(path, state, "t.jinja", marked_template);
    expect(state, options, conversation,
           "[user]the men" END "[assistant]<it is>" END "[user]and" END
           "[assistant]<said>" END);
}

// Records of ShareGPT are the same conversations.
static void share_gpt(void **state) {
    char path[SCRATCH_PATH_MAX];
    static const char record[] =
        "{\"conversations\":[{\"from\":\"system\",\"value\":\"be\"},{\"from\":"
        "\"human\","
        "\"value\":\"the men\"},{\"from\":\"gpt\",\"value\":\"it is\"},{\"from\":"
        "\"observation\",\"value\":\"so\"}]}\n";
    tr_data_options options = record_options(NULL);
    options.chat_template = scratch_text(path, state, "t.jinja", chat_template);
    options.loss_on = "assistant";
    static const char wanted[] =
        "[system]be" END "[user]the men" END "[assistant]<it is" END ">[tool]so" END;
    expect(state, options, record, wanted);
    options.fields.messages = "conversations";
    expect(state, options, record, wanted);
}

static void conversations_with_completions(void **state) {
    char path[SCRATCH_PATH_MAX];
    static const char record[] =
        "{\"prompt\":[{\"role\":\"user\",\"content\":\"the men\"}],\"completion\":"
        "[{\"role\":\"assistant\",\"content\":\"said\"}]}\n";
    tr_data_options options = record_options(NULL);
    options.chat_template = scratch_text(path, state, "t.jinja", chat_template);
    expect(state, options, record, "[user]the men" END "[assistant]<said" END ">");
}

// A template that shows a thought in the last answer only, as Qwen3's does.
static void last_answers_of_their_own(void **state) {
    char path[SCRATCH_PATH_MAX];
    tr_data_options options = record_options(NULL);
    options.loss_on = "assistant";
    options.chat_template =
        scratch_text(path, state, "t.jinja",
                     "{% for m in messages %}[{{ m.role }}]{% if loop.last and m.role "
                     "== 'assistant' "
                     "%}(thought){% endif %}{{ m.content }}" END "{% endfor %}"
                     "{% if add_generation_prompt %}[assistant]{% endif %}");
    expect(state, options, conversation,
           "[user]the men" END "[assistant]<it is" END ">[user]and" END
           "[assistant]<(thought)said" END ">");
}

static void dates(void **state) {
    char path[SCRATCH_PATH_MAX], data[SCRATCH_PATH_MAX];
    tr_data_options options = record_options(NULL);
    options.chat_template =
        scratch_text(path, state, "t.jinja",
                     "{{ strftime_now('%d %b %Y') }}{{ messages[0].content }}");
    const char *paths[] = {scratch_text(data, state, "data.jsonl", conversation)};
    options.paths = paths;
    scratch_refuse(&options, TR_DATA, "be the same tomorrow: set data.date");
    options.date = "2026-02-30";
    scratch_refuse(&options, TR_USAGE, "data.date: \"2026-02-30\" is no date");
    options.date = "2026-11-22";
    expect(state, options, conversation, "2<2 Nov 2026the men>" END);
}

// ---- how many

static void rows_are_cut_and_left_out(void **state) {
    char path[SCRATCH_PATH_MAX], text[FILE_BYTES];
    const char *paths[] = {scratch_text(
        path, state, "data.jsonl",
        "{\"prompt\":\"the men\",\"completion\":\" said and said and said and said\"}\n"
        "\n{\"prompt\":\"the men and the men and the men and the men\",\"completion\":"
        "\" said\"}\n"
        "{\"prompt\":\"the men\",\"completion\":\" and\"}")};
    tr_data_options options = record_options(paths);
    options.sequence_length = 8;
    tr_dataset *dataset = scratch_open(&options);
    assert_int_equal(tr_dataset_samples(dataset), 2);
    assert_non_null(strstr(said, "of 3 records, 2 are longer than data.max_length, and "
                                 "are cut to 8 tokens; 1 with nothing to learn are "
                                 "left out"));
    assert_null(strstr(shown(dataset, 0, text), END));
    assert_string_equal(shown(dataset, 1, text), "the men< and" END ">");
    tr_dataset_destroy(dataset);
    options.sequence_length = 2;
    scratch_refuse(&options, TR_DATA,
                   "nothing to learn in any of them; raise "
                   "data.max_length");
}

static uint64_t hash_of(const tr_data_options *options) {
    tr_dataset *dataset = scratch_open(options);
    uint64_t hash = tr_dataset_hash(dataset);
    tr_dataset_destroy(dataset);
    return hash;
}

// The second time the records are found; what changes a label is another data set.
static void records_are_kept(void **state) {
    char path[SCRATCH_PATH_MAX];
    const char *paths[] = {
        scratch_text(path, state, "data.jsonl",
                     "{\"prompt\":\"the men\",\"completion\":\" said\"}")};
    tr_data_options options = record_options(paths);
    uint64_t first = hash_of(&options);
    assert_non_null(strstr(said, "tokenized 1 record in"));
    said[0] = '\0';
    assert_int_equal(hash_of(&options), first);
    assert_null(strstr(said, "tokenized"));
    options.loss_on = "all";
    assert_int_not_equal(hash_of(&options), first);
    options.loss_on = NULL;
    options.sequence_length = 32;
    assert_int_not_equal(hash_of(&options), first);
    options.sequence_length = LENGTH;
    scratch_text(path, state, "data.jsonl",
                 "{\"prompt\":\"the men\",\"completion\":\" and\"}");
    assert_int_not_equal(hash_of(&options), first);
}

// As in records that a table with more columns was written to.
static void null_is_as_good_as_left_out(void **state) {
    char path[SCRATCH_PATH_MAX], with[FILE_BYTES], without[FILE_BYTES];
    const char *paths[] = {
        scratch_text(path, state, "data.jsonl",
                     "{\"prompt\":null,\"completion\":null,\"messages\":null,"
                     "\"text\":\"the men\"}")};
    tr_data_options options = record_options(paths);
    tr_dataset *dataset = scratch_open(&options);
    shown(dataset, 0, with);
    tr_dataset_destroy(dataset);
    scratch_text(path, state, "data.jsonl", "{\"text\":\"the men\"}");
    dataset = scratch_open(&options);
    assert_string_equal(shown(dataset, 0, without), with);
    tr_dataset_destroy(dataset);
}

// ---- what is refused

static const struct {
    const char *lines, *words;
} wrong[] = {
    {"{\"text\":\"a\"}\n\n{\"text\":\"a\"\n", "data.jsonl:3: column "},
    {"{\"text\":\"a\"}\n[1]\n", "data.jsonl:2: each line is one JSON object"},
    {"{\"text\":\"a\",\"text\":\"b\"}", "data.jsonl:1: column "},
    {"{\"text\":\"a\xff\"}", "data.jsonl:1: column "},
    {"{\"text\":7}", "data.jsonl:1: \"text\" is not a string"},
    {"{\"prompt\":\"a\"}", "data.jsonl:1: the record has neither \"prompt\" and "},
    {"{\"prompt\":\"a\",\"completion\":[]}", "data.jsonl:1: \"prompt\" and "},
    {"{\"text\":\"a\"}\n{\"prompt\":\"a\",\"completion\":\"b\"}\n",
     "data.jsonl:2: the record is one of prompts with completions; the ones before are "
     "texts"},
    {"{\"messages\":\"a\"}", "data.jsonl:1: \"messages\" is not a list of messages"},
    {"{\"messages\":[]}", "data.jsonl:1: the records are conversations, and "},
    {" \n\n", "the files have no records, only blank lines"},
};

static void wrong_records_are_named(void **state) {
    char path[SCRATCH_PATH_MAX];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *paths[] = {scratch_text(path, state, "data.jsonl", wrong[i].lines)};
        tr_data_options options = record_options(paths);
        scratch_refuse(&options, TR_DATA, wrong[i].words);
    }
}

static void wrong_conversations_are_named(void **state) {
    char path[SCRATCH_PATH_MAX], file[SCRATCH_PATH_MAX];
    static const struct {
        const char *template, *lines, *words;
    } cases[] = {
        {chat_template, "{\"messages\":[\"a\"]}",
         "data.jsonl:1: message 1 is no object"},
        {chat_template, "{\"messages\":[],\"tools\":\"x\"}", "data.jsonl:1: \"tools\""},
        {"{{ raise_exception('no') }}", conversation,
         "t.jinja:1: the template refuses the conversation: no"},
        {"{{ messages|length }}", conversation,
         "data.jsonl:1: the chat template renders message 2 of the assistant "
         "differently"},
        {"{% for %}", conversation, "t.jinja:1: "},
        {chat_template, "{\"conversations\":[{\"from\":\"bard\",\"value\":\"\"}]}",
         "message 1: \"from\" is \"bard\"; human, gpt, system and tool are known"},
        {chat_template,
         "{\"conversations\":[{\"from\":\"gpt\",\"value\":\"\"},{\"role\":\"user\"}]}",
         "message 2: others of the record have \"from\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *paths[] = {scratch_text(path, state, "data.jsonl", cases[i].lines)};
        tr_data_options options = record_options(paths);
        options.loss_on = "assistant";
        options.chat_template = scratch_text(file, state, "t.jinja", cases[i].template);
        scratch_refuse(&options, TR_DATA, cases[i].words);
    }
}

static void wrong_options_are_named(void **state) {
    char path[SCRATCH_PATH_MAX];
    const char *paths[] = {
        scratch_text(path, state, "data.jsonl", "{\"text\":\"the men\"}")};
    tr_data_options options = record_options(paths);
    options.loss_on = "completions";
    scratch_refuse(&options, TR_USAGE,
                   "data.loss_on: 'completions' is not known; did "
                   "you mean 'completion'?");
    options.loss_on = "completion";
    scratch_refuse(&options, TR_USAGE, "the records are texts");
    options.loss_on = "assistant";
    scratch_refuse(&options, TR_USAGE, "the records are texts");
    options.loss_on = NULL;
    options.eos_token = NULL;
    scratch_refuse(&options, TR_USAGE, "data.eos_token: nothing beside the tokenizer");
    options = record_options(paths);
    options.format = "text";
    options.date = "2026-11-22";
    scratch_refuse(&options, TR_USAGE, "data.date: has no meaning for format text");
}

// Whichever allocation fails, there is a status, and nothing is lost.
static void without_memory(void **state) {
    char path[SCRATCH_PATH_MAX], file[SCRATCH_PATH_MAX], folder[SCRATCH_PATH_MAX];
    const char *paths[] = {scratch_text(path, state, "data.jsonl", conversation)};
    tr_data_options options = record_options(paths);
    options.loss_on = "assistant";
    options.chat_template = scratch_text(file, state, "t.jinja", chat_template);
    for (int64_t nth = 1; nth < 400; nth += nth < 60 ? 1 : 7) {
        char name[32];
        tr_dataset *dataset = NULL;
        tr_error err = {0};
        snprintf(name, sizeof name, ".cache%d", (int)nth); // nothing is made yet
        setenv("XDG_CACHE_HOME", scratch_path(folder, state, name), 1);
        tr__memory_fail_at(nth);
        tr_status status = tr_dataset_open(&options, &dataset, NULL, &err);
        tr__memory_fail_at(0);
        if (status != TR_OK && (status != TR_MEMORY || !err.message[0])) {
            fail_msg("allocation %lld: status %d, \"%s\"", (long long)nth, (int)status,
                     err.message);
        }
        tr_dataset_destroy(dataset);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, own_cache, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(texts_end),
        TEST(completions_are_learnt),
        TEST(conversations),
        TEST(share_gpt),
        TEST(conversations_with_completions),
        TEST(last_answers_of_their_own),
        TEST(dates),
        TEST(rows_are_cut_and_left_out),
        TEST(records_are_kept),
        TEST(null_is_as_good_as_left_out),
        TEST(wrong_records_are_named),
        TEST(wrong_conversations_are_named),
        TEST(wrong_options_are_named),
        TEST(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
