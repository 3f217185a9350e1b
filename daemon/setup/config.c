/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a configuration through inih and turns it into plain values by the table of config.h.
 *
 * Any thread; nothing here keeps state. The text is hostile: its size, its lines and every value
 * are bounded, and a file is read whole before it is parsed. */
#include "config.h"

#include "base/text.h"

#include "sgp/topology.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* A choice is written through a pointer to int. */
_Static_assert(sizeof(enum sgp_loss) == sizeof(int), "enumerations of choices have int's size");
_Static_assert(CONFIG_KEY_COUNT <= CONFIG_LINES, "struct config has room for every line");

const struct config_key config_keys[CONFIG_KEY_COUNT] = {
#define X(id, section, key, type, field, default_text, least, most, words, meaning)                \
    {section, key, type, offsetof(struct config, field), default_text, least, most, words, meaning},
    CONFIG_TABLE(X)
#undef X
};

/* The state of one reading. `number` counts the lines that inih has requested. When the handler
 * runs, it is the line of the current pair. */
struct reading {
    struct config config;
    struct sgp_error *error;
    struct sgp_error own; /* filled first, so that a NULL error is fine */
    const char *text;
    size_t bytes;
    size_t position;
    unsigned number;
    bool indented; /* the present line begins with white space */
};

static void *field_of(struct config *config, const struct config_key *key)
{
    return (char *)config + key->offset;
}

static bool is_text(enum config_type type)
{
    return type == CONFIG_TEXT || type == CONFIG_PATH || type == CONFIG_LIST ||
           type == CONFIG_NAME || type == CONFIG_ADDRESS;
}

