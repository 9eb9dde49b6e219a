// What the training and validation samples are.
#include "run/keys/keys.h"

static const char *const formats[] = {"bytes", "tokens", "text",   "jsonl",
                                      "csv",   "npy",    "random", NULL};
static const char *const orders[] = {"shuffled", "sequential", NULL};
static const char *const dtypes[] = {"u16", "u32", NULL};

// What a format has a use for: run.json shows no key that its own format refuses.
static const char *const files[] = {"bytes", "tokens", "text", "jsonl",
                                    "csv",   "npy",    NULL};
static const char *const text[] = {"text", NULL};
static const char *const jsonl[] = {"jsonl", NULL};
static const char *const tokenized[] = {"text", "jsonl", NULL};
static const char *const words[] = {"bytes", "tokens", "text", "jsonl", NULL};
static const char *const losses[] = {"all", "completion", "assistant", NULL};
static const char *const tokens[] = {"tokens", NULL};
static const char *const second_file[] = {"bytes", "tokens", "npy", NULL};
static const char *const csv[] = {"csv", NULL};
static const char *const random_set[] = {"random", NULL};
static const char *const npy[] = {"npy", NULL};
static const char *const layouts[] = {"channels_first", "channels_last", NULL};
static const char *const features[] = {"csv", "npy", "random", NULL};

#define OF(list) .where_key = "data.format", .where = (list)

