/* SPDX-License-Identifier: MIT */
/* HTTP to ublkd, with libcurl. All requests run on one multi handle. So connections are reused, and a request
 * can run while another one still waits for its answer (progress). */
#include "ublkctl/client/client.h"

#include "ublkctl/client/agent.h"
#include "ublkctl/text/text.h"
#include "ublkd/base/file_io.h"
#include "ublkd/values/json_print.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
        CONNECT_PATIENCE_MS = 10 * 1000,
        ANSWER_PATIENCE_MS = 60 * 1000,
        GRACE_MS = 2 * 1000, /* for an answer that the daemon may hold for as long as --timeout */
        LIMIT_LEAST_MS =
                3
                * 1000, /* for any other answer, with a shorter --timeout: a search for openers takes its time */
        STREAM_PATIENCE = 60, /* seconds */
        TICK_MS = 500,
        TOKEN_MAX = 4096,
        ANSWER_MAX = 256 << 20,
        AT_ONCE = 64,                      /* requests */
        PASSWORD_USEC = 125 * 1000 * 1000, /* for the user, beside the time of an answer */
        HTTP_FORBIDDEN = 403,
        HTTP_UNAVAILABLE = 503,
};

struct client {
        CURLM *multi;
        int abort_fd;       /* see client_abort_on(), or -1 */
        const char *socket; /* path of the Unix socket; NULL: TCP */
        char *base;         /* scheme and host, without a slash at the end */
        char *authorization;
        bool asks_password; /* the user can be asked for one */
        pid_t agent;        /* -1: not started, or it cannot be */
        bool limited;       /* --timeout was given */
        uint64_t limit_ms;  /* then: that time */
};

/* One request in flight. */
struct exchange {
        CURL *easy;
        const struct request *request;
        bool interactive; /* polkit may ask the user for a password */
        struct curl_slist *headers;
        char *body, *url;
        struct answer answer;
        struct text received; /* becomes the answer's body */
        bool done;
        CURLcode result;
};

/* ---- the client ---- */

static enum exit_status read_token(const char *path, char token[static TOKEN_MAX])
{
        ssize_t n = read_line_at(AT_FDCWD, path, token, TOKEN_MAX);

        if (n < 0) {
                fprintf(stderr,
                        "ublkctl: cannot read the token from %s: %s; name its file with --token-file, or "
                        "use sudo.\n",
                        path, strerror((int)-n));
                return n == -EACCES ? STATUS_NOT_ALLOWED : STATUS_FAILED;
        }
        token[strcspn(token, "\r")] = '\0';
        return STATUS_OK;
}

static enum exit_status set_place(struct client *client, const struct settings *settings)
{
        char token[TOKEN_MAX];
        enum exit_status status;
        size_t length;

        if (!settings->url) {
                client->socket = settings->socket;
                client->base = strdup("http://localhost");
                return client->base ? STATUS_OK : STATUS_FAILED;
        }
        length = strlen(settings->url);
        while (length > 0 && settings->url[length - 1] == '/')
                length--;
        client->base = strndup(settings->url, length);
        if (!client->base || !settings->token_file)
                return client->base ? STATUS_OK : STATUS_FAILED;
        status = read_token(settings->token_file, token);
        if (status == STATUS_OK && asprintf(&client->authorization, "Authorization: Bearer %s", token) < 0) {
                client->authorization = NULL;
                return STATUS_FAILED;
        }
        return status;
}

enum exit_status client_new(const struct settings *settings, struct client **ret)
{
        struct client *client;
        enum exit_status status = STATUS_FAILED;

        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                return STATUS_FAILED;
        client = calloc(1, sizeof(*client));
        if (client) {
                client->abort_fd = -1;
                client->agent = -1;
                client->asks_password = agent_is_wanted(settings);
                client->multi = curl_multi_init();
                client->limited = settings->given & SETTING_BIT(SETTING_TIMEOUT);
                client->limit_ms = (settings->timeout + 999) / 1000;
        }
        if (client && client->multi)
                status = set_place(client, settings);
        if (status != STATUS_OK) {
                client_free(client);
                return status;
        }
        *ret = client;
        return STATUS_OK;
}

