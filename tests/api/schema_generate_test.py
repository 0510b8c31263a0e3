# SPDX-License-Identifier: MIT
"""generate.py refuses a schema that the option tables cannot express, and bundles the schemas that clients get."""

import copy
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "schemas"
TARGETS = ["fault", "linear", "loop", "null", "stripe"]
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCHEMAS))  # of its imports
specification = importlib.util.spec_from_file_location("generate", SCHEMAS / "generate.py")
generate = importlib.util.module_from_spec(specification)
specification.loader.exec_module(generate)

INTEGER = {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}
STRING = {"type": "string", "maxLength": 9}
MAP = {
    "type": "object",
    "maxProperties": 9,
    "propertyNames": {"pattern": "^[a-z]+$"},
    "additionalProperties": {"type": "string", "maxLength": 9},
    "x-hint": "small letters",
}

LIST = {"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 9}}
OBJECT = {"type": "object", "additionalProperties": False, "x-struct": "inner_options", "properties": {"count": INTEGER}}
OBJECTS = {**{key: value for key, value in MAP.items()}, "additionalProperties": OBJECT}


def table(**properties):
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return generate.Table("sample_table", "sample", "sample.h").write(schema)


def without(schema, *keys):
    return {key: value for key, value in schema.items() if key not in keys}


def test_names_and_bounds():
    text = table(queueDepth=INTEGER, directIo={"enum": ["auto", "on"], "default": "on"}, onCrash={"enum": ["a", "b"]})
    assert "offsetof(struct sample, queue_depth)" in text
    assert ".minimum = INT64_C(1)" in text and ".maximum = INT64_C(9)" in text
    assert ".preset.integer = INT64_C(3)" in text
    assert '{"auto", "on", NULL}' in text and '{"", "a", "b", NULL}' in text


def test_quantities():
    text = table(
        size={"$ref": "types.schema.json#/$defs/bytes", "minimum": 0, "maximum": 1 << 40, "default": "10GiB"},
        wait={"$ref": "types.schema.json#/$defs/duration", "default": "5min"},
        target={"$ref": "target.schema.json"},
    )
    assert f"INT64_C({10 << 30})" in text and "INT64_C(300000000)" in text and "OPTION_DOCUMENT" in text


def test_lists_and_maps_of_objects():
    text = table(words=LIST, objects=OBJECTS, both={**LIST, "items": {"anyOf": [LIST["items"], without(INTEGER, "default")]}})
    assert "const struct option_table inner_options_table = {" in text and "offsetof(struct inner_options, count)" in text
    assert "FIELD_IS(inner_options, count, int64_t);" in text and "FIELD_IS(sample, words, cJSON *);" in text
    assert ".kind = OPTION_LIST" in text and ".kind = OPTION_OBJECT_MAP" in text and ".item_count = 2" in text


def test_a_field_of_another_schema():
    schema = {"type": "object", "additionalProperties": False,
              "properties": {"limits": {"description": "other words", "$ref": "device.schema.json#/properties/limits"}}}
    text = generate.Table("sample_table", "sample", "sample.h", SCHEMAS).write(schema)
    assert "FIELD_IS(sample, limits.read.iops_burst, int64_t);" in text


@pytest.mark.parametrize(
    "schema",
    [
        {**INTEGER, "exclusiveMaximum": 9},
        {**INTEGER, "oneOf": []},
        {**INTEGER, "maxLength": 3},
        {**INTEGER, "if": {}},
        {**INTEGER, "deprecated": True},
        without(INTEGER, "minimum"),
        without(INTEGER, "maximum"),
        without(INTEGER, "default"),
        {**INTEGER, "default": 0},
        {**without(INTEGER, "default"), "x-absent": 5},
        {**INTEGER, "maximum": 1 << 60},
        {**INTEGER, "type": ["integer", "null"]},
        {**INTEGER, "type": "number"},
        {"type": "array", "items": {}},
        {"description": "nothing"},
        without(STRING, "maxLength"),
        {**STRING, "format": "uuid"},
        {**STRING, "enum": ["a"]},
        {**STRING, "pattern": "^[a-z]+$"},  # without a hint
        {"enum": ["a", 1]},
        {"enum": ["a", ""]},
        {"enum": ["a", "a"]},
        {"anyOf": [{"const": "auto"}, {"type": "string"}], "default": "auto"},
        {"anyOf": [{"type": "integer"}, {"const": "auto"}], "default": "auto"},
        {"anyOf": [{"const": "auto"}, without(INTEGER, "default"), {"const": "never"}], "default": "auto"},
        {"$ref": "types.schema.json#/$defs/nonsense"},
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"type": "object", "properties": {}, "additionalProperties": False, "minProperties": 1},
        {"type": "object", "properties": {}, "additionalProperties": False, "required": ["a"]},
        without(MAP, "maxProperties"),
        without(MAP, "propertyNames"),
        without(MAP, "additionalProperties"),
        {**MAP, "propertyNames": {"pattern": "^[a-z]+$", "maxLength": 3}},
        {**MAP, "additionalProperties": {"type": "integer", "maxLength": 3}},
        {**MAP, "patternProperties": {}},
        without(LIST, "maxItems"),
        without(LIST, "items"),
        {**LIST, "uniqueItems": True},
        {**LIST, "items": {"type": "boolean"}},
        {**LIST, "items": without(OBJECT, "x-struct")},
        {**LIST, "items": {"anyOf": [LIST["items"], LIST["items"]]}},
        without(OBJECTS, "maxProperties"),
        without(OBJECTS, "propertyNames"),
    ],
    ids=lambda schema: json.dumps(schema)[:60],
)
def test_refuses(schema):
    with pytest.raises(generate.SchemaError):
        table(field=schema)


