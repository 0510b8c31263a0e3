/* SPDX-License-Identifier: MIT */
/* The device that the path of a request names. */
#include "api/http/named_device.h"

#include "api/http/respond.h"
#include "api/http/view.h"

bool named_device_exists(struct request *request, const struct device_record *record)
{
        if (!record)
                reply_problem(request, PROBLEM_NO_SUCH_DEVICE, "No device has this name.");
        return record != NULL;
}

const struct device_record *named_device_find(struct request *request)
{
        const struct device_record *record = view_find(request, request->name);

        return named_device_exists(request, record) ? record : NULL;
}
