/* SPDX-License-Identifier: MIT */
/* Applies the files that describe devices to the store.
 *
 * A pass reads all files, and then queues the names of all devices that files describe or own. A turn takes one name,
 * looks at what files and store say now (declared_look.h), and carries the step out; when the step needs an answer
 * (who uses the disk?), the name stays at the head of the queue. */
#include "ublkd/declared/declared.h"

#include "ublkd/base/sentence.h"
#include "ublkd/declared/declared_look.h"
#include "ublkd/declared/declared_names.h"
#include "ublkd/declared/declared_plan.h"
#include "ublkd/declared/declared_pool.h"
#include "ublkd/declared/declared_record.h"
#include "ublkd/declared/declared_refusal.h"
#include "ublkd/declared/declared_reports.h"
#include "ublkd/declared/declared_set.h"
#include "ublkd/declared/dir_mounts.h"
#include "ublkd/offload/apart.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { READ_USEC = 10 * 1000 * 1000, RETRY_USEC = 60 * 1000 * 1000 };

enum pass {
        PASS_NONE,
        PASS_FULL,
        PASS_RETRY, /* only devices whose file is gone */
};

struct declared {
        struct declared_config config;
        struct apart *apart;
        struct declared_check *check;
        sd_event_source *turn, *retry;
        struct device_files files;
        struct declared_set set; /* of `files` */
        struct dir_mounts mounts;
        struct names queue, deferred;
        enum pass pass; /* under way */
        bool reading;   /* the files; no turn until they are there */
        bool again;     /* a full pass follows */
        bool disks_known;
        bool asked; /* the administrator asked for a pass: devices without a file may go */
        struct declared_reports reports; /* what the set does not report */
};

DEFINE_CLEANUP(struct declared, declared_free);

static void wake(struct declared *declared)
{
        (void)sd_event_source_set_enabled(declared->turn, SD_EVENT_ONESHOT);
}

/* ---- what is reported ---- */

/* A PASS_RETRY applies no file. So a file that is back, and not as it was, does not end the retries: it may not be written
 * to its end yet, or go away again. */
static void set_state(struct declared *declared, const struct device_record *record, enum source_state state,
        const char *trouble)
{
        if (declared->pass == PASS_RETRY && record->source_state == SOURCE_GONE && state != SOURCE_APPLIED)
                state = SOURCE_GONE;
        (void)device_store_set_source_state(declared->config.store, record->name, state, trouble);
}

/* The device stays as it is. */
static void refuse(struct declared *declared, const struct declaration *declaration,
        const struct device_record *record, const char *why)
{
        _cleanup_free_ char *text = sentence_print("%s:%zu: The spec of the device %s is not applied: %s%s",
                declaration->file->path, declaration->line, declaration->name, why ? why : "out of memory.",
                record ? " The device keeps its old spec." : "");

        if (!text)
                return;
        declared_reports_add(&declared->reports, declaration->name, "FileRefused", text);
        if (record && record->source)
                set_state(declared, record, SOURCE_REFUSED, text);
}

/* ---- steps: each returns false if it has to wait ---- */

typedef bool (*step_function)(
        struct declared *declared, const struct declaration *declaration, const struct device_record *record);

static bool is_allowed(
        struct declared *declared, const struct declaration *declaration, const struct device_record *record)
{
        const char *refusal = declared_refusal(&declared->config, declaration, record);

        if (refusal)
                refuse(declared, declaration, record, refusal);
        return !refusal;
}

static void put(
        struct declared *declared, const struct declaration *declaration, const struct device_record *before)
{
        const struct put_condition condition = {
                .mode = before ? PUT_CREATE_OR_REPLACE : PUT_CREATE,
                .match_generation = before ? before->generation : 0,
                .source = declaration->file->path,
        };
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_device_spec_ struct device_spec *spec = NULL;
        const struct device_record *record;
        enum put_outcome outcome;
        int r = device_spec_parse(declaration->spec->document, NULL, &spec, &problems);

