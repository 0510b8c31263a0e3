# SPDX-License-Identifier: MIT
"""Read a dashboard from stdin with Grafana's own schema, and print what it does not take, a line each.

Run it with the Python of scripts/test-venv."""
import json
import sys

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard


def lost(given, taken, path=""):
    """What is not in `taken` as it was given: the schema leaves out what it does not know, without an error."""
    if isinstance(given, dict) and isinstance(taken, dict):
        for key, value in given.items():
            if key in taken:
                yield from lost(value, taken[key], f"{path}/{key}")
            else:
                yield f"{path}/{key}: unknown"
    elif isinstance(given, list) and isinstance(taken, list) and len(given) == len(taken):
        for index, (one, other) in enumerate(zip(given, taken)):
            yield from lost(one, other, f"{path}/{index}")
    elif given != taken:
        yield f"{path}: {given!r} became {taken!r}"


plugins.register_default_plugins()  # panels and queries of Prometheus
text = sys.stdin.read()
for line in lost(json.loads(text), json.loads(JSONEncoder().encode(Dashboard.from_json(json.loads(text))))):
    print(line)
