/* SPDX-License-Identifier: MIT */
/* Ask polkit whether a client may change devices.
 *
 * A question ends in one of three ways, and each frees it: polkit answers (on_reply, also when the bus is lost), its
 * time is over (on_deadline), or the authority is freed. A withdrawn question has no `then` any more, and ends in the
 * same ways. When the last one has ended, the connection to the bus is closed; polkit then cancels what it still
 * checks for that connection. */
#include "ublkd/authority/authority.h"

#include "ublkd/peers/peer_process.h"
#include "ublkd/base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <systemd/sd-bus.h>

#define POLKIT_NAME "org.freedesktop.PolicyKit1"
#define POLKIT_PATH "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE "org.freedesktop.PolicyKit1.Authority"

enum { ALLOW_USER_INTERACTION = 1, DEADLINE_ACCURACY_USEC = 100 * 1000 };

struct authority {
        sd_event *event;
        sd_bus *bus; /* NULL: no question is under way */
        struct authority_question *questions;
        unsigned count;
        uint64_t last_id;
};

struct authority_question {
        struct authority *authority;
        struct authority_question *next, **link; /* in authority->questions */
        struct peer_process peer;
        char id[32]; /* for CancelCheckAuthorization: unique on the connection */
        sd_bus_slot *slot;
        sd_event_source *deadline;
        void (*then)(void *userdata, enum authority_answer answer); /* NULL: withdrawn */
        void *userdata;
};

static void close_bus(struct authority *authority)
{
        authority->bus = sd_bus_close_unref(authority->bus);
}

static void question_free(struct authority_question *question)
{
        struct authority *authority = question->authority;

        *question->link = question->next;
        if (question->next)
                question->next->link = question->link;
        authority->count--;
        sd_bus_slot_unref(question->slot); /* a reply that comes later finds no slot */
        sd_event_source_disable_unref(question->deadline);
        peer_process_close(&question->peer);
        free(question);
}

/* Free the question, and the connection with the last one; then report the answer. */
static void finish(struct authority_question *question, enum authority_answer answer)
{
        struct authority *authority = question->authority;
        void (*then)(void *userdata, enum authority_answer) = question->then;
        void *userdata = question->userdata;

        question_free(question);
        if (!authority->questions)
                close_bus(authority);
        if (then)
                then(userdata, answer);
}

/* Give up a connection that is lost or stuck, with all its questions. */
static void give_up_bus(struct authority *authority)
{
        while (authority->questions)
                finish(authority->questions, AUTHORITY_NONE);
}

/* Return what polkit answered. It looks the process up by its number: the answer is about this client only if that still
 * lives. So the number of a process that has ended lends the rights of another one to no client. */
static enum authority_answer read_answer(const struct authority_question *question, sd_bus_message *reply)
{
        int granted = 0, challenge = 0;

        if (sd_bus_message_is_method_error(reply, NULL)
                || sd_bus_message_enter_container(reply, SD_BUS_TYPE_STRUCT, "bba{ss}") <= 0
                || sd_bus_message_read(reply, "bb", &granted, &challenge) <= 0)
                return AUTHORITY_NONE;
        return granted && peer_process_lives(&question->peer) ? AUTHORITY_GRANTED : AUTHORITY_REFUSED;
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error _unused_)
{
        finish(userdata, read_answer(userdata, reply));
        return 1;
}

/* On failure polkit goes on until it sees the end of the connection. */
static void cancel(struct authority_question *question)
{
        (void)sd_bus_call_method_async(question->authority->bus, NULL, POLKIT_NAME, POLKIT_PATH,
                POLKIT_INTERFACE, "CancelCheckAuthorization", NULL, NULL, "s", question->id);
}

/* A bus that has not even taken the messages is stuck: they must not pile up. */
static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct authority_question *question = userdata;
        struct authority *authority = question->authority;
        uint64_t unsent = 0;

        if (sd_bus_is_ready(authority->bus) <= 0 || sd_bus_get_n_queued_write(authority->bus, &unsent) < 0
                || unsent > 0) {
                give_up_bus(authority);
                return 0;
        }
        cancel(question);
        finish(question, AUTHORITY_NONE);
        return 0;
}

/* Connecting takes place in the loop: messages wait for it. */
static int open_bus(struct authority *authority)
{
        sd_bus *bus = NULL;
        int r;

        if (authority->bus && sd_bus_is_open(authority->bus) > 0)
                return 0;
        give_up_bus(authority);
        r = sd_bus_open_system(&bus);
        if (r >= 0)
                r = sd_bus_set_exit_on_disconnect(bus, false);
        if (r >= 0)
                r = sd_bus_attach_event(bus, authority->event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0) {
                sd_bus_close_unref(bus);
                return r;
        }
        authority->bus = bus;
        return 0;
}