int config_fail(const struct config *config, enum config_id id, struct sgp_error *error, int code,
    const char *format, ...)
{
    char text[SGP_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const struct config_key *key = &config_keys[id];
    if (config->lines[id] == 0)
        return sgp_fail(error, code, "%s: [%s] %s: %s", config->file, key->section, key->key, text);
    return sgp_fail(error, code, "%s:%u: [%s] %s: %s", config->file, config->lines[id],
        key->section, key->key, text);
}

/* Values. Each parser returns 0 and sets the field, or fills the error. `id` is also the line. */

static int set_text(struct reading *r, enum config_id id, const char *value)
{
    char **field = field_of(&r->config, &config_keys[id]);
    char *copy = strdup(value);
    if (!copy)
        return sgp_fail(&r->own, -ENOMEM, "%s: out of memory", r->config.file);
    free(*field);
    *field = copy;
    return 0;
}

/* Relative paths are taken from the directory of the configuration. */
static int set_path(struct reading *r, enum config_id id, const char *value)
{
    size_t bytes = strlen(value);
    if (bytes > 1 && (value[0] == '"' || value[0] == '\'') && value[bytes - 1] == value[0])
        return config_fail(&r->config, id, &r->own, SGP_E_CONFIG,
            "the path stands in quotes; write it without: %.*s", (int)bytes - 2, value + 1);
    const char *slash = strrchr(r->config.file, '/');
    if (value[0] == '/' || value[0] == '\0' || !slash || strcmp(value, "none") == 0 ||
        (id == CONFIG_ID_SCALE && strcmp(value, "fleet") == 0))
        return set_text(r, id, value);
    char path[CONFIG_TEXT_BYTES];
    int directory = (int)(slash - r->config.file);
    int length = snprintf(path, sizeof path, "%.*s/%s", directory, r->config.file, value);
    if (length < 0 || (size_t)length >= sizeof path)
        return config_fail(&r->config, id, &r->own, SGP_E_CONFIG,
            "the path is longer than %u bytes; use a shorter one", CONFIG_TEXT_BYTES - 1);
    return set_text(r, id, path);
}

static int set_name(struct reading *r, enum config_id id, const char *value)
{
    size_t length = strlen(value);
    bool good = length > 0 && length < SGP_NAME_BYTES && value[0] != '.';
    for (size_t i = 0; i < length; i++)
        good = good && (isalnum((unsigned char)value[i]) || strchr("._-", value[i]));
    if (!good)
        return config_fail(&r->config, id, &r->own, SGP_E_CONFIG,
            "\"%.80s\" is not a name; use letters, digits and . _ -, at most %u of them", value,
            SGP_NAME_BYTES - 1);
    return set_text(r, id, value);
}

static int set_address(struct reading *r, enum config_id id, const char *value)
{
    char host[SGP_ADDRESS_BYTES];
    uint16_t port;
    struct sgp_error why = {0};
    if (sgp_address_split(value, &why, host, &port) < 0)
        return config_fail(&r->config, id, &r->own, SGP_E_CONFIG, "%s", why.text);
    return set_text(r, id, value);
}

/* Decimal digits with an optional k, M or G. */
static bool parse_count(const char *value, uint64_t *ret_count)
{
    size_t digits = strspn(value, "0123456789");
    if (digits == 0 || digits > 18)
        return false;
    uint64_t unit = 1;
    switch (value[digits]) {
    case '\0':
        break;
    case 'k':
        unit = 1000;
        break;
    case 'M':
        unit = 1000000;
        break;
    case 'G':
        unit = 1000000000;
        break;
    default:
        return false;
    }
    if (unit > 1 && value[digits + 1] != '\0')
        return false;
    uint64_t count = strtoull(value, NULL, 10);
    if (count > UINT64_MAX / unit)
        return false;
    *ret_count = count * unit;
    return true;
}

/* Whether the empty value is allowed: it is for a key whose default is empty. */
static bool may_be_empty(const struct config_key *key)
{
    return key->default_text != NULL && key->default_text[0] == '\0';
}

static int set_count(struct reading *r, enum config_id id, const char *value)
{
    const struct config_key *key = &config_keys[id];
    uint64_t count = 0;
    bool empty = value[0] == '\0' && may_be_empty(key);
    if (!empty && (!parse_count(value, &count) || count < (uint64_t)key->least ||
                      count > (uint64_t)key->most))
        return config_fail(&r->config, id, &r->own, SGP_E_CONFIG,
            "\"%.80s\" is not a whole number from %.0f to %.0f; write digits, with k, M or G for "
            "thousands, millions or billions",
            value, key->least, key->most);
    *(uint64_t *)field_of(&r->config, key) = count;
    return 0;
}

/* A finite decimal number. strtod alone would accept hexadecimal, "inf" and "nan", too. */
static bool parse_real(const char *value, double *ret_real)
{
    if (value[0] == '\0' || value[strspn(value, "0123456789.eE+-")] != '\0')
        return false;
    char *end;
    double real = strtod(value, &end);
    if (*end != '\0' || !isfinite(real))
        return false;
    *ret_real = real;
    return true;
}

static int set_real(struct reading *r, enum config_id id, const char *value)
{
    const struct config_key *key = &config_keys[id];
    double real = NAN;
    bool empty = value[0] == '\0' && may_be_empty(key);
    if (!empty && (!parse_real(value, &real) || real < key->least || real > key->most))
        return config_fail(&r->config, id, &r->own, SGP_E_CONFIG,
            "\"%.80s\" is not a number from %g to %g; write it like 0.05 or 5e-2", value,
            key->least, key->most);
    *(double *)field_of(&r->config, key) = real;
    return 0;
}

static int set_choice(struct reading *r, enum config_id id, const char *value)
{
    const struct config_key *key = &config_keys[id];
    size_t length = strlen(value);
    int index = 1;
    for (const char *word = key->words; *word; index++) {
        size_t word_length = strcspn(word, "|");
        if (word_length == length && memcmp(word, value, length) == 0) {
            *(int *)field_of(&r->config, key) = index;
            return 0;
        }
        word += word_length;
        word += *word == '|';
    }
    return config_fail(&r->config, id, &r->own, SGP_E_CONFIG,
        "\"%.80s\" does not exist; choose one of %s", value, key->words);
}

static int set_start(struct reading *r, enum config_id id, const char *value)
{
    const struct config_key *key = &config_keys[id];
    uint32_t *field = field_of(&r->config, key);
    uint64_t count;
    if (strcmp(value, "all") == 0)
        *field = SGP_START_ALL;
    else if (strcmp(value, "now") == 0)
        *field = 0;
    else if (parse_count(value, &count) && count >= 1 && count <= SGP_NODES_MAX)
        *field = (uint32_t)count;
    else
        return config_fail(&r->config, id, &r->own, SGP_E_CONFIG,
            "\"%.80s\" is not a start; write all, now, or a number of nodes from 1 to %u", value,
            SGP_NODES_MAX);
    return 0;
}

static int set_shards(struct reading *r, enum config_id id, const char *value)
{
    struct sgp_error why = {0};
    if (sgp_shards_parse(value, &why, field_of(&r->config, &config_keys[id])) < 0)
        return config_fail(&r->config, id, &r->own, SGP_E_CONFIG, "%s", why.text);
    return 0;
}

static int set_chooser(struct reading *r, enum config_id id, const char *value)
{
    struct sgp_error why = {0};
    const struct config_key *key = &config_keys[id];
    if (sgp_chooser_parse(value, key->words, &why, field_of(&r->config, key)) < 0)
        return config_fail(&r->config, id, &r->own, SGP_E_CONFIG, "%s", why.text);
    return 0;
}

static int set_real_or_word(struct reading *r, enum config_id id, const char *value)
{
    const struct config_key *key = &config_keys[id];
    double real = 0;
    bool word = strcmp(value, key->words) == 0;
    if (!word && (!parse_real(value, &real) || real < key->least || real > key->most))
        return config_fail(&r->config, id, &r->own, SGP_E_CONFIG,
            "\"%.80s\" is neither %s nor a number from %g to %g", value, key->words, key->least,
            key->most);
    *(double *)field_of(&r->config, key) = real;
    return 0;
}

static int set_value(struct reading *r, enum config_id id, const char *value)
{
    static int (*const parsers[])(struct reading *, enum config_id, const char *) = {
        [CONFIG_TEXT] = set_text,
        [CONFIG_PATH] = set_path,
        [CONFIG_LIST] = set_text,
        [CONFIG_NAME] = set_name,
        [CONFIG_ADDRESS] = set_address,
        [CONFIG_COUNT] = set_count,
        [CONFIG_REAL] = set_real,
        [CONFIG_CHOICE] = set_choice,
        [CONFIG_START] = set_start,
        [CONFIG_SHARDS] = set_shards,
        [CONFIG_CHOOSER] = set_chooser,
        [CONFIG_REAL_OR_WORD] = set_real_or_word,
    };
    return parsers[config_keys[id].type](r, id, value);
}

/* Names that do not exist. */

/* The key most similar to a wrong one. A key of the same name in another section comes first. Then
 * comes the least distance, with the key's own section preferred. NULL if no key is near. */
static const struct config_key *nearest_key(const char *section, const char *name)
{
    const struct config_key *nearest = NULL;
    unsigned best = 8; /* twice a distance of 3, plus one */
    for (unsigned i = 0; i < CONFIG_KEY_COUNT; i++) {
        const struct config_key *key = &config_keys[i];
        unsigned d = 2 * sgp_text_distance(name, key->key) + (strcmp(section, key->section) != 0);
        if (d < best) {
            best = d;
            nearest = key;
        }
    }
    return nearest;
}

static const char *nearest_section(const char *section)
{
    const char *nearest = NULL;
    unsigned best = 4;
    for (unsigned i = 0; i < CONFIG_KEY_COUNT; i++) {
        unsigned d = sgp_text_distance(section, config_keys[i].section);
        if (d < best) {
            best = d;
            nearest = config_keys[i].section;
        }
    }
    return nearest;
}

/* " [node] [topology] ...": keys of one section follow one another in the table. */
static void list_sections(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < CONFIG_KEY_COUNT && used < size; i++)
        if (i == 0 || strcmp(config_keys[i].section, config_keys[i - 1].section) != 0)
            used += (size_t)snprintf(text + used, size - used, " [%s]", config_keys[i].section);
}

