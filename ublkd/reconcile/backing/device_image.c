/* SPDX-License-Identifier: MIT */
/* The image of a device whose target names a pool. */
#include "ublkd/reconcile/backing/device_image.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"

#include "ublkd/base/clock.h"
#include "ublkd/offload/job_thread.h"
#include "ublkd/plan/backoff.h"
#include "ublkd/pools/pool_image.h"
#include "ublkd/store/device_change.h"
#include "ublkd/model/device_spec_store.h"
#include "ublkd/values/quantity.h"

#include <string.h>

enum image_work { IMAGE_MAKE, IMAGE_PREPARE, IMAGE_GROW, IMAGE_REMOVE };

struct image_job {
        struct thread_job base;        /* first member */
        struct managed_device *device; /* NULL: it is gone. Of the loop alone */
        enum image_work work;
        uint64_t least, size;
        struct backing_identity is;
        bool same_boot;
        int result;
        char sentence[POOL_SENTENCE_MAX];
        char path[]; /* NUL-terminated */
};

/* ---- in the thread ---- */

static void run(struct thread_job *base)
{
        struct image_job *job = (struct image_job *)base;
        const struct pool_image image = {.path = job->path, .is = &job->is, .same_boot = job->same_boot};

        switch (job->work) {
        case IMAGE_MAKE:
                job->result = pool_image_make(&image, job->size, job->sentence);
                break;
        case IMAGE_PREPARE:
        case IMAGE_GROW:
                job->result = pool_image_grow(&image, job->least, job->size, job->sentence);
                break;
        case IMAGE_REMOVE:
                job->result = pool_image_remove(&image, job->sentence);
                break;
        }
}

/* ---- on the loop ---- */

static void drop_error(struct device_image *image)
{
        image->error = 0;
        free(image->sentence);
        image->sentence = NULL;
}

static void take_removal(struct managed_device *device, const struct image_job *job)
{
        if (job->result >= 0) {
                device->image.removed = true;
                if (job->result > 0)
                        device_emit(device, EVENT_NORMAL, REASON_IMAGE_DELETED,
                                "The image %s was deleted, because its device was removed.", job->path);
                else if (device->image.existed)
                        device_emit(device, EVENT_WARNING, REASON_IMAGE_NOT_DELETED,
                                "The image %s was not there when its device was removed; if the file system "
                                "of the "
                                "pool was not mounted, delete the image by hand when it is.",
                                job->path);
                return;
        }
        device->image.failures++;
        device->image.remove_at = monotonic_now() + backoff_delay(device->image.failures + 1);
        device_note(device, REASON_IMAGE_NOT_DELETED, "%s ublkd tries again.", job->sentence);
}

/* Return whether the next worker is to show what is wrong: it knows what the disk needs. */
static bool is_left_to_worker(const struct image_job *job)
{
        return job->work == IMAGE_PREPARE
               && (job->result == -ENOENT || job->result == -ESTALE || job->result == -ENODATA);
}

static void take_growth(struct managed_device *device, const struct image_job *job)
{
        char size[SIZE_TEXT_MAX];

        drop_error(&device->image);
        device->image.left = is_left_to_worker(job);
        if (job->result >= 0)
                device->image.has = job->size;
        else if (!device->image.left) {
                device->image.error = job->result;
                device->image.sentence = strdup(job->sentence);
        }
        if (job->work != IMAGE_MAKE || job->result <= 0)
                return;
        format_size(job->size, size);
        device_emit(device, EVENT_NORMAL, REASON_IMAGE_CREATED,
                "The image %s of %s was created; it is deleted when the device is removed, unless "
                "target.keep "
                "is true.",
                job->path, size);
}

static void done(struct thread_job *base)
{
        struct image_job *job = (struct image_job *)base;
        struct managed_device *device = job->device;

        if (device) {
                device->image.job = NULL;
                if (job->work == IMAGE_REMOVE)
                        take_removal(device, job);
                else
                        take_growth(device, job);
                attempt_released(&device->attempt, monotonic_now());
                device_wake(device);
        }
        free(job);
}