struct client *client_free(struct client *client)
{
        if (!client)
                return NULL;
        client->agent = agent_end(client->agent);
        curl_multi_cleanup(client->multi);
        curl_global_cleanup();
        free(client->base);
        free(client->authorization);
        free(client);
        return NULL;
}

void client_abort_on(struct client *client, int fd)
{
        client->abort_fd = fd;
}

/* ---- why there is no answer ---- */

static const struct {
        int error;
        enum exit_status status;
        const char *sentence;
} socket_faults[] = {
        {ENOENT,       STATUS_NO_DAEMON,
         "ublkd is not running (the socket %s does not exist): start it, as with "
                "'systemctl restart ublkd.socket ublkd.service', or name another socket with --socket" },
        {ECONNREFUSED, STATUS_NO_DAEMON,
         "ublkd is not running (no process listens on %s): start it, as with 'systemctl restart "
                "ublkd.socket ublkd.service'"                                                          },
        {EACCES,       STATUS_NOT_ALLOWED, "Permission denied for the socket %s: ask root, or use sudo"},
        {ENOTSOCK,     STATUS_NO_DAEMON,   "%s is not a socket: name the socket of ublkd with --socket"},
        {ENAMETOOLONG, STATUS_NO_DAEMON,   "The path of the socket is too long: %s"                    },
};

/* Return the errno of a connect() to the socket; 0: it succeeds. */
static int try_socket(const char *path)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (strlen(path) >= sizeof(address.sun_path))
                return ENAMETOOLONG;
        strcpy(address.sun_path, path);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                return errno;
        return 0;
}

static enum exit_status explain_socket(const struct client *client, CURLcode result, bool quiet)
{
        int error = try_socket(client->socket);

        for (size_t i = 0; i < ARRAY_SIZE(socket_faults); i++) {
                if (socket_faults[i].error != error)
                        continue;
                if (!quiet) {
                        fputs("ublkctl: ", stderr);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                        fprintf(stderr, socket_faults[i].sentence, client->socket);
#pragma GCC diagnostic pop
                        fputs(".\n", stderr);
                }
                return socket_faults[i].status;
        }
        if (!quiet)
                fprintf(stderr, "ublkctl: cannot reach ublkd at %s: %s.\n", client->socket,
                        error ? strerror(error) : curl_easy_strerror(result));
        return STATUS_NO_DAEMON;
}

static enum exit_status explain(const struct client *client, CURLcode result, bool quiet)
{
        if (result == CURLE_ABORTED_BY_CALLBACK) /* aborted by client_abort_on() or by the tick */
                return STATUS_FAILED;
        if (result == CURLE_OPERATION_TIMEDOUT) {
                if (!quiet)
                        fprintf(stderr,
                                "ublkctl: ublkd timed out%s; look at its log, as with 'journalctl -u "
                                "ublkd'.\n",
                                client->limited ? ": it does not answer within --timeout" : "");
                return STATUS_TIMED_OUT;
        }
        if (result == CURLE_OUT_OF_MEMORY || result == CURLE_WRITE_ERROR) {
                if (!quiet)
                        fputs("ublkctl: out of memory for the answer; stop other programs, or ask for "
                              "less.\n",
                                stderr);
                return STATUS_FAILED;
        }
        if (client->socket && (result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST))
                return explain_socket(client, result, quiet);
        if (!quiet && client->socket)
                fprintf(stderr, "ublkctl: the connection to ublkd at %s broke: %s; try again.\n",
                        client->socket, curl_easy_strerror(result));
        else if (!quiet)
                fprintf(stderr,
                        "ublkctl: cannot reach ublkd at %s: %s; check the address, and that ublkd listens "
                        "there ('ublkd --listen').\n",
                        client->base, curl_easy_strerror(result));
        return STATUS_NO_DAEMON;
}

/* ---- one exchange ---- */