static int fail_unknown(struct reading *r, const char *section, const char *name)
{
    const char *file = r->config.file;
    if (strcmp(section, "tls") == 0)
        return sgp_fail(&r->own, SGP_E_CONFIG,
            "%s:%u: [tls] %.60s: there is no such section; write tls=offer into the topology file, "
            "and [node] key here",
            file, r->number, name);
    bool known = false;
    for (unsigned i = 0; i < CONFIG_KEY_COUNT; i++)
        known = known || strcmp(section, config_keys[i].section) == 0;
    const struct config_key *near = nearest_key(section, name);
    if (known || (near && strcmp(near->key, name) == 0 && !nearest_section(section)))
        return sgp_fail(&r->own, SGP_E_CONFIG,
            near ? "%s:%u: [%.60s] %.60s: unknown key; did you mean [%s] %s?"
                 : "%s:%u: [%.60s] %.60s: unknown key; see sgpd.conf(5) for those that exist",
            file, r->number, section, name, near ? near->section : "", near ? near->key : "");
    if (section[0] == '\0')
        return sgp_fail(&r->own, SGP_E_CONFIG,
            "%s:%u: %.60s: a key before the first section; begin with [node]", file, r->number,
            name);
    const char *meant = nearest_section(section);
    char sections[SGP_TEXT_BYTES];
    list_sections(sections, sizeof sections);
    return sgp_fail(&r->own, SGP_E_CONFIG,
        meant ? "%s:%u: [%.60s]: unknown section; did you mean [%s]?"
              : "%s:%u: [%.60s]: unknown section; there are%s",
        file, r->number, section, meant ? meant : sections);
}

