/* SPDX-License-Identifier: MIT */
/* A request to ublkd. */
#include "volumes/rest.h"

#include "ublkd/base/cleanup.h"

#include <curl/curl.h>
#include <string.h>

enum { ANSWER_MAX = 64 << 20 };

struct body {
        char *text;
        size_t size;
};

DEFINE_CLEANUP(CURL, curl_easy_cleanup);

static void free_headers(struct curl_slist **headers)
{
        curl_slist_free_all(*headers);
}

int rest_prepare(void)
{
        return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -ENOMEM;
}

static size_t on_data(char *data, size_t one, size_t count, void *userdata)
{
        struct body *body = userdata;
        char *more;

        (void)one; /* always 1 */
        if (count > ANSWER_MAX - body->size)
                return 0;
        more = realloc(body->text, body->size + count + 1);
        if (!more)
                return 0;
        body->text = more;
        memcpy(body->text + body->size, data, count);
        body->size += count;
        body->text[body->size] = '\0';
        return count;
}

/* curl asks about once a second. */
static int on_progress(void *userdata, curl_off_t all_in, curl_off_t in, curl_off_t all_out, curl_off_t out)
{
        const struct rest_request *request = userdata;

        (void)all_in;
        (void)in;
        (void)all_out;
        (void)out;
        return request->ended && atomic_load(request->ended);
}

static CURLcode perform(CURL *curl, const struct rest_request *request, const char *sent,
        struct curl_slist *headers, struct body *body)
{
        char url[512];

        snprintf(url, sizeof(url), "http://localhost%s", request->path);
        (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        (void)curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, request->socket);
        (void)curl_easy_setopt(curl, CURLOPT_URL, url);
        (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
        (void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
        (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, request->timeout_msec);
        (void)curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        (void)curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
        (void)curl_easy_setopt(curl, CURLOPT_XFERINFODATA, request);
        (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
        (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
        (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        if (sent)
                (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, sent);
        return curl_easy_perform(curl);
}

int rest_ask(const struct rest_request *request, struct rest_answer *ret, char error[static REST_ERROR_SIZE])
{
        _cleanup_(curl_easy_cleanup_pointer) CURL *curl = curl_easy_init();
        _cleanup_(free_headers) struct curl_slist *headers =
                curl_slist_append(NULL, "Content-Type: application/json");
        _cleanup_free_ char *sent = request->body ? cJSON_PrintUnformatted(request->body) : NULL;
        struct body body = {};
        CURLcode code = CURLE_OUT_OF_MEMORY;

        *ret = (struct rest_answer){};
        if (curl && headers && (sent || !request->body))
                code = perform(curl, request, sent, headers, &body);
        if (code == CURLE_OK) {
                (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret->status);
                ret->json = body.text ? cJSON_Parse(body.text) : NULL;
        } else
                snprintf(error, REST_ERROR_SIZE, "ublkd does not answer at %s: %s; see whether it runs.",
                        request->socket, curl_easy_strerror(code));
        free(body.text);
        return code == CURLE_OK ? 0 : -EIO;
}

void rest_problem(const struct rest_answer *answer, char error[static REST_ERROR_SIZE])
{
        const char *detail = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer->json, "detail"));

        if (detail)
                snprintf(error, REST_ERROR_SIZE, "%s", detail);
        else
                snprintf(error, REST_ERROR_SIZE, "ublkd has answered with the status %ld.", answer->status);
}
