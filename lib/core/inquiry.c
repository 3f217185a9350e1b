/* SPDX-License-Identifier: Apache-2.0 */
/* Inquiries: which nodes are asked about a share whose target is unreachable, or has returned with
 * another incarnation.
 *
 * The target may have left for good, and then its heir answers for it (accounts.c). Heirs are
 * out-neighbours of leavers. So the order is: this node itself, the target, its out-neighbours, all
 * other nodes. If the answer is the share's number or a greater one, the share was accepted. If it
 * is smaller, the share returns. If no node knows anything, the share stays owed, and all nodes are
 * asked again at growing intervals. The search ends with the share's return if the target has
 * another incarnation now, and either all nodes could be asked, or a long time has passed.
 *
 * The rule: docs/rules/inquiry.md */
#include "core/core.h"

#include <stdio.h>
#include <string.h>

#define QUESTION_NS SGP_SECOND     /* interval between two questions */
#define ANSWER_NS (3 * SGP_SECOND) /* timeout of an answer */
#define SEARCH_NS (2 * SGP_SECOND) /* interval between two searches; doubles up to ... */
#define SEARCH_MAX_NS (300 * SGP_SECOND)
#define SILENT_NS (300 * SGP_SECOND) /* how long nodes that cannot be asked are waited for */

enum { PASS_TARGET, PASS_NEIGHBOURS, PASS_OTHERS, PASS_END };

/* ---- subjects of inquiries ---- */

/* Debts are being handed to an heir, which may answer for them already. */
static bool is_frozen(const struct sgp_node *node)
{
    return sgp_core_has_gone(node) && sgp_core_bequest(node) != NULL;
}

/* Only the target uses values without weight, and it says itself what became of them. */
static bool is_unreachable(const struct sgp_node *node, const struct sgp_core_link *link)
{
    if (!link->owed[0].exists || link->owed[0].publishing || link->memory.incarnation == 0 ||
        sgp_core_is_pledged(node, link) || sgp_core_is_weightless(&link->owed[0].share))
        return false;
    return link->inquiry.disputed != 0 || link->inquiry.unreachable != SGP_TIME_NEVER;
}

/* When the link is due for a question. */
static sgp_time due_of_link(const struct sgp_node *node, const struct sgp_core_link *link)
{
    if (!is_unreachable(node, link))
        return SGP_TIME_NEVER;
    sgp_time from =
        link->inquiry.disputed != 0 ? 0 : link->inquiry.unreachable + sgp_core_silence(link);
    bool same = link->inquiry.search.number == link->owed[0].share.number;
    return same && link->inquiry.search.next > from ? link->inquiry.search.next : from;
}

static struct sgp_inquire question_of_link(
    const struct sgp_node *node, const struct sgp_core_link *link)
{
    const struct sgp_topology_node *nodes = node->config.topology->nodes;
    return (struct sgp_inquire){.source = nodes[node->config.self].name,
        .target = nodes[link->peer].name,
        .source_incarnation = node->config.incarnation,
        .target_incarnation =
            link->inquiry.disputed != 0 ? link->inquiry.disputed : link->memory.incarnation,
        .number = link->owed[0].share.number};
}

static struct sgp_inquire question_of_account(const struct sgp_account *account)
{
    return (struct sgp_inquire){.source = account->source,
        .target = account->target,
        .source_incarnation = account->source_incarnation,
        .target_incarnation = account->target_incarnation,
        .number = account->number};
}

/* Whether this is the pending question. */
static bool is_asked(const struct sgp_node *node, const struct sgp_inquire *question)
{
    const struct sgp_account *about = &node->inquiry.about;
    return node->inquiry.asked && about->number == question->number &&
           about->source_incarnation == question->source_incarnation &&
           about->target_incarnation == question->target_incarnation &&
           strcmp(about->source, question->source) == 0 &&
           strcmp(about->target, question->target) == 0;
}

/* The target is connected and may get the share again, so earlier answers are void. */
static void forget_search(struct sgp_node *node, struct sgp_core_link *link)
{
    struct sgp_inquire question = question_of_link(node, link);
    if (is_asked(node, &question))
        node->inquiry.about.number = 0;
    link->inquiry.search.number = 0;
}

/* Record since when the targets of owed shares are unreachable. */
static void watch_links(struct sgp_node *node)
{
    node->inquiry.links = false;
    SGP_EACH_OF (link, node, SGP_SET_OWING) {
        bool up = link->connection.state == SGP_LINK_UP, disputed = link->inquiry.disputed != 0;
        if (up && !disputed && link->inquiry.search.number != 0)
            forget_search(node, link);
        if (up || !link->owed[0].exists)
            link->inquiry.unreachable = SGP_TIME_NEVER;
        else if (link->inquiry.unreachable == SGP_TIME_NEVER)
            link->inquiry.unreachable = node->now;
        if ((!up || disputed) && is_unreachable(node, link))
            node->inquiry.links = true;
    }
}