        if (r >= 0)
                r = device_store_put(declared->config.store, spec, &condition, &record, &outcome, &problems);
        if (r < 0) {
                refuse(declared, declaration, before,
                        problems.count > 0 ? problems.items[0].detail : strerror(-r));
                return;
        }
        (void)TAKE_PTR(spec);
        set_state(declared, record, SOURCE_APPLIED, NULL);
}

static bool step_create(struct declared *declared, const struct declaration *declaration,
        const struct device_record *record _unused_)
{
        const struct declared_config *config = &declared->config;

        if (device_store_count(config->store) >= DEVICES_MAX)
                refuse(declared, declaration, NULL,
                        "ublkd has 10000 devices, which is the limit; remove some.");
        else if (config->is_adoptable && config->is_adoptable(config->userdata, declaration->name))
                refuse(declared, declaration, NULL,
                        "the runtime directory has the record of a device with this name, whose disk this "
                        "database "
                        "does not know. Run 'ublkctl adopt --all' first, and then 'systemctl reload ublkd'.");
        else if (is_allowed(declared, declaration, NULL))
                put(declared, declaration, NULL);
        return true;
}

/* Return true if nothing is known yet of the disk that the device may have: the step is taken later. */
static bool defer(struct declared *declared, const struct device_record *record)
{
        const struct declared_config *config = &declared->config;
        bool has_list = record->spec && device_spec_has_list(record->spec);

        /* Before ublkd knows that there is no disk, the store refuses an exchange of paths (put_check.c). */
        if (declared->disks_known
                || (!has_list
                        && (record->number < 0 || !config->disk_exists
                                || !config->disk_exists(config->userdata, record->number))))
                return false;
        (void)names_add(&declared->deferred, record->name); /* on ENOMEM: at the next reload */
        return true;
}

/* Return what the checks say; without a disk nothing is to be checked. */
static enum declared_verdict ask(struct declared *declared, const struct device_record *record,
        const struct device_spec *spec, char **ret)
{
        return declared->disks_known ? declared_check_ask(declared->check, record, spec, ret) : DECLARED_MAY;
}

static bool step_change(
        struct declared *declared, const struct declaration *declaration, const struct device_record *record)
{
        _cleanup_free_ char *why = NULL;

        if (defer(declared, record) || !is_allowed(declared, declaration, record))
                return true;
        switch (ask(declared, record, declaration->spec, &why)) {
        case DECLARED_WAITS:
                return false;
        case DECLARED_MAY:
                put(declared, declaration, record);
                return true;
        case DECLARED_MAY_NOT:
                refuse(declared, declaration, record, why);
        }
        return true;
}

static bool step_keep(struct declared *declared, const struct declaration *declaration _unused_,
        const struct device_record *record)
{
        set_state(declared, record, SOURCE_APPLIED, NULL);
        return true;
}

static bool step_hold(
        struct declared *declared, const struct declaration *declaration, const struct device_record *record)
{
        const char *unknown = declared_look_unknown(&declared->set, record);
        _cleanup_free_ char *text = NULL;

        if (declaration && declaration->fault)
                unknown = declaration->fault;
        text = sentence_print("%s The device keeps its last good spec.",
                unknown ? unknown : "The file of the device is not known.");
        set_state(declared, record, SOURCE_INVALID, text);
        return true;
}

/* The device stays, although its file is gone. what: why, and what is to be done. */
static bool stay(
        struct declared *declared, const struct device_record *record, const char *why, const char *what)
{
        _cleanup_free_ char *text =
                sentence_print("The file %s, which described the device %s, is gone. %s%s", record->source,
                        record->name, why, what);

        if (text)
                declared_reports_add(&declared->reports, record->name, "FileGone", text);
        set_state(declared, record, SOURCE_GONE, text);
        return true;
}

