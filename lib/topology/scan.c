/* SPDX-License-Identifier: Apache-2.0 */
/* A scanner of DOT's tokens that keeps line numbers. It can measure a text and find a place in it.
 * It makes one pass, and uses no memory except a small stack. Any thread. */
#include "topology/scan.h"

#include <string.h>
#include <strings.h>

/* The buffer of libcgraph for a quoted string ends at 16384. */
#define SGP_DOT_STRING_BYTES_MAX 8192u

enum kind { END, WORD, STRING, EDGE, MARK, OPEN_COMMENT, OPEN_STRING, LONG_STRING };

struct token {
    enum kind kind;
    const char *start; /* start of a string, after its quote */
    size_t length;
    uint32_t line;
};

struct scanner {
    const char *begin, *at, *end;
    uint32_t line;
};

static struct scanner scan_text(const struct sgp_scan_text *text)
{
    return (struct scanner){
        .begin = text->text, .at = text->text, .end = text->text + text->length, .line = 1};
}

static void skip_to(struct scanner *s, const char *to)
{
    for (; s->at < to; s->at++)
        s->line += *s->at == '\n';
}

static bool starts_with(const struct scanner *s, const char *prefix)
{
    size_t length = strlen(prefix);
    return (size_t)(s->end - s->at) >= length && memcmp(s->at, prefix, length) == 0;
}

/* Spaces and comments, which include lines that begin with '#'. False if a comment is not
 * closed. */
static bool skip_blank(struct scanner *s)
{
    while (s->at < s->end) {
        bool line_start = s->at == s->begin || s->at[-1] == '\n';
        if (strchr(" \t\r\n\v\f", *s->at)) {
            skip_to(s, s->at + 1);
        } else if (starts_with(s, "//") || (*s->at == '#' && line_start)) {
            const char *stop = memchr(s->at, '\n', (size_t)(s->end - s->at));
            skip_to(s, stop ? stop : s->end);
        } else if (starts_with(s, "/*")) {
            const char *stop = memmem(s->at + 2, (size_t)(s->end - s->at - 2), "*/", 2);
            if (!stop)
                return false;
            skip_to(s, stop + 2);
        } else {
            break;
        }
    }
    return true;
}

static struct token scan_quoted(struct scanner *s, struct token token)
{
    const char *at = s->at + 1;
    token.kind = STRING;
    token.start = at;
    while (at < s->end && *at != '"')
        at += *at == '\\' && at + 1 < s->end ? 2 : 1;
    token.length = (size_t)(at - token.start);
    if (at >= s->end)
        token.kind = OPEN_STRING;
    else if (token.length > SGP_DOT_STRING_BYTES_MAX)
        token.kind = LONG_STRING;
    skip_to(s, at < s->end ? at + 1 : s->end);
    return token;
}

static struct token scan_html(struct scanner *s, struct token token)
{
    const char *at = s->at;
    size_t depth = 0;
    do {
        depth += *at == '<';
        depth -= *at == '>';
        at++;
    } while (at < s->end && depth > 0);
    token.kind = depth > 0 ? OPEN_STRING : STRING;
    token.length = (size_t)(at - token.start);
    if (token.length > SGP_DOT_STRING_BYTES_MAX && token.kind == STRING)
        token.kind = LONG_STRING;
    skip_to(s, at);
    return token;
}

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || (unsigned char)c >= 0x80;
}

static struct token next_token(struct scanner *s)
{
    bool closed = skip_blank(s);
    struct token token = {.kind = END, .start = s->at, .length = 1, .line = s->line};
    if (!closed)
        token.kind = OPEN_COMMENT;
    if (!closed || s->at == s->end)
        return token;
    if (*s->at == '"')
        return scan_quoted(s, token);
    if (*s->at == '<')
        return scan_html(s, token);
    if (starts_with(s, "->") || starts_with(s, "--")) {
        token.kind = EDGE;
        token.length = 2;
    } else if (in_word(*s->at)) {
        token.kind = WORD;
        while (s->at + token.length < s->end && in_word(s->at[token.length]))
            token.length++;
    } else {
        token.kind = MARK;
    }
    s->at += token.length;
    return token;
}

