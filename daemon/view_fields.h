/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of the status and of a peer: one row each, and the only list of them in the code.
 *
 * render.c makes JSON of the rows, metrics.c the text of /metrics, and `sgpctl status` and `sgpctl
 * peers` take their order and their short views from them. A test compares them with the tables of
 * docs/CONFIGURATION.md. What a row shows is filled into view.h by inspect.c.
 *
 * Columns of a row, where `view` is the struct that it shows:
 *   key     in JSON, in the order of the rows
 *   kind    how the value becomes JSON: as_KIND of render.c
 *   value   in C
 *   place   in `sgpctl status`, ascending
 *   shown   unless all fields are asked for: KNOWN, if it is not null; NOTABLE, if it is not null,
 *           false, 0 or empty; ALL, never
 *   metric  METRIC(place in /metrics, gauge or counter, name, help, value), or NO_METRIC. A value
 *           that is not finite is left out.
 * Numbers of places leave room between them.
 *
 * Any thread; macros alone. */
#ifndef SGPD_VIEW_FIELDS_H
#define SGPD_VIEW_FIELDS_H

/* Of the node; `view` is a struct view_status, `topology` the topology in use. */
#define STATUS_FIELDS(X)                                                                           \
    X(schema, count, 1, 480, ALL, NO_METRIC)                                                       \
    X(version, name, sgp_version(), 460, ALL, NO_METRIC)                                           \
    X(protocol, count, SGP_WIRE_VERSION, 470, ALL, NO_METRIC)                                      \
    X(name, name, view->name, 10, KNOWN, NO_METRIC)                                                \
    X(state, name, view->unlaid ? "unlaid" : sgp_node_state_name(view->state), 20, KNOWN,          \
        NO_METRIC)                                                                                 \
    X(incarnation, identity, view->incarnation, 450, ALL, NO_METRIC)                               \
    X(run, ordinal, view->run, 440, ALL, NO_METRIC)                                                \
    X(algorithm, name, view->algorithm, 390, ALL, NO_METRIC)                                       \
    X(round, round, view->round, 40, KNOWN,                                                        \
        METRIC(10, gauge, round, "Round the node is in.", view->round))                            \
    X(rounds, round, view->rounds, 50, KNOWN, NO_METRIC)                                           \
    X(samples, count, view->samples, 150, ALL,                                                     \
        METRIC(40, counter, samples_total, "Rows trained on.", view->samples))                     \
    X(lost_rounds, count, (uint64_t)view->lost_rounds, 140, NOTABLE,                               \
        METRIC(130, gauge, lost_rounds,                                                            \
            "Rounds that the ledger counts and of which no parameters were left.",                 \
            view->lost_rounds))                                                                    \
    X(parameters, count, view->parameters, 400, ALL,                                               \
        METRIC(160, gauge, parameters, "Parameters of the model.", view->parameters))              \
    X(memory_bytes, count, view->memory_bytes, 410, ALL,                                           \
        METRIC(170, gauge, memory_bytes, "Memory set aside at start.", view->memory_bytes))        \
    X(jumps, count, view->jumps, 330, ALL,                                                         \
        METRIC(180, counter, round_jumps_total, "Times the node took a round far ahead.",          \
            view->jumps))                                                                          \
    X(cycles_renewed, count, view->cycles_renewed, 340, ALL,                                       \
        METRIC(190, counter, cycles_renewed_total, "Times the node began an exact cycle again.",   \
            view->cycles_renewed))                                                                 \
    X(statements_refused, count, view->statements_refused, 350, NOTABLE,                           \
        METRIC(200, counter, statements_refused_total,                                             \
            "Words on the end of training refused: wrongly signed.", view->statements_refused))    \
    X(starving, flag, view->starving, 240, NOTABLE,                                                \
        METRIC(210, gauge, starving,                                                               \
            "1 while the node gives less than the file says because it holds too little.",         \
            view->starving))                                                                       \
    X(diverging, text, view->diverging, 120, NOTABLE,                                              \
        METRIC(220, gauge, diverging,                                                              \
            "1 while a loss is far above its early level, or not finite.",                         \
            view->diverging != NULL))                                                              \
    X(model_file, text, view->model_file, 130, NOTABLE,                                            \
        METRIC(230, gauge, model_unwritten,                                                        \
            "1 while the latest try to write model.safetensors has failed.",                       \
            view->model_file != NULL && strcmp(view->model_file, "failed") == 0))                  \
    X(hears_nobody, flag, view->hears_nobody, 250, NOTABLE, NO_METRIC)                             \
    X(blas, name, view->blas, 420, ALL, NO_METRIC)                                                 \
    X(topology, json, render_place(view, topology), 430, ALL, NO_METRIC)                           \
    X(copy, json, render_copy(view), 320, ALL, NO_METRIC)                                          \
    X(owns, json, render_owns(topology, view->name), 310, ALL, NO_METRIC)                          \
    X(waiting, json, render_waiting(view), 30, NOTABLE,                                            \
        METRIC(240, gauge, waiting_seconds, "Seconds the node has been waiting for a neighbour.",  \
            view->waiting_for[0] ? view->waiting_seconds : 0))                                     \
    X(last_error, text, view->last_error, 360, NOTABLE, NO_METRIC)                                 \
    X(program, json, render_program(&view->program), 490, ALL, NO_METRIC)                          \
    X(epoch, real, view->epoch, 60, KNOWN,                                                         \
        METRIC(20, gauge, epoch, "Epochs trained so far.", view->epoch))                           \
    X(epochs, real, view->epochs, 70, KNOWN, NO_METRIC)                                            \
    X(samples_per_second, real, view->samples_per_second, 160, KNOWN,                              \
        METRIC(50, gauge, samples_per_second, "Rows trained on per second.",                       \
            view->samples_per_second))                                                             \
    X(loss, real, view->loss, 80, KNOWN,                                                           \
        METRIC(60, gauge, loss, "Training loss of the latest round.", view->loss))                 \
    X(test_loss, real, view->test_loss, 90, KNOWN,                                                 \
        METRIC(70, gauge, test_loss, "Loss of the latest evaluation.", view->test_loss))           \
    X(test_accuracy, real, view->test_accuracy, 100, KNOWN,                                        \
        METRIC(80, gauge, test_accuracy, "Accuracy of the latest evaluation, 0 to 1.",             \
            view->test_accuracy))                                                                  \
    X(learning_rate, real, view->learning_rate, 110, ALL,                                          \
        METRIC(                                                                                    \
            90, gauge, learning_rate, "Learning rate of the latest step.", view->learning_rate))   \
    X(weight, real, view->weight, 170, KNOWN,                                                      \
        METRIC(100, gauge, weight, "Push-sum weight held.", view->weight))                         \
    X(weight_in_flight, real, view->weight_in_flight, 180, ALL,                                    \
        METRIC(110, gauge, weight_in_flight, "Weight given and not yet acknowledged.",             \
            view->weight_in_flight))                                                               \
    X(disagreement, real, view->disagreement, 220, KNOWN,                                          \
        METRIC(150, gauge, disagreement,                                                           \
            "Largest relative distance to a received model in the latest cycle.",                  \
            view->disagreement))                                                                   \
    X(weight_minted, real, view->weight_minted, 190, NOTABLE,                                      \
        METRIC(120, gauge, weight_minted, "Weight created by restarts without a ledger.",          \
            view->weight_minted))                                                                  \
    X(surplus, real, view->surplus, 210, ALL, NO_METRIC)                                           \
    X(weight_unknown, real, view->weight_unknown, 200, NOTABLE,                                    \
        METRIC(140, gauge, weight_unknown,                                                         \
            "By which the total weight may be off at most: an old ledger, a lie.",                 \
            view->weight_unknown))                                                                 \
    X(uptime_seconds, real, view->uptime_seconds, 380, KNOWN,                                      \
        METRIC(                                                                                    \
            30, gauge, uptime_seconds, "Seconds since the daemon started.", view->uptime_seconds)) \
    X(last_error_seconds, real, view->last_error_seconds, 370, ALL, NO_METRIC)

