# SPDX-License-Identifier: MIT
"""The name of a device of others is for a tenant like a name that no device has: in the answers to all requests with a name,
and in their time. The requests are those of the OpenAPI document, so none is left out that the API gets later.

A process of the tenant asks: absent_names_probe.py."""
import pathlib
import statistics

NAME = "NAME"  # in a request, stands for the name of a device

_BODIES = {("patch", ""): {"enabled": False}, ("post", "/deliver"): {"path": "/dev/data"}, ("post", "/filesystem"): {"type": "ext4"},
           ("post", "/mount"): {}, ("post", "/unmount"): {}, ("post", "/actions/{action}"): {}}
_ACTIONS = {"post": "scrub"}  # else the id of one
_QUERIES = {"wait": "wait", "timeout": "timeout=1s", "force": "force=true", "dryRun": "dryRun=true", "drop-last-copy": "drop-last-copy=true",
            "accept-backing": "accept-backing=x", "store": "accept-backing=x&store=/target", "accept-write-errors": "accept-write-errors=true"}
_HEADERS = {"If-Match": "*", "If-None-Match": "*", "Interactive-Authorization": "allow"}

# Less than a process, a search for openers or a read of the database takes. Both ways are the same but for the record that is found.
_MICROSECONDS, _PART = 50, 0.25


def _of_operation(document, rest, method, operation, spec):
    target = f"/devices/{NAME}" + rest.replace("{action}", _ACTIONS.get(method, "1"))
    body = spec if (method, rest) == ("put", "") else _BODIES.get((method, rest))
    yield method.upper(), target, body, {}
    for reference in operation.get("parameters", []):
        parameter = document["components"]["parameters"][reference["$ref"].rsplit("/", 1)[1]]
        if parameter["in"] == "query":
            yield method.upper(), f"{target}?{_QUERIES[parameter['name']]}", body, {}
        elif parameter["in"] == "header":
            yield method.upper(), target, body, {parameter["name"]: _HEADERS[parameter["name"]]}


def plain(requests):
    """Those without parameters and headers."""
    return [request for request in requests if "?" not in request[1] and not request[3]]


def requests_about_a_name(document, **spec):
    """All requests with the name of a device: method, target, body, headers. `spec`: of a device that the tenant could have."""
    spec = {"name": NAME, **spec}
    requests = [("POST", "/devices", spec, {}), ("POST", "/devices?wait=ready", spec, {}), ("POST", "/devices", spec, {"If-None-Match": "*"})]
    for path, operations in document["paths"].items():
        if path.startswith("/devices/{name}"):
            rest = path.removeprefix("/devices/{name}")
            for method, operation in operations.items():
                requests += _of_operation(document, rest, method, operation, spec)
    assert len(requests) > 50
    return requests


def program(path, requests, names, rounds):
    """The Python program of the process that asks."""
    text = pathlib.Path(__file__).with_name("absent_names_probe.py").read_text(encoding="utf-8")
    return f"{text}\nprobe({str(path)!r}, {requests!r}, {names!r}, {rounds})\n"


def check_answers(found):
    """The answers for both names are the same, and refuse: one to create it is forbidden, and else it is not found."""
    for result in found:
        method, target, *_ = result["request"]
        others, absent = result["answers"]
        assert others == absent and len(absent) == 1, result
        creates = method == "PUT" or target.partition("?")[0] == "/devices"
        assert absent[0][0] == (403 if creates else 404), result


def _slower(result):
    """1 if the answer takes longer for a device of others than for an absent one, -1 if it takes shorter, 0 if neither.

    Work that is done for the one name alone is done each time. So it shows in the median of the differences, as both are asked
    one after the other, and in the quickest answers, which a busy machine holds up the least."""
    quick, quick_absent = (statistics.quantiles(times, n=10)[0] for times in zip(*result["times"]))
    differences = statistics.median(one - other for one, other in result["times"]), quick - quick_absent
    bound = max(_MICROSECONDS, _PART * quick_absent)
    return (min(differences) >= bound) - (max(differences) <= -bound)


def still_slower(ask, requests):
    """What each of several tries has found slower (or each quicker) for a device of others: the request, and in microseconds the
    median for each name. `ask` makes so many rounds of requests. Only what differed so far is asked again: what is left is no
    chance, on a busy machine neither."""
    signs = {}
    for rounds in (50, 100, 100, 200, 200):
        found = [(result, _slower(result)) for result in ask(requests, rounds)]
        found = [(result, sign) for result, sign in found if sign and signs.setdefault(str(result["request"]), sign) == sign]
        requests = [result["request"] for result, _ in found]
        if not requests:
            return []
    return [(result["request"], *map(statistics.median, zip(*result["times"]))) for result, _ in found]
