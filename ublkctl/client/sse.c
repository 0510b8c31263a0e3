/* SPDX-License-Identifier: MIT */
/* Parse Server-Sent Events from pieces of any size. */
#include "ublkctl/client/sse.h"

#include "ublkctl/text/text.h"

#include <string.h>

enum { ID_SIZE = 64, TEXT_SIZE_MAX = (1 << 20) - 1, RETRY_MAX_MS = 60 * 1000 };

struct sse {
        bool (*each)(void *userdata, const char *data);
        void *userdata;
        struct text line, data;
        bool has_data;
        bool after_cr; /* ignore a line feed that follows */
        char id[ID_SIZE], next_id[ID_SIZE];
        unsigned retry_ms; /* 0: the stream gave none */
};

struct sse *sse_new(bool (*each)(void *userdata, const char *data), void *userdata)
{
        struct sse *sse = calloc(1, sizeof(*sse));

        if (!sse)
                return NULL;
        sse->each = each;
        sse->userdata = userdata;
        return sse;
}

struct sse *sse_free(struct sse *sse)
{
        if (!sse)
                return NULL;
        free(sse->line.bytes);
        free(sse->data.bytes);
        free(sse);
        return NULL;
}

static bool end_event(struct sse *sse)
{
        bool goes_on = true;

        strcpy(sse->id, sse->next_id);
        if (sse->has_data)
                goes_on = sse->each(sse->userdata, sse->data.bytes ? sse->data.bytes : "");
        sse->has_data = false;
        sse->data.size = 0;
        return goes_on;
}

static bool add_data(struct sse *sse, const char *value)
{
        bool good = !sse->has_data || text_append(&sse->data, "\n", 1, TEXT_SIZE_MAX);

        if (!sse->has_data)
                sse->data.size = 0;
        sse->has_data = true;
        return good && text_append(&sse->data, value, strlen(value), TEXT_SIZE_MAX);
}

static bool take_field(struct sse *sse, const char *name, const char *value)
{
        if (strcmp(name, "data") == 0)
                return add_data(sse, value);
        if (strcmp(name, "id") == 0 && strlen(value) < ID_SIZE)
                strcpy(sse->next_id, value);
        if (strcmp(name, "retry") == 0 && *value && strspn(value, "0123456789") == strlen(value)) {
                unsigned long retry = strtoul(value, NULL, 10);

                sse->retry_ms = retry < RETRY_MAX_MS ? (unsigned)retry : RETRY_MAX_MS;
        }
        return true;
}

static bool end_line(struct sse *sse)
{
        static char nothing[] = "";
        char *line = sse->line.size > 0 ? sse->line.bytes : nothing, *colon;

        sse->line.size = 0;
        if (!*line)
                return end_event(sse);
        colon = strchr(line, ':');
        if (colon == line) /* a comment */
                return true;
        if (!colon)
                return take_field(sse, line, "");
        *colon++ = '\0';
        return take_field(sse, line, colon + (*colon == ' '));
}

bool sse_feed(struct sse *sse, const char *data, size_t size)
{
        while (size > 0) {
                size_t length = 0;

                if (sse->after_cr && *data == '\n') {
                        data++;
                        size--;
                        sse->after_cr = false;
                        continue;
                }
                while (length < size && data[length] != '\n' && data[length] != '\r')
                        length++;
                if (!text_append(&sse->line, data, length, TEXT_SIZE_MAX))
                        return false;
                sse->after_cr = length < size && data[length] == '\r';
                if (length == size)
                        return true;
                if (!end_line(sse))
                        return false;
                data += length + 1;
                size -= length + 1;
        }
        return true;
}

void sse_restart(struct sse *sse)
{
        sse->line.size = 0;
        sse->data.size = 0;
        sse->has_data = false;
        sse->after_cr = false;
        strcpy(sse->next_id, sse->id);
}

const char *sse_last_id(const struct sse *sse)
{
        return sse->id;
}

unsigned sse_retry_ms(const struct sse *sse, unsigned fallback)
{
        return sse->retry_ms > 0 ? sse->retry_ms : fallback;
}
