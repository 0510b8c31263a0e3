#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes, from schemas/openapi/*.json and the schemas of specs, the document that GET /openapi.json serves and what the
server is built from, so that neither can know a route or a problem that the other does not:

    openapi.json                 the document
    openapi_text.c               the same, for the API (schemas/schema_texts.h)
    api_routes.c                 the route table (api/route_table.h)
    api_problem_kinds.c          status and title of every problem (api/http/respond.h)

Every file but base.json and problems.json holds some paths and the components that they need. An operation is written as
OpenAPI has it, except that
    "operationId": "deviceList"  names its handler, handle_device_list()
    "parameters"                 are names of components/parameters; of a query, "waitReady" is QUERY_WAIT_READY
    "x-problems"                 are the problems that only this operation has; those of every operation are added here
    "x-flags"                    are further flags of enum route_flag
    "x-rest": true               lets the path's last parameter span slashes
HEAD, ETag, If-Match, If-None-Match, 304 and 412 are added where they apply.
"""

import argparse
import copy
import json
import pathlib
import re
import sys

import generate
from keywords import SchemaError, c_string, load

PROBLEMS_OF_ALL = ["bad-request", "unauthorized", "forbidden", "not-acceptable", "body-too-slow", "body-too-large", "path-too-long",
                   "expectation-failed", "headers-too-large", "internal", "too-many-connections", "no-memory"]
PROBLEMS_OF_CHANGES = ["too-many-changes", "store-full", "database-gone", "precondition-failed", "authorization-busy"]
PROBLEMS_OF_BODIES = ["malformed-json", "not-json"]
METHODS = ["get", "post", "put", "patch", "delete"]
BODY_FLAGS = {"application/json": ["ROUTE_BODY"], "application/merge-patch+json": ["ROUTE_BODY", "ROUTE_MERGE_PATCH"]}
STREAM = "text/event-stream"


def snake_case(name):
    return re.sub(r"[-.]", "_", re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name)).lower()


def reference(kind, name):
    return {"$ref": f"#/components/{kind}/{name}"}


class Components(generate.Bundle):
    """Definitions as components/schemas: bytes → Bytes, target-loop → TargetLoop."""

    @staticmethod
    def component(name):
        return "".join(part.capitalize() for part in name.split("-"))

    def definition(self, reference_text, path):
        name = super().definition(reference_text, path).removeprefix("#/$defs/")
        return "#/components/schemas/" + self.component(name)

    def all(self):
        return {self.component(name): schema for name, schema in self.definitions.items()}


def patch_of(schema):
    """The schema of a merge patch: nothing is required, and null takes away what need not be there."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return reference("schemas", name + "Patch") if name.startswith("Target") else schema
    if schema.get("type") != "object":
        return schema
    result = {key: value for key, value in schema.items() if key not in ("required", "properties", "$schema")}
    required = schema.get("required", [])
    nullable = lambda inner: {"anyOf": [inner, {"type": "null"}]}
    if "properties" in schema:
        result["properties"] = {
            name: patch_of(inner) if name in required else nullable(patch_of(inner)) for name, inner in schema["properties"].items()
        }
    if isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = nullable(schema["additionalProperties"])
    return result


def spec_components(source, targets):
    """The spec as POST, PUT and PATCH take it, and each target."""
    components = Components()
    spec = components.resolve(load(source / "device.schema.json"), source / "device.schema.json")
    spec.pop("$schema")
    schemas = components.all()
    names = {target: Components.component("target-" + target) for target in targets}
    schemas["Target"]["discriminator"] = {
        "propertyName": "type",
        "mapping": {target: f"#/components/schemas/{name}" for target, name in names.items()},
    }
    schemas["DeviceSpec"] = spec
    schemas["DeviceSpecPut"] = {
        **spec,
        "title": "Device spec of PUT",
        "description": spec["description"] + " The name is that of the path, and may be left out.",
        "required": [name for name in spec["required"] if name != "name"],
    }
    schemas["DeviceSpecPatch"] = {**patch_of(spec), "title": "Merge patch on a device spec"}
    for name in names.values():
        schemas[name + "Patch"] = {**patch_of(schemas[name]), "title": "Merge patch on " + schemas[name]["title"].lower()}
    schemas["TargetPatch"] = {"title": "Merge patch on a target", "anyOf": [reference("schemas", name + "Patch") for name in names.values()]}
    return schemas