/* A start time of 0 has polkit look it up. ublkd does not read /proc of a client: what is in it can hang behind the
 * memory of that process. */
static int send_question(struct authority_question *question, bool interactive)
{
        sd_bus_message *call = NULL;
        const struct peer_process *peer = &question->peer;
        sd_bus *bus = question->authority->bus;
        uint64_t seconds = interactive ? AUTHORITY_INTERACTIVE_SECONDS : AUTHORITY_SECONDS;
        int r = sd_bus_message_new_method_call(
                bus, &call, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE, "CheckAuthorization");

        if (r >= 0)
                r = sd_bus_message_append(call, "(sa{sv})sa{ss}us", "unix-process", 3, "pid", "u",
                        (uint32_t)peer->pid, "start-time", "t", UINT64_C(0), "uid", "i", (int32_t)peer->uid,
                        AUTHORITY_ACTION, 0, interactive ? ALLOW_USER_INTERACTION : UINT32_C(0),
                        question->id);
        if (r >= 0) /* without a limit of sd-bus: on_deadline() also counts the time until there is a connection */
                r = sd_bus_call_async(bus, &question->slot, call, on_reply, question, UINT64_MAX);
        sd_bus_message_unref(call);
        if (r >= 0)
                r = sd_event_add_time_relative(question->authority->event, &question->deadline,
                        CLOCK_MONOTONIC, seconds * UINT64_C(1000000), DEADLINE_ACCURACY_USEC, on_deadline,
                        question);
        return r;
}

static int check_room(const struct authority *authority, uid_t uid)
{
        for (const struct authority_question *other = authority->questions; other; other = other->next)
                if (other->peer.uid == uid)
                        return -EBUSY;
        return authority->count < AUTHORITY_QUESTIONS_MAX ? 0 : -EUSERS;
}

/* Begin the question; it owns the peer from now on. */
static int begin(struct authority *authority, struct peer_process *peer, bool interactive,
        struct authority_question **ret)
{
        struct authority_question *question = calloc(1, sizeof(*question));
        int r;

        if (!question) {
                peer_process_close(peer);
                return -ENOMEM;
        }
        question->authority = authority;
        question->peer = *peer;
        question->next = authority->questions;
        question->link = &authority->questions;
        if (question->next)
                question->next->link = &question->next;
        authority->questions = question;
        authority->count++;
        snprintf(question->id, sizeof(question->id), "ublkd-%" PRIu64, ++authority->last_id);
        r = send_question(question, interactive);
        if (r < 0)
                finish(question, AUTHORITY_NONE); /* it has no `then` yet */
        else
                *ret = question;
        return r;
}

int authority_ask(struct authority *authority, int client, bool interactive,
        void (*then)(void *userdata, enum authority_answer answer), void *userdata,
        struct authority_question **ret)
{
        struct authority_question *question;
        struct peer_process peer;
        int r = peer_process_open(client, &peer);

        if (r < 0)
                return r;
        r = check_room(authority, peer.uid);
        if (r >= 0)
                r = open_bus(authority);
        if (r < 0) {
                peer_process_close(&peer);
                return r;
        }
        r = begin(authority, &peer, interactive, &question);
        if (r < 0) {
                if (!authority->questions)
                        close_bus(authority);
                return r;
        }
        question->then = then;
        question->userdata = userdata;
        *ret = question;
        return 0;
}

struct authority_question *authority_withdraw(struct authority_question *question)
{
        if (!question)
                return NULL;
        question->then = NULL;
        cancel(question);
        /* On failure the old deadline holds. */
        (void)sd_event_source_set_time_relative(
                question->deadline, AUTHORITY_WITHDRAWN_SECONDS * UINT64_C(1000000));
        return NULL;
}

int authority_new(sd_event *event, struct authority **ret)
{
        struct authority *authority = calloc(1, sizeof(*authority));

        if (!authority)
                return -ENOMEM;
        authority->event = sd_event_ref(event);
        *ret = authority;
        return 0;
}

struct authority *authority_free(struct authority *authority)
{
        if (!authority)
                return NULL;
        while (authority->questions) {
                authority->questions->then = NULL;
                finish(authority->questions, AUTHORITY_NONE);
        }
        sd_event_unref(authority->event);
        free(authority);
        return NULL;
}