static bool step_remove(struct declared *declared, const struct declaration *declaration _unused_,
        const struct device_record *record)
{
        _cleanup_free_ char *why = NULL;

        if (!declared->asked) /* a file system may not be mounted yet, and no disk is in use yet */
                return stay(declared, record, "",
                        "ublkd removes no device when it starts; put the file back, or run 'systemctl reload "
                        "ublkd' to remove the device.");
        if (defer(declared, record))
                return true;
        switch (ask(declared, record, NULL, &why)) {
        case DECLARED_WAITS:
                return false;
        case DECLARED_MAY:
                if (device_store_withdraw(declared->config.store, record->name) >= 0)
                        return true;
                why = strdup("The removal cannot be stored.");
                break;
        case DECLARED_MAY_NOT:
                break;
        }
        return stay(declared, record, why ? why : "",
                " The disk stays, and ublkd tries again every minute; to keep the device, put the file "
                "back.");
}

static bool step_refuse(struct declared *declared, const struct declaration *declaration,
        const struct device_record *record _unused_)
{
        if (declaration->fault)
                return true; /* the set reports it */
        refuse(declared, declaration, NULL,
                "a client of the API made the device of this name. Give this one another name; or, if the "
                "disk of "
                "that device is not needed any more, detach it ('ublkctl detach'). Then run 'systemctl "
                "reload "
                "ublkd'.");
        return true;
}

/* on_store_event() queues the name again. */
static bool step_nothing(struct declared *declared _unused_, const struct declaration *declaration _unused_,
        const struct device_record *record _unused_)
{
        return true;
}

/* The file is back, and differs: the administrator has not asked for what it has. */
static bool report_change(
        struct declared *declared, const struct declaration *declaration, const struct device_record *record)
{
        refuse(declared, declaration, record,
                "the file of the device was gone when the files were applied, and this one is not the same. "
                "Run "
                "'systemctl reload ublkd' to apply it.");
        return true;
}

static const step_function steps[] = {
        [DECLARED_NOTHING] = step_nothing,
        [DECLARED_CREATE] = step_create,
        [DECLARED_CHANGE] = step_change,
        [DECLARED_KEEP] = step_keep,
        [DECLARED_HOLD] = step_hold,
        [DECLARED_REMOVE] = step_remove,
        [DECLARED_REFUSE] = step_refuse,
        [DECLARED_AWAIT] = step_nothing,
};
static_assert(ARRAY_SIZE(steps) == _DECLARED_STEP_MAX, "every step has its function");

/* In a PASS_RETRY. A step that is not among them leaves the device as it was reported. */
static const step_function retries[_DECLARED_STEP_MAX] = {
        [DECLARED_CHANGE] = report_change,
        [DECLARED_KEEP] = step_keep,
        [DECLARED_HOLD] = step_hold,
        [DECLARED_REMOVE] = step_remove,
};

/* ---- a turn ---- */

/* Return the step, or NULL: there is none. In a PASS_RETRY, a file in a directory that cannot be read may still be gone. */
static step_function find_step(const struct declared *declared, const struct declaration *declaration,
        const struct device_record *record)
{
        enum declared_step step = declared_look(&declared->set, declaration, record);

        if (declared->pass != PASS_RETRY)
                return steps[step];
        return step != DECLARED_HOLD || declared_set_has_file(&declared->set, record->source) ? retries[step]
                                                                                              : NULL;
}

/* Return false if the device has to wait for an answer. */
static bool take_turn(struct declared *declared, const char *name)
{
        const struct declared_config *config = &declared->config;
        const struct policy *policy = config->policy ? config->policy(config->policy_userdata) : NULL;
        const struct device_record *record = device_store_get(config->store, name);
        const struct declaration *found = declared_set_find(&declared->set, name);
        struct declaration declaration = found ? *found : (struct declaration){};
        _cleanup_device_spec_ struct device_spec *spec = NULL;
        _cleanup_free_ char *no_image = NULL;
        step_function step;

        if (declaration.spec && declared_pool_resolve(policy, record, declaration.spec, &spec, &no_image) < 0)
                return true; /* out of memory: at the next reload */
        declaration.spec = spec;
        declaration.no_image = no_image;
        step = find_step(declared, found ? &declaration : NULL, record);
        if (!step)
                return true;
        (void)declared_reports_drop(&declared->reports, name);
        return step(declared, found ? &declaration : NULL, record);
}

