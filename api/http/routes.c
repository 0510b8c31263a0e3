/* SPDX-License-Identifier: MIT */
/* {method, path} → handler. */
#include "api/http/routes.h"

#include <assert.h>
#include <string.h>

static const char *const method_names[] = {
        [METHOD_GET] = "GET, HEAD", /* as Allow lists them */
        [METHOD_POST] = "POST",
        [METHOD_PUT] = "PUT",
        [METHOD_PATCH] = "PATCH",
        [METHOD_DELETE] = "DELETE",
        [METHOD_OPTIONS] = "OPTIONS",
};
static_assert(ARRAY_SIZE(method_names) == _METHOD_MAX, "every method has a name");

/* Return whether what follows {name} matches. */
static bool match_tail(const char *pattern, const char *path, char item[static PATH_NAME_MAX])
{
        size_t fixed = strcspn(pattern, "{");

        if (strncmp(pattern, path, fixed) != 0)
                return false;
        path += fixed;
        if (!pattern[fixed])
                return *path == '\0';
        return *path && !strchr(path, '/') && percent_decode(path, strlen(path), item, PATH_NAME_MAX) >= 0;
}

/* Return whether `path` matches `pattern`. A path that cannot be decoded, or has a name beyond the limit,
 * matches nothing. */
static bool match(const char *pattern, const char *path, char name[static PATH_NAME_MAX],
        char item[static PATH_NAME_MAX])
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
        if (length == 0 || percent_decode(path, length, name, PATH_NAME_MAX) < 0)
                return false;
        return match_tail(pattern + fixed + strlen("{name}"), path + length, item);
}

/* Append a method to the list. */
static void add_method(char allow[static ALLOW_MAX], enum method method)
{
        if (*allow)
                strcat(allow, ", ");
        strcat(allow, method_names[method]); /* all methods together fit */
}

/* Return whether the path is a literal route of the table. Then only that route's methods count, even if a
 * device has the same name as its last segment. */
static bool is_literal(const struct route *routes, const char *path)
{
        for (const struct route *route = routes; route->path; route++)
                if (strcmp(route->path, path) == 0)
                        return true;
        return false;
}

int route_find(const struct route *routes, const char *path, enum method method, const struct route **ret,
        char name[static PATH_NAME_MAX], char item[static PATH_NAME_MAX], char allow[static ALLOW_MAX])
{
        char captured[PATH_NAME_MAX] = "", captured_item[PATH_NAME_MAX] = "";
        bool literal = is_literal(routes, path);

        *allow = '\0';
        for (const struct route *route = routes; route->path; route++) {
                if (!match(route->path, path, captured, captured_item))
                        continue;
                if (route->method == method) {
                        strcpy(name, captured);
                        strcpy(item, captured_item);
                        *ret = route;
                        return 0;
                }
                if (!literal || strcmp(route->path, path) == 0)
                        add_method(allow, route->method);
        }
        if (!*allow)
                return -ENOENT;
        add_method(allow, METHOD_OPTIONS);
        return -EPERM;
}

void route_methods(char ret_allow[static ALLOW_MAX])
{
        *ret_allow = '\0';
        for (enum method method = 0; method < _METHOD_MAX; method++)
                add_method(ret_allow, method);
}
