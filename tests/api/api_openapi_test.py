# SPDX-License-Identifier: MIT
"""GET /openapi.json: a valid document that matches the server."""
import json
import pathlib
import subprocess

import jsonschema
import pytest

import conformance
from api_server import check_problem

ROOT = pathlib.Path(__file__).resolve().parents[2]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
DOCUMENT = conformance.document()


def test_the_document_is_served(server):
    answer = server.ask("GET", "/openapi.json")
    assert answer.status == 200 and answer.type == "application/json"
    assert answer.json == DOCUMENT


def test_the_document_is_valid():
    python = subprocess.run([ROOT / "scripts/test-venv"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    subprocess.run([python, "-m", "openapi_spec_validator", "--errors", "all", conformance.DOCUMENT], check=True)


def _paths_like(path):
    """The path, and the path of a device whose name is its last part: a device may be called "adopt"."""
    return [path] + ["/devices/{name}"] * (path == "/devices/adopt")


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_the_methods_of_a_path(server, path):
    """The server serves every documented method, and no other."""
    documented = {method.upper() for item in _paths_like(path) for method in DOCUMENT["paths"][item]}
    served = set(server.ask("OPTIONS", path.replace("{", "").replace("}", "")).headers["Allow"].split(", "))
    assert served == {method.upper() for method in DOCUMENT["paths"][path]} | {"OPTIONS"}
    for method in set(METHODS) - documented:
        assert server.ask(method, path.replace("{", "").replace("}", "")).status == 405


@pytest.mark.parametrize("path,method", [(path, method) for path, item in DOCUMENT["paths"].items() for method in item])
def test_the_query_parameters_of_an_operation(server, path, method):
    """The server knows every documented parameter, and names any other as unknown."""
    operation = DOCUMENT["paths"][path][method]
    parameters = [conformance.resolve(parameter) for parameter in operation["parameters"]]
    documented = {parameter["name"] for parameter in parameters if parameter["in"] == "query"}
    every = {parameter["name"] for parameter in DOCUMENT["components"]["parameters"].values() if parameter["in"] == "query"}
    if method == "head":
        return  # it has no body that could name them; GET is the same route
    for name in every | {"colour"}:
        answer = server.ask(method.upper(), path.replace("{", "").replace("}", "") + f"?{name}=%20")
        faults = [error["reason"] for error in answer.json["errors"]] if answer.status == 400 else []
        assert ("UnknownParameter" in faults) == (name not in documented), (name, answer.body)


def test_every_problem_is_documented():
    kinds = json.loads((ROOT / "schemas/openapi/problems.json").read_text())
    named = json.dumps(DOCUMENT)
    missing = [name for name in kinds if f"urn:ublkd:problem:{name}\"" not in named and name != "method-not-allowed"]
    assert not missing


def test_targets_have_a_discriminator(server):
    target = DOCUMENT["components"]["schemas"]["Target"]
    served = {item["name"] for item in server.ask("GET", "/targets").json["items"]}
    assert set(target["discriminator"]["mapping"]) == served
    assert target["discriminator"]["propertyName"] == "type"
    for name, reference in target["discriminator"]["mapping"].items():
        assert conformance.resolve({"$ref": reference})["properties"]["type"] == {"const": name}
        assert {"$ref": reference} in target["oneOf"]


def test_the_document_has_no_private_keyword():
    def keys(value):
        if isinstance(value, dict):
            yield from value
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from keys(inner)

    assert not [key for key in keys(DOCUMENT) if key.startswith("x-")]


@pytest.mark.parametrize("schema,good,bad", [
    ("DeviceSpec", {"name": "a", "target": {"type": "null"}}, {"target": {"type": "null"}}),
    ("DeviceSpecPut", {"target": {"type": "null"}}, {"name": "a"}),
    ("DeviceSpecPatch", {"size": None, "labels": {"a": None}, "recovery": {"onCrash": None}}, {"target": None}),
    ("DeviceSpecPatch", {}, {"colour": None}),
    ("DeviceSpecPatch", {"target": {"path": "/x"}}, {"target": {"colour": 1}}),
    ("DeviceSpecPatch", {"owner": None}, {"owner": {"uid": -1}}),
])
def test_the_schemas_of_bodies(schema, good, bad):
    validator = jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{schema}", "components": DOCUMENT["components"]})
    assert validator.is_valid(good) and not validator.is_valid(bad)


GENERATOR = ROOT / "schemas/openapi.py"


def generate(source, output):
    return subprocess.run(["/usr/bin/python3", "-B", GENERATOR, "--source", source, "--output", output, "--version", "1",
                           "fault", "linear", "loop", "null", "stripe"], stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("change,sentence", [
    (lambda get: get.update({"x-problems": ["no-such-problem"]}), "not in problems.json: no-such-problem"),
    (lambda get: get.update({"parameters": ["colour"]}), "not in components/parameters: colour"),
    (lambda get: get.update({"parameters": ["name"]}), "the path and the parameters differ"),
    (lambda get: get["responses"].update({"500": {"description": "x"}}), "500 is given by x-problems"),
    (lambda get: get["responses"]["200"]["content"]["application/json"].update({"schema": {"$ref": "#/components/schemas/Nothing"}}),
     "components/schemas/Nothing is missing"),
])
def test_an_invalid_fragment_is_refused(tmp_path, change, sentence):
    source = tmp_path / "schemas"
    subprocess.run(["cp", "-r", ROOT / "schemas", source], check=True)
    assert generate(source, tmp_path).returncode == 0
    fragment = json.loads((source / "openapi/machine.json").read_text())
    change(fragment["paths"]["/host"]["get"])
    (source / "openapi/machine.json").write_text(json.dumps(fragment))
    answer = generate(source, tmp_path)
    assert answer.returncode == 1 and sentence in answer.stderr and answer.stderr.count("\n") == 1


def test_problems_have_the_documented_status(server):
    assert "/openapi.json" in check_problem(server.ask("GET", "/nothing"), 404, "no-such-resource")["detail"]