/* Lines. */

static enum config_id find_key(const char *section, const char *name)
{
    unsigned id = 0;
    while (id < CONFIG_KEY_COUNT && (strcmp(section, config_keys[id].section) != 0 ||
                                        strcmp(name, config_keys[id].key) != 0))
        id++;
    return (enum config_id)id;
}

/* Cut a comment that begins with " #" or " ;". inih itself knows only " ;", and does not cut it
 * where a line continues a value. */
static void cut_comment(char *value)
{
    if (value[0] == '#')
        value[0] = '\0';
    for (char *c = value; *c; c++)
        if (isspace((unsigned char)c[0]) && (c[1] == '#' || c[1] == ';'))
            *c = '\0';
    size_t length = strlen(value);
    while (length > 0 && isspace((unsigned char)value[length - 1]))
        value[--length] = '\0';
}

static int continue_value(struct reading *r, enum config_id id, const char *more)
{
    const struct config_key *key = &config_keys[id];
    if (key->type != CONFIG_LIST)
        return sgp_fail(&r->own, SGP_E_CONFIG,
            "%s:%u: an indented line continues the value above, and [%s] %s has only one line; "
            "begin a key at the start of its line",
            r->config.file, r->number, key->section, key->key);
    char **field = field_of(&r->config, key);
    char text[CONFIG_TEXT_BYTES];
    int length = snprintf(text, sizeof text, "%s %s", *field, more);
    if (length < 0 || (size_t)length >= sizeof text)
        return config_fail(&r->config, id, &r->own, SGP_E_CONFIG,
            "the value is longer than %u bytes; make it shorter", CONFIG_TEXT_BYTES - 1);
    return set_text(r, id, text);
}

/* inih's handler: one `key = value`, or a continuation of the one before under the same name. */
static int on_pair(void *user, const char *section, const char *name, const char *raw)
{
    struct reading *r = user;
    if (r->own.code != 0)
        return 0;
    enum config_id id = find_key(section, name);
    if (id == CONFIG_KEY_COUNT)
        return fail_unknown(r, section, name) == 0;
    char value[CONFIG_TEXT_BYTES];
    if (strlen(raw) >= sizeof value)
        return sgp_fail(&r->own, SGP_E_CONFIG, "%s:%u: the line is too long; make it shorter",
                   r->config.file, r->number) == 0;
    strcpy(value, raw);
    cut_comment(value);
    if (r->indented && r->config.lines[id] != 0)
        return continue_value(r, id, value) == 0;
    if (r->config.lines[id] != 0)
        return sgp_fail(&r->own, SGP_E_CONFIG,
                   "%s:%u: [%s] %s: given again; it stands in line %u already, remove one",
                   r->config.file, r->number, section, name, r->config.lines[id]) == 0;
    const char *usual = config_keys[id].default_text;
    r->config.lines[id] = r->number;
    r->config.changed[id] = !usual || strcmp(value, usual) != 0;
    return set_value(r, id, value) == 0;
}

/* inih's reader: one line without its newline, or NULL at the end or after an error. */
static char *next_line(char *line, int size, void *user)
{
    struct reading *r = user;
    if (r->own.code != 0 || r->position == r->bytes)
        return NULL;
    const char *start = r->text + r->position;
    size_t left = r->bytes - r->position;
    const char *end = memchr(start, '\n', left);
    size_t length = end ? (size_t)(end - start) : left;
    r->number++;
    if (memchr(start, '\0', length)) {
        (void)sgp_fail(&r->own, SGP_E_CONFIG, "%s:%u: a zero byte; a configuration is plain text",
            r->config.file, r->number);
        return NULL;
    }
    if (size < 3 || length > (size_t)size - 3) {
        (void)sgp_fail(&r->own, SGP_E_CONFIG,
            "%s:%u: the line is longer than %d bytes; make it shorter, or continue layers and "
            "classes in an indented line below",
            r->config.file, r->number, size - 3);
        return NULL;
    }
    memcpy(line, start, length);
    line[length] = '\0';
    r->indented = line[0] == ' ' || line[0] == '\t';
    r->position += length + (end ? 1 : 0);
    return line;
}