struct subject { /* subject of a question: an account or a link; the other is NULL */
    struct sgp_core_link *link;
    struct sgp_core_account *debt;
    struct sgp_search *search;
    struct sgp_inquire question;
    int64_t target; /* -ENOENT: the file does not name the target */
};

static void describe(struct sgp_node *node, struct subject *subject)
{
    if (subject->link != NULL) {
        subject->search = &subject->link->inquiry.search;
        subject->target = subject->link->peer;
        subject->question = question_of_link(node, subject->link);
    } else {
        subject->search = &subject->debt->search;
        subject->target = sgp_topology_find(node->config.topology, subject->debt->account.target);
        subject->question = question_of_account(&subject->debt->account);
    }
    uint64_t number = subject->question.number;
    if (subject->search->number != number)
        *subject->search = (struct sgp_search){.number = number, .begun = node->now};
}

/* The subject that is due first; false if none is due. */
static bool choose_subject(struct sgp_node *node, struct subject *ret_subject)
{
    sgp_time first = node->now + 1;
    *ret_subject = (struct subject){.link = NULL};
    for (uint32_t i = 0; !is_frozen(node) && node->accounts.debts > 0 && i < node->accounts.count;
         i++) {
        struct sgp_core_account *entry = &node->accounts.entries[i];
        if (!sgp_core_is_debt(entry) || entry->search.next >= first)
            continue;
        first = entry->search.next;
        ret_subject->debt = entry;
    }
    for (uint32_t i = sgp_core_next(node, SGP_SET_OWING, 0);
         node->inquiry.links && i < node->layout.out_count;
         i = sgp_core_next(node, SGP_SET_OWING, i + 1)) {
        sgp_time due = due_of_link(node, &node->layout.links[i]);
        if (due >= first)
            continue;
        first = due;
        *ret_subject = (struct subject){.link = &node->layout.links[i]};
    }
    if (ret_subject->link == NULL && ret_subject->debt == NULL)
        return false;
    describe(node, ret_subject);
    return true;
}

/* ---- results ---- */

static void tell(struct sgp_node *node, int64_t peer, double weight, enum sgp_reason reason)
{
    struct sgp_noted *note =
        sgp_core_note(node, SGP_NOTE_SETTLED, peer >= 0 ? (uint32_t)peer : SGP_SLOT_NONE);
    note->amount = weight;
    note->reason = reason;
}

/* The result is known: the weight belongs to the target, or returns. */
static void settle(struct sgp_node *node, const struct subject *subject, bool accepted)
{
    struct sgp_core_link *link = subject->link;
    accepted = accepted || (link != NULL && sgp_core_went_on(node, &link->owed[0].share));
    enum sgp_reason reason = accepted ? SGP_REASON_NONE : SGP_REASON_FORGOT;
    if (link != NULL) {
        double weight = link->owed[0].share.weight;
        link->inquiry.disputed = 0;
        sgp_core_mark_dirty(node, link);
        if (accepted)
            sgp_core_accepted_by_peer(node, link);
        else
            sgp_core_take_back(node, link, reason);
        tell(node, link->peer, weight, reason);
    } else {
        uint32_t index = (uint32_t)(subject->debt - node->accounts.entries);
        double weight = subject->debt->account.weight;
        sgp_core_end_debt(node, index, accepted ? SGP_MASS_PAY : SGP_MASS_RETURN_DEBT);
        tell(node, subject->target, weight, reason);
    }
    node->again = true;
}

/* All nodes were asked, and none knew. */
static void end_search(struct sgp_node *node, const struct subject *subject)
{
    struct sgp_search *search = subject->search;
    bool long_ago = node->now - search->begun >= SILENT_NS;
    if (search->moved && (!search->silent || long_ago)) {
        settle(node, subject, node->role->unique); /* a token may have been handed on */
        return;
    }
    sgp_time pace = 2 * search->pace;
    search->pace = pace < SEARCH_NS ? SEARCH_NS : pace > SEARCH_MAX_NS ? SEARCH_MAX_NS : pace;
    search->next = node->now + search->pace;
    search->pass = search->at = 0;
    search->moved = search->silent = false;
}

static bool is_of_pass(
    const struct sgp_node *node, const struct subject *subject, uint32_t pass, uint32_t peer)
{
    const struct sgp_topology *topology = node->config.topology;
    if (peer == node->config.self)
        return false;
    if (subject->target < 0)
        return pass == PASS_OTHERS;
    if (peer == subject->target)
        return pass == PASS_TARGET;
    bool neighbour =
        sgp_topology_next_round(topology, (uint32_t)subject->target, peer, 0) != SGP_ROUND_NONE;
    return pass == (neighbour ? PASS_NEIGHBOURS : PASS_OTHERS);
}