/* Whether a word or string equals this name. In strings only \" is an escape. */
static bool is_name(const struct token *token, const char *name)
{
    if (token->kind != WORD && token->kind != STRING)
        return false;
    const char *at = token->start, *end = token->start + token->length;
    for (; at < end && *name; at++, name++) {
        if (*at == '\\' && at + 1 < end && at[1] == '"')
            at++;
        if (*at != *name)
            return false;
    }
    return at == end && !*name;
}

static bool is_mark(const struct token *token, char mark)
{
    return token->kind == MARK && *token->start == mark;
}

static bool is_keyword(const struct token *token, const char *word)
{
    return token->kind == WORD && token->length == strlen(word) &&
           strncasecmp(token->start, word, token->length) == 0;
}

static bool starts_graph(const struct token *token)
{
    return is_keyword(token, "digraph") || is_keyword(token, "graph");
}

/* An upper bound of the edges that libcgraph would make. In `L -> R` every node of L has an edge to
 * every node of R. A set in braces has as many nodes as words. A set that can be named again has as
 * many as the text so far. */
struct measure {
    uint64_t words;
    uint64_t edges;
    uint64_t last;    /* number of nodes in the latest end of an edge */
    uint64_t pending; /* number of nodes to the left of an edge whose right side follows; 0: none */
    uint32_t depth;
    uint32_t graphs;
    bool attributes;   /* within [ ] */
    unsigned fraction; /* 1: the latest token was the word; 2: it was the = after the word */
    bool named;        /* the latest word but one was `subgraph` */
    struct {
        uint64_t words;
        uint64_t pending;
        bool named;
    } open[SGP_DOT_DEPTH_MAX];
};

static void measure_end(struct measure *m, uint64_t nodes)
{
    m->edges += m->pending * nodes;
    if (m->edges > SGP_EDGES_MAX)
        m->edges = SGP_EDGES_MAX + 1u; /* stay at this value, to avoid an overflow */
    m->pending = 0;
    m->last = nodes;
}

static void measure_word(struct measure *m, const struct token *token)
{
    if (m->depth == 0) {
        m->graphs += starts_graph(token);
        return;
    }
    if (is_keyword(token, "subgraph")) {
        m->named = true;
        return;
    }
    /* libcgraph reads 10.0.0.1 without quotes as several numbers */
    char c = *token->start;
    bool number = token->kind == WORD && ((c >= '0' && c <= '9') || c == '.');
    m->words += number ? token->length : 1;
    measure_end(m, m->named ? m->words : number ? token->length : 1);
}

static void measure_mark(struct measure *m, char mark)
{
    if (mark == '[') {
        m->attributes = true;
    } else if (mark == '{') {
        m->open[m->depth].words = m->words;
        m->open[m->depth].pending = m->pending;
        m->open[m->depth++].named = m->named;
        m->pending = 0;
        m->named = false;
    } else if (mark == '}' && m->depth > 0) {
        m->depth--;
        m->pending = m->open[m->depth].pending;
        measure_end(m, m->words - (m->open[m->depth].named ? 0 : m->open[m->depth].words));
        m->named = false;
    } else if (mark == ';') {
        m->named = false;
    }
}

/* libcgraph ends its input at '@'. Its version decides whether '#' begins a comment in the middle
 * of a line or after a lone carriage return. If libcgraph and this scanner disagreed, text could be
 * hidden from the measure, or libcgraph could be inside a string when the next file begins. */
static const char *find_strange(const struct sgp_scan_text *text)
{
    for (const char *c = text->text; c < text->text + text->length; c++)
        if (*c == '\0' || (*c == '\r' && (c + 1 == text->text + text->length || c[1] != '\n')))
            return c;
    return NULL;
}

/* libcgraph treats an empty fraction as none. */
static bool is_empty_fraction(struct measure *m, const struct token *token)
{
    bool value = m->fraction == 2;
    bool equals = m->fraction == 1 && is_mark(token, '=');
    m->fraction = equals ? 2 : m->attributes && is_name(token, "fraction");
    bool html = token->length == 2 && memcmp(token->start, "<>", 2) == 0;
    return value && token->kind == STRING && (token->length == 0 || html);
}

