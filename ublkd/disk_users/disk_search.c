/* SPDX-License-Identifier: MIT */
/* Searches the users of disks in a separate process.
 *
 * The process writes one record for each disk, in their order, each ended by a NUL: "N" (no users), "Y", the kinds of
 * the users as a digit, and the users, or "E" and what it could not read. A disk without a record is unknown. Another string
 * follows each record: the users that are known to be of a user, each as its uid, its length and its phrase. */
#include "ublkd/disk_users/disk_search.h"

#include "ublkd/offload/apart.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>

enum {
        DISKS_MAX = 512, /* of one search; more wait for the next */
        RECORD_MAX = DISK_ANSWER_TEXT_MAX,
        OWNED_HEAD = 16, /* characters before a phrase */
};

enum question_state {
        QUESTION_WAITING, /* for the next search */
        QUESTION_ASKED,   /* in the search under way */
        QUESTION_OVER,    /* answered, or without an answer for ever */
};

enum search_state {
        SEARCH_IDLE,
        SEARCH_RUNNING,
        SEARCH_ANSWERING, /* the search has ended; each turn of the loop answers one question */
};

TAILQ_HEAD(questions, disk_question);

struct disk_question {
        struct disk_search *search;
        enum question_state state;
        int number;
        enum disk_depth depth;
        disk_answered answered;
        void *userdata;
        TAILQ_ENTRY(disk_question) entry; /* in the list of its state */
};

/* A disk that is searched for. */
struct wanted {
        int number;
        enum disk_depth depth; /* the deepest of its questions */
};

struct disk_search {
        sd_event *event;
        struct disk_search_options options;
        struct disk_users_place *place; /* shared with the process */
        struct questions questions[QUESTION_OVER];
        struct apart *apart; /* the process */
        enum search_state state;
        sd_event_source *begin;          /* enabled when the next search can begin */
        sd_event_source *answer;         /* enabled in SEARCH_ANSWERING */
        struct wanted wanted[DISKS_MAX]; /* of the search under way: by number, each once */
        const char *records[DISKS_MAX];  /* in `received`, after the search; NULL: missing */
        const char *owned[DISKS_MAX];    /* the same */
        size_t wanted_count;
        char why[192];  /* after a search: the text for a disk without a record */
        char *received; /* after a search: its output */
        size_t received_size;
        char hung_at[64]; /* " at process 4211 (fio)": where the last search was that took too long; or "" */
        pid_t keeper;     /* the service manager; 0: none */
};

DEFINE_CLEANUP(struct disk_search, disk_search_free);

/* ---- in the process ---- */

/* "process 4211 (fio), mounted at /mnt and 3 more". */
static void join(const struct disk_users *users, char *text, size_t size)
{
        size_t used = 0;

        for (size_t i = 0; i < users->count && used < size; i++)
                used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", users->items[i]);
        if (users->dropped && used < size)
                snprintf(text + used, size - used, " and %zu more", users->dropped);
}

/* The phrases may have any bytes, as processes choose their names: so a length says where one ends. */
static void write_owned(FILE *pipe, const struct disk_users *users)
{
        size_t used = 0;

        for (size_t i = 0; i < users->count; i++) {
                size_t length = strlen(users->items[i]);

                if (users->uids[i] == DISK_USER_UNKNOWN || used + OWNED_HEAD + length >= DISK_ANSWER_TEXT_MAX)
                        continue;
                used += OWNED_HEAD + length;
                (void)fprintf(pipe, "%08x%08zx%s", (unsigned)users->uids[i], length, users->items[i]);
        }
        (void)fputc('\0', pipe);
}

void disk_answer_of(const struct disk_answer *answer, uid_t uid, char text[static DISK_ANSWER_TEXT_MAX])
{
        const char *at = answer->owned ? answer->owned : "";
        size_t used = 0, length;
        unsigned owner;

        for (*text = '\0'; sscanf(at, "%8x%8zx", &owner, &length) == 2; at += OWNED_HEAD + length)
                if (owner == uid) /* all of them together fit into the text, with a head each */
                        used += (size_t)snprintf(text + used, DISK_ANSWER_TEXT_MAX - used, "%s%.*s",
                                used ? ", " : "", (int)length, at + OWNED_HEAD);
}

static void write_record(
        FILE *pipe, const struct disk_users *users, const struct disk_users_gap *gap, int result)
{
        char text[RECORD_MAX] = "N";

        if (users->count > 0) { /* also if the search has a gap */
                text[0] = 'Y';
                text[1] = (char)('0' + users->kinds);
                join(users, text + 2, sizeof(text) - 2);
        } else if (result < 0) {
                snprintf(text, sizeof(text), "E%s", gap->text[0] ? gap->text : strerror(-result));
        }
        (void)fwrite(text, strlen(text) + 1, 1, pipe);
        write_owned(pipe, users);
}

