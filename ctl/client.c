/* SPDX-License-Identifier: Apache-2.0 */
/* Talks to the daemon: HTTP over its Unix socket, by libcurl.
 *
 * Exit statuses of failures. No socket, or no process behind it: CTL_NOT_RUNNING. A file of another
 * kind in its place: CTL_USAGE. A socket that may not be opened, or an answer 403:
 * CTL_NOT_PERMITTED. An answer 422: CTL_INVALID. No answer in time: CTL_TIMED_OUT. Every other
 * refusal: CTL_FAILED with the daemon's own words. */
#include "ctl.h"

#include <curl/curl.h>
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define RUN_DIRECTORY "/run/sgpd"
#define SOCKET_NAME "control.sock"
#define OWNER_END ".owner"           /* ends the name and the socket of a colocated owner */
#define ANSWER_BYTES_MAX (64u << 20) /* of an answer kept in memory */
#define ANSWER_SECONDS 30.0          /* for an answer that needs no computing */
#define URL_BYTES 1024u

/* The node's name in RUN_DIRECTORY/NAME/SOCKET_NAME. */
static void append_name(const char *path, char *names, size_t capacity)
{
    const char *name = path + strlen(RUN_DIRECTORY) + 1;
    size_t used = strlen(names);
    (void)snprintf(names + used, capacity - used, "%s%.*s", used > 0 ? ", " : "",
        (int)strcspn(name, "/"), name);
}

/* Whether sockets may exist that this user is not allowed to see. */
static bool hidden(void)
{
    glob_t found;
    bool closed = access(RUN_DIRECTORY, R_OK | X_OK) < 0 && errno == EACCES;
    if (glob(RUN_DIRECTORY "/*", 0, NULL, &found) != 0)
        return closed;
    for (size_t i = 0; i < found.gl_pathc; i++)
        closed |= access(found.gl_pathv[i], X_OK) < 0 && errno == EACCES;
    globfree(&found);
    return closed;
}

static enum ctl_exit only_socket(struct ctl *ctl, char *path, size_t capacity)
{
    glob_t found;
    int code = glob(RUN_DIRECTORY "/*/" SOCKET_NAME, 0, NULL, &found);
    if (code != 0 && hidden())
        return ctl_fail(ctl, CTL_NOT_PERMITTED,
            "not permitted to look for sockets under " RUN_DIRECTORY
            "; they are for root and the group sgpd");
    if (code != 0)
        return ctl_fail(ctl, CTL_NOT_RUNNING,
            "no daemon is running here: there is no " RUN_DIRECTORY "/NAME/" SOCKET_NAME
            "; start one, or name its socket with -s");
    char names[SGP_TEXT_BYTES / 2] = "";
    for (size_t i = 0; i < found.gl_pathc; i++)
        append_name(found.gl_pathv[i], names, sizeof names);
    bool several = found.gl_pathc > 1;
    (void)snprintf(path, capacity, "%s", found.gl_pathv[0]);
    globfree(&found);
    if (several)
        return ctl_usage(ctl, "several daemons run here (%s); choose one with -n NAME", names);
    return CTL_DONE;
}

/* The daemon of NAME serves NAME.owner, unless a node has exactly that name. */
static int print_path(const char *name, char *path, size_t capacity)
{
    int length = snprintf(path, capacity, RUN_DIRECTORY "/%s/" SOCKET_NAME, name);
    size_t bytes = strlen(name), end = strlen(OWNER_END);
    bool owner = bytes > end && strcmp(name + bytes - end, OWNER_END) == 0;
    if (!owner || access(path, F_OK) == 0 || ctl_has_configuration(name))
        return length;
    return snprintf(
        path, capacity, RUN_DIRECTORY "/%.*s/" SOCKET_NAME OWNER_END, (int)(bytes - end), name);
}

