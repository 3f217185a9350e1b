/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as people write them. Any thread; pure. */
#include "sgp/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_port(const char *text, uint16_t *ret_port)
{
    size_t length = strlen(text);
    if (length < 1 || length > 5 || strspn(text, "0123456789") != length)
        return false;
    unsigned long port = strtoul(text, NULL, 10);
    if (port < 1 || port > 65535)
        return false;
    *ret_port = (uint16_t)port;
    return true;
}

/* Accepts host names and IPv4 literals. In brackets it accepts IPv6 literals only, with or without
 * a zone. */
static bool host_is_good(const char *host, size_t length, bool bracketed)
{
    if (length == 0 || (bracketed && !memchr(host, ':', length)))
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = host[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            !strchr(bracketed ? ":.%_-" : "._-", c))
            return false;
    }
    return true;
}

/* A host that has only digits and dots is an IPv4 literal, because no host name ends in a number
 * (RFC 3696, section 2). */
static bool is_bad_literal(const char *host, size_t length)
{
    unsigned part = 0, digits = 0, parts = 1;
    if (strspn(host, "0123456789.") < length)
        return false;
    for (size_t i = 0; i < length; i++) {
        bool dot = host[i] == '.';
        if (dot && digits == 0)
            return true;
        parts += dot;
        digits = dot ? 0 : digits + 1;
        part = dot ? 0 : 10 * part + (unsigned)(host[i] - '0');
        if (part > 255 || digits > 3 || parts > 4)
            return true;
    }
    return parts != 4 || digits == 0;
}

int sgp_address_split(const char *address, struct sgp_error *error,
    char ret_host[SGP_ADDRESS_BYTES], uint16_t *ret_port)
{
    size_t length = strnlen(address, SGP_ADDRESS_BYTES);
    bool bracketed = address[0] == '[';
    const char *host = bracketed ? address + 1 : address;
    size_t host_length = strcspn(host, bracketed ? "]" : ":");
    const char *rest = host + host_length;
    if (length == SGP_ADDRESS_BYTES || (bracketed && *rest++ != ']') ||
        !host_is_good(host, host_length, bracketed))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "address \"%s\" has no usable host; write HOST:PORT, 10.0.0.1:%d or [fd00::1]:%d",
            address, SGP_PORT_DEFAULT, SGP_PORT_DEFAULT);
    if (!bracketed && is_bad_literal(host, host_length))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "address \"%s\" is no IPv4 address; it has four numbers from 0 to 255, as 10.0.0.1:%d",
            address, SGP_PORT_DEFAULT);
    uint16_t port = SGP_PORT_DEFAULT;
    if (!bracketed && *rest == ':' && strchr(rest + 1, ':'))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "address \"%s\" has more than one colon; an IPv6 address is written in brackets, "
            "[%s]:%d",
            address, address, SGP_PORT_DEFAULT);
    if (*rest != '\0' && (*rest != ':' || !parse_port(rest + 1, &port)))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "address \"%s\" has a bad port; a port is a number from 1 to 65535", address);
    memcpy(ret_host, host, host_length);
    ret_host[host_length] = '\0';
    *ret_port = port;
    return 0;
}

/* "HOST:PORT+": the host, and the first port of `nodes` successive ports. */
static int parse_base(const char *base, uint32_t nodes, struct sgp_error *error,
    char host[SGP_ADDRESS_BYTES], uint16_t *ret_port)
{
    char text[SGP_ADDRESS_BYTES];
    size_t length = strlen(base);
    if (length < 2 || length > sizeof text || base[length - 1] != '+')
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "--address \"%.100s\" does not end in '+'; write HOST:PORT+, and node i gets PORT + i",
            base);
    memcpy(text, base, length - 1);
    text[length - 1] = '\0';
    int code = sgp_address_split(text, error, host, ret_port);
    if (!code && (uint32_t)*ret_port + nodes - 1 > UINT16_MAX)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "%u nodes from port %u on would go beyond 65535; take a lower first port", nodes,
            *ret_port);
    return code;
}

int sgp_topology_place(struct sgp_topology *topology, const char *base, struct sgp_error *error)
{
    char host[SGP_ADDRESS_BYTES];
    uint16_t port = 0;
    uint32_t count = 0;
    while (count < topology->node_count && !topology->nodes[count].colocated)
        count++;
    int code = parse_base(base, count, error, host, &port);
    if (code)
        return code;
    bool bracketed = strchr(host, ':') != NULL;
    if (strlen(host) + strlen("[]:65535") >= SGP_ADDRESS_BYTES)
        return sgp_fail(error, SGP_E_TOPOLOGY, "the --address is too long; take a shorter name");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t owner = sgp_topology_colocated_owner(topology, i);
        struct sgp_topology_node *node = &topology->nodes[owner == SGP_NODE_NONE ? i : owner];
        int length = snprintf(node->address, sizeof node->address, "%s%s%s:%u",
            bracketed ? "[" : "", host, bracketed ? "]" : "", port + i);
        sgp_assert((size_t)length < sizeof node->address);
        if (owner != SGP_NODE_NONE)
            (void)snprintf(
                topology->nodes[i].address, sizeof node->address, "%s", SGP_ADDRESS_NONE);
    }
    return 0;
}