class Problems:
    """problems.json, and the responses that report them."""

    def __init__(self, path):
        self.kinds = load(path)
        self.responses = {}
        self.used = {"method-not-allowed"}  # of methods that a path does not know, so no operation names it

    def urn(self, name):
        return f"urn:ublkd:problem:{name}"

    def response(self, names):
        """A reference to the response for these problems, which have one status."""
        key = "Problem-" + "-or-".join(names)
        status = self.kinds[names[0]]["status"]
        self.responses[key] = {
            "description": "; ".join(self.kinds[name]["title"] for name in names) + ".",
            "content": {
                "application/problem+json": {
                    "schema": {
                        "allOf": [
                            reference("schemas", "Problem"),
                            {"properties": {"type": {"enum": [self.urn(name) for name in names]}, "status": {"const": status}}},
                        ]
                    }
                }
            },
        }
        return reference("responses", key)

    def add(self, responses, names, where):
        by_status = {}
        for name in self.kinds:  # in the order of the file, so that equal sets make one response
            if name in names:
                by_status.setdefault(self.kinds[name]["status"], []).append(name)
        unknown = set(names) - set(self.kinds)
        if unknown:
            raise SchemaError(f"{where}: not in problems.json: {', '.join(sorted(unknown))}")
        self.used |= set(names)
        for status, group in by_status.items():
            if str(status) in responses:
                raise SchemaError(f"{where}: {status} is given by x-problems, do not write it out")
            responses[str(status)] = self.response(group)

    def check_all_used(self):
        unused = set(self.kinds) - self.used
        if unused:
            raise SchemaError(f"problems.json: no operation has: {', '.join(sorted(unused))}")

    def write_c(self):
        rows = [
            f"        [PROBLEM_{snake_case(name).upper()}] = {{.status = {kind['status']}, .name = {c_string(name)}, "
            f".title = {c_string(kind['title'])}}},"
            for name, kind in self.kinds.items()
        ]
        return "\n".join([
            "/* Generated by schemas/openapi.py. Change schemas/openapi/problems.json instead. */",
            '#include "api/http/respond.h"',
            "",
            "#include <assert.h>",
            "",
            f'static_assert(_PROBLEM_TYPE_MAX == {len(rows)}, "enum problem_type and schemas/openapi/problems.json differ");',
            "",
            "const struct problem_kind problem_kinds[_PROBLEM_TYPE_MAX] = {",
            *rows,
            "};",
            "",
        ])