static void search_apart(void *userdata, FILE *answer)
{
        const struct disk_search *search = userdata;
        struct disk_users_roots roots = search->options.roots;
        struct disk_users *disks = calloc(search->wanted_count, sizeof(*disks));
        struct disk_users_gap gap = {};
        int r;

        if (!disks)
                return;
        roots.place = search->place;
        roots.gap = &gap;
        roots.supervisor = getppid();
        roots.keeper = search->keeper;
        roots.time_usec = search->options.patience_usec * 7 / 10;
        for (size_t i = 0; i < search->wanted_count; i++)
                disks[i] = (struct disk_users){.number = search->wanted[i].number,
                        .exclusively = search->wanted[i].depth == DISK_VERDICT};
        r = search->options.find(&roots, disks, search->wanted_count);
        for (size_t i = 0; i < search->wanted_count; i++)
                write_record(answer, &disks[i], &gap, r);
}

/* ---- questions ---- */

static void question_enter(struct disk_question *question, enum question_state state)
{
        struct questions *lists = question->search->questions;

        if (question->state < QUESTION_OVER)
                TAILQ_REMOVE(&lists[question->state], question, entry);
        question->state = state;
        if (state < QUESTION_OVER)
                TAILQ_INSERT_TAIL(&lists[state], question, entry);
}

int disk_search_ask(struct disk_search *search, int number, enum disk_depth depth, disk_answered answered,
        void *userdata, struct disk_question **ret)
{
        struct disk_question *question = calloc(1, sizeof(*question));

        if (!question)
                return -ENOMEM;
        *question = (struct disk_question){.search = search,
                .state = QUESTION_OVER,
                .number = number,
                .depth = depth,
                .answered = answered,
                .userdata = userdata};
        question_enter(question, QUESTION_WAITING);
        if (search->state
                == SEARCH_IDLE) /* later from the loop, so that it serves all questions of this turn */
                (void)sd_event_source_set_enabled(search->begin, SD_EVENT_ONESHOT);
        *ret = question;
        return 0;
}

struct disk_question *disk_question_free(struct disk_question *question)
{
        if (!question)
                return NULL;
        if (question->state < QUESTION_OVER)
                question_enter(question, QUESTION_OVER);
        free(question);
        return NULL;
}

/* ---- the end of a search ---- */

/* Return the string that begins at *at, and move on; NULL: its end is missing. */
static const char *cut_string(const struct disk_search *search, size_t *at)
{
        size_t left = search->received_size - *at;
        const char *text = left > 0 ? search->received + *at : NULL;
        const char *nul = text ? memchr(text, '\0', left) : NULL;

        *at += nul ? (size_t)(nul - text) + 1 : left;
        return nul ? text : NULL;
}

static void cut_records(struct disk_search *search)
{
        size_t at = 0;

        for (size_t i = 0; i < search->wanted_count; i++) {
                search->records[i] = cut_string(search, &at);
                search->owned[i] = cut_string(search, &at);
        }
}

static int compare_wanted(const void *one, const void *other)
{
        const struct wanted *left = one, *right = other;

        return (left->number > right->number) - (left->number < right->number);
}

/* Return the place of the disk in what was searched for, or -1. */
static int place_of(const struct disk_search *search, int number)
{
        const struct wanted key = {.number = number};
        const struct wanted *at =
                bsearch(&key, search->wanted, search->wanted_count, sizeof(key), compare_wanted);

        return at ? (int)(at - search->wanted) : -1;
}

static void answer(struct disk_search *search, struct disk_question *question)
{
        int place = place_of(search, question->number);
        const char *record = place >= 0 ? search->records[place] : NULL;
        struct disk_answer answer = {.number = question->number,
                .use = DISK_USE_UNKNOWN,
                .text = record ? record + 1 : search->why,
                .owned = place >= 0 ? search->owned[place] : NULL};
        char text[256];

        if (record && *record == 'N') {
                answer.use = DISK_UNUSED;
        } else if (record && *record == 'Y') {
                answer.use = DISK_USED;
                answer.kinds = (unsigned)(record[1] - '0');
                answer.text = record + 2;
        } else if (record) {
                snprintf(text, sizeof(text), "the search is not complete: %s", record + 1);
                answer.text = text;
        }
        question_enter(question, QUESTION_OVER);
        question->answered(question->userdata, &answer);
}

static void enter_idle(struct disk_search *search)
{
        search->state = SEARCH_IDLE;
        free(search->received);
        search->received = NULL;
        search->received_size = 0;
        if (!TAILQ_EMPTY(&search->questions[QUESTION_WAITING]))
                (void)sd_event_source_set_enabled(search->begin, SD_EVENT_ONESHOT);
}

/* Answer one question. Its owner acts on the answer, and may write to the database, so other event sources get a
 * turn between two answers. A source that stays enabled would not let them: it has been pending longer. */
static int on_answer_due(sd_event_source *source, void *userdata)
{
        struct disk_search *search = userdata;
        struct questions *asked = &search->questions[QUESTION_ASKED];

        if (!TAILQ_EMPTY(asked))
                answer(search, TAILQ_FIRST(asked));
        if (!TAILQ_EMPTY(asked))
                return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        enter_idle(search);
        return 0;
}

static void finish(struct disk_search *search, const char *format, ...) _printf_(2, 3);