static size_t on_body(char *data, size_t size, size_t count, void *userdata)
{
        struct exchange *exchange = userdata;
        const struct request *request = exchange->request;
        long status = 0;

        (void)curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
        if (request->take && status < 300)
                return request->take(request->userdata, data, size * count) ? size * count : 0;
        return text_append(&exchange->received, data, size * count, ANSWER_MAX) ? size * count : 0;
}

static size_t on_header(char *data, size_t size, size_t count, void *userdata)
{
        static const char etag[] = "etag:";
        struct exchange *exchange = userdata;
        size_t length = size * count, prefix = sizeof(etag) - 1;

        if (length <= prefix || strncasecmp(data, etag, prefix) != 0)
                return length;
        data += prefix;
        length -= prefix;
        while (length > 0 && (*data == ' ' || *data == '\t')) {
                data++;
                length--;
        }
        while (length > 0 && strchr(" \t\r\n", data[length - 1]))
                length--;
        if (length < sizeof(exchange->answer.etag)) {
                memcpy(exchange->answer.etag, data, length);
                exchange->answer.etag[length] = '\0';
        }
        return size * count;
}

static _printf_(2, 3) bool add_header(struct exchange *exchange, const char *format, ...)
{
        _cleanup_free_ char *line = NULL;
        struct curl_slist *headers;
        va_list arguments;

        va_start(arguments, format);
        line = text_format(format, arguments);
        va_end(arguments);
        if (!line)
                return false;
        headers = curl_slist_append(exchange->headers, line);
        if (headers)
                exchange->headers = headers;
        return headers != NULL;
}

static bool add_headers(const struct client *client, struct exchange *exchange)
{
        const struct request *request = exchange->request;
        bool good = add_header(exchange, "Expect:");

        if (good && client->authorization)
                good = add_header(exchange, "%s", client->authorization);
        if (good && request->body)
                good = add_header(exchange, "Content-Type: %s",
                        request->body_type ? request->body_type : "application/json");
        if (good && request->if_match)
                good = add_header(exchange, "If-Match: %s", request->if_match);
        if (good && request->if_none_match)
                good = add_header(exchange, "If-None-Match: *");
        if (good)
                good = add_header(exchange, "Accept: %sapplication/json, application/problem+json",
                        request->take ? "text/event-stream, " : "");
        if (good && exchange->interactive)
                good = add_header(exchange, "Interactive-Authorization: allow");
        if (good && request->last_event_id)
                good = add_header(exchange, "Last-Event-ID: %s", request->last_event_id);
        return good;
}

/* Return the limit for a whole exchange, in milliseconds; 0: none. */
static long patience_of(const struct client *client, const struct request *request)
{
        uint64_t held = (request->patience + 999) / 1000;

        if (request->take)
                return (long)held;
        if (!client->limited)
                return (long)(ANSWER_PATIENCE_MS + held);
        if (held > 0)
                return (long)(held + GRACE_MS);
        return (long)(client->limit_ms > LIMIT_LEAST_MS ? client->limit_ms : LIMIT_LEAST_MS);
}

static bool prepare(const struct client *client, struct exchange *exchange)
{
        const struct request *request = exchange->request;
        CURL *easy = exchange->easy = curl_easy_init();

        exchange->body = request->body ? json_print(request->body) : NULL;
        if (!easy || !text_append(&exchange->received, "", 0, 0) || (request->body && !exchange->body)
                || asprintf(&exchange->url, "%s%s", client->base, request->path) < 0
                || !add_headers(client, exchange))
                return false;
        curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_PATH_AS_IS,
                1L); /* no device is called ".."; libcurl 8 would resolve %2E%2E as ".." */
        curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* do not use $http_proxy for a daemon of this machine */
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_PATIENCE_MS);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, patience_of(client, request));
        if (request->take) { /* a stream sends a keep-alive every 15 s */
                curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
                curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)STREAM_PATIENCE);
        }
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange->headers);
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
        if (exchange->body)
                curl_easy_setopt(easy, CURLOPT_POSTFIELDS, exchange->body);
        return curl_easy_setopt(easy, CURLOPT_URL, exchange->url) == CURLE_OK
               && (!client->socket
                       || curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, client->socket) == CURLE_OK);
}