class Document:
    def __init__(self, source, version, targets):
        folder = source / "openapi"
        self.document = load(folder / "base.json")
        self.document["info"]["version"] = version
        self.problems = Problems(folder / "problems.json")
        self.components = self.document["components"]
        self.components["schemas"].update(spec_components(source, targets))
        self.components.setdefault("responses", {})
        self.paths = {}
        self.rows = []
        for path in sorted(folder.glob("*.json")):
            if path.name not in ("base.json", "problems.json"):
                self.add_fragment(load(path), path.name)
        self.components["parameters"]["schemaPath"]["schema"]["enum"] = ["device", *(f"targets/{name}" for name in sorted(targets))]

    def add_fragment(self, fragment, where):
        for path, item in fragment.pop("paths").items():
            if path in self.paths:
                raise SchemaError(f"{where}: {path} stands in another file too")
            self.paths[path] = item
        for kind, entries in fragment.pop("components", {}).items():
            known = self.components.setdefault(kind, {})
            both = set(known) & set(entries)
            if both:
                raise SchemaError(f"{where}: another file has {kind} {', '.join(sorted(both))} too")
            known.update(entries)
        if fragment:
            raise SchemaError(f"{where}: only paths and components can stand here, not {', '.join(fragment)}")

    def build(self):
        for path, item in self.paths.items():
            if set(item) - set(METHODS):
                raise SchemaError(f"{path}: not implemented: {', '.join(sorted(set(item) - set(METHODS)))}")
            for method in METHODS:
                if method in item:
                    item[method] = self.operation(path, method, item[method])
            if "get" in item:
                item["head"] = self.head_of(item["get"])
        self.document["paths"] = self.paths
        self.components["responses"].update(self.problems.responses)
        self.problems.check_all_used()
        self.check_references()
        return json.dumps(self.document, indent=1, ensure_ascii=True) + "\n"

    def operation(self, path, method, operation):
        where = f"{method.upper()} {path}"
        operation = copy.deepcopy(operation)
        problems = [*operation.pop("x-problems", []), *PROBLEMS_OF_ALL]
        flags = list(operation.pop("x-flags", []))
        rest = operation.pop("x-rest", False)
        parameters = operation.pop("parameters", [])
        types = [kind for status, answer in operation["responses"].items() for kind in self.resolved(answer).get("content", {})]
        if method == "get":
            if STREAM not in types:
                parameters = [*parameters, "ifNoneMatch"]
                problems.append("precondition-failed")
                self.resolved(operation["responses"]["200"]).setdefault("headers", {})["ETag"] = reference("headers", "ETag")
                operation["responses"]["304"] = {
                    "description": "It is what If-None-Match says; there is no body.",
                    "headers": {"ETag": reference("headers", "ETag")},
                }
        else:
            flags.append("ROUTE_CHANGES")
            parameters = [*parameters, "ifMatch", "ifNoneMatch", "interactiveAuthorization"]
            problems += PROBLEMS_OF_CHANGES
        if "requestBody" in operation:
            flags += BODY_FLAGS[next(iter(operation["requestBody"]["content"]))]  # the first type is what PATCH asks for
            problems += PROBLEMS_OF_BODIES
        if "{" in path:
            problems.append("no-such-resource")
        self.problems.add(operation["responses"], problems, where)
        operation["responses"] = dict(sorted(operation["responses"].items()))
        operation["parameters"] = [reference("parameters", name) for name in parameters]
        self.check_path(path, parameters, where)
        self.rows.append(self.row(path, method, operation["operationId"], flags, parameters, types, rest))
        return operation

    def resolved(self, answer):
        if "$ref" in answer:
            answer = self.components["responses"][answer["$ref"].rsplit("/", 1)[1]]
        return answer

    @staticmethod
    def head_of(get):
        """The same without bodies."""
        head = copy.deepcopy(get)
        head["operationId"] = get["operationId"] + "Head"
        head["summary"] = "The headers of: " + get["summary"][0].lower() + get["summary"][1:]
        for status, answer in head["responses"].items():
            head["responses"][status] = {"description": "As GET, without the body."}
        return head

    def check_path(self, path, parameters, where):
        known = self.components["parameters"]
        missing = [name for name in parameters if name not in known]
        if missing:
            raise SchemaError(f"{where}: not in components/parameters: {', '.join(missing)}")
        named = {known[name]["name"] for name in parameters if known[name]["in"] == "path"}
        if named != set(re.findall(r"{(.*?)}", path)):
            raise SchemaError(f"{where}: the path and the parameters differ")

    def row(self, path, method, operation_id, flags, parameters, types, rest):
        known = self.components["parameters"]
        query = ["QUERY_" + snake_case(name).upper() for name in parameters if known[name]["in"] == "query"]
        pattern = re.sub(r"{[^}]*}$", "{rest}", path) if rest else re.sub(r"{[^}]*}", "{name}", path, count=1)
        if path.count("{") == 2 and path.endswith("}"):
            pattern = re.sub(r"{[^}]*}$", "{item}", pattern)
        produced = ", ".join([*map(c_string, dict.fromkeys(types)), "NULL"])
        return "\n".join([
            "        {",
            f"                .method = METHOD_{method.upper()},",
            f"                .path = {c_string(pattern)},",
            f"                .flags = {' | '.join(flags) or 0},",
            f"                .parameters = {' | '.join(query) or 0},",
            f"                .produces = (const char *const[]){{{produced}}},",
            f"                .handle = handle_{snake_case(operation_id)},",
            "        },",
        ])

    def check_references(self):
        text = json.dumps(self.document)
        for kind, name in re.findall(r'"#/components/(\w+)/([^"]+)"', text):
            if name not in self.components.get(kind, {}):
                raise SchemaError(f"components/{kind}/{name} is missing")

    def write_routes(self):
        return "\n".join([
            "/* Generated by schemas/openapi.py. Change schemas/openapi/ instead. */",
            '#include "api/route_table.h"',
            "",
            '#include "api/metrics/metrics.h"',
            '#include "api/resources/handlers.h"',
            "",
            "const struct route route_table[] = {",
            *self.rows,
            "        {.path = NULL},",
            "};",
            "",
        ])


def write_text(text):
    return "\n".join([
        "/* Generated by schemas/openapi.py. Change schemas/openapi/ instead. */",
        '#include "schemas/schema_texts.h"',
        "",
        "const char openapi_text[] =",
        *[f"        {c_string(line)}" for line in text.splitlines(keepends=True)],
        "        ;",
        "",
    ])


def main():
    parser = argparse.ArgumentParser(description="Generate the OpenAPI document and the tables of the server.")
    parser.add_argument("--source", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True, help="of the program")
    parser.add_argument("targets", nargs="*", help="names of the targets in this build")
    arguments = parser.parse_args()
    try:
        document = Document(arguments.source.resolve(), arguments.version, arguments.targets)
        text = document.build()
    except (SchemaError, OSError, json.JSONDecodeError) as error:
        sys.exit(f"openapi.py: {error}")
    files = {
        "openapi.json": text,
        "openapi_text.c": write_text(text),
        "api_routes.c": document.write_routes(),
        "api_problem_kinds.c": document.problems.write_c(),
    }
    for name, content in files.items():
        (arguments.output / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
