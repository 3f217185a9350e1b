/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a new configuration; see config_new.h. */
#include "config_new.h"

const char *ctl_draft_layers(const struct ctl_draft *draft, char ret_layers[CTL_DRAFT_LAYERS_BYTES])
{
    if (draft->given[NEW_LAYERS].given)
        return draft->given[NEW_LAYERS].value;
    (void)snprintf(ret_layers, CTL_DRAFT_LAYERS_BYTES, "dense 32 relu, dense %u",
        ctl_rows_outputs(&draft->rows));
    return ret_layers;
}

static void put_model(const struct ctl_draft *draft, FILE *file)
{
    const struct ctl_given *local = &draft->given[NEW_LOCAL];
    char layers[CTL_DRAFT_LAYERS_BYTES];
    const bool classes = ctl_rows_classify(&draft->rows);
    (void)fprintf(file,
        "\n[model]\n; the last layer has one unit for each %s; the same on every node\n",
        classes ? "class" : "number to predict");
    (void)fprintf(file, "layers = %s\n", ctl_draft_layers(draft, layers));
    (void)fprintf(file,
        "; layers that this node trains alone and never sends, where labels or devices differ by\n"
        "; node; the same on every node\n%slocal = %s\n",
        local->given ? "" : ";", local->given ? local->value : "head");
    if (!classes)
        (void)fprintf(file, "; what is made small: the mean square of the error\nloss = mse\n");
}

static void put_optimizer(const struct ctl_draft *draft, FILE *file)
{
    (void)fprintf(file, "\n[optimizer]\n; the rule of a step; the same on every node\n");
    if (draft->scaled)
        (void)fprintf(file,
            "kind = nesterov\nmomentum = 0.9\n"
            "; holds weights small, so that few rows are not learned by heart\n"
            "weight_decay = %.2g\n"
            "; the size of a step: it falls towards the end of training\nschedule = cosine\n",
            ctl_draft_decay(draft));
    else
        (void)fprintf(file, "kind = adam\n; the size of a step\n");
    (void)fprintf(file, "learning_rate = %g\n", draft->rate);
}

static void put_best(const struct ctl_draft *draft, FILE *file)
{
    if (draft->keep_best == NULL)
        return;
    (void)fprintf(file,
        "; the best model by this measure of the held-out rows of all nodes is kept, and not the "
        "last\n; one; the same on every node, as the next two\nkeep_best = %s\n"
        "; rounds from one evaluation to the next; the last cycle before each takes no steps\n"
        "evaluate_every = %llu\n"
        "; all nodes stop after so many evaluations without a better model; 0: never\n"
        "best_patience = %llu\n",
        draft->keep_best, (unsigned long long)draft->evaluate_every,
        (unsigned long long)draft->best_patience);
}

void ctl_draft_put(const struct ctl_draft *draft, FILE *file)
{
    const struct ctl_data_options data = {.scale = draft->scale,
        .shards = draft->given[NEW_SHARDS].given ? draft->given[NEW_SHARDS].value : "none",
        .holdout = draft->holdout};
    (void)fprintf(file,
        "; Configuration of the node %s of sgpd, written by `sgpctl config new`.\n"
        "; `sgpd --check -c FILE` says what would run; sgpd.conf(5) explains every key.\n\n"
        "[node]\n; its name in the topology file\nname = %s\n",
        draft->node->name, draft->node->name);
    if (draft->given[NEW_STATE].given)
        (void)fprintf(file, "; where the model and the history are written\nstate_directory = %s\n",
            draft->given[NEW_STATE].value);
    (void)fprintf(file,
        "\n[topology]\n; who gives to whom; the same file on every node\nfile = %s\n",
        draft->topology_path);
    (void)fprintf(file,
        "\n[train]\n; how nodes train together; the same on every node\nalgorithm = %s\n"
        "; passes over the rows of this node\nepochs = %llu\n; rows of a step\nbatch = %llu\n",
        draft->algorithm, (unsigned long long)draft->epochs, (unsigned long long)draft->batch);
    put_best(draft, file);
    put_model(draft, file);
    (void)fputc('\n', file);
    ctl_rows_put_data(&draft->rows, &data, file);
    put_optimizer(draft, file);
    (void)fprintf(
        file, "\n[network]\n; where neighbours reach this node\nlisten = %s\n", draft->listen);
    if (draft->given[NEW_SOCKET].given)
        (void)fprintf(file, "\n[control]\n; the socket of sgpctl\nsocket = %s\n",
            draft->given[NEW_SOCKET].value);
}