/* Mark every exchange that has ended, also those of outer calls. */
static void reap(struct client *client)
{
        CURLMsg *message;
        int left;

        while ((message = curl_multi_info_read(client->multi, &left))) {
                struct exchange *exchange = NULL;

                if (message->msg != CURLMSG_DONE)
                        continue;
                curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
                exchange->done = true;
                exchange->result = message->data.result;
        }
}

static CURLcode carry_out(struct client *client, struct exchange *exchange)
{
        const struct request *request = exchange->request;
        struct curl_waitfd abort_on = {.fd = client->abort_fd, .events = CURL_WAIT_POLLIN};
        int running, events;

        if (curl_multi_add_handle(client->multi, exchange->easy) != CURLM_OK)
                return CURLE_OUT_OF_MEMORY;
        for (;;) {
                if (curl_multi_perform(client->multi, &running) != CURLM_OK)
                        return CURLE_OUT_OF_MEMORY;
                reap(client);
                if (exchange->done)
                        return exchange->result;
                if (curl_multi_poll(client->multi, &abort_on, client->abort_fd >= 0, TICK_MS, &events)
                        != CURLM_OK)
                        return CURLE_OUT_OF_MEMORY;
                if (abort_on.revents)
                        return CURLE_ABORTED_BY_CALLBACK;
                if (events == 0 && request->tick && !request->tick(request->userdata))
                        return CURLE_ABORTED_BY_CALLBACK;
        }
}

static void release(struct client *client, struct exchange *exchange)
{
        if (exchange->easy) {
                curl_multi_remove_handle(client->multi, exchange->easy);
                curl_easy_cleanup(exchange->easy);
        }
        curl_slist_free_all(exchange->headers);
        free(exchange->body);
        free(exchange->url);
        free(exchange->received.bytes);
        answer_clear(&exchange->answer);
}

/* A stream counts as answered when its reader or the daemon has ended it. */
static bool is_answer(const struct exchange *exchange, CURLcode result)
{
        bool stream = exchange->request->take && exchange->answer.status > 0;

        return result == CURLE_OK || (stream && exchange->answer.status < 300);
}

/* Take the answer out of the exchange, and free the exchange. */
static enum exit_status take_answer(
        struct client *client, struct exchange *exchange, CURLcode result, bool quiet, struct answer *ret)
{
        if (exchange->easy)
                (void)curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &exchange->answer.status);
        if (!is_answer(exchange, result)) {
                release(client, exchange);
                return explain(client, result, quiet);
        }
        exchange->answer.body = TAKE_PTR(exchange->received.bytes);
        exchange->answer.size = exchange->received.size;
        exchange->answer.json = cJSON_Parse(exchange->answer.body);
        *ret = exchange->answer;
        exchange->answer = (struct answer){};
        release(client, exchange);
        return STATUS_OK;
}

static enum exit_status ask_once(struct client *client, const struct request *request, bool interactive,
        bool quiet, struct answer *ret)
{
        struct exchange exchange = {.request = request, .interactive = interactive};
        CURLcode result = prepare(client, &exchange) ? carry_out(client, &exchange) : CURLE_OUT_OF_MEMORY;

        return take_answer(client, &exchange, result, quiet, ret);
}

/* ---- polkit ---- */

/* Return whether a change was refused that polkit might allow once the user has given a password. */
static bool needs_password(
        const struct client *client, const struct request *request, const struct answer *answer)
{
        return client->asks_password && answer->status == HTTP_FORBIDDEN
               && strcmp(request->method, "GET") != 0;
}

/* Send a refused change again, with an agent. What would print on the terminal meanwhile (the tick) waits. */
static enum exit_status ask_with_password(
        struct client *client, const struct request *request, bool quiet, struct answer *ret)
{
        struct request again = *request;

        if (client->agent < 0)
                client->agent = agent_start();
        again.tick = NULL;
        if (!client->limited) /* else the time that was given counts for the password as well */
                again.patience += PASSWORD_USEC;
        answer_clear(ret);
        return ask_once(client, &again, true, quiet, ret);
}

