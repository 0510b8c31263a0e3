/* SPDX-License-Identifier: MIT */
/* The calls of the protocol of volume plug-ins. */
#include "volumes/plugin_calls.h"
#include "volumes/rest.h"
#include "volumes/volume.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/values/json_util.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

/* Docker waits two minutes for Create and Mount, and one for each other call (longTimeout and shortTimeout in
 * volume/drivers/proxy.go of moby). */
enum { PATH_SIZE = 256, LONG_SECONDS = 90, SHORT_SECONDS = 45, RELEASE_SECONDS = 10 };

static atomic_bool ending;

#define WAITS "wait=ready&timeout=60s"

struct call {
        const struct plugin *plugin;
        const cJSON *request;
        cJSON *reply;
        struct timespec deadline; /* CLOCK_MONOTONIC */
        bool outlasts_end;        /* it goes on when the program ends */
        char error[REST_ERROR_SIZE];
};

static const char *text_of(const cJSON *object, const char *name)
{
        return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* All of these return 0; or -errno with a sentence in call->error. */

static int fail(struct call *call, int error, const char *sentence)
{
        snprintf(call->error, sizeof(call->error), "%s", sentence);
        return error;
}

static int done(struct call *call, const void *added)
{
        return added ? 0 : fail(call, -ENOMEM, "There is too little memory for the answer; repeat the call.");
}

static struct timespec in_seconds(int seconds)
{
        struct timespec time;

        (void)clock_gettime(CLOCK_MONOTONIC, &time);
        time.tv_sec += seconds;
        return time;
}

static bool is_ended(const struct call *call)
{
        return !call->outlasts_end && atomic_load(&ending);
}

/* Return the milliseconds that the call has left; 0: none. */
static long left(const struct call *call)
{
        struct timespec now = in_seconds(0);
        long rest = is_ended(call) ? 0
                                   : (call->deadline.tv_sec - now.tv_sec) * 1000
                                             + (call->deadline.tv_nsec - now.tv_nsec) / 1000000;

        return rest > 0 ? rest : 0;
}

static int too_late(struct call *call)
{
        return fail(call, -ETIMEDOUT,
                is_ended(call)
                        ? "The plug-in ends; repeat the call when it runs again."
                        : "The call took too long; see whether the disk is in service, and repeat the call.");
}

/* Ask ublkd. ret: the JSON of a good answer, which the caller frees; NULL: it is of no use. -ENOENT: no such device;
 * -EEXIST: something is in the way (409). */
static int ask(struct call *call, const char *method, const char *path, const cJSON *body, cJSON **ret)
{
        struct rest_answer answer;
        long rest = left(call);
        int r;

        if (rest == 0)
                return too_late(call);
        r = rest_ask(&(const struct rest_request){.socket = call->plugin->socket,
                             .method = method,
                             .path = path,
                             .body = body,
                             .timeout_msec = rest,
                             .ended = call->outlasts_end ? NULL : &ending},
                &answer, call->error);
        if (r >= 0 && answer.status >= 400) {
                rest_problem(&answer, call->error);
                r = answer.status == 404 ? -ENOENT : answer.status == 409 ? -EEXIST : -EIO;
        }
        if (r >= 0 && ret)
                *ret = TAKE_PTR(answer.json);
        cJSON_Delete(answer.json);
        if (r < 0 && is_ended(call))
                return too_late(call);
        return r < 0 ? r : 0;
}

static int device_path(struct call *call, const char *rest, char ret[static PATH_SIZE])
{
        char device[VOLUME_DEVICE_SIZE];

        if (volume_device(text_of(call->request, "Name"), device) < 0)
                return fail(call, -EINVAL, "The call has no name of a volume, or one that is too long.");
        snprintf(ret, PATH_SIZE, "/devices/%s%s", device, rest);
        return 0;
}

/* Find the device of the volume. -ENOENT: there is no such volume. */
static int find(struct call *call, cJSON **ret)
{
        _cleanup_json_ cJSON *device = NULL;
        const char *volume;
        char path[PATH_SIZE];
        int r = device_path(call, "", path);

        if (r >= 0)
                r = ask(call, "GET", path, NULL, &device);
        volume = r >= 0 ? volume_of_device(device) : NULL;
        if (r == -ENOENT || (r >= 0 && (!volume || strcmp(volume, text_of(call->request, "Name")) != 0)))
                return fail(call, -ENOENT, "There is no such volume.");
        if (r >= 0)
                *ret = TAKE_PTR(device);
        return r;
}

static const char *mount_of(const cJSON *device)
{
        const char *path = text_of(cJSON_GetObjectItemCaseSensitive(device, "status"), "mount");

        return path ? path : "";
}

/* POST to the device of the volume. body: freed. */
static int post(struct call *call, const char *rest, cJSON *body, cJSON **ret)
{
        char path[PATH_SIZE];
        int r = device_path(call, rest, path);

        if (r >= 0)
                r = ask(call, "POST", path, body, ret);
        cJSON_Delete(body);
        return r;
}

/* ---- the calls ---- */

static int activate(struct call *call)
{
        cJSON *list = cJSON_AddArrayToObject(call->reply, "Implements");

        return done(call, cJSON_AddItemToArray(list, cJSON_CreateString("VolumeDriver")) ? list : NULL);
}

static int capabilities(struct call *call)
{
        cJSON *object = cJSON_AddObjectToObject(call->reply, "Capabilities");

        return done(call, object ? cJSON_AddStringToObject(object, "Scope", "local") : NULL);
}

/* Return whether the volume was created with these options. It may have been changed since, for example grown. */
static bool is_created(struct call *call, const cJSON *spec)
{
        struct call finding = *call;
        _cleanup_json_ cJSON *device = NULL;

        return find(&finding, &device) >= 0 && volume_is_of_spec(device, spec);
}

/* The file system is made at the first use. The same volume with the same options is there already. */
static int create(struct call *call)
{
        _cleanup_json_ cJSON *spec = NULL;
        int r;

        spec = volume_spec(text_of(call->request, "Name"),
                cJSON_GetObjectItemCaseSensitive(call->request, "Opts"), call->plugin->pool, call->error);
        if (!spec)
                return -EINVAL;
        r = ask(call, "POST", "/devices?" WAITS, spec, NULL);
        return r == -EEXIST && is_created(call, spec) ? post(call, "/start?" WAITS, NULL, NULL) : r;
}

static int add_volume(struct call *call, cJSON *object, const cJSON *device)
{
        const char *created = text_of(device, "createdAt");

        if (!cJSON_AddStringToObject(object, "Name", volume_of_device(device))
                || !cJSON_AddStringToObject(object, "Mountpoint", mount_of(device)))
                return done(call, NULL);
        return created ? done(call, cJSON_AddStringToObject(object, "CreatedAt", created)) : 0;
}

static int get(struct call *call)
{
        _cleanup_json_ cJSON *device = NULL;
        int r = find(call, &device);
        cJSON *object = r >= 0 ? cJSON_AddObjectToObject(call->reply, "Volume") : NULL;

        if (r < 0)
                return r;
        return object ? add_volume(call, object, device) : done(call, NULL);
}

static int path(struct call *call)
{
        _cleanup_json_ cJSON *device = NULL;
        int r = find(call, &device);

        return r < 0 ? r : done(call, cJSON_AddStringToObject(call->reply, "Mountpoint", mount_of(device)));
}

/* Add the volumes of a page of devices. */
static int add_page(struct call *call, const cJSON *page, cJSON *list)
{
        const cJSON *device;
        int r = 0;

        cJSON_ArrayForEach (device, cJSON_GetObjectItemCaseSensitive(page, "items")) {
                cJSON *object;

                if (r < 0 || !volume_of_device(device))
                        continue;
                object = cJSON_CreateObject();
                if (!object || !cJSON_AddItemToArray(list, object))
                        return done(call, NULL);
                r = add_volume(call, object, device);
        }
        return r;
}

static int list(struct call *call)
{
        cJSON *volumes = cJSON_AddArrayToObject(call->reply, "Volumes");
        char address[PATH_SIZE] = "/devices?limit=500";
        int r = done(call, volumes);

        while (r >= 0 && *address) {
                _cleanup_json_ cJSON *page = NULL;
                const char *next;

                r = ask(call, "GET", address, NULL, &page);
                if (r >= 0)
                        r = add_page(call, page, volumes);
                next = text_of(page, "continue"); /* the name of a device */
                *address = '\0';
                if (next)
                        snprintf(address, sizeof(address), "/devices?limit=500&continue=%s", next);
        }
        return r;
}

/* ublkd refuses a second request for the file system of a disk while the first one is under way. So calls that change a
 * volume wait for each other. */
struct turn {
        const char *name;
        LIST_ENTRY(turn) entry;
};

static LIST_HEAD(, turn) turns = LIST_HEAD_INITIALIZER(turns);
static pthread_mutex_t turns_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_ended = PTHREAD_COND_INITIALIZER;

static bool is_taken(const char *name)
{
        const struct turn *turn;

        LIST_FOREACH (turn, &turns, entry)
                if (strcmp(turn->name, name) == 0)
                        return true;
        return false;
}

static int run_alone(struct call *call, int (*run)(struct call *call))
{
        const char *name = text_of(call->request, "Name");
        struct turn turn = {.name = name ? name : ""};
        int r = 0;

        (void)pthread_mutex_lock(&turns_lock);
        while (r == 0 && is_taken(turn.name) && !is_ended(call))
                r = pthread_cond_clockwait(&turn_ended, &turns_lock, CLOCK_MONOTONIC, &call->deadline);
        if (r == 0 && is_ended(call))
                r = ECANCELED;
        if (r == 0)
                LIST_INSERT_HEAD(&turns, &turn, entry);
        (void)pthread_mutex_unlock(&turns_lock);
        if (r != 0)
                return too_late(call);
        r = run(call);
        (void)pthread_mutex_lock(&turns_lock);
        LIST_REMOVE(&turn, entry);
        (void)pthread_cond_broadcast(&turn_ended);
        (void)pthread_mutex_unlock(&turns_lock);
        return r;
}

/* The engine does not get the mount: an Unmount for it may never come, and its ID would stay. */
static void release(struct call *call, const char *id)
{
        struct call last = {.plugin = call->plugin,
                .request = call->request,
                .deadline = in_seconds(RELEASE_SECONDS),
                .outlasts_end = true};
        cJSON *holder = cJSON_CreateObject();

        if (cJSON_AddStringToObject(holder, "holder", id))
                (void)post(&last, "/unmount", holder, NULL);
        else
                cJSON_Delete(holder);
}

/* Wait for the disk, which may be on its way after a boot; make the file system, if it is not there; mount. */
static int mount(struct call *call)
{
        _cleanup_json_ cJSON *device = NULL, *mounted = NULL;
        const char *id = text_of(call->request, "ID");
        cJSON *wanted = cJSON_CreateObject(), *holder = cJSON_CreateObject();
        int r = find(call, &device);

        if (r >= 0)
                r = done(call, wanted && holder ? cJSON_AddStringToObject(wanted, "type", volume_type(device))
                                                : NULL);
        if (r >= 0 && id && *id)
                r = done(call, cJSON_AddStringToObject(holder, "holder", id));
        if (r >= 0)
                r = post(call, "/start?" WAITS, NULL, NULL);
        if (r >= 0)
                r = post(call, "/filesystem", TAKE_PTR(wanted), NULL);
        if (r >= 0)
                r = post(call, "/mount", TAKE_PTR(holder), &mounted);
        cJSON_Delete(wanted);
        cJSON_Delete(holder);
        if (id && *id && left(call) == 0) {
                release(call, id);
                return too_late(call);
        }
        if (r >= 0 && !*mount_of(mounted)) /* an engine would take it for a directory of its own */
                return fail(call, -EIO, "ublkd does not show where the volume is mounted; repeat the call.");
        return r < 0 ? r : done(call, cJSON_AddStringToObject(call->reply, "Mountpoint", mount_of(mounted)));
}

static int unmount(struct call *call)
{
        _cleanup_json_ cJSON *device = NULL;
        const char *id = text_of(call->request, "ID");
        cJSON *holder;
        int r = find(call, &device);

        if (r < 0)
                return r;
        holder = cJSON_CreateObject();
        r = done(call, holder);
        if (r >= 0 && id && *id)
                r = done(call, cJSON_AddStringToObject(holder, "holder", id));
        if (r >= 0)
                return post(call, "/unmount", holder, NULL);
        cJSON_Delete(holder);
        return r;
}

/* A volume that is not there is removed. One that containers hold is not. */
static int removal(struct call *call)
{
        _cleanup_json_ cJSON *device = NULL;
        char address[PATH_SIZE];
        int r = find(call, &device);

        if (r == -ENOENT)
                return 0;
        if (r >= 0)
                r = post(call, "/unmount", cJSON_CreateObject(), NULL);
        if (r >= 0)
                r = device_path(call, "?wait&timeout=40s", address);
        if (r >= 0)
                r = ask(call, "DELETE", address, NULL, NULL);
        return r == -ENOENT ? 0 : r;
}

static const struct {
        const char *path;
        int (*run)(struct call *call);
        bool alone;
        int seconds;
} calls[] = {
        {"/Plugin.Activate",           activate,     false, SHORT_SECONDS},
        {"/VolumeDriver.Create",       create,       true,  LONG_SECONDS },
        {"/VolumeDriver.Get",          get,          false, SHORT_SECONDS},
        {"/VolumeDriver.List",         list,         false, SHORT_SECONDS},
        {"/VolumeDriver.Path",         path,         false, SHORT_SECONDS},
        {"/VolumeDriver.Mount",        mount,        true,  LONG_SECONDS },
        {"/VolumeDriver.Unmount",      unmount,      true,  SHORT_SECONDS},
        {"/VolumeDriver.Remove",       removal,      true,  SHORT_SECONDS},
        {"/VolumeDriver.Capabilities", capabilities, false, SHORT_SECONDS},
};

static size_t find_call(const char *address)
{
        size_t i = 0;

        while (i < ARRAY_SIZE(calls) && strcmp(calls[i].path, address) != 0)
                i++;
        return i;
}

bool plugin_has_call(const char *address)
{
        return find_call(address) < ARRAY_SIZE(calls);
}

cJSON *plugin_call(const struct plugin *plugin, const char *address, const cJSON *request, bool *ret_failed)
{
        size_t found = find_call(address);
        struct call call = {.plugin = plugin,
                .request = request,
                .reply = cJSON_CreateObject(),
                .deadline = in_seconds(calls[found].seconds)};
        int r = -ENOMEM;

        if (call.reply)
                r = calls[found].alone ? run_alone(&call, calls[found].run) : calls[found].run(&call);

        *ret_failed = r < 0;
        if (r < 0) { /* without what was put together so far */
                cJSON_Delete(call.reply);
                call.reply = cJSON_CreateObject();
        }
        if (call.reply && cJSON_AddStringToObject(call.reply, "Err", r < 0 ? call.error : ""))
                return call.reply;
        cJSON_Delete(call.reply);
        return NULL;
}

void plugin_end_calls(void)
{
        (void)pthread_mutex_lock(&turns_lock);
        atomic_store(&ending, true);
        (void)pthread_cond_broadcast(&turn_ended);
        (void)pthread_mutex_unlock(&turns_lock);
}