/* End a search. format: why a disk without a record is unknown. */
static void finish(struct disk_search *search, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        (void)vsnprintf(search->why, sizeof(search->why), format, arguments);
        va_end(arguments);
        cut_records(search);
        search->state = SEARCH_ANSWERING;
        (void)sd_event_source_set_enabled(search->answer, SD_EVENT_ONESHOT);
}

static void note_where_it_hangs(struct disk_search *search)
{
        struct disk_users_place *place = search->place;

        place->comm[sizeof(place->comm) - 1] = '\0';
        search->hung_at[0] = '\0';
        if (place->pid > 0)
                snprintf(search->hung_at, sizeof(search->hung_at), " at process %d (%s)", place->pid,
                        place->comm);
}

static void on_done(void *userdata, int error, const void *answer, size_t size)
{
        struct disk_search *search = userdata;

        search->received = size > 0 ? malloc(size) : NULL;
        search->received_size = search->received ? size : 0;
        if (search->received)
                memcpy(search->received, answer, size);
        if (error == -ETIMEDOUT) {
                note_where_it_hangs(search);
                finish(search, "the search took longer than %g s, and was given up%s",
                        (double)search->options.patience_usec / 1e6, search->hung_at);
        } else if (error < 0 || (size > 0 && !search->received)) {
                finish(search, "its answer could not be read");
        } else {
                finish(search, "the search ended early");
        }
}

/* ---- the begin of a search ---- */

static bool add_wanted(struct disk_search *search, const struct disk_question *question)
{
        struct wanted *wanted = search->wanted;
        size_t i = 0;

        while (i < search->wanted_count && wanted[i].number != question->number)
                i++;
        if (i == DISKS_MAX)
                return false;
        if (i == search->wanted_count)
                wanted[search->wanted_count++] = (struct wanted){.number = question->number};
        if (question->depth > wanted[i].depth)
                wanted[i].depth = question->depth;
        return true;
}

/* Collect the waiting questions, as many as one search can serve. */
static void gather(struct disk_search *search)
{
        struct disk_question *question = TAILQ_FIRST(&search->questions[QUESTION_WAITING]), *next;

        search->wanted_count = 0;
        for (; question; question = next) {
                next = TAILQ_NEXT(question, entry);
                if (add_wanted(search, question))
                        question_enter(question, QUESTION_ASKED);
        }
        qsort(search->wanted, search->wanted_count, sizeof(*search->wanted), compare_wanted);
}

static int on_begin(sd_event_source *source _unused_, void *userdata)
{
        struct disk_search *search = userdata;
        int r;

        gather(search);
        if (search->wanted_count == 0)
                return 0; /* all questions were freed */
        search->state = SEARCH_RUNNING;
        *search->place = (struct disk_users_place){};
        r = apart_begin(search->apart);
        if (r == -EDEADLK)
                finish(search, "%d searches were given up and do not end%s", APART_STUCK_MAX,
                        search->hung_at);
        else if (r < 0)
                finish(search, "the search cannot be started: %s", strerror(-r));
        return 0;
}

/* ---- the whole ---- */

int disk_search_new(sd_event *event, const struct disk_search_options *options, struct disk_search **ret)
{
        _cleanup_(disk_search_free_pointer) struct disk_search *search = calloc(1, sizeof(*search));
        void *place;
        int r;

        if (!search)
                return -ENOMEM;
        search->event = sd_event_ref(event);
        search->options = *options;
        search->keeper = getenv("NOTIFY_SOCKET") ? getppid() : 0; /* a service is a child of its manager */
        if (search->options.patience_usec == 0)
                search->options.patience_usec = DISK_SEARCH_USEC;
        if (!search->options.find)
                search->options.find = disk_users_find;
        for (size_t i = 0; i < ARRAY_SIZE(search->questions); i++)
                TAILQ_INIT(&search->questions[i]);
        place = mmap(NULL, sizeof(*search->place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (place == MAP_FAILED)
                return -errno;
        search->place = place;
        r = sd_event_add_defer(event, &search->begin, on_begin, search);
        if (r >= 0)
                r = sd_event_source_set_enabled(search->begin, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(event, &search->answer, on_answer_due, search);
        if (r >= 0)
                r = sd_event_source_set_enabled(search->answer, SD_EVENT_OFF);
        if (r >= 0)
                r = apart_new(event,
                        &(struct apart_options){.process = "ublkd-search",
                                .patience_usec = search->options.patience_usec,
                                .look = search_apart,
                                .done = on_done,
                                .userdata = search},
                        &search->apart);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(search);
        return 0;
}

struct disk_search *disk_search_free(struct disk_search *search)
{
        if (!search)
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(search->questions); i++)
                while (!TAILQ_EMPTY(&search->questions[i]))
                        question_enter(TAILQ_FIRST(&search->questions[i]), QUESTION_OVER);
        apart_free(search->apart);
        sd_event_source_disable_unref(search->begin);
        sd_event_source_disable_unref(search->answer);
        if (search->place)
                (void)munmap(search->place, sizeof(*search->place));
        free(search->received);
        sd_event_unref(search->event);
        free(search);
        return NULL;
}