static const tr_key keys[] = {
    {.path = "data.format",
     .types = TR_KEY_TEXT,
     .fallback = "\"bytes\"",
     .choices = formats,
     .doc = "how the files are read"},
    {.path = "data.train",
     OF(files),
     .types = TR_KEY_TEXT | TR_KEY_LIST,
     .elements = TR_KEY_TEXT,
     .doc = "files, folders or globs"},
    {.path = "data.validation",
     .types = TR_KEY_TEXT | TR_KEY_LIST | TR_KEY_NUMBER,
     .elements = TR_KEY_TEXT,
     .max = 1,
     .max_excluded = true,
     .doc =
         "files, folders or globs, or the fraction of the training data to set aside"},
    {.path = "data.order",
     .types = TR_KEY_TEXT,
     .fallback = "\"shuffled\"",
     .choices = orders,
     .doc = "sequential: step s takes samples s*T to s*T + T - 1"},
    {.path = "data.max_length",
     OF(words),
     .types = TR_KEY_INT,
     .min = 1,
     .max = 1 << 30,
     .doc = "tokens of a sample; left out: the model's positions, 2,048 at most"},
    {.path = "data.tokenizer",
     OF(tokenized),
     .types = TR_KEY_TEXT,
     .doc =
         "text, jsonl: a tokenizer.json, a folder that has one, or a name on Hugging "
         "Face's hub; "
         "left out: the model's"},
    {.path = "data.document_separator",
     OF(text),
     .types = TR_KEY_TEXT,
     .doc = "text: what separates documents within a file; left out: nothing"},
    {.path = "data.eos_token",
     OF(tokenized),
     .types = TR_KEY_TEXT,
     .doc = "text: the token between documents; jsonl: that behind texts and "
            "completions; left out: as the tokenizer's folder says"},
    {.path = "data.loss_on",
     OF(jsonl),
     .types = TR_KEY_TEXT,
     .choices = losses,
     .doc = "jsonl: what is learnt; left out: completion where records have one, else "
            "all"},
    {.path = "data.chat_template",
     OF(jsonl),
     .types = TR_KEY_TEXT,
     .doc =
         "jsonl: a file of Jinja in place of the chat template beside the tokenizer"},
    {.path = "data.date",
     OF(jsonl),
     .types = TR_KEY_TEXT,
     .doc = "jsonl: the date, as 2026-11-22, that a chat template shows"},
    {.path = "data.fields.text",
     OF(jsonl),
     .types = TR_KEY_TEXT,
     .fallback = "\"text\"",
     .doc = "jsonl: what a record calls its text"},
    {.path = "data.fields.prompt",
     OF(jsonl),
     .types = TR_KEY_TEXT,
     .fallback = "\"prompt\"",
     .doc = "jsonl: what a record calls its prompt"},
    {.path = "data.fields.completion",
     OF(jsonl),
     .types = TR_KEY_TEXT,
     .fallback = "\"completion\"",
     .doc = "jsonl: what a record calls its completion"},
    {.path = "data.fields.messages",
     OF(jsonl),
     .types = TR_KEY_TEXT,
     .fallback = "\"messages\"",
     .doc = "jsonl: what a record calls its messages"},
    {.path = "data.packing",
     OF(tokenized),
     .types = TR_KEY_BOOL,
     .fallback = "false",
     .doc = "text, jsonl: whole documents share a sample; attention and positions "
            "begin anew "
            "with each"},
    {.path = "data.plain_special",
     OF(tokenized),
     .types = TR_KEY_BOOL,
     .fallback = "false",
     .doc = "text, jsonl: special tokens that are written in it are text"},
    {.path = "data.dtype",
     OF(tokens),
     .types = TR_KEY_TEXT,
     .fallback = "\"u16\"",
     .choices = dtypes,
     .doc = "tokens: the type of the ids, little endian"},
    {.path = "data.labels",
     OF(second_file),
     .types = TR_KEY_TEXT,
     .doc = "a second file of the same shape; -100 is no target"},
    {.path = "data.validation_labels",
     OF(second_file),
     .types = TR_KEY_TEXT,
     .doc = "the same for the validation files"},
    {.path = "data.label_column",
     OF(csv),
     .types = TR_KEY_TEXT | TR_KEY_INT,
     .max = TR_KEY_COUNT_MAX,
     .doc = "csv: the label's column, by name or number from 0; left out: the last"},
    {.path = "data.header",
     OF(csv),
     .types = TR_KEY_BOOL,
     .allow_auto = true,
     .fallback = "\"auto\"",
     .doc =
         "csv: whether the first line of each file is a header; auto: where no field "
         "of it is a number"},
    {.path = "data.samples",
     OF(random_set),
     .types = TR_KEY_INT,
     .min = 1,
     .max = TR_KEY_STEPS_MAX,
     .doc = "random: how many"},
    {.path = "data.features",
     OF(features),
     .types = TR_KEY_INT,
     .min = 1,
     .max = TR_KEY_COUNT_MAX,
     .doc = "random: of one sample; csv, npy: checked where given"},
    {.path = "data.classes",
     OF(features),
     .types = TR_KEY_INT,
     .min = 1,
     .max = TR_KEY_COUNT_MAX,
     .doc = "random: how many; csv, npy: checked where given"},
    {.path = "data.image_layout",
     OF(npy),
     .types = TR_KEY_TEXT,
     .choices = layouts,
     .doc = "npy, images: [N, C, H, W] or [N, H, W, C]; left out: as the sides say"},
    {.path = "data.image_mean",
     OF(npy),
     .types = TR_KEY_NUMBER | TR_KEY_LIST,
     .elements = TR_KEY_NUMBER,
     .min = -TR_KEY_NUMBER_MAX,
     .max = TR_KEY_NUMBER_MAX,
     .doc = "npy, images: values become (value - mean) / std, by channel or alike"},
    {.path = "data.image_std",
     OF(npy),
     .types = TR_KEY_NUMBER | TR_KEY_LIST,
     .elements = TR_KEY_NUMBER,
     .min = 1e-30,
     .max = TR_KEY_NUMBER_MAX,
     .doc = "the same"},
    {.path = "data.drop_last",
     .types = TR_KEY_BOOL,
     .fallback = "false",
     .doc = "leave out the short batch at the end of an epoch"},
    {.path = "dataloader_drop_last",
     .types = TR_KEY_BOOL,
     .allow_auto = true,
     .fallback = "false",
     .doc = "DeepSpeed's name of data.drop_last; either one is enough"},
};

const tr_key_table tr__keys_data = {.keys = keys, .count = sizeof keys / sizeof *keys};
