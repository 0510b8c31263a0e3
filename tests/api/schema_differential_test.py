# SPDX-License-Identifier: MIT
"""The daemon and its schema accept the same specs.

Random specs, valid and invalid, go to a C program that calls device_spec_parse(), and to the Python package jsonschema
with the schema that clients get. Both must give the same verdict and report faults at the same places. Rules that a
schema cannot express (a multiple of another field, a size that a target needs) have reasons of their own.

The seed is printed; UBLKD_SEED=N repeats a run, UBLKD_SPECS=N sets how many specs.
"""

import contextlib
import json
import os
import pathlib
import random
import re
import subprocess

import jsonschema
import pytest

BUILD = pathlib.Path(os.environ.get("UBLKD_SCHEMAS", "build/schemas"))
VERDICT = os.environ.get("UBLKD_SPEC_VERDICT", "build/tests/unit/spec_verdict")
SEED = int(os.environ.get("UBLKD_SEED", random.SystemRandom().randrange(1 << 32)))
SPECS = int(os.environ.get("UBLKD_SPECS", 3000))

# The rules of device_spec.c; a schema cannot say them.
SEMANTIC = {"SizeRequired", "SizeNotMultiple", "OneQueueOnly", "ReplayUnsafe", "BadCpuList", "OffsetNotMultiple", "BurstWithoutLimit", "PathOrPool", "PoolNeedsSize", "OffsetInPool", "KeepWithoutPool",
            "NoRecoveryInKernelIsolation", "CopyInKernelIsolation", "GroupInKernelIsolation", "WaitInKernelIsolation",
            "LimitsInKernelIsolation", "ChildOrChildren", "LengthOfChild", "PartOfChildren", "TooManyStores",
            "PoolBelowTarget", "TooManyTargets", "TooManyLevels", "KeptMemoryTooLarge"}
# Limits of a number that was written as a string with a unit: the schema checks its form only.
OF_TEXT = {"OutOfRange", "NotMultiple"}


def whole_pattern(validator, pattern, instance, schema):
    """Python's $ also matches before a newline at the end; that of ECMA-262 and POSIX does not."""
    if validator.is_type(instance, "string") and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": whole_pattern})


@pytest.fixture(scope="module")
def schema():
    text = json.loads((BUILD / "device.schema.json").read_text())
    Validator.check_schema(text)
    return text