/* The next node to ask, or SGP_SLOT_NONE at the end. */
static uint32_t next_to_ask(const struct sgp_node *node, const struct subject *subject)
{
    struct sgp_search *search = subject->search;
    for (; search->pass < PASS_END; search->pass++, search->at = 0)
        while (search->at < node->config.topology->node_count)
            if (is_of_pass(node, subject, search->pass, search->at++))
                return search->at - 1;
    return SGP_SLOT_NONE;
}

/* `answer` is that of `whom`; NULL: it gave none. */
static void take_answer(struct sgp_node *node, const struct subject *subject, uint32_t whom,
    const struct sgp_answer *answer)
{
    struct sgp_search *search = subject->search;
    if (answer != NULL && answer->known) {
        settle(node, subject, answer->number >= subject->question.number);
        return;
    }
    search->silent = search->silent || answer == NULL;
    search->moved =
        search->moved || (answer != NULL && whom == (uint32_t)subject->target &&
                             answer->incarnation != subject->question.target_incarnation);
    search->next = node->now;
}

static void ask(struct sgp_node *node, const struct subject *subject)
{
    struct sgp_answer own;
    bool begins = subject->search->pass == 0 && subject->search->at == 0;
    if (begins && sgp_node_answer(node, &subject->question, &own) && own.known) {
        take_answer(node, subject, node->config.self, &own);
        return;
    }
    uint32_t whom = next_to_ask(node, subject);
    if (whom == SGP_SLOT_NONE) {
        end_search(node, subject);
        return;
    }
    const struct sgp_inquire *question = &subject->question;
    node->inquiry = (struct sgp_inquiry){.asked = true,
        .links = node->inquiry.links,
        .about = {.source_incarnation = question->source_incarnation,
            .target_incarnation = question->target_incarnation,
            .number = question->number},
        .whom = whom,
        .until = node->now + ANSWER_NS,
        .next = node->now + QUESTION_NS};
    (void)snprintf(node->inquiry.about.source, SGP_NAME_BYTES, "%s", question->source);
    (void)snprintf(node->inquiry.about.target, SGP_NAME_BYTES, "%s", question->target);
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_INQUIRE);
    effect->inquire.peer = whom;
    effect->inquire.question = question_of_account(&node->inquiry.about);
}

/* The subject of the pending question, if it is not settled meanwhile. */
static bool find_subject(struct sgp_node *node, struct subject *ret_subject)
{
    *ret_subject = (struct subject){.link = NULL};
    for (uint32_t i = 0; !is_frozen(node) && node->accounts.debts > 0 && i < node->accounts.count;
         i++) {
        struct sgp_inquire question = question_of_account(&node->accounts.entries[i].account);
        if (sgp_core_is_debt(&node->accounts.entries[i]) && is_asked(node, &question))
            ret_subject->debt = &node->accounts.entries[i];
    }
    SGP_EACH_OF (link, node, SGP_SET_OWING) {
        struct sgp_inquire question = question_of_link(node, link);
        if (is_unreachable(node, link) && is_asked(node, &question))
            *ret_subject = (struct subject){.link = link};
    }
    if (ret_subject->link == NULL && ret_subject->debt == NULL)
        return false;
    describe(node, ret_subject);
    return true;
}

void sgp_core_answered(struct sgp_node *node, const struct sgp_message *message)
{
    struct subject subject;
    if (!node->inquiry.asked)
        return;
    bool found = find_subject(node, &subject);
    node->inquiry.asked = false;
    if (found)
        take_answer(node, &subject, node->inquiry.whom, message != NULL ? &message->answer : NULL);
}

void sgp_core_inquire(struct sgp_node *node)
{
    struct subject subject;
    if (node->drained || node->leaving.left)
        return;
    watch_links(node);
    if (node->inquiry.asked && node->now >= node->inquiry.until)
        sgp_core_answered(node, NULL);
    if (!node->inquiry.asked && node->now >= node->inquiry.next && choose_subject(node, &subject))
        ask(node, &subject);
}

sgp_time sgp_core_inquiry_deadline(const struct sgp_node *node)
{
    const struct sgp_inquiry *inquiry = &node->inquiry;
    sgp_time first = SGP_TIME_NEVER;
    if (node->drained || node->leaving.left)
        return first;
    if (inquiry->asked)
        return inquiry->until;
    for (uint32_t i = 0; !is_frozen(node) && node->accounts.debts > 0 && i < node->accounts.count;
         i++)
        if (sgp_core_is_debt(&node->accounts.entries[i]) &&
            node->accounts.entries[i].search.next < first)
            first = node->accounts.entries[i].search.next;
    if (!node->inquiry.links)
        return first < inquiry->next ? inquiry->next : first;
    SGP_EACH_OF (link, node, SGP_SET_OWING) {
        sgp_time due = due_of_link(node, link);
        first = due < first ? due : first;
    }
    return first < inquiry->next ? inquiry->next : first;
}