static void begin_pass(struct declared *declared, enum pass pass);

static void report(const struct declared *declared)
{
        _cleanup_problems_ struct problem_list problems = {};
        int r = problem_list_append(&problems, &declared->set.problems);

        if (r >= 0)
                (void)declared_reports_list(&declared->reports, &problems);
        declared->config.applied(declared->config.userdata, &problems);
}

static void end_pass(struct declared *declared)
{
        declared->pass = PASS_NONE;
        if (declared->asked && declared_record_any_gone(declared->config.store)) {
                (void)sd_event_source_set_time_relative(declared->retry,
                        declared->config.retry_usec ? declared->config.retry_usec : RETRY_USEC);
                (void)sd_event_source_set_enabled(declared->retry, SD_EVENT_ONESHOT);
        }
        if (declared->again) {
                declared->again = false;
                begin_pass(declared, PASS_FULL);
                return;
        }
        report(declared);
}

static int on_turn(sd_event_source *source _unused_, void *userdata)
{
        struct declared *declared = userdata;
        const char *name = names_head(&declared->queue);

        if (declared->reading)
                return 0;
        if (name) {
                if (!take_turn(declared, name))
                        return 0;
                declared_check_drop(declared->check);
                names_drop(&declared->queue);
        }
        if (names_head(&declared->queue))
                wake(declared);
        else
                end_pass(declared);
        return 0;
}

/* ---- a pass ---- */

static int queue_all(struct declared *declared)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && declared->pass == PASS_FULL && i < declared->set.count; i++)
                r = names_add(&declared->queue, declared->set.items[i].name);
        DEVICE_STORE_FOREACH (record, declared->config.store)
                if (r >= 0 && record->source
                        && (declared->pass == PASS_RETRY ? record->source_state == SOURCE_GONE
                                                         : !declared_set_find(&declared->set, record->name)))
                        r = names_add(&declared->queue, record->name);
        return r;
}

/* Nothing is known of the files, so nothing is done. */
static void give_up(struct declared *declared, int error)
{
        _cleanup_free_ char *text = sentence_print("The files that describe devices were not read: %s. No "
                                                   "device was changed; run 'systemctl reload "
                                                   "ublkd' to try again.",
                error == -ETIMEDOUT ? "a file system did not answer in 10 s" : strerror(-error));

        names_clear(&declared->queue);
        declared_reports_add(&declared->reports, "", "FileInvalid",
                text ? text : "The files that describe devices were not read.");
        end_pass(declared);
}

/* In the process apart. */
static void read_apart(void *userdata, FILE *answer)
{
        const struct declared *declared = userdata;
        _cleanup_device_files_ struct device_files files = {};

        if (device_files_read(declared->config.dirs, declared->config.dir_count, &files) >= 0)
                device_files_write(&files, answer);
}

static int take_files(struct declared *declared, const void *answer, size_t size)
{
        _cleanup_device_files_ struct device_files files = {};
        int r = device_files_parse(answer, size, &files);

        if (r >= 0)
                r = dir_mounts_doubt(&declared->mounts, &files);
        if (r < 0)
                return r;
        if (declared->pass == PASS_FULL)
                declared_reports_clear(&declared->reports);
        declared_set_clear(&declared->set);
        device_files_clear(&declared->files);
        declared->files = files;
        files = (struct device_files){};
        r = declared_set_make(
                &declared->files, declared_record_is_owner, declared->config.store, &declared->set);
        if (r < 0)
                return r;
        return queue_all(declared);
}

static void on_read(void *userdata, int error, const void *answer, size_t size)
{
        struct declared *declared = userdata;
        int r;

        declared->reading = false;
        r = error < 0 ? error : take_files(declared, answer, size);
        if (r < 0)
                give_up(declared, r);
        else
                wake(declared);
}