/* The status's fields behind those: lists of the neighbours of which something holds. Each is in a
 * list once, though it may have two links. Columns: key; how a neighbour is told (told_KIND of
 * endpoints.c); what holds of it, where `view` is its struct view_peer; place; shown. */
#define NEIGHBOUR_FIELDS(X)                                                                        \
    X(unheard, name, view->unheard, 260, NOTABLE)                                                  \
    X(mismatch, name, view->mismatch, 270, NOTABLE)                                                \
    X(same_updates, name, view->same_updates, 280, ALL)                                            \
    X(disagrees, distance, view->disagrees, 230, NOTABLE)                                          \
    X(slow, name, view->slow, 290, NOTABLE)                                                        \
    X(overdue, name, view->overdue, 300, NOTABLE)

/* Of a link, where `view` is a struct view_peer. The rows are in the order of all views. Columns: key;
 * kind; value; shown (KNOWN or ALL); LINK_METRIC(gauge or counter, name, help, value), or
 * NO_METRIC. */
#define PEER_FIELDS(X)                                                                             \
    X(name, name, view->name, KNOWN, NO_METRIC)                                                    \
    X(address, name, view->address, ALL, NO_METRIC)                                                \
    X(direction, name, direction_name(view->direction), KNOWN, NO_METRIC)                          \
    X(state, name, link_state_name(view), KNOWN,                                                   \
        LINK_METRIC(gauge, up, "1 if the link stands.", view->state == SGP_LINK_UP))               \
    X(node_state, text, view->peer_state ? sgp_node_state_name(view->peer_state) : NULL, KNOWN,    \
        NO_METRIC)                                                                                 \
    X(absent, flag, view->absent, ALL,                                                             \
        LINK_METRIC(gauge, absent, "1 if the peer is no longer waited for.", view->absent))        \
    X(round, round, view->round, KNOWN, NO_METRIC)                                                 \
    X(lag_rounds, json,                                                                            \
        view->round == SGP_ROUND_NONE ? json_null() : json_integer(view->lag_rounds), KNOWN,       \
        LINK_METRIC(gauge, lag_rounds, "Rounds that the peer is behind.",                          \
            view->round == SGP_ROUND_NONE ? (double)NAN : (double)view->lag_rounds))               \
    X(last_heard_seconds, real, view->last_heard_seconds, KNOWN,                                   \
        LINK_METRIC(gauge, last_heard_seconds, "Seconds since the peer was last heard.",           \
            view->last_heard_seconds))                                                             \
    X(absent_after_seconds, real, view->absent_after_seconds, ALL, NO_METRIC)                      \
    X(rtt_ms, real, view->rtt_ms, KNOWN,                                                           \
        LINK_METRIC(gauge, rtt_seconds, "Round trip time.", view->rtt_ms / 1000))                  \
    X(shares_sent, count, view->shares_sent, KNOWN,                                                \
        LINK_METRIC(counter, shares_sent_total, "Shares sent.", view->shares_sent))                \
    X(shares_received, count, view->shares_received, KNOWN,                                        \
        LINK_METRIC(counter, shares_received_total, "Shares accepted.", view->shares_received))    \
    X(shares_returned, count, view->shares_returned, KNOWN,                                        \
        LINK_METRIC(counter, shares_returned_total, "Shares that came back, or were refused.",     \
            view->shares_returned))                                                                \
    X(shares_late, count, view->shares_late, ALL, NO_METRIC)                                       \
    X(staleness, round, view->staleness, ALL, NO_METRIC)                                           \
    X(shares_outsized, count, view->shares_outsized, ALL, NO_METRIC)                               \
    X(weight_owed, real, view->weight_owed, ALL,                                                   \
        LINK_METRIC(gauge, weight_owed, "Weight given to the peer and not acknowledged.",          \
            view->weight_owed))                                                                    \
    X(bytes_sent, count, view->bytes_sent, KNOWN,                                                  \
        LINK_METRIC(counter, bytes_sent_total, "Bytes sent.", view->bytes_sent))                   \
    X(bytes_received, count, view->bytes_received, KNOWN,                                          \
        LINK_METRIC(counter, bytes_received_total, "Bytes received.", view->bytes_received))       \
    X(distance, real, view->distance, ALL, NO_METRIC)                                              \
    X(disagrees, flag, view->disagrees, ALL, NO_METRIC)                                            \
    X(mismatch, flag, view->mismatch, ALL, NO_METRIC)                                              \
    X(same_updates, flag, view->same_updates, ALL, NO_METRIC)                                      \
    X(learning_rate, real, view->learning_rate, ALL, NO_METRIC)                                    \
    X(retired, flag, view->retired, ALL, NO_METRIC)                                                \
    X(slow, flag, view->slow, ALL, NO_METRIC)                                                      \
    X(overdue, flag, view->overdue, ALL, NO_METRIC)                                                \
    X(cipher, text, view->cipher, KNOWN, NO_METRIC)                                                \
    X(key, text, view->key, ALL, NO_METRIC)                                                        \
    X(last_error, text, view->last_error, KNOWN, NO_METRIC)                                        \
    X(previous_error, text, view->previous_error, ALL, NO_METRIC)

#endif
