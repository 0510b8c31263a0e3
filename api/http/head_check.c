/* SPDX-License-Identifier: MIT */
/* Check that the head of a request can be read in one way only.
 *
 * The HTTP library is lenient: it takes the first of two Content-Length, ignores Content-Length beside
 * Transfer-Encoding, and ends a text at a NUL. A proxy that parses the same bytes differently could pass one
 * client's request off as another's. So ublkd refuses every head that has two readings.
 *
 * The library is lenient with chunks, too (line ends without CR, extensions, folded trailers), and ublkd never sees
 * them. So no request follows a chunked one on a connection: where the chunks end for another reader does not
 * matter then. */
#include "api/http/head_check.h"

#include "api/http/connection.h"
#include "api/http/respond.h"

#include <string.h>
#include <strings.h>

/* Headers that may occur once: two of them would contradict each other. */
static const char *const single[] = {
        MHD_HTTP_HEADER_AUTHORIZATION,
        MHD_HTTP_HEADER_CONTENT_LENGTH,
        MHD_HTTP_HEADER_CONTENT_TYPE,
        MHD_HTTP_HEADER_EXPECT,
        MHD_HTTP_HEADER_HOST,
        MHD_HTTP_HEADER_TRANSFER_ENCODING,
};

struct head {
        size_t count, size; /* of the headers, in bytes as the client must have sent them */
        size_t seen[ARRAY_SIZE(single)];
        const char *bad;       /* a name that is not a token, or NULL */
        const char *bad_value; /* the name of a value with control characters, or NULL */
        bool odd;              /* one is neither "Name:value" nor "Name: value" */
};

/* Return how many bytes the client sent between a name and its value. The library cuts both out of its
 * receive buffer, in place. 0: unknown; they lie elsewhere, as in a folded line. */
static size_t gap_between(const char *name, const char *value)
{
        uintptr_t name_end = (uintptr_t)name + strlen(name), begin = (uintptr_t)value;

        return begin == name_end + strlen(":") || begin == name_end + strlen(": ") ? begin - name_end : 0;
}

static bool is_token(const char *text)
{
        static const char allowed[] =
                "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

        return *text && strspn(text, allowed) == strlen(text);
}

static bool has_control_characters(const char *text)
{
        for (; *text; text++)
                if (((unsigned char)*text < 0x20 && *text != '\t') || *text == 0x7f)
                        return true;
        return false;
}

static enum MHD_Result on_header(
        void *userdata, enum MHD_ValueKind kind _unused_, const char *name, const char *value)
{
        struct head *head = userdata;
        size_t size = value ? strlen(value) : 0, gap = value ? gap_between(name, value) : 0;

        value = value ? value : "";
        head->odd = head->odd || gap == 0 || (size > 0 && strchr(" \t", value[size - 1]));
        head->count++;
        head->size += strlen(name) + gap + size + strlen("\r\n");
        if (!is_token(name))
                head->bad = name;
        if (has_control_characters(value))
                head->bad_value = name;
        for (size_t i = 0; i < ARRAY_SIZE(single); i++)
                head->seen[i] += strcasecmp(name, single[i]) == 0;
        return MHD_YES;
}

static bool refuse(struct request *request)
{
        request->reply.close = true;
        return false;
}

static bool check_target(struct request *request)
{
        if (request->client->target_has_space) {
                reply_problem(request, PROBLEM_BAD_REQUEST, "The path has a space; write %%20.");
                return refuse(request);
        }
        if (request->client->target_size > TARGET_SIZE_MAX) {
                reply_problem(request, PROBLEM_PATH_TOO_LONG,
                        "The path with its parameters is too long; %d bytes are the limit.", TARGET_SIZE_MAX);
                return refuse(request);
        }
        return true;
}

static bool check_size(struct request *request, const struct head *head)
{
        if (head->count > HEADERS_MAX || head->size > HEAD_SIZE_MAX) {
                reply_problem(request, PROBLEM_HEADERS_TOO_LARGE,
                        "The request has too many headers; %d headers with %d bytes together are the limit.",
                        HEADERS_MAX, HEAD_SIZE_MAX);
                return refuse(request);
        }
        return true;
}

static bool check_names(struct request *request, const struct head *head)
{
        if (head->bad || head->bad_value) {
                reply_problem(request, PROBLEM_BAD_REQUEST,
                        "The %s of a header has invalid characters; remove them.",
                        head->bad ? "name" : "value");
                return refuse(request);
        }
        for (size_t i = 0; i < ARRAY_SIZE(single); i++)
                if (head->seen[i] > 1) {
                        reply_problem(request, PROBLEM_BAD_REQUEST,
                                "The header %s is given more than once; give it once.", single[i]);
                        return refuse(request);
                }
        return true;
}

static bool check_host(struct request *request, const char *version)
{
        if (strcmp(version, MHD_HTTP_VERSION_1_1) != 0 || request_header(request, MHD_HTTP_HEADER_HOST))
                return true;
        reply_problem(request, PROBLEM_BAD_REQUEST,
                "The header Host is missing; HTTP/1.1 requires it, with any value.");
        return refuse(request);
}

/* The head must say once where the body ends, and in a way that ublkd understands. */
static bool check_framing(struct request *request, const char *version)
{
        const char *length = request_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH),
                   *coding = request_header(request, MHD_HTTP_HEADER_TRANSFER_ENCODING),
                   *expect = request_header(request, MHD_HTTP_HEADER_EXPECT);

        if (coding
                && (length || strcasecmp(coding, "chunked") != 0
                        || strcmp(version, MHD_HTTP_VERSION_1_1) != 0)) {
                reply_problem(request, PROBLEM_BAD_REQUEST,
                        "The length of the body is ambiguous; send either Content-Length or "
                        "'Transfer-Encoding: chunked', the latter in HTTP/1.1 only.");
                return refuse(request);
        }
        if (length && (!*length || strspn(length, "0123456789") != strlen(length))) {
                reply_problem(request, PROBLEM_BAD_REQUEST,
                        "Content-Length is not a number; give the length of the body in bytes.");
                return refuse(request);
        }
        if (expect && strcasecmp(expect, "100-continue") != 0) {
                reply_problem(request, PROBLEM_EXPECTATION_FAILED,
                        "The header Expect is not supported with this value; only 'Expect: 100-continue' "
                        "is.");
                return refuse(request);
        }
        return true;
}

/* The library hides what follows a NUL, line ends without CR, folded lines and white space (since 1.0 also
 * behind a value). What it shows then differs in length from what the client sent. So the two lengths must be
 * equal, to the byte. */
static bool check_hidden(struct request *request, const struct head *head, const char *method)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
        size_t sent =
                strlen(method) + strlen("  HTTP/1.1\r\n\r\n") + request->client->target_size + head->size;

        if (!head->odd && info && info->header_size == sent)
                return true;
        reply_problem(request, PROBLEM_BAD_REQUEST,
                "The head of the request is not well-formed: end lines with CR and LF, write each header "
                "as one line 'Name: value' with at most one space between and none at the end, and send no "
                "NUL bytes.");
        return refuse(request);
}

bool head_check(struct request *request, const char *method, const char *version)
{
        struct head head = {};

        (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, on_header, &head);
        request->last = request_header(request, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
        return check_target(request) && check_size(request, &head) && check_names(request, &head)
               && check_host(request, version) && check_framing(request, version)
               && check_hidden(request, &head, method);
}
