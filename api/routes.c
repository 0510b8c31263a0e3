/* {method, path} → handler. */
#include "api/routes.h"

#include <assert.h>
#include <string.h>

static const struct route routes[] = {
        {METHOD_GET,    "/devices",                0,                                              QUERY_LABEL | QUERY_LIMIT | QUERY_CONTINUE,    handle_device_list   },
        {METHOD_POST,   "/devices",                ROUTE_CHANGES | ROUTE_BODY,                     QUERY_WAIT_READY | QUERY_TIMEOUT,
         handle_device_create                                                                                                                                          },
        {METHOD_GET,    "/devices/{name}",         0,                                              0,                                             handle_device_get    },
        {METHOD_PUT,    "/devices/{name}",         ROUTE_CHANGES | ROUTE_BODY,                     QUERY_WAIT_READY | QUERY_TIMEOUT,
         handle_device_put                                                                                                                                             },
        {METHOD_PATCH,  "/devices/{name}",         ROUTE_CHANGES | ROUTE_BODY | ROUTE_MERGE_PATCH,
         QUERY_WAIT_READY | QUERY_TIMEOUT,                                                                                                        handle_device_patch  },
        {METHOD_DELETE, "/devices/{name}",         ROUTE_CHANGES,                                  QUERY_WAIT_GONE | QUERY_TIMEOUT | QUERY_FORCE,
         handle_device_delete                                                                                                                                          },
        {METHOD_POST,   "/devices/{name}/recover", ROUTE_CHANGES,                                  0,                                             handle_device_recover},
        {METHOD_POST,   "/devices/{name}/restart", ROUTE_CHANGES,                                  QUERY_WAIT_READY | QUERY_TIMEOUT,
         handle_device_restart                                                                                                                                         },
        {METHOD_GET,    "/host",                   0,                                              0,                                             handle_host          },
        {METHOD_GET,    "/targets",                0,                                              0,                                             handle_targets       },
        {METHOD_GET,    "/schemas",                0,                                              0,                                             handle_schema_list   },
        {METHOD_GET,    "/schemas/{rest}",         0,                                              0,                                             handle_schema        },
        {METHOD_GET,    "/healthz",                0,                                              0,                                             handle_health        },
        {METHOD_GET,    "/readyz",                 0,                                              0,                                             handle_ready         },
};

static const char *const method_names[] = {
        [METHOD_GET] = "GET, HEAD", /* as Allow lists them */
        [METHOD_POST] = "POST",
        [METHOD_PUT] = "PUT",
        [METHOD_PATCH] = "PATCH",
        [METHOD_DELETE] = "DELETE",
};
static_assert(ARRAY_SIZE(method_names) == _METHOD_MAX, "every method has a name");

/* Whether `path` has the form `pattern`. What cannot be decoded, or is longer than any name, matches nothing.
 */
static bool match(const char *pattern, const char *path, char name[static PATH_NAME_MAX])
{
        size_t fixed = strcspn(pattern, "{"), length;

        if (strncmp(pattern, path, fixed) != 0)
                return false;
        if (!pattern[fixed])
                return path[fixed] == '\0';
        path += fixed;
        if (strcmp(pattern + fixed, "{rest}") == 0)
                return percent_decode(path, strlen(path), name, PATH_NAME_MAX) >= 0;
        length = strcspn(path, "/");
        return length > 0 && percent_decode(path, length, name, PATH_NAME_MAX) >= 0
               && strcmp(path + length, pattern + fixed + strlen("{name}")) == 0;
}

int route_find(const char *path, enum method method, const struct route **ret,
        char name[static PATH_NAME_MAX], char allow[static 64])
{
        char captured[PATH_NAME_MAX] = "";

        *allow = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
                if (!match(routes[i].path, path, captured))
                        continue;
                if (routes[i].method == method) {
                        strcpy(name, captured);
                        *ret = &routes[i];
                        return 0;
                }
                if (*allow)
                        strcat(allow, ", ");
                strcat(allow, method_names[routes[i].method]); /* all of them together are shorter than 64 */
        }
        return *allow ? -EPERM : -ENOENT;
}
