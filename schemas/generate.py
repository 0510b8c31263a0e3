#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes, from the schemas in this folder, what the programs are built from:

    device_spec_table.c          the option table of a device spec (ublkd/values/dispatch.h)
    NAME_options_table.c         the option table of each target
    policy_table.c               the option tables of a policy (ublkd/policy/policy_options.h)
    schema_texts.c               the schemas as text, for the API (schemas/schema_texts.h)
    spec_fields.c                the fields that are strings, or bytes, for ublkctl (schemas/spec_fields.h)
    NAME.schema.json             the same texts as files, for clients

A schema that uses a keyword (or a combination of keywords) which the tables cannot express is refused: a keyword that
only the schema knows would be a rule that the daemon does not keep.

Three keywords are this project's own, and are left out of what clients see:
    x-absent    the number that the struct holds when the field was not given, where no value of the field would do
    x-hint      what a good value looks like, for error messages
    x-struct    the C struct NAME_options of an object in a list or a map; its table is NAME_options_table
"""

import argparse
import json
import pathlib
import re
import sys

ANNOTATIONS = {"title", "description", "examples", "$comment"}
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
DURATION_UNITS = {"us": 1, "ms": 1000, "s": 1000000, "m": 60000000, "min": 60000000, "h": 3600000000}
EXACT_INTEGER_MAX = 1 << 53  # JSON numbers are doubles in the daemon


class SchemaError(Exception):
    """The schema asks for something that the tables cannot do."""


def unique_keys(pairs):
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise SchemaError(f'"{key}" is there twice')
    return dict(pairs)


def load(path):
    return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique_keys)


def snake_case(name):
    return re.sub(r"[-.]", "_", re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name)).lower()


def c_string(text):
    """A C literal; non-ASCII as octal, which unlike \\x cannot swallow what follows."""
    if text is None:
        return "NULL"
    escapes = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n", ord("?"): "\\?"}
    out = []
    for byte in text.encode():
        out.append(escapes.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"))
    return '"' + "".join(out) + '"'


def c_integer(value):
    return f"INT64_C({value})"


def or_list(words):
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def human_bytes(value):
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if value and value % UNITS[unit] == 0:
            return f"{value // UNITS[unit]}{unit}"
    return str(value)


def bytes_value(value):
    if isinstance(value, str):
        match = re.fullmatch(r"(0|[1-9][0-9]*)([KMGT](iB)?)?", value)
        return int(match[1]) * UNITS[f"{match[2][0]}iB" if match[2] else ""]
    return value


def duration_value(value):
    if value == "0":
        return 0
    match = re.fullmatch(r"([0-9]+)(us|ms|s|m|min|h)", value)
    return int(match[1]) * DURATION_UNITS[match[2]]


def check_pattern(pattern, where):
    """Only what ECMA-262 and POSIX extended expressions read alike, also byte by byte in the C locale."""
    outside = re.sub(r"\[[^]]*\]", "[]", pattern)
    if not pattern.startswith("^"):
        raise SchemaError(f"{where}: the pattern is not anchored: begin it with ^")
    if not pattern.isascii() or "\\" in pattern or "[^" in pattern or "[:" in pattern or "[]" in pattern:
        raise SchemaError(f"{where}: in the pattern, \\, [^, [: or non-ASCII would not mean the same everywhere")
    if "." in outside or re.search(r"\(\?|[*+?}][?+]", outside):
        raise SchemaError(f"{where}: in the pattern, a dot or an extension would not mean the same everywhere")
    if "$" in outside[:-1]:
        raise SchemaError(f"{where}: $ may only end the pattern")
    re.compile(pattern)


class Keywords:
    """The keywords of one schema; each is taken once, and what is left at the end is not implemented."""

    def __init__(self, schema, where):
        self.left = {key: value for key, value in schema.items() if key not in ANNOTATIONS}
        self.where = where

    def take(self, keyword, fallback=None):
        return self.left.pop(keyword, fallback)

    def need(self, keyword, why):
        if keyword not in self.left:
            raise SchemaError(f'{self.where}: "{keyword}" is missing: {why}')
        return self.left.pop(keyword)

    def done(self):
        if self.left:
            raise SchemaError(f"{self.where}: not implemented here: {', '.join(sorted(self.left))}")


class Table:
    """One C option table, with the tables and name lists that it refers to before it."""

    def __init__(self, symbol, struct, header, folder=None):
        self.symbol, self.struct, self.header, self.folder = symbol, struct, header, folder
        self.before, self.checks = [], []

    def write(self, schema):
        keywords = Keywords(schema, self.symbol)
        keywords.take("$schema")
        self.emit(keywords, self.symbol, f"struct {self.struct}", "", external=True)
        return "\n".join(
            [
                "/* Generated by schemas/generate.py. Change the schema instead. */",
                f'#include "{self.header}"',
                "",
                "#include <stddef.h>",
                "",
                "#define FIELD_IS(name, field, type) \\",
                "        _Static_assert(__builtin_types_compatible_p(__typeof__(((struct name *)0)->field), type), \\",
                '                #field " does not have the type that the schema asks for")',
                *self.checks,
                "",
                *self.before,
                "",
            ]
        )

    def emit(self, keywords, symbol, struct_type, member, external=False):
        """Writes the table for an object schema; `member` is the path of the nested struct, or ""."""
        if keywords.take("type") != "object":
            raise SchemaError(f'{keywords.where}: the type must be "object"')
        if keywords.take("additionalProperties") is not False:
            raise SchemaError(f'{keywords.where}: "additionalProperties" must be false')
        properties = keywords.take("properties", {})
        required = keywords.take("required", [])
        keywords.take("x-hint")
        keywords.done()
        if not set(required) <= set(properties):
            raise SchemaError(f"{keywords.where}: a required field is not among the properties")
        ignored, options = [], []
        for name, schema in properties.items():
            if set(schema) - ANNOTATIONS == {"const"}:
                ignored.append(name)  # the caller has checked it: it chose this table
            else:
                options.append(self.option(name, schema, name in required, symbol, member))
        if options:
            self.before += [f"static const struct option_field {symbol}_entries[] = {{", *options, "};"]
        if ignored:
            names = ", ".join(map(c_string, ignored))
            self.before.append(f"static const char *const {symbol}_ignored[] = {{{names}, NULL}};")
        self.before += [
            f"{'' if external else 'static '}const struct option_table {symbol} = {{",
            f"        .options = {symbol}_entries," if options else "        .options = NULL,",
            f"        .count = {len(options)},",
            f"        .struct_size = sizeof({struct_type}),",
            *([f"        .ignored = {symbol}_ignored,"] if ignored else []),
            "};",
        ]

    def option(self, name, schema, required, symbol, member):
        where = f"{symbol}.{name}"
        path = (member + "." if member else "") + snake_case(name)
        keywords = Keywords(schema, where)
        kind, c_type, fields = self.kind(keywords, where, f"{symbol}_{snake_case(name)}", path, required)
        keywords.done()
        struct = f"struct {self.struct}"
        offset = f"offsetof({struct}, {path})" + (f" - offsetof({struct}, {member})" if member else "")
        entry = {"name": c_string(name), "kind": kind, "offset": offset}
        if required:
            entry["required"] = "true"
        entry.update(fields)
        if c_type:
            self.checks.append(f"FIELD_IS({self.struct}, {path}, {c_type});")
        return "\n".join(["        {", *[f"                .{key} = {value}," for key, value in entry.items()], "        },"])

    def kind(self, keywords, where, symbol, path, required):
        reference = keywords.take("$ref")
        if reference is not None and "#/properties/" in reference:
            self.follow(keywords, reference)
        elif reference is not None:
            readers = {"bytes": self.bytes, "duration": self.duration, "target": self.document}
            reader = readers.get(re.sub(r"^.*(#/\$defs/|/)|\.schema\.json$", "", reference))
            if not reader:
                raise SchemaError(f"{where}: nothing is known about {reference}")
            return reader(keywords, where, required)
        if "anyOf" in keywords.left:
            return self.auto_integer(keywords, where, required)
        if "enum" in keywords.left and "type" not in keywords.left:
            return self.enum(keywords, where, symbol, required)
        kind = keywords.need("type", "say what it is")
        if kind == "array":
            return self.list(keywords, where, symbol)
        if kind == "object" and isinstance(keywords.left.get("additionalProperties"), dict):
            if keywords.left["additionalProperties"].get("type") == "object":
                return self.object_map(keywords, where, symbol)
        if kind == "object" and "properties" in keywords.left:
            keywords.left["type"] = kind
            self.emit(keywords, symbol, f"((struct {self.struct} *)0)->{path}", path)
            return "OPTION_OBJECT", None, {"table": f"&{symbol}", "hint": c_string("an object")}
        readers = {"string": self.string, "integer": self.integer, "boolean": self.boolean, "object": self.string_map}
        if not isinstance(kind, str) or kind not in readers:
            raise SchemaError(f"{where}: type {kind} is not implemented")
        return readers[kind](keywords, where, required, *([symbol] if kind == "integer" else []))

    def follow(self, keywords, reference):
        """Takes the keywords of a field of another schema; those that are there already count instead."""
        path, _, name = reference.partition("#/properties/")
        found = load(self.folder / path)["properties"][name]
        keywords.left = {**Keywords(found, reference).left, **keywords.left}

    def item(self, schema, where, symbol):
        """An entry for what is in a list or a map."""
        keywords = Keywords(schema, where)
        struct = keywords.take("x-struct")
        if struct:
            inner = Table(f"{struct}_table", struct, self.header, self.folder)
            inner.emit(keywords, inner.symbol, f"struct {struct}", "", external=True)
            self.before += inner.before
            self.checks += inner.checks
            kind, fields = "OPTION_OBJECT", {"table": f"&{inner.symbol}", "hint": c_string("an object")}
        elif keywords.left.get("type") in ("string", "integer"):
            kind, _, fields = self.kind(keywords, where, symbol, "", True)
            keywords.done()
        else:
            raise SchemaError(f"{where}: in a list or a map are strings, integers, or objects with x-struct")
        entry = {"kind": kind, **fields}
        return "\n".join(["        {", *[f"                .{key} = {value}," for key, value in entry.items()], "        },"])

    def items(self, schemas, where, symbol):
        entries = [self.item(schema, where, symbol) for schema in schemas]
        if len({schema.get("type") for schema in schemas}) != len(schemas):
            raise SchemaError(f"{where}: the type of an item must say which alternative it is")
        self.before += [f"static const struct option_field {symbol}_items[] = {{", *entries, "};"]
        return {"items": f"{symbol}_items", "item_count": str(len(schemas))}

    def list(self, keywords, where, symbol):
        items = keywords.need("items", "say what is in the list")
        fields = {
            "length_min": str(keywords.take("minItems", 0)),
            "length_max": str(keywords.need("maxItems", "every list has a limit")),
            "hint": c_string(keywords.take("x-hint", "a list")),
            **self.items(items["anyOf"] if set(items) == {"anyOf"} else [items], where, symbol),
        }
        return "OPTION_LIST", "cJSON *", fields

    def object_map(self, keywords, where, symbol):
        items = self.items([keywords.take("additionalProperties")], where, symbol)
        return "OPTION_OBJECT_MAP", "cJSON *", {**self.map_fields(keywords, where), **items}

    @staticmethod
    def preset(keywords, where, required, convert, minimum=None, maximum=None):
        """The number that the struct holds when the JSON is silent."""
        if "default" in keywords.left:
            value = convert(keywords.take("default"))
            if minimum is not None and not minimum <= value <= maximum:
                raise SchemaError(f"{where}: the default is out of range")
        elif "x-absent" in keywords.left:
            value = keywords.take("x-absent")
            if minimum is not None and minimum <= value <= maximum:
                raise SchemaError(f"{where}: x-absent is a value that could be given")
        elif required:
            value = 0
        else:
            raise SchemaError(f"{where}: not required, so say default or x-absent")
        return {"preset.integer": c_integer(value)}

    @staticmethod
    def bounds(keywords, where):
        minimum = keywords.need("minimum", "every number has limits")
        maximum = keywords.need("maximum", "every number has limits")
        multiple = keywords.take("multipleOf", 1)
        if not -EXACT_INTEGER_MAX < minimum <= maximum < EXACT_INTEGER_MAX:
            raise SchemaError(f"{where}: limits must be numbers that every JSON parser keeps exactly")
        fields = {"minimum": c_integer(minimum), "maximum": c_integer(maximum)}
        if multiple != 1:
            fields["multiple_of"] = c_integer(multiple)
        return minimum, maximum, multiple, fields

    def integer(self, keywords, where, required, symbol):
        if "enum" in keywords.left:
            values = keywords.take("enum")
            self.before.append(
                f"static const int64_t {symbol}_values[] = {{{', '.join(map(c_integer, values))}}};"
            )
            minimum, maximum = min(values), max(values)
            fields = {
                "minimum": c_integer(minimum),
                "maximum": c_integer(maximum),
                "values": f"{symbol}_values",
                "value_count": str(len(values)),
            }
            hint = or_list(map(str, values))
        else:
            minimum, maximum, multiple, fields = self.bounds(keywords, where)
            hint = self.number_hint(minimum, maximum, multiple)
        fields["hint"] = c_string(keywords.take("x-hint", hint))
        fields.update(self.preset(keywords, where, required, int, minimum, maximum))
        return "OPTION_INTEGER", "int64_t", fields

    @staticmethod
    def number_hint(minimum, maximum, multiple):
        what = "a number" if multiple == 1 else f"a multiple of {multiple}"
        return f"{what} from {minimum} to {maximum}"

    def auto_integer(self, keywords, where, required):
        choices = keywords.take("anyOf")
        if len(choices) != 2 or choices[0] != {"const": "auto"} or choices[1].get("type") != "integer":
            raise SchemaError(f'{where}: anyOf is only implemented for the constant "auto" and an integer')
        number = Keywords(choices[1], where)
        number.take("type")
        minimum, maximum, multiple, fields = self.bounds(number, where)
        number.done()
        if minimum < 0:
            raise SchemaError(f'{where}: negative numbers are taken by "auto"')
        hint = '"auto" or ' + self.number_hint(minimum, maximum, multiple)
        fields["hint"] = c_string(keywords.take("x-hint", hint))
        fields.update(self.preset(keywords, where, required, lambda value: -1 if value == "auto" else value))
        return "OPTION_AUTO_INTEGER", "int64_t", fields

    def bytes(self, keywords, where, required):
        minimum, maximum, multiple, fields = self.bounds(keywords, where)
        what = "a number of bytes" if multiple == 1 else f"a multiple of {human_bytes(multiple)}"
        hint = f'{what} from {human_bytes(minimum)} to {human_bytes(maximum)}, as a number or like "1GiB"'
        if maximum < 1 << 30:
            hint = hint.replace("1GiB", "64KiB")
        fields["hint"] = c_string(keywords.take("x-hint", hint))
        fields.update(self.preset(keywords, where, required, bytes_value, minimum, maximum))
        return "OPTION_BYTES", "uint64_t", fields

    def duration(self, keywords, where, required):
        hint = '"0", or a whole number with us, ms, s, m (or min) or h, like "30s"'
        fields = {"minimum": "0", "maximum": "INT64_MAX", "hint": c_string(keywords.take("x-hint", hint))}
        fields.update(self.preset(keywords, where, required, duration_value))
        return "OPTION_DURATION", "uint64_t", fields

    def enum(self, keywords, where, symbol, required):
        names = keywords.take("enum")
        if not all(isinstance(name, str) and name for name in names) or len(set(names)) != len(names):
            raise SchemaError(f"{where}: enum is only implemented for different, non-empty strings")
        hint = or_list(f'"{name}"' for name in names)
        if "default" in keywords.left:
            preset = names.index(keywords.take("default"))
        else:
            preset = 0
            if not required:
                names = ["", *names]  # index 0 of the C enum stands for "not given"
        self.before.append(f"static const char *const {symbol}_names[] = {{{', '.join(map(c_string, names))}, NULL}};")
        fields = {
            "names": f"{symbol}_names",
            "hint": c_string(keywords.take("x-hint", hint)),
            "preset.integer": c_integer(preset),
        }
        return "OPTION_ENUM", "int", fields

    def string(self, keywords, where, required):
        maximum = keywords.need("maxLength", "every string has a limit")
        fields = {"length_min": str(keywords.take("minLength", 0)), "length_max": str(maximum)}
        pattern = keywords.take("pattern")
        if pattern is not None:
            check_pattern(pattern, where)
            fields["pattern"] = c_string(pattern)
            hint = keywords.need("x-hint", "say in words what the pattern says")
        else:
            hint = keywords.take("x-hint", f"a string of at most {maximum} characters")
        fields["hint"] = c_string(hint)
        default = keywords.take("default")
        if default is not None:
            fields["preset.string"] = c_string(default)
        return "OPTION_STRING", "char *", fields

    def boolean(self, keywords, where, required):
        fields = {"hint": c_string("true or false")}
        fields.update(self.preset(keywords, where, required, int))
        return "OPTION_BOOL", "bool", fields

    @staticmethod
    def map_fields(keywords, where):
        """What the two kinds of maps have in common."""
        names = Keywords(keywords.need("propertyNames", "keys have limits"), where)
        pattern = names.need("pattern", "keys have limits")
        check_pattern(pattern, where)
        names.done()
        return {
            "length_min": str(keywords.take("minProperties", 0)),
            "length_max": str(keywords.need("maxProperties", "every list has a limit")),
            "pattern": c_string(pattern),
            "hint": c_string(keywords.need("x-hint", "say in words what keys look like")),
        }

    def string_map(self, keywords, where, required):
        values = Keywords(keywords.need("additionalProperties", "values have limits"), where)
        if values.need("type", "values are strings") != "string":
            raise SchemaError(f"{where}: values are strings")
        fields = {**self.map_fields(keywords, where), "value_length_max": str(values.need("maxLength", "values have limits"))}
        values.done()
        return "OPTION_STRING_MAP", "cJSON *", fields

    def document(self, keywords, where, required):
        return "OPTION_DOCUMENT", "cJSON *", {"hint": c_string('an object with a "type"')}


class Bundle:
    """One schema with all that it refers to inside, and without our own keywords."""

    def __init__(self):
        self.definitions = {}

    def write(self, path):
        schema = self.resolve(load(path), path)
        if self.definitions:
            schema["$defs"] = dict(sorted(self.definitions.items()))
        return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"

    def resolve(self, value, path):
        if isinstance(value, list):
            return [self.resolve(item, path) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            key: self.definition(item, path) if key == "$ref" else self.resolve(item, path)
            for key, item in value.items()
            if not key.startswith("x-")
        }

    def definition(self, reference, path):
        file_name, _, fragment = reference.partition("#")
        target = (path.parent / file_name).resolve()
        schema = load(target)
        if fragment:
            place, _, name = fragment.removeprefix("/").partition("/")
            if place not in ("$defs", "properties"):
                raise SchemaError(f"{path.name}: {reference} does not point to a definition")
            schema = schema[place][name]
        else:
            name = target.name.removesuffix(".schema.json")
            if target.parent.name == "targets":
                name = "target-" + name
            schema.pop("$schema", None)
        if name not in self.definitions:
            self.definitions[name] = {}  # a schema may contain itself
            self.definitions[name] = self.resolve(schema, target)
        return f"#/$defs/{name}"


def write_texts(texts):
    lines = [
        "/* Generated by schemas/generate.py. Change the schema instead. */",
        '#include "schemas/schema_texts.h"',
        "",
        "#include <stddef.h>",
        "",
        "const struct schema_text schema_texts[] = {",
    ]
    for name, text in sorted(texts.items()):
        lines += [
            "        {",
            f"                .name = {c_string(name)},",
            "                .text =",
            *[f"                        {c_string(line)}" for line in text.splitlines(keepends=True)],
            "        },",
        ]
        lines[-2] += ","
    return "\n".join([*lines, "        {.name = NULL},", "};", ""])


def is_text(schema):
    """Only a string will do, whatever it looks like."""
    if "enum" in schema:
        return all(isinstance(value, str) for value in schema["enum"])
    return schema.get("type") == "string" or schema.get("$ref", "").endswith("#/$defs/duration")


def is_bytes(schema):
    return schema.get("$ref", "").endswith("#/$defs/bytes")


def leaves(schema, prefix=""):
    """(dotted name, schema) of every field that is not an object with fields of its own."""
    for name, field in schema["properties"].items():
        if "properties" in field:
            yield from leaves(field, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def choices(schema):
    """The values that a field may have, if they are few."""
    if schema.get("type") == "boolean":
        return ["true", "false"]
    if "const" in schema:
        return [schema["const"]]
    return [str(value) for part in schema.get("anyOf", []) for value in choices(part)] + [
        str(value) for value in schema.get("enum", [])]


def field_choices(fields):
    """{name: choices} of all fields; a field of several targets has the choices of all."""
    found = {}
    for name, schema in fields:
        if name not in ("name", "target"):
            found.setdefault(name, []).extend(value for value in choices(schema) if value not in found.get(name, []))
    return dict(sorted(found.items()))


def write_choices(fields):
    lines = ["", "const struct spec_field spec_fields[] = {"]
    for name, values in field_choices(fields).items():
        array = f"(const char *const[]) {{{', '.join(map(c_string, values))}, NULL}}" if values else "NULL"
        lines.append(f"        {{{c_string(name)}, {array}}},")
    return [*lines, "        {NULL, NULL},", "};"]


def write_fields(device, targets):
    fields = [*leaves(device), *(leaf for target in targets for leaf in leaves(target, "target."))]
    lines = [
        "/* Generated by schemas/generate.py. Change the schema instead. */",
        '#include "schemas/spec_fields.h"',
        "",
        "#include <stddef.h>",
    ]
    for array, belongs in (("spec_text_fields", is_text), ("spec_bytes_fields", is_bytes)):
        others = {name for name, schema in fields if not belongs(schema)}
        names = sorted({name for name, _ in fields} - others)
        lines += ["", f"const char *const {array}[] = {{", *(f"        {c_string(name)}," for name in names)]
        lines += ["        NULL,", "};"]
    return "\n".join([*lines, *write_choices(fields), ""])


def check_targets(source, targets):
    """The folder and the union of all targets must name the same ones."""
    schema = load(source / "target.schema.json")
    listed = {re.fullmatch(r"targets/(.+)\.schema\.json", item["$ref"])[1] for item in schema["oneOf"]}
    if listed != set(targets):
        raise SchemaError(f"target.schema.json and the folder differ in: {', '.join(sorted(listed ^ set(targets)))}")
    for name in targets:
        schema = load(source / "targets" / f"{name}.schema.json")
        if schema["properties"].get("type") != {"const": name} or "type" not in schema["required"]:
            raise SchemaError(f'targets/{name}.schema.json: "type" must be required, and the constant "{name}"')


def generate(source, targets):
    """File name → text of everything that is written."""
    check_targets(source, targets)
    table = Table("device_spec_table", "device_options", "ublkd/model/device_spec.h")
    files = {"device_spec_table.c": table.write(load(source / "device.schema.json"))}
    table = Table("policy_options_table", "policy_options", "ublkd/policy/policy_options.h", source)
    files["policy_table.c"] = table.write(load(source / "policy.schema.json"))
    texts = {"device": Bundle().write(source / "device.schema.json")}
    for target in targets:
        name = snake_case(target)
        path = source / "targets" / f"{target}.schema.json"
        table = Table(f"{name}_options_table", f"{name}_options", f"targets/{name}/{name}_options.h")
        files[f"{name}_options_table.c"] = table.write(load(path))
        texts[f"targets/{target}"] = Bundle().write(path)
    files["schema_texts.c"] = write_texts(texts)
    files["spec_fields.c"] = write_fields(
        load(source / "device.schema.json"),
        [load(source / "targets" / f"{target}.schema.json") for target in targets],
    )
    files.update({f"{name}.schema.json": text for name, text in texts.items()})
    files["policy.schema.json"] = Bundle().write(source / "policy.schema.json")  # no client asks for it over the API
    return files


def main():
    parser = argparse.ArgumentParser(description="Generate option tables and schema texts.")
    parser.add_argument("--source", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("targets", nargs="*", help="names of the targets in this build")
    arguments = parser.parse_args()
    try:
        files = generate(arguments.source.resolve(), arguments.targets)
    except (SchemaError, OSError, json.JSONDecodeError) as error:
        sys.exit(f"generate.py: {error}")
    for name, text in files.items():
        path = arguments.output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