enum ctl_exit ctl_socket(struct ctl *ctl)
{
    static char path[sizeof((struct sockaddr_un *)0)->sun_path];
    int length = 0;
    if (ctl->socket == path) /* resolved before */
        return CTL_DONE;
    if (ctl->socket) {
        length = snprintf(path, sizeof path, "%s", ctl->socket);
    } else if (ctl->name) {
        if (ctl->name[0] == '\0' || ctl->name[0] == '.' || strchr(ctl->name, '/'))
            return ctl_usage(ctl, "'%s' is not a node's name", ctl->name);
        length = print_path(ctl->name, path, sizeof path);
    } else {
        enum ctl_exit status = only_socket(ctl, path, sizeof path);
        if (status != CTL_DONE)
            return status;
    }
    if (length < 0 || (size_t)length >= sizeof path)
        return ctl_usage(ctl, "the socket's path is longer than %zu bytes", sizeof path - 1);
    struct stat found;
    if (stat(path, &found) == 0 && !S_ISSOCK(found.st_mode)) /* else connect reports the error */
        return ctl_usage(ctl, "%s is no socket; name the one that [control] socket gives", path);
    ctl->name = NULL;
    ctl->socket = path;
    return CTL_DONE;
}

void ctl_socket_name(const struct ctl *ctl, char name[SGP_NAME_BYTES])
{
    size_t prefix = strlen(RUN_DIRECTORY "/");
    bool ours = strncmp(ctl->socket, RUN_DIRECTORY "/", prefix) == 0;
    const char *rest = ours ? ctl->socket + prefix : "";
    size_t length = strcspn(rest, "/");
    bool owner = strcmp(rest + length, "/" SOCKET_NAME OWNER_END) == 0; /* of the same daemon */
    ours = length < SGP_NAME_BYTES && (owner || strcmp(rest + length, "/" SOCKET_NAME) == 0);
    (void)snprintf(name, SGP_NAME_BYTES, "%.*s", ours ? (int)length : 0, rest);
}

struct answer {
    FILE *into; /* where a successful answer is written, or NULL */
    CURL *curl;
    char *text;
    size_t bytes;
    int write_error; /* errno of `into` */
};

static size_t take(char *bytes, size_t size, size_t count, void *context)
{
    struct answer *answer = context;
    long code = 0;
    (void)size; /* always 1 */
    (void)curl_easy_getinfo(answer->curl, CURLINFO_RESPONSE_CODE, &code);
    if (answer->into && code < 300) {
        size_t written = fwrite(bytes, 1, count, answer->into);
        answer->write_error = written < count ? errno : 0;
        return written;
    }
    if (count > ANSWER_BYTES_MAX - answer->bytes)
        return 0;
    char *text = realloc(answer->text, answer->bytes + count + 1);
    if (!text)
        return 0;
    memcpy(text + answer->bytes, bytes, count);
    answer->text = text;
    answer->bytes += count;
    answer->text[answer->bytes] = '\0';
    return count;
}

static enum ctl_exit complain(
    struct ctl *ctl, const struct ctl_request *request, enum ctl_exit status, const char *text)
{
    return request->quiet ? status : ctl_fail(ctl, status, "%s", text);
}

/* After how many seconds a request is abandoned; infinity: never. */
static double patience(const struct ctl_request *request)
{
    double seconds = request->patient ? HUGE_VAL : ANSWER_SECONDS;
    return request->seconds > 0 ? fmin(request->seconds, seconds) : seconds;
}

/* Advice about a daemon that should be running under a name. */
static void advise(const struct ctl *ctl, char *text, size_t capacity)
{
    char name[SGP_NAME_BYTES];
    ctl_socket_name(ctl, name);
    if (name[0] != '\0' && ctl_has_configuration(name))
        (void)snprintf(text, capacity, "; start it with systemctl start sgpd@%s", name);
    else if (name[0] != '\0')
        (void)snprintf(text, capacity,
            "; nor is there /etc/sgpd/%s.conf: write it, or give another NAME with -n", name);
}

