# SPDX-License-Identifier: MIT
"""The fields of a device spec, of every target and of a policy, from the schemas, in mdoc."""

import json
import pathlib
import re


def text(words):
    """Print prose: one sentence for each line, with everything escaped that roff would interpret."""
    words = words.replace("\\", "\\e").replace("'", "\\(aq").replace("-", "\\-").replace('"', "\\(dq")
    words = re.sub(r"([.:?]) (?=[A-Z`])", r"\1\n", words)
    words = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", words)
    return "\n".join("\\&" + line if line.startswith(".") else line for line in words.split("\n"))


def resolve(schema, folder):
    """Return the schema with its references resolved; its own keywords take precedence."""
    reference = schema.get("$ref")
    if not reference:
        return schema, folder
    path, _, pointer = reference.partition("#")
    place = (folder / path).resolve()
    found = json.loads(place.read_text(encoding="utf-8"))
    for part in pointer.strip("/").split("/"):
        found = found[part] if part else found
    return {**found, **{key: value for key, value in schema.items() if key != "$ref"}}, place.parent


def kind(schema):
    """Describe the values of a field in a few words."""
    if "const" in schema:
        return json.dumps(schema["const"])
    if "anyOf" in schema:
        return " or ".join(kind(part) for part in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    name = schema.get("type", "value")
    if isinstance(name, list):
        name = "bytes"
    return {"integer": "number", "array": "list"}.get(name, name)


def field(path, schema, required):
    """One item of the list."""
    facts = ["Required."] if required else []
    if "default" in schema:
        facts.append(f"Default: {json.dumps(schema['default'])}.")
    if "minimum" in schema and "maximum" in schema:
        facts.append(f"From {schema['minimum']} to {schema['maximum']}.")
    body = [text(part) for part in [schema.get("description", ""), " ".join(facts)] if part]
    return [f".It Cm {path} Pq {text(kind(schema))}", *body]


def fields(schema, folder, prefix=""):
    """The items of an object's fields, those of nested objects under their dotted names."""
    lines = []
    for name, member in schema.get("properties", {}).items():
        member, place = resolve(member, folder)
        lines += field(prefix + name, member, name in schema.get("required", []))
        if member.get("properties") and name != "target":
            lines += fields(member, place, f"{prefix}{name}.")
        for inner, path in (member.get("items"), f"{name}[]"), (member.get("additionalProperties"), f"{name}.NAME"):
            if isinstance(inner, dict):
                lines += fields(inner, place, f"{prefix}{path}.")
    return lines


def section(title, lines):
    return [f".Sh {title}", ".Bl -tag -width Ds", *lines, ".El"]


def about_target(path):
    """Describe a target as its schema does."""
    schema = json.loads(path.read_text(encoding="utf-8"))
    return text(schema.get("description", schema["title"]))


def of_target(path):
    """Print the list of the fields of a target; `path` is its schema."""
    schema = json.loads(path.read_text(encoding="utf-8"))
    return "\n".join([".Bl -tag -width Ds", *fields(schema, path.parent, "target."), ".El"])


def of_policy(schemas):
    """Print the fields of a policy; `schemas` is the folder."""
    policy = json.loads((schemas / "policy.schema.json").read_text(encoding="utf-8"))
    return "\n".join(section("FIELDS", fields(policy, schemas)))


def sections(schemas):
    """Print all fields; `schemas` is the folder."""
    device = json.loads((schemas / "device.schema.json").read_text(encoding="utf-8"))
    lines = section("FIELDS", fields(device, schemas))
    for path in sorted((schemas / "targets").glob("*.schema.json")):
        name = path.name.removesuffix(".schema.json")
        lines += [f".Sh THE TARGET {name.upper()}", about_target(path), of_target(path)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(sections(pathlib.Path(__file__).resolve().parents[2] / "schemas"))