@pytest.mark.parametrize(
    "pattern",
    ["[a-z]", "^\\d+$", "^.*$", "^[^/]$", "^(?:a)$", "^a+?$", "^[[:alpha:]]$", "^\u00e4$", "^a$b", "^[]a]$", "^a{1,2}+$"],
)
def test_refuses_patterns_that_are_read_in_two_ways(pattern):
    with pytest.raises(generate.SchemaError):
        table(field={**STRING, "pattern": pattern, "x-hint": "a"})


@pytest.mark.parametrize("pattern", ["^/", "^[a-z]+$", "^(a|b){1,3}$", "^[.$-]?$"])
def test_accepts_patterns(pattern):
    assert "OPTION_STRING" in table(field={**STRING, "pattern": pattern, "x-hint": "a"})


def test_refuses_a_field_given_twice(tmp_path):
    path = tmp_path / "twice.schema.json"
    path.write_text('{"type":"object","type":"object"}')
    with pytest.raises(generate.SchemaError):
        generate.load(path)


def test_bundles_are_complete_and_clean():
    files = generate.generate(SCHEMAS, TARGETS)
    for name in ("device.schema.json", "policy.schema.json", *(f"targets/{name}.schema.json" for name in TARGETS)):
        bundle = json.loads(files[name])

        def walk(value):
            if isinstance(value, list):
                for item in value:
                    walk(item)
            elif isinstance(value, dict):
                for key, item in value.items():
                    assert not key.startswith("x-"), (name, key)
                    if key == "$ref":
                        assert item.startswith("#/$defs/") and item.removeprefix("#/$defs/") in bundle["$defs"]
                    walk(item)

        walk(bundle)


def test_targets_may_contain_targets(tmp_path):
    """The table of the outer one says so; targets/known/target_tree_parse.c reads what is below."""
    schemas = tmp_path / "schemas"
    shutil.copytree(SCHEMAS, schemas)
    outer = {
        "type": "object",
        "required": ["type", "child"],
        "additionalProperties": False,
        "properties": {"type": {"const": "outer"}, "child": {"$ref": "../target.schema.json"}},
    }
    (schemas / "targets" / "outer.schema.json").write_text(json.dumps(outer))
    union = json.loads((schemas / "target.schema.json").read_text())
    union["oneOf"].append({"$ref": "targets/outer.schema.json"})
    (schemas / "target.schema.json").write_text(json.dumps(union))

    files = generate.generate(schemas, [*TARGETS, "outer"])
    assert ".has_child = true," in files["outer_options_table.c"]
    assert ".children_min = 2,\n        .children_max = 63," in files["stripe_options_table.c"]
    assert "OPTION_" not in files["outer_options_table.c"]
    bundle = json.loads(files["device.schema.json"])
    assert bundle["$defs"]["target-outer"]["properties"]["child"]["$ref"] == "#/$defs/target"

    jsonschema = pytest.importorskip("jsonschema")
    spec = {"name": "a", "target": {"type": "outer", "child": {"type": "outer", "child": {"type": "null"}}}}
    validator = jsonschema.Draft202012Validator(bundle)
    assert validator.is_valid(spec)
    bad = copy.deepcopy(spec)
    bad["target"]["child"]["child"]["type"] = "nonsense"
    assert not validator.is_valid(bad)


def _fields_of(schemas):
    """The fields that are strings, and the fields that are bytes."""
    arrays = generate.generate(schemas, TARGETS)["spec_fields.c"].split("spec_bytes_fields")
    return [re.findall(r'^ {8}"(.+)",$', array, re.MULTILINE) for array in arrays]


def test_fields_that_are_bytes():
    _, fields = _fields_of(SCHEMAS)
    assert {"size", "maxIoSize", "target.offset"} <= set(fields)
    assert not {"queues", "queueDepth", "id", "cpus", "limits.read.iops"} & set(fields)


def test_fields_that_are_strings(tmp_path):
    """The client knows a new field without being changed; a field that is a number in some target is not among them."""
    schemas = tmp_path / "schemas"
    shutil.copytree(SCHEMAS, schemas)

    def fields():
        texts, _ = _fields_of(schemas)
        return texts

    before = fields()
    assert {"name", "cpus", "owner.mode", "recovery.giveUpAfter", "dataPath", "target.path"} <= set(before)
    assert not {"size", "queues", "owner.uid", "enabled", "labels", "target", "target.type"} & set(before)
    for target, more in (("loop", {"serial": STRING, "mixed": STRING}), ("null", {"mixed": INTEGER})):
        path = schemas / "targets" / f"{target}.schema.json"
        schema = json.loads(path.read_text())
        schema["properties"].update(more)
        path.write_text(json.dumps(schema))
    assert fields() == sorted([*before, "target.serial"])


@pytest.mark.parametrize("targets", [["loop"], ["loop", "null", "qcow2"]])
def test_command_fails_with_one_sentence(tmp_path, targets):
    command = [sys.executable, SCHEMAS / "generate.py", "--output", tmp_path, *targets]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr.startswith("generate.py: target.schema.json and the folder differ in: ")
    assert not list(tmp_path.iterdir())
