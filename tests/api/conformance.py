# SPDX-License-Identifier: MIT
"""Check every answer that a test of the API receives against the OpenAPI document of this build."""
import functools
import json
import os
import pathlib
import re

import jsonschema

DOCUMENT = pathlib.Path(os.environ.get("UBLKD_OPENAPI", "build/schemas/openapi.json"))


@functools.cache
def document():
    return json.loads(DOCUMENT.read_text())


def resolve(value):
    while "$ref" in value:
        kind, name = value["$ref"].removeprefix("#/components/").split("/")
        value = document()["components"][kind][name]
    return value


@functools.cache
def templates():
    """(expression, path of the document); the last parameter of /schemas/{path} spans slashes."""
    made = []
    for path in document()["paths"]:
        expression = re.escape(path).replace(r"/schemas/\{path\}", "/schemas/.+")
        made.append((re.compile(re.sub(r"\\{\w+\\}", "[^/]+", expression)), path))
    return made


def operation(method, path):
    """The operation that the document describes for a request, or None."""
    path = path.split("?")[0]
    for expression, template in templates():
        if expression.fullmatch(path):
            return document()["paths"][template].get(method.lower()) if method.isupper() else None
    return None


@functools.cache
def validator(text):
    schema = {**json.loads(text), "components": document()["components"]}
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())


def check(method, path, answer):
    """Fail if the document does not describe this answer to this request."""
    known = operation(method, path)
    if known is None:
        return
    where = f"{method} {path}: {answer.status}"
    assert str(answer.status) in known["responses"], f"{where} is not documented"
    response = resolve(known["responses"][str(answer.status)])
    for name, header in response.get("headers", {}).items():
        if resolve(header).get("required"):
            assert re.search(resolve(header)["schema"]["pattern"], answer.headers[name] or ""), f"{where}: {name}"
    if method == "HEAD" or not answer.body:
        return
    assert answer.type in response["content"], f"{where} is {answer.type}"
    schema = response["content"][answer.type]["schema"]
    content = answer.json if answer.type.endswith("json") else answer.body.decode()
    errors = list(validator(json.dumps(schema, sort_keys=True)).iter_errors(content))
    assert not errors, f"{where}: {errors[0].message} at {list(errors[0].absolute_path)}"