enum exit_status client_ask(
        struct client *client, const struct request *request, bool quiet, struct answer *ret)
{
        struct answer answer;
        enum exit_status status = ask_once(client, request, false, quiet, &answer);

        if (status == STATUS_OK && !quiet && needs_password(client, request, &answer))
                status = ask_with_password(client, request, quiet, &answer);
        if (status == STATUS_OK)
                *ret = answer;
        return status;
}

/* ---- many at once ---- */

static void begin(struct client *client, struct exchange *exchange)
{
        if (prepare(client, exchange) && curl_multi_add_handle(client->multi, exchange->easy) == CURLM_OK)
                return;
        exchange->done = true;
        exchange->result = CURLE_OUT_OF_MEMORY;
}

/* Return whether to continue. */
static bool await_any(struct client *client)
{
        struct curl_waitfd abort_on = {.fd = client->abort_fd, .events = CURL_WAIT_POLLIN};
        int running, events;

        if (curl_multi_perform(client->multi, &running) != CURLM_OK)
                return false;
        reap(client);
        return running == 0
               || (curl_multi_poll(client->multi, &abort_on, client->abort_fd >= 0, TICK_MS, &events)
                               == CURLM_OK
                       && !abort_on.revents);
}

/* polkit answers one question of a user at a time. */
static bool was_busy(const struct answer *answer)
{
        const cJSON *type = cJSON_GetObjectItemCaseSensitive(answer->json, "type");

        return answer->status == HTTP_UNAVAILABLE && cJSON_IsString(type)
               && strcmp(type->valuestring, "urn:ublkd:problem:authorization-busy") == 0;
}

/* Send what polkit was not asked about again, one by one; with a password, until the user does not give it. */
static void ask_rest(struct client *client, const struct request *requests, size_t count,
        enum exit_status *statuses, struct answer *answers)
{
        bool refused = false;

        for (size_t i = 0; i < count; i++) {
                if (statuses[i] == STATUS_OK && was_busy(&answers[i])) {
                        answer_clear(&answers[i]);
                        statuses[i] = ask_once(client, &requests[i], false, false, &answers[i]);
                }
                if (refused || statuses[i] != STATUS_OK || !needs_password(client, &requests[i], &answers[i]))
                        continue;
                statuses[i] = ask_with_password(client, &requests[i], false, &answers[i]);
                refused = statuses[i] != STATUS_OK || answers[i].status == HTTP_FORBIDDEN;
        }
}

static void ask_at_once(struct client *client, const struct request *requests, size_t count,
        enum exit_status *ret_statuses, struct answer *ret_answers)
{
        struct exchange window[AT_ONCE] = {};
        size_t of_window[AT_ONCE], begun = 0, ended = 0;
        bool used[AT_ONCE] = {}, go_on = true, reported = false;

        while (ended < count) {
                for (size_t i = 0; i < AT_ONCE; i++) {
                        if (!used[i] && begun < count) {
                                window[i] = (struct exchange){.request = &requests[begun]};
                                of_window[i] = begun++;
                                used[i] = true;
                                begin(client, &window[i]);
                        }
                        if (!used[i] || (go_on && !window[i].done))
                                continue;
                        ret_answers[of_window[i]] = (struct answer){};
                        ret_statuses[of_window[i]] = take_answer(client, &window[i],
                                window[i].done ? window[i].result : CURLE_ABORTED_BY_CALLBACK, reported,
                                &ret_answers[of_window[i]]);
                        reported = reported || ret_statuses[of_window[i]] != STATUS_OK;
                        used[i] = false;
                        ended++;
                }
                go_on = go_on && ended < count && await_any(client);
        }
}

void client_ask_all(struct client *client, const struct request *requests, size_t count,
        enum exit_status *ret_statuses, struct answer *ret_answers)
{
        ask_at_once(client, requests, count, ret_statuses, ret_answers);
        ask_rest(client, requests, count, ret_statuses, ret_answers);
}

void answer_clear(struct answer *answer)
{
        free(answer->body);
        cJSON_Delete(answer->json);
        *answer = (struct answer){};
}
