# SPDX-License-Identifier: MIT
"""A client of the REST API."""

from . import unix_http
from .wait import TIMEOUT, wait_until

_REQUEST_TIMEOUT = 120  # seconds; the daemon's own limits come first


def null_spec(name, size="64MiB", **more):
    """A spec of the null target."""
    return {"name": name, "target": {"type": "null"}, "size": size, **more}


def loop_spec(name, path, target=None, **more):
    """A spec of the loop target; `target` holds more of its options."""
    return {"name": name, "target": {"type": "loop", "path": str(path), **(target or {})}, **more}


def condition_of(device, kind="Ready"):
    """A condition of a device; None: it is not shown."""
    found = [c for c in device["status"]["conditions"] if c["type"] == kind]
    assert len(found) <= 1
    return found[0] if found else None


class Api:
    """The daemon at a Unix socket."""

    def __init__(self, socket):
        self.socket = socket

    def request(self, method, path, **more):
        """Send a request and return the response, whatever it is (see unix_http.request)."""
        return unix_http.request(self.socket, method, path, **{"timeout": _REQUEST_TIMEOUT, **more})

    def stream(self, path, headers):
        """GET what has no end (see unix_http.stream)."""
        return unix_http.stream(self.socket, path, headers, _REQUEST_TIMEOUT)

    def ask(self, method, path, status, **more):
        """Send a request that must be answered with `status`; return the JSON of the answer, if any."""
        response = self.request(method, path, **more)
        wanted = status if isinstance(status, tuple) else (status,)
        assert response.status_code in wanted, (
            f"{method} {path} gave {response.status_code}, not {wanted}: {response.text}"
        )
        if response.status_code >= 400:
            assert response.headers["Content-Type"].startswith("application/problem+json")
            problem = response.json()
            assert problem["status"] == response.status_code and problem["title"] and problem["detail"]
        return response.json() if response.content else None

    def is_ready(self):
        """Whether the daemon answers and has been through its first pass."""
        try:
            return self.request("GET", "/readyz", timeout=10).status_code == 200
        except OSError:
            return False

    def create(self, spec, status=201, wait="ready", timeout="60s"):
        """POST a spec, by default until the disk is there; return the device or the problem."""
        query = f"?wait={wait}&timeout={timeout}" if wait else ""
        return self.ask("POST", f"/devices{query}", status, json=spec)

    def put(self, spec, status=200, wait="ready", timeout="60s"):
        """PUT a spec, by default until the disk is there; return the device or the problem."""
        query = f"?wait={wait}&timeout={timeout}" if wait else ""
        return self.ask("PUT", f"/devices/{spec['name']}{query}", status, json=spec)

    def get(self, name):
        """The device."""
        return self.ask("GET", f"/devices/{name}", 200)

    def phase(self, name):
        """The phase of the device."""
        return self.get(name)["status"]["phase"]

    def delete(self, name, force=False, status=204, drop_last_copy=None):
        """Remove a device and wait for the end of the removal. Also if only its disk has its data."""
        more = ("&force=true" if force else "") + (f"&drop-last-copy={str(drop_last_copy).lower()}" if drop_last_copy is not None else "")
        return self.ask("DELETE", f"/devices/{name}?wait&timeout=60s{more}", status)

    def restart(self, name, status=200, timeout="60s"):
        """Replace the worker, and wait until the disk is served by the new one."""
        return self.ask("POST", f"/devices/{name}/restart?wait=ready&timeout={timeout}", status)

    def names(self):
        """The names of all devices."""
        return [device["name"] for device in self.ask("GET", "/devices?limit=500", 200)["items"]]

    def wait_for(self, name, condition, what, timeout=TIMEOUT):
        """Wait until `condition` is true of the device; return the device."""
        seen = []

        def check():
            seen[:] = [self.get(name)]
            return condition(seen[0])

        wait_until(check, lambda: f"{name} {what}; it is {seen[0]}", timeout)
        return seen[0]

    def wait_phase(self, name, *phases, timeout=TIMEOUT):
        """Wait until the device is in one of the phases; return it."""
        return self.wait_for(
            name, lambda device: device["status"]["phase"] in phases, f"in {' or '.join(phases)}", timeout
        )

    def wait_worker(self, name):
        """Wait until the device has a worker; return it."""
        return self.wait_for(name, lambda device: device["status"]["worker"], "has a worker")

    def wait_other_worker(self, name, pid, timeout=TIMEOUT):
        """Wait until the device is Live with another worker than `pid`; return it."""

        def replaced(device):
            worker = device["status"]["worker"]
            return device["status"]["phase"] == "Live" and worker and worker["pid"] != pid

        return self.wait_for(name, replaced, f"Live with another worker than {pid}", timeout)