/* There was no answer: find out the reason. */
static enum ctl_exit no_answer(
    struct ctl *ctl, const struct ctl_request *request, CURLcode code, long os_error)
{
    const char *path = ctl->socket;
    char text[SGP_TEXT_BYTES];
    if (code == CURLE_COULDNT_CONNECT && (os_error == EACCES || os_error == EPERM)) {
        (void)snprintf(
            text, sizeof text, "not permitted to open %s; it is for root and the group sgpd", path);
        return complain(ctl, request, CTL_NOT_PERMITTED, text);
    }
    if (code == CURLE_COULDNT_CONNECT) {
        int used = snprintf(text, sizeof text, "the daemon is not running: %s: %s", path,
            os_error != 0 ? strerror((int)os_error) : "nobody answers");
        advise(ctl, text + used, sizeof text - (size_t)used);
        return complain(ctl, request, CTL_NOT_RUNNING, text);
    }
    if (code == CURLE_OPERATION_TIMEDOUT) {
        (void)snprintf(text, sizeof text, "the daemon behind %s did not answer within %g s", path,
            patience(request));
        return complain(ctl, request, CTL_TIMED_OUT, text);
    }
    if (code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR || code == CURLE_PARTIAL_FILE) {
        (void)snprintf(text, sizeof text, "the daemon behind %s ended before it answered", path);
        return complain(ctl, request, CTL_NOT_RUNNING, text);
    }
    (void)snprintf(
        text, sizeof text, "asking %s for %s: %s", path, request->path, curl_easy_strerror(code));
    return complain(ctl, request, CTL_FAILED, text);
}

/* Replace the body in the daemon's message by the file that the body came from. */
static void name_the_file(const char *file, const char *message, char text[SGP_TEXT_BYTES])
{
    if (strncmp(message, "body:", 5) == 0)
        (void)snprintf(text, SGP_TEXT_BYTES, "%s%s", file, message + 4);
    else if (strncmp(message, "the body ", 9) == 0)
        (void)snprintf(text, SGP_TEXT_BYTES, "%s %s", file, message + 9);
    else
        (void)snprintf(text, SGP_TEXT_BYTES, "%s: %s", file, message);
}

/* The daemon refused. {"error": {"message": ...}} has its words. */
static enum ctl_exit refused(
    struct ctl *ctl, const struct ctl_request *request, long code, const struct answer *answer)
{
    json_t *root = answer->text ? json_loadb(answer->text, answer->bytes, 0, NULL) : NULL;
    const char *message =
        json_string_value(json_object_get(json_object_get(root, "error"), "message"));
    char text[SGP_TEXT_BYTES];
    if (message && request->body_path && (code == 400 || code == 413))
        name_the_file(request->body_path, message, text);
    else if (message)
        (void)snprintf(text, sizeof text, "%s", message);
    else
        (void)snprintf(text, sizeof text, "the daemon answered %ld to %s %s", code, request->method,
            request->path);
    json_decref(root);
    enum ctl_exit status = code == 403 ? CTL_NOT_PERMITTED : code == 422 ? CTL_INVALID : CTL_FAILED;
    return complain(ctl, request, status, text);
}

static CURLcode perform(const struct ctl_request *request, const char *path,
    struct curl_slist *headers, struct answer *answer)
{
    CURL *curl = answer->curl;
    char url[URL_BYTES];
    const int length = snprintf(url, sizeof url, "http://sgpd%s", request->path);
    if (length < 0 || (size_t)length >= sizeof url)
        return CURLE_URL_MALFORMAT;
    (void)curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, path);
    (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    double seconds = patience(request);
    if (isfinite(seconds)) /* in milliseconds, of which curl needs at least one */
        (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)ceil(seconds * 1e3));
    if (strcmp(request->method, "POST") == 0) {
        (void)curl_easy_setopt(curl, CURLOPT_POST, 1L);
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body ? request->body : "");
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_bytes);
    }
    return curl_easy_perform(curl);
}

