/* What the world does to hosts and to the network between them: absences and cuts. Only asked, never
 * told: each question is answered from the options and the time. */
#include "sim/world.h"

sgp_time sgp_sim_ready(const struct sgp_sim *sim, uint32_t host)
{
    sgp_time ready = sim->now;
    for (uint32_t i = 0; i < sim->options.absence_count; i++) {
        const struct sgp_sim_absence *absence = &sim->options.absences[i];
        bool away = absence->node == host && absence->from <= sim->now && sim->now < absence->to;
        if (away && absence->to > ready)
            ready = absence->to;
    }
    return ready;
}

sgp_time sgp_sim_passable(const struct sgp_sim *sim, uint32_t a, uint32_t b)
{
    sgp_time time = sim->now;
    for (uint32_t i = 0; i < sim->options.cut_count; i++) {
        const struct sgp_sim_cut *cut = &sim->options.cuts[i];
        bool cuts = sim->cut_sides[i][a] != sim->cut_sides[i][b];
        if (cuts && cut->from <= sim->now && sim->now < cut->to && cut->to > time)
            time = cut->to;
    }
    return time;
}