/* The whole file. */

static int set_defaults(struct reading *r)
{
    for (unsigned id = 0; id < CONFIG_KEY_COUNT; id++) {
        const char *text = config_keys[id].default_text;
        int code = text && !(is_text(config_keys[id].type) && !*text)
                       ? set_value(r, (enum config_id)id, text)
                   : is_text(config_keys[id].type) ? set_text(r, (enum config_id)id, "")
                                                   : 0;
        if (code < 0)
            return code;
    }
    return 0;
}

static int set_default_attach(struct reading *r)
{
    char path[CONFIG_TEXT_BYTES];
    const char *socket = r->config.socket, *slash = strrchr(socket, '/');
    if (*r->config.attach)
        return 0;
    (void)snprintf(
        path, sizeof path, "%.*sattach.sock", slash ? (int)(slash + 1 - socket) : 0, socket);
    return set_text(r, CONFIG_ID_ATTACH, path);
}

static int set_default_path(
    struct reading *r, enum config_id id, const char *before, const char *after)
{
    char path[CONFIG_TEXT_BYTES];
    char **field = field_of(&r->config, &config_keys[id]);
    if (**field)
        return 0;
    (void)snprintf(path, sizeof path, "%s/%s%s", before, r->config.name, after);
    return set_text(r, id, path);
}

bool config_is_private(const struct config *config)
{
    return !isnan(config->privacy_epsilon);
}

/* Keys by which more than noisy steps would leave the node, and keys without which it would tell
 * how many rows it has. Refused here, before any connection. */
static int check_privacy(struct reading *r)
{
    struct config *config = &r->config;
    static const enum config_id beside[] = {
        CONFIG_ID_PRIVACY_DELTA, CONFIG_ID_PRIVACY_CLIP, CONFIG_ID_PRIVACY_NOISE};
    const bool of_fleet = strcmp(config->scale, "fleet") == 0;
    const struct {
        enum config_id id;
        bool wrong;
        const char *why;
    } rules[] = {
        {CONFIG_ID_KIND, config->kind == CONFIG_ATTACHED,
            "[privacy] is for the built-in learner; a program clips and adds noise itself, and "
            "claims it by node.privacy(); remove the section"},
        {CONFIG_ID_SCALE, of_fleet,
            "with [privacy] no statistics of this node's rows may leave it; give a scaling file "
            "that is public, or made of public rows by sgpctl scaling"},
        {CONFIG_ID_SHARDS,
            config->shards.kind == SGP_SHARD_SORTED || config->shards.kind == SGP_SHARD_DIRICHLET,
            "with [privacy] the rows of others may not say which rows are its own; give none, "
            "contiguous or round-robin"},
        {CONFIG_ID_ROUNDS, config->rounds == 0,
            "with [privacy] the end of training may not tell how many rows the node has; give "
            "[train] rounds in the place of epochs"},
        {CONFIG_ID_STOP_AT_ACCURACY, !isnan(config->stop_at_accuracy),
            "with [privacy] the accuracy on this node's rows may not stop others; remove it"},
        {CONFIG_ID_KEEP_BEST, config->keep_best != 1,
            "with [privacy] measures of this node's rows may not leave it; remove it"},
    };
    for (size_t i = 0; !config_is_private(config) && i < sizeof beside / sizeof *beside; i++)
        if (config->changed[beside[i]])
            return config_fail(config, beside[i], &r->own, SGP_E_CONFIG,
                "without epsilon steps are not private; add a line `epsilon = ...` to section "
                "[privacy], or remove this one");
    for (size_t i = 0; config_is_private(config) && i < sizeof rules / sizeof *rules; i++)
        if (rules[i].wrong)
            return config_fail(config, rules[i].id, &r->own, SGP_E_CONFIG, "%s", rules[i].why);
    return 0;
}