/* If more connections arrive than the daemon accepts, its queue is full. curl does not block, so it
 * takes that for a failure without an error. This waits for a place in the queue, as a blocking
 * socket does. Returns false if the queue was not the cause, or the time is up. */
static bool wait_for_place(const char *path, double seconds)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    const struct timeval time = {
        .tv_sec = (time_t)seconds, .tv_usec = 1 + (suseconds_t)(fmod(seconds, 1) * 999998)};
    int descriptor = seconds > 0 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (descriptor < 0)
        return false;
    (void)setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    int code = connect(descriptor, (const struct sockaddr *)&address, sizeof address);
    (void)close(descriptor);
    return code == 0;
}

/* Repeat until the queue has a place. *ret_os_error is the error of connecting; 0: none. */
static CURLcode perform_in_turn(const struct ctl_request *request, const char *path,
    struct curl_slist *headers, struct answer *answer, long *ret_os_error)
{
    double end = ctl_now() + fmin(patience(request), ANSWER_SECONDS);
    CURLcode code;
    do {
        code = perform(request, path, headers, answer);
        *ret_os_error = 0;
        (void)curl_easy_getinfo(answer->curl, CURLINFO_OS_ERRNO, ret_os_error);
    } while (code == CURLE_COULDNT_CONNECT && *ret_os_error == 0 &&
             wait_for_place(path, end - ctl_now()));
    return code;
}

enum ctl_exit ctl_ask(
    struct ctl *ctl, const struct ctl_request *request, struct ctl_reply *ret_reply)
{
    enum ctl_exit status = ctl_socket(ctl);
    if (status != CTL_DONE)
        return status;
    struct answer answer = {.into = request->into, .curl = curl_easy_init()};
    char type[128];
    (void)snprintf(type, sizeof type, "Content-Type: %s",
        request->content_type ? request->content_type : "application/json");
    /* "Expect:" stops curl from waiting a second for permission to send a large body. */
    struct curl_slist *headers = curl_slist_append(curl_slist_append(NULL, "Expect:"), type);
    if (!answer.curl || !headers) {
        curl_easy_cleanup(answer.curl);
        curl_slist_free_all(headers);
        return ctl_fail(ctl, CTL_FAILED, "%s", sgp_strerror(-ENOMEM));
    }
    long http = 0, os_error = 0;
    CURLcode code = perform_in_turn(request, ctl->socket, headers, &answer, &os_error);
    (void)curl_easy_getinfo(answer.curl, CURLINFO_RESPONSE_CODE, &http);
    curl_easy_cleanup(answer.curl);
    curl_slist_free_all(headers);
    if (answer.write_error != 0)
        status =
            ctl_fail(ctl, CTL_FAILED, "%s: %s", request->into_path, strerror(answer.write_error));
    else if (code != CURLE_OK)
        status = no_answer(ctl, request, code, os_error);
    else if (http < 200 || http > 299)
        status = refused(ctl, request, http, &answer);
    if (status != CTL_DONE) {
        free(answer.text);
        return status;
    }
    *ret_reply = (struct ctl_reply){.text = answer.text, .bytes = answer.bytes};
    return CTL_DONE;
}

enum ctl_exit ctl_ask_json(struct ctl *ctl, const struct ctl_request *request, json_t **ret_json)
{
    struct ctl_reply reply = {0};
    enum ctl_exit status = ctl_ask(ctl, request, &reply);
    if (status != CTL_DONE)
        return status;
    json_error_t error;
    json_t *json = reply.text ? json_loadb(reply.text, reply.bytes, JSON_ALLOW_NUL, &error) : NULL;
    free(reply.text);
    if (!json)
        return complain(ctl, request, CTL_FAILED, "the daemon's answer is not JSON");
    *ret_json = json;
    return CTL_DONE;
}
