/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests are answered. A browser sends them also for pages of strangers, which may know the
 * port but not the token:
 *
 * - A page whose own name resolves to our address (DNS rebinding) is told by the header Host.
 * - A page of another origin is told by Origin and by Sec-Fetch-Site (Fetch Metadata, W3C).
 * - Another user of this machine does not know the token. */
#include "dashboard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

int dashboard_origin_init(struct dashboard_origin *origin)
{
    unsigned char bytes[DASHBOARD_TOKEN_BYTES / 2];
    ssize_t got;
    do
        got = getrandom(bytes, sizeof bytes, 0);
    while (got < 0 && errno == EINTR);
    if (got != sizeof bytes)
        return got < 0 ? -errno : -EIO;
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(origin->token + 2 * i, 3, "%02x", bytes[i]);
    origin->host_count = 0;
    (void)dashboard_origin_add(origin, "127.0.0.1");
    (void)dashboard_origin_add(origin, "localhost");
    (void)dashboard_origin_add(origin, "[::1]");
    return 0;
}

bool dashboard_origin_add(struct dashboard_origin *origin, const char *host)
{
    if (origin->host_count == DASHBOARD_HOSTS_MAX)
        return false;
    origin->hosts[origin->host_count++] = host;
    return true;
}

/* The headers that say for whom the browser asks. */
struct headers {
    const char *host, *origin, *site;
    bool twice; /* one of them */
};

static enum MHD_Result read_header(
    void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct headers *headers = context;
    const char **place = strcasecmp(name, "Host") == 0             ? &headers->host
                         : strcasecmp(name, "Origin") == 0         ? &headers->origin
                         : strcasecmp(name, "Sec-Fetch-Site") == 0 ? &headers->site
                                                                   : NULL;
    if (!place)
        return MHD_YES;
    headers->twice = headers->twice || *place != NULL;
    *place = value ? value : "";
    return MHD_YES;
}

/* Whether a header Host, with or without a port, has an accepted name. */
static bool is_ours(const struct dashboard_origin *origin, const char *value)
{
    size_t length = value[0] == '[' ? strcspn(value, "]") + 1 : strcspn(value, ":");
    const char *port = strnlen(value, length) == length ? value + length : "";
    if (*port == ':' && port[1 + strspn(port + 1, "0123456789")] != '\0')
        return false;
    if (*port != ':' && *port != '\0')
        return false;
    for (size_t i = 0; i < origin->host_count; i++)
        if (strlen(origin->hosts[i]) == length && strncasecmp(origin->hosts[i], value, length) == 0)
            return true;
    return false;
}

/* Whether a page of ours asks, or a person who typed the address. */
static bool is_same_origin(const struct headers *headers)
{
    const char *origin = headers->origin, *site = headers->site;
    size_t scheme = origin && strncmp(origin, "https://", 8) == 0  ? 8
                    : origin && strncmp(origin, "http://", 7) == 0 ? 7
                                                                   : 0;
    bool same = !origin || (scheme > 0 && strcasecmp(origin + scheme, headers->host) == 0);
    return same && (!site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0);
}

/* The path behind "/TOKEN/", or NULL. The time of the comparison does not tell where the two
 * differ. */
static const char *behind_token(const struct dashboard_origin *origin, const char *url)
{
    const size_t length = DASHBOARD_TOKEN_BYTES - 1;
    if (strnlen(url, length + 2) < length + 2 || url[0] != '/' || url[length + 1] != '/')
        return NULL;
    unsigned char difference = 0;
    for (size_t i = 0; i < length; i++)
        difference |= (unsigned char)(url[1 + i] ^ origin->token[i]);
    return difference == 0 ? url + length + 2 : NULL;
}

const char *dashboard_origin_refusal(const struct dashboard_origin *origin,
    struct MHD_Connection *connection, const char *method, const char *url, unsigned *ret_status,
    const char **ret_path)
{
    struct headers headers = {0};
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, read_header, &headers);
    *ret_status = MHD_HTTP_FORBIDDEN;
    if (headers.twice)
        return "a header is given twice\n";
    if (!headers.host || !is_ours(origin, headers.host))
        return "this name of the host is not accepted; see sgpctl dashboard --host\n";
    if (!is_same_origin(&headers))
        return "another site must not read this\n";
    *ret_path = behind_token(origin, url);
    if (!*ret_path)
        return "open the address that sgpctl dashboard has printed\n";
    if (strcmp(method, MHD_HTTP_METHOD_GET) == 0)
        return NULL;
    *ret_status = MHD_HTTP_METHOD_NOT_ALLOWED;
    return "this can be read and nothing else\n";
}