/* Checks that need several keys. */
static int check_whole(struct reading *r)
{
    struct config *config = &r->config;
    for (unsigned id = 0; id < CONFIG_KEY_COUNT; id++) {
        const struct config_key *key = &config_keys[id];
        char **text = field_of(config, key);
        bool required =
            !key->default_text || (id == CONFIG_ID_LAYERS && config->kind == CONFIG_LAYERED);
        if (!required || (config->lines[id] != 0 && **text))
            continue;
        return sgp_fail(&r->own, SGP_E_CONFIG,
            "%s: [%s] %s is missing; add a line `%s = ...` to section [%s]: %s", config->file,
            key->section, key->key, key->key, key->section, key->meaning);
    }
    if (config->rounds && config->lines[CONFIG_ID_EPOCHS])
        return config_fail(config, CONFIG_ID_ROUNDS, &r->own, SGP_E_CONFIG,
            "epochs is given as well, in line %u; keep one of the two",
            config->lines[CONFIG_ID_EPOCHS]);
    if (config->rounds || config->kind == CONFIG_ATTACHED)
        config->epochs = 0;
    if (*config->test_labels && !*config->test)
        return config_fail(config, CONFIG_ID_TEST_LABELS, &r->own, SGP_E_CONFIG,
            "given without test; add a line `test = FILE`");
    if (check_privacy(r) < 0)
        return r->own.code;
    if (set_default_path(r, CONFIG_ID_STATE_DIRECTORY, "/var/lib/sgpd", "") < 0 ||
        set_default_path(r, CONFIG_ID_SOCKET, "/run/sgpd", "/control.sock") < 0 ||
        set_default_attach(r) < 0)
        return r->own.code;
    return 0;
}

int config_parse(const char *file, const char *text, size_t bytes, struct sgp_error *error,
    struct config *ret_config)
{
    struct reading r = {.text = text, .bytes = bytes};
    r.config.file = strdup(file);
    if (!r.config.file)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", file);
    if (set_defaults(&r) == 0) {
        int line = ini_parse_stream(next_line, &r, on_pair, &r);
        if (line < 0)
            (void)sgp_fail(&r.own, -ENOMEM, "%s: out of memory", file);
        else if (line > 0 && (r.own.code == 0 || (unsigned)line < r.number)) {
            r.own.code = 0; /* inih continues after a line that it cannot read */
            (void)sgp_fail(&r.own, SGP_E_CONFIG,
                "%s:%d: not understood; a line is `[section]`, `key = value`, or a comment that "
                "begins with # or ;",
                file, line);
        }
    }
    if (r.own.code == 0 && check_whole(&r) == 0) {
        *ret_config = r.config;
        return 0;
    }
    config_finish(&r.config);
    return sgp_fail(error, r.own.code, "%s", r.own.text);
}

/* A path without a fixed base is reported with the directory in which it was looked up. */
static int fail_missing(const char *file, struct sgp_error *error)
{
    char directory[SGP_TEXT_BYTES / 2];
    bool relative = file[0] != '/' && getcwd(directory, sizeof directory) != NULL;
    return sgp_fail(error, -ENOENT,
        "%s: there is no such file%s%s; write one (sgpd.conf(5) tells how), or name another with "
        "-c",
        file, relative ? " in " : "", relative ? directory : "");
}

int config_load(const char *file, struct sgp_error *error, struct config *ret_config)
{
    FILE *stream = fopen(file, "re");
    if (!stream && errno == ENOENT)
        return fail_missing(file, error);
    if (!stream)
        return sgp_fail(error, -errno, "%s: cannot be opened: %s; name an existing file with -c",
            file, strerror(errno));
    char *text = malloc(CONFIG_BYTES_MAX + 1);
    size_t bytes = text ? fread(text, 1, CONFIG_BYTES_MAX + 1, stream) : 0;
    int code = text ? (ferror(stream) ? -EIO : 0) : -ENOMEM;
    (void)fclose(stream);
    if (code < 0)
        (void)sgp_fail(error, code, "%s: cannot be read: %s; name a readable file with -c", file,
            sgp_strerror(code));
    else if (bytes > CONFIG_BYTES_MAX)
        code = sgp_fail(error, SGP_E_CONFIG, "%s: larger than %u bytes; is it a configuration?",
            file, CONFIG_BYTES_MAX);
    else
        code = config_parse(file, text, bytes, error, ret_config);
    free(text);
    return code;
}

/* The key now has another value in the same section, or none. */
static int __attribute__((format(printf, 3, 4)))
change_text(struct config *config, enum config_id id, const char *format, ...)
{
    char **field = field_of(config, &config_keys[id]), *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return -ENOMEM;
    free(*field);
    *field = text;
    return 0;
}