static void begin_pass(struct declared *declared, enum pass pass)
{
        int r;

        declared->pass = pass;
        (void)declared_reports_drop(&declared->reports, ""); /* those of devices stay until their turn */
        names_clear(&declared->deferred);
        (void)sd_event_source_set_enabled(declared->retry, SD_EVENT_OFF);
        r = apart_begin(declared->apart);
        declared->reading = r >= 0;
        if (r < 0)
                give_up(declared, r);
}

void declared_set_policy(struct declared *declared, bool refuse_unstable_paths)
{
        declared->config.refuse_unstable_paths = refuse_unstable_paths;
}

void declared_apply(struct declared *declared, bool asked)
{
        declared->asked = declared->asked || asked;
        if (declared->pass == PASS_NONE)
                begin_pass(declared, PASS_FULL);
        else
                declared->again = true;
}

void declared_disks_are_known(struct declared *declared)
{
        declared->disks_known = true;
        for (; names_head(&declared->deferred); names_drop(&declared->deferred))
                if (names_add(&declared->queue, names_head(&declared->deferred)) < 0)
                        break;
        if (!names_head(&declared->queue))
                return;
        if (declared->pass == PASS_NONE)
                declared->pass = PASS_FULL;
        wake(declared);
}

static int on_retry(sd_event_source *source _unused_, uint64_t now _unused_, void *userdata)
{
        struct declared *declared = userdata;

        if (declared->pass == PASS_NONE)
                begin_pass(declared, PASS_RETRY);
        return 0;
}

static void on_answered(void *userdata)
{
        wake(userdata);
}

/* A file may describe the device that was removed; if not, nothing is to be reported of it any more. */
static void on_store_event(void *userdata, const struct store_event *event)
{
        struct declared *declared = userdata;

        if (event->kind != STORE_REMOVED
                || (!declared_reports_drop(&declared->reports, event->name)
                        && !declared_set_find(&declared->set, event->name))
                || names_add(&declared->queue, event->name) < 0)
                return;
        if (declared->pass == PASS_NONE)
                declared->pass = PASS_FULL;
        declared->again = declared->again || declared->pass == PASS_RETRY; /* which creates nothing */
        wake(declared);
}

static int add_sources(struct declared *declared)
{
        sd_event *event = declared->config.event;
        int r = sd_event_add_defer(event, &declared->turn, on_turn, declared);

        if (r >= 0)
                r = sd_event_source_set_enabled(declared->turn, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(
                        event, &declared->retry, CLOCK_MONOTONIC, 0, 1000 * 1000, on_retry, declared);
        return r < 0 ? r : sd_event_source_set_enabled(declared->retry, SD_EVENT_OFF);
}

int declared_new(const struct declared_config *config, struct declared **ret)
{
        _cleanup_(declared_free_pointer) struct declared *declared = calloc(1, sizeof(*declared));
        struct declared_check_config checks = config->checks;
        int r;

        if (!declared)
                return -ENOMEM;
        declared->config = *config;
        checks.answered = on_answered;
        checks.answered_userdata = declared;
        r = declared_check_new(&checks, &declared->check);
        if (r >= 0)
                r = add_sources(declared);
        if (r >= 0)
                r = apart_new(config->event,
                        &(struct apart_options){
                                .process = "ublkd-files",
                                .patience_usec = READ_USEC,
                                .look = read_apart,
                                .done = on_read,
                                .userdata = declared,
                        },
                        &declared->apart);
        if (r >= 0)
                r = device_store_subscribe(config->store, on_store_event, declared);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(declared);
        return 0;
}

struct declared *declared_free(struct declared *declared)
{
        if (!declared)
                return NULL;
        device_store_unsubscribe(declared->config.store, on_store_event, declared);
        apart_free(declared->apart);
        declared_check_free(declared->check);
        sd_event_source_disable_unref(declared->turn);
        sd_event_source_disable_unref(declared->retry);
        declared_set_clear(&declared->set);
        device_files_clear(&declared->files);
        names_clear(&declared->queue);
        names_clear(&declared->deferred);
        declared_reports_clear(&declared->reports);
        free(declared);
        return NULL;
}