static int measure_token(struct measure *m, const struct sgp_scan_text *text,
    const struct token *token, struct sgp_error *error)
{
    switch (token->kind) {
    case OPEN_COMMENT:
        return sgp_fail(error, SGP_E_SYNTAX, "%s:%u: a comment is not closed; end it with */",
            text->name, token->line);
    case OPEN_STRING:
        return sgp_fail(error, SGP_E_SYNTAX, "%s:%u: a string is not closed; end it with a quote",
            text->name, token->line);
    case LONG_STRING:
        return sgp_fail(error, SGP_E_LIMIT, "%s:%u: a string has %zu bytes; the limit is %u",
            text->name, token->line, token->length, SGP_DOT_STRING_BYTES_MAX);
    case MARK:
        if (strchr("@#", *token->start))
            return sgp_fail(error, SGP_E_SYNTAX, "%s:%u: syntax error near '%c'; %s", text->name,
                token->line, *token->start,
                *token->start == '@' ? "put it in quotes" : "a comment begins with //");
        if (*token->start == '{' && m->depth == SGP_DOT_DEPTH_MAX)
            return sgp_fail(error, SGP_E_LIMIT,
                "%s:%u: braces are nested too deep; the limit is %u", text->name, token->line,
                SGP_DOT_DEPTH_MAX);
        if (m->attributes)
            m->attributes = *token->start != ']';
        else
            measure_mark(m, *token->start);
        return 0;
    case EDGE:
        if (!m->attributes)
            m->pending = m->last;
        return 0;
    default:
        if (!m->attributes)
            measure_word(m, token);
        return 0;
    }
}

int sgp_scan_measure(const struct sgp_scan_text *text, struct sgp_error *error)
{
    struct scanner s = scan_text(text);
    const char *strange = find_strange(text);
    if (strange) {
        skip_to(&s, strange);
        return sgp_fail(error, SGP_E_SYNTAX, "%s:%u: a %s; a topology file is plain text",
            text->name, s.line, *strange ? "carriage return without a line feed" : "zero byte");
    }
    struct measure m = {0};
    for (;;) {
        struct token token = next_token(&s);
        if (token.kind == END)
            break;
        if (is_empty_fraction(&m, &token))
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "%s:%u: a fraction is empty; write a number above 0 and at most 1, as 0.25 or "
                "\"2/3\", or leave it out",
                text->name, token.line);
        int code = measure_token(&m, text, &token, error);
        if (code)
            return code;
        if (m.edges > SGP_EDGES_MAX)
            return sgp_fail(error, SGP_E_LIMIT, "%s:%u: there are too many edges; the limit is %u",
                text->name, token.line, SGP_EDGES_MAX);
        if (m.graphs > SGP_PHASES_MAX)
            return sgp_fail(error, SGP_E_LIMIT,
                "%s:%u: there are too many digraphs; the limit is %u", text->name, token.line,
                SGP_PHASES_MAX);
    }
    return 0;
}

/* Move to the beginning of the digraph with that number. Returns its line. */
static uint32_t seek_digraph(struct scanner *s, uint32_t digraph)
{
    uint32_t depth = 0, line = 1;
    for (struct token token = next_token(s); token.kind != END; token = next_token(s)) {
        if (depth == 0 && starts_graph(&token)) {
            line = token.line;
            if (digraph-- == 0)
                return line;
        }
        depth += is_mark(&token, '{');
        if (depth > 0)
            depth -= is_mark(&token, '}');
    }
    return line;
}

uint32_t sgp_scan_line(const struct sgp_scan_text *text, uint32_t digraph, const char *source,
    const char *target, uint32_t occurrence)
{
    struct scanner s = scan_text(text);
    uint32_t line = seek_digraph(&s, digraph);
    if (!source)
        return line;
    struct token last[2] = {{0}, {0}};
    uint32_t depth = 0, first_seen = 0, edge_seen = 0;
    for (struct token token = next_token(&s); token.kind != END; token = next_token(&s)) {
        if (depth > 0 && is_name(&token, source) && first_seen == 0)
            first_seen = token.line;
        if (target && is_name(&token, target) && last[1].kind == EDGE &&
            is_name(&last[0], source)) {
            edge_seen = token.line;
            if (occurrence-- <= 1)
                break;
        }
        last[0] = last[1];
        last[1] = token;
        depth += is_mark(&token, '{');
        if (is_mark(&token, '}') && (depth == 0 || --depth == 0))
            break;
    }
    if (edge_seen)
        return edge_seen;
    return first_seen ? first_seen : line;
}