static int copy_texts(const struct config *config, struct config *copy)
{
    bool whole = (copy->file = strdup(config->file)) != NULL;
    for (unsigned id = 0; id < CONFIG_KEY_COUNT; id++) {
        /* the function only reads */
        char **from = field_of((struct config *)(uintptr_t)config, &config_keys[id]);
        if (is_text(config_keys[id].type))
            whole = (*(char **)field_of(copy, &config_keys[id]) = strdup(*from)) != NULL && whole;
    }
    return whole ? 0 : -ENOMEM;
}

/* Keys without use for a node that has no rows. */
static const enum config_id of_rows[] = {CONFIG_ID_TRAIN, CONFIG_ID_LABELS, CONFIG_ID_TEST,
    CONFIG_ID_TEST_LABELS, CONFIG_ID_LABEL, CONFIG_ID_CLASSES, CONFIG_ID_CATEGORIES,
    CONFIG_ID_IGNORE};

int config_colocated(struct config *config, const char *name, uint64_t inputs,
    struct sgp_error *error, struct config *ret_owner)
{
    struct config owner = *config;
    int code = copy_texts(config, &owner);
    for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows && code == 0; i++)
        code = change_text(&owner, of_rows[i], "%s", "");
    owner.privacy_epsilon = NAN; /* it takes no steps */
    if (code == 0)
        code = change_text(&owner, CONFIG_ID_SCALE, "none");
    if (code == 0)
        code = change_text(&owner, CONFIG_ID_NAME, "%s", name);
    if (code == 0)
        code = change_text(&owner, CONFIG_ID_STATE_DIRECTORY, "%s/owner", config->state_directory);
    if (code == 0)
        code = change_text(&owner, CONFIG_ID_SOCKET, "%s.owner", config->socket);
    if (code == 0 && *config->events)
        code = change_text(&owner, CONFIG_ID_EVENTS, "%s.owner", config->events);
    if (code == 0 && *config->trace)
        code = change_text(&owner, CONFIG_ID_TRACE, "%s.owner", config->trace);
    if (code == 0 && *config->tensorboard)
        code = change_text(&owner, CONFIG_ID_TENSORBOARD, "%s.owner", config->tensorboard);
    if (code == 0)
        code = change_text(config, CONFIG_ID_LISTEN, SGP_ADDRESS_NONE);
    if (code < 0) {
        config_finish(&owner);
        return sgp_fail(error, code, "%s: out of memory", config->file);
    }
    if (strlen(owner.socket) >= sizeof((struct sockaddr_un *)0)->sun_path) {
        code = config_fail(config, CONFIG_ID_SOCKET, error, SGP_E_CONFIG,
            "that of the co-located owner, %.120s..., is longer than %zu bytes; take a shorter "
            "path",
            owner.socket, sizeof((struct sockaddr_un *)0)->sun_path - 1);
        config_finish(&owner);
        return code;
    }
    /* the other node has reported keys without effect */
    memset(owner.changed, 0, sizeof owner.changed);
    owner.inputs = inputs;
    owner.colocated = true;
    owner.stop_at_accuracy = NAN;
    owner.keep_best = 1;
    *ret_owner = owner;
    return 0;
}

void config_finish(struct config *config)
{
    for (unsigned id = 0; id < CONFIG_KEY_COUNT; id++)
        if (is_text(config_keys[id].type))
            free(*(char **)field_of(config, &config_keys[id]));
    free(config->file);
    *config = (struct config){0};
}

void config_print_keys(FILE *stream)
{
    const char *section = "";
    for (unsigned id = 0; id < CONFIG_KEY_COUNT; id++) {
        const struct config_key *key = &config_keys[id];
        if (strcmp(section, key->section) != 0)
            (void)fprintf(stream, "[%s]\n", key->section);
        section = key->section;
        (void)fprintf(stream, "  %s = %s\n      %s", key->key,
            key->default_text ? key->default_text : "(must be given)", key->meaning);
        if (key->words && key->type == CONFIG_REAL_OR_WORD)
            (void)fprintf(stream, "; %s, or %g to %g", key->words, key->least, key->most);
        else if (key->words)
            (void)fprintf(stream, "; one of %s", key->words);
        else if (key->most > 0)
            (void)fprintf(stream, "; %g to %g", key->least, key->most);
        (void)fputc('\n', stream);
    }
}