@contextlib.contextmanager
def verdicts(*arguments):
    process = subprocess.Popen([VERDICT, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def ask(text):
        process.stdin.write(text + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield ask
    process.stdin.close()
    assert process.wait(timeout=60) == 0


@pytest.fixture(scope="module")
def judge():
    """A function: JSON text → the daemon's verdict."""
    with verdicts() as ask:
        yield ask


@pytest.fixture(scope="module")
def patch_judge():
    """A function: JSON text of [spec, patch] → the patched spec, and the daemon's verdict on it."""
    with verdicts("--patch") as ask:
        yield ask


def pointer(path):
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def target_of(schema, document):
    """The schema of the target that a document names, or None."""
    for choice in schema["$defs"]["target"]["oneOf"]:
        branch = schema["$defs"][choice["$ref"].rsplit("/", 1)[1]]
        if branch["properties"]["type"]["const"] == document.get("type"):
            return {**branch, "$defs": schema["$defs"]}
    return None


def schema_faults(schema, document, path=()):
    """The pointers of all faults that the schema finds, in the form in which the daemon reports them."""
    faults = set()
    for error in Validator(schema).iter_errors(document):
        where = (*path, *error.absolute_path)
        if error.validator == "required":
            faults |= {pointer((*where, name)) for name in error.validator_value if name not in error.instance}
        elif error.validator == "additionalProperties" and error.validator_value is False:
            faults |= {pointer((*where, name)) for name in error.instance if name not in error.schema["properties"]}
        elif error.validator == "oneOf":
            faults |= target_faults(schema, error.instance, where)
        elif error.parent is None and "propertyNames" in error.absolute_schema_path:
            faults.add(pointer((*where, error.instance)))
        else:
            faults.add(pointer(where))
    return faults


def target_faults(schema, document, path):
    if not isinstance(document, dict):
        return {pointer(path)}
    branch = target_of(schema, document)
    return schema_faults(branch, document, path) if branch else {pointer((*path, "type"))}


def value_at(document, path):
    for part in path.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list) and part.isdigit() and int(part) < len(document):
            document = document[int(part)]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        else:
            return None
    return document


def is_beyond_schema(document, error):
    if error["reason"] in SEMANTIC:
        return True
    return error["reason"] in OF_TEXT and isinstance(value_at(document, error["pointer"]), str)


def check(schema, judge, text):
    return check_verdict(schema, json.loads(text), judge(text), text)


def check_verdict(schema, document, verdict, text):
    wanted = schema_faults(schema, document)
    beyond = {error["pointer"] for error in verdict["errors"] if is_beyond_schema(document, error)}
    got = {error["pointer"] for error in verdict["errors"]}
    assert not verdict.get("malformed"), text
    assert verdict["good"] == (not wanted and not beyond), (text, verdict, wanted)
    assert verdict["dropped"] > 0 or got - beyond == wanted - beyond, (text, verdict, wanted)
    for error in verdict["errors"]:
        assert re.search(r"; (give|remove|did you mean) |; leave it out", error["detail"]), error
    return verdict["good"]


class Specs:
    """Random specs. `evil` is the probability that a value or a name is wrong."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.evil = 0

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, *values):
        return self.random.choice(values)

    def letters(self, alphabet, most):
        return "".join(self.random.choice(alphabet) for _ in range(self.random.randint(0, most)))

    def oddity(self, depth=0):
        """Any JSON value."""
        kinds = [
            lambda: None,
            lambda: self.pick(True, False),
            lambda: self.pick(0, -1, 1, 512, 1 << 31, 1 << 32, 1 << 52, 1 << 53, (1 << 53) + 1, 1 << 64, 10**40, -(10**40)),
            lambda: self.random.randint(-5, 5000),
            lambda: self.pick(0.5, 1.0, 128.0, -0.0, 1e3, 1e300, -1e300, 1e-300, 4096.5, 1e22),
            lambda: self.pick("", "auto", "0", "1GiB", "null", "loop", "true", "a\n", "\u00e4", "\U0001f600", "\\d", "/x"),
            lambda: self.letters("abzAZ09._-/~ \n\u00e4\U0001f600", 300 if self.chance(0.1) else 6),
            lambda: [],
            lambda: {},
        ]
        if depth < 4:
            kinds.append(lambda: [self.oddity(depth + 1) for _ in range(self.random.randint(1, 3))])
            kinds.append(lambda: {self.letters("abtype", 4): self.oddity(depth + 1) for _ in range(2)})
        return self.random.choice(kinds)()

    def value(self, good):
        return self.oddity() if self.chance(self.evil) else good()

    def number(self, low, high, step=1):
        def good():
            value = self.pick(low, high, self.random.randint(low // step, high // step) * step)
            return float(value) if self.chance(0.1) and value < 1 << 53 else value

        def near():
            return self.pick(low - 1, low - step, high + 1, high + step, low + 1, low + 0.5, -low)

        return lambda: near() if self.chance(self.evil) else good()

    def amount(self, low, high, step):
        number = self.number(low, high, step)
        units = ["", "KiB", "MiB", "GiB", "TiB", "K", "M", "G", "T"] + (["kiB", "GB", "k", " GiB", "GiB\n", "iB"] if self.evil else [])

        def text():
            return self.pick("", "", "0", " ", "-", "9" * 20)[: 9 if self.evil else 0] + str(
                self.random.randint(0 if self.evil else 1, 4096)
            ) + self.random.choice(units)

        return lambda: text() if self.chance(0.5) else number()

    def duration(self):
        units = ["us", "ms", "s", "m", "min", "h"] + (["", "M", "S", " s", "s\n", "d"] if self.evil else [])
        return self.pick("0", str(self.random.randint(0, 10 ** self.random.randint(1, 9 if not self.evil else 24))) + self.random.choice(units))

    def cpus(self):
        text = ",".join(
            str(self.random.randint(0, 20)) + self.pick("", f"-{self.random.randint(15, 30)}") for _ in range(self.random.randint(1, 4))
        )
        if self.chance(self.evil):
            text = self.pick(text + ",", "-" + text, text + "\n", text.replace(",", " "), "99999", ",".join(["1-2"] * 400), "4096", "3-1")
        return text

    def name(self):
        text = "a" + self.letters("abz09._-", 8) + "9"
        if self.chance(self.evil):
            text = self.pick("", ".", "..", "-" + text, text + ".", text.upper(), text + "\n", text * 9, "a" * 63, "a" * 64, "\u00e4", "a/b")
        return text

    def limits(self):
        return self.members(
            {
                "iops": self.number(1, 10000000),
                "iopsBurst": self.number(1, 1000000000),
                "bytesPerSec": self.amount(1024, 1 << 40, 1),
                "bytesPerSecBurst": self.amount(512, 1 << 40, 1),
            }
        )

    def io_max(self):
        return self.members({"iops": self.number(1, 10000000), "bytesPerSec": self.amount(1024, 1 << 40, 1)})

    def labels(self):
        most = 70 if self.chance(self.evil) else 5
        keys = [self.pick("", "x/") + "k" + self.letters("aZ9._/-" + ("=\n \u00e4" if self.evil else ""), 5) + "k" for _ in range(self.random.randint(0, most))]
        if self.chance(self.evil):
            keys.append(self.pick("", "-", "k" * 128, "k" * 129, "~", "a/", "k\n"))
        long = self.pick("", "\u00e4" * 255, "\U0001f600" * 255, "v" * 256 if self.evil else "v")
        return {key: self.value(lambda: self.pick("", "value", long)) for key in keys}

    def members(self, makers, required=()):
        """An object with some of the members, in any order, sometimes with a misspelt or an extra one."""
        names = [name for name in makers if name in required or self.chance(0.4)]
        if names and self.chance(self.evil):
            names.remove(self.random.choice(names))
        self.random.shuffle(names)
        result = {name: self.value(makers[name]) for name in names}
        if names and self.chance(self.evil):
            name = self.random.choice(names)
            result[self.pick(name + "s", name.upper(), name[:-1], name + "\n", "", "a/b~", "\u00e4")] = self.oddity()
        return result

    def target(self, level=1):
        if level < 4 and self.chance(0.25):
            return self.target_on_others(level)
        path = lambda: self.pick("/disk", "/a b/\u00e4.img", "/" + "x" * 4094) if not self.chance(self.evil) else self.pick(
            "", "disk", " /disk", "/" + "x" * 4095, "/\n", "\n/", "/" + "\u00e4" * 4094, "/" + "\u00e4" * 4095
        )
        loop = {
            "type": lambda: "loop",
            "path": path,
            "offset": self.amount(0, 1 << 52, 512),
            "directIo": lambda: self.pick("auto", "on", "off"),
        }
        if self.chance(0.3):
            loop["pool"] = lambda: self.pick("fast", "a", "a.b_c-9", *(["Fast", "", "a-", "a" * 64] if self.evil else []))
            loop["keep"] = lambda: self.pick(True, False)
        null = {"type": lambda: "null"}
        if self.evil and self.chance(0.1):
            null["path"] = path
        return self.members(*self.pick((loop, ("type", "pool" if self.chance(0.2) and "pool" in loop else "path")), (null, ("type",))))

    def target_on_others(self, level):
        child = lambda: self.target(level + 1)
        part = lambda: {"type": "linear", "length": 4096, "child": self.target(level + 2)}
        counts = (0, 1, 2, 3) if self.chance(self.evil) else (2, 3)
        children = lambda: [self.value(self.pick(child, part)) for _ in range(self.pick(*counts))]
        linear = {"type": lambda: "linear", "offset": self.amount(0, 1 << 52, 512), "length": self.amount(512, 1 << 52, 512)}
        stripe = {"type": lambda: "stripe", "children": children, "chunk": self.amount(4096, 16 << 20, 4096)}
        if self.chance(0.5):
            return self.members({**linear, "child": child}, ("type", "child"))
        if self.chance(0.5):
            return self.members({"type": linear["type"], "children": children}, ("type", "children"))
        return self.members(stripe, ("type", "children"))

    def spec(self):
        self.evil = self.pick(0, 0, 0.02, 0.1, 0.3)
        return self.members(
            {
                "name": self.name,
                "target": self.target,
                "size": self.amount(512, 1 << 52, 512),
                "blockSize": lambda: self.pick(512, 1024, 2048, 4096, 4096.0, *([256, 1536, 8192, 513] if self.evil else [])),
                "queues": lambda: self.pick("auto", self.number(1, 64)()),
                "queueDepth": self.number(1, 4096),
                "maxIoSize": self.amount(4096, 33554432, 4096),
                "readOnly": lambda: self.pick(True, False),
                "dataPath": lambda: self.pick("auto", "copy", "user-copy", "zero-copy", *(["Copy", ""] if self.evil else [])),
                "isolation": lambda: self.pick("ublkd", "ublkd", "kernel", *([""] if self.evil else [])),
                "recovery": lambda: self.members(
                    {
                        "onCrash": lambda: self.pick("reissue", "queue", "fail", "none", *([""] if self.evil else [])),
                        "trigger": lambda: self.pick("auto", "manual"),
                        "giveUpAfter": self.duration,
                    }
                ),
                "limits": lambda: self.members({"read": self.limits, "write": self.limits}),
                "resources": lambda: self.members(
                    {
                        "cpuWeight": self.number(1, 10000),
                        "memoryMax": self.amount(16777216, 4503599627370496, 1),
                        "ioMax": lambda: self.members({"read": self.io_max, "write": self.io_max}),
                        "pidsMax": self.number(64, 4194304),
                    }
                ),
                "busyPollUs": self.number(0, 10000),
                "onFull": lambda: self.pick("error", "wait", *(["Wait", ""] if self.evil else [])),
                "partitions": lambda: self.pick(True, False),
                "privateNode": lambda: self.pick(True, False),
                "temporary": lambda: self.pick(True, False),
                "id": self.number(0, 1048575),
                "owner": lambda: self.members(
                    {
                        "uid": self.number(0, 4294967294),
                        "gid": self.number(0, 4294967294),
                        "mode": lambda: self.pick("0660", "600", *(["0668", "00660", "66", "u+w", "0660\n"] if self.evil else [])),
                    }
                ),
                "cpus": self.cpus,
                "labels": self.labels,
                "enabled": lambda: self.pick(True, False),
            },
            required=("name", "target"),
        )


def test_random_specs(schema, judge):
    print(f"UBLKD_SEED={SEED}")
    specs = Specs(SEED)
    good = 0
    for number in range(SPECS):
        spec = specs.spec()
        text = json.dumps(spec, ensure_ascii=specs.chance(0.5))
        try:
            good += check(schema, judge, text)
        except AssertionError as error:
            raise AssertionError(f"UBLKD_SEED={SEED}, spec {number}: {error}") from None
    # A generator of only valid or only invalid specs would prove nothing.
    assert SPECS * 0.05 < good < SPECS * 0.95, good


def test_json_other_than_specs(schema, judge):
    specs = Specs(SEED)
    for _ in range(200):
        check(schema, judge, json.dumps(specs.oddity()))


def merged(target, patch):
    """RFC 7396, section 2, word for word."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    target = dict(target)
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = merged(target.get(name), value)
    return target


def as_doubles(document):
    """Numbers as the daemon holds and prints them: beyond 2^52, and so beyond every limit, with 15 digits."""
    def number(text):
        return float(text) if abs(float(text)) < 1 << 52 else f"{float(text):.13e}"

    return json.loads(json.dumps(document), parse_int=number, parse_float=number)


def patch_of(specs, target):
    """A patch related to `target`: parts of another spec, and nulls for existing members."""
    patch = specs.spec() if specs.chance(0.9) else specs.oddity()
    if isinstance(patch, dict):
        patch = {name: value for name, value in patch.items() if specs.chance(0.5)}
        if specs.chance(0.5):
            patch.pop("target", None)
        for name, value in target.items():
            if specs.chance(0.1):
                patch[name] = None
            elif isinstance(value, dict) and specs.chance(0.2):
                patch[name] = {inner: None for inner in value if specs.chance(0.5)}
    return patch


def test_random_merge_patches(schema, patch_judge):
    """The daemon applies a patch as the RFC says, and judges the result as the schema does. The OpenAPI document allows
    every patch of a valid spec that the daemon accepts."""
    print(f"UBLKD_SEED={SEED}")
    document = json.loads((BUILD / "openapi.json").read_text())
    allowed = Validator({"$ref": "#/components/schemas/DeviceSpecPatch", "components": document["components"]})
    specs = Specs(SEED)
    good = bad = 0
    for number in range(SPECS // 2):
        target = specs.spec()
        patch = patch_of(specs, target)
        text = json.dumps([target, patch])
        where = f"UBLKD_SEED={SEED}, patch {number}: {text}"
        verdict = patch_judge(text)
        wanted = merged(target, patch)
        assert as_doubles(verdict["result"]) == as_doubles(wanted), where
        try:
            taken = check_verdict(schema, wanted, verdict, text)
        except AssertionError as error:
            raise AssertionError(f"{where}: {error}") from None
        if taken and not schema_faults(schema, target):  # else the patch may have removed what must not be there
            assert allowed.is_valid(without_useless_nulls(patch, target)), where
        good += taken
        bad += not taken
    # about one in fifteen is good; a seed with one in twenty-three has been seen
    assert good > SPECS // 2 * 0.01 and bad > SPECS // 2 * 0.01, (good, bad)


def without_useless_nulls(patch, target):
    """Nulls that remove missing members may have any name, also of fields that do not exist."""
    target = target if isinstance(target, dict) else {}
    return {
        name: without_useless_nulls(value, target.get(name)) if isinstance(value, dict) else value
        for name, value in patch.items()
        if value is not None or name in target
    }


def walk_properties(schema, whole):
    """Every property of every object in the bundle: (name, its schema with all definitions)."""
    if isinstance(schema, dict):
        for name, inner in schema.get("properties", {}).items():
            yield name, {**inner, "$defs": whole["$defs"]}
        for inner in schema.values():
            yield from walk_properties(inner, whole)
    elif isinstance(schema, list):
        for inner in schema:
            yield from walk_properties(inner, whole)


def test_defaults_and_examples_are_good(schema):
    seen = 0
    for name, inner in walk_properties(schema, schema):
        for value in [inner[key] for key in ("default",) if key in inner] + inner.get("examples", []):
            assert Validator(inner).is_valid(value), (name, value)
            seen += 1
        assert inner.get("description") or "const" in inner, f"{name} has no description"
    assert seen > 10


def test_writing_the_defaults_changes_nothing(schema, judge):
    spec = {name: inner["default"] for name, inner in schema["properties"].items() if "default" in inner}
    assert spec["queueDepth"] == 128
    assert check(schema, judge, json.dumps({**spec, "name": "a", "target": {"type": "loop", "path": "/x"}}))


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"a","name":"a","target":{"type":"null"},"size":512}',
        '{"name":"a","target":{"type":"null","type":"null"},"size":512}',
        '{"name":"a","target":{"type":"null"},"size":512,"labels":{"a":"","a":""}}',
        '{"name":"a","target":{"type":"null"},"size":512,"owner":{"uid":1,"uid":1}}',
    ],
)
def test_duplicates_are_refused(judge, text):
    """Python's parser silently keeps the last one, so this check does without it."""
    assert [error["reason"] for error in judge(text)["errors"]] == ["DuplicateField"]


def test_deep_nesting(judge):
    for depth in (10, 900, 5000, 100000):
        verdict = judge('{"name":"a","target":{"type":"null","x":' + "[" * depth + "]" * depth + '},"size":512}')
        assert not verdict["good"]
        assert verdict.get("malformed") or [error["pointer"] for error in verdict["errors"]] == ["/target/x"]