static int begin(struct managed_device *device, const struct device_record *record, enum image_work work,
        uint64_t least, uint64_t size)
{
        struct job_thread *thread = device->env->config.image_thread;
        const char *path = device_spec_path(record->spec);
        struct image_job *job;

        if (!thread || !path)
                return -EOPNOTSUPP;
        job = calloc(1, sizeof(*job) + strlen(path) + 1);
        if (!job)
                return -ENOMEM;
        job->base = (struct thread_job){.run = run, .done = done};
        job->device = device;
        job->work = work;
        job->least = least;
        job->size = size;
        job->is = record->backing;
        job->same_boot = strcmp(record->backing_boot, device->env->boot_id) == 0;
        strcpy(job->path, path);
        device->image.job = job;
        job_thread_add(thread, &job->base);
        return 0;
}

static enum condition_reason reason_of(int error)
{
        return error == -ENOSPC || error == -EDQUOT ? REASON_POOL_FULL : REASON_POOL_UNAVAILABLE;
}

/* Note why the last job failed, or begin another one. */
static int advance(struct managed_device *device, const struct device_record *record, enum image_work work,
        uint64_t least, uint64_t size)
{
        int r = device->image.error;

        if (r < 0) {
                device_note(device, reason_of(r), "%s",
                        device->image.sentence ? device->image.sentence : strerror(-r));
                drop_error(&device->image);
                return r;
        }
        r = begin(device, record, work, least, size);
        if (r < 0)
                device_note(
                        device, REASON_POOL_UNAVAILABLE, "The image cannot be prepared: %s.", strerror(-r));
        return r < 0 ? r : -EALREADY;
}

int device_image_prepare(struct managed_device *device, const struct device_record *record)
{
        bool is_first = backing_identity_is_empty(&record->backing);
        uint64_t size = record->spec->options.size;

        if (!device_spec_pool(record->spec) || device->image.has >= size)
                return 0;
        if (device->image.job)
                return -EALREADY;
        if (device->image.left) {
                device->image.left = false;
                return 0;
        }
        return advance(device, record, is_first ? IMAGE_MAKE : IMAGE_PREPARE, 0, size);
}

int device_image_grow(struct managed_device *device, const struct device_record *record, uint64_t size)
{
        if (!device_spec_pool(record->spec) || device->image.has >= size)
                return 0;
        if (device->image.job)
                return -EALREADY;
        return advance(device, record, IMAGE_GROW, device->view.geometry.size, size);
}

void device_image_serves(struct managed_device *device, uint64_t size)
{
        if (size > device->image.has)
                device->image.has = size;
}

/* Return whether ublkd may have made the image. */
static bool may_exist(const struct managed_device *device, const struct device_record *record)
{
        return device->image.has > 0 || !backing_identity_is_empty(&record->backing);
}

bool device_image_remove(struct managed_device *device, const struct device_record *record)
{
        struct device_image *image = &device->image;
        const char *path = device_spec_path(record->spec);
        int r;

        if (!device_spec_pool(record->spec) || !path || image->removed || image->kept)
                return true;
        if (record->age != RECORD_CURRENT) { /* the spec may be an older one, from before keep was set */
                image->kept = true;
                device_emit(device, EVENT_WARNING, REASON_IMAGE_KEPT,
                        "The image %s stays, because the record of its device is an older copy; delete it "
                        "by hand "
                        "if it is not needed any more.",
                        path);
                return true;
        }
        if (image->job || monotonic_now() < image->remove_at)
                return false;
        if (device_spec_keeps_image(record->spec)) {
                image->kept = true;
                if (may_exist(device, record))
                        device_emit(device, EVENT_NORMAL, REASON_IMAGE_KEPT,
                                "The image %s stays, because target.keep is true; delete it by hand when it "
                                "is not needed any more.",
                                path);
                return true;
        }
        image->existed = may_exist(device, record);
        r = begin(device, record, IMAGE_REMOVE, 0, 0);
        if (r < 0) {
                image->failures++;
                image->remove_at = monotonic_now() + backoff_delay(image->failures + 1);
                device_note(device, REASON_IMAGE_NOT_DELETED,
                        "The image %s cannot be deleted: %s. ublkd tries again.", path, strerror(-r));
        }
        return false;
}

uint64_t device_image_due(const struct managed_device *device)
{
        bool waits = !device->image.job && !device->image.removed && device->image.failures > 0;

        return waits ? device->image.remove_at : UINT64_MAX;
}

void device_image_drop(struct managed_device *device)
{
        if (device->image.job)
                device->image.job->device = NULL;
        drop_error(&device->image);
        device->image = (struct device_image){};
}
