# SPDX-License-Identifier: MIT
"""Who may read: root, and those that --readers names. To others every path looks alike."""
import json

import pytest
from api_server import spec
from other_user import NEEDS_ROOT, run_as_user
from server_fixture import reachable

pytestmark = NEEDS_ROOT
GROUP = 4242


def serve(*arguments):
    return reachable(*arguments, device=spec("secret", labels={"customer": "c"}))


@pytest.fixture
def closed():
    """No group may read."""
    yield from serve()


@pytest.fixture
def grouped():
    yield from serve("--readers", str(GROUP))


@pytest.fixture
def everyone():
    yield from serve("--readers", "everyone")


PATHS = ["/devices", "/devices/secret", "/devices/none", "/devices/secret/stats", "/devices/none/stats", "/events", "/metrics",
         "/host", "/readyz", "/targets", "/schemas", "/schemas/device", "/schemas/none", "/openapi.json", "/nothing", "/",
         "/devices?label=customer=c", "/devices?bogus=1", "/devices/secret/recover", "/healthz/", "/healthz?x=1&healthz"]

ASK_ALL = f"""
for target in {PATHS!r}:
    for method in ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "POST", "BREW"):
        if target.startswith("/healthz?") and method in ("GET", "HEAD"):
            continue
        connection = UnixConnection(path)
        connection.request(method, target, json.dumps(spec("secret")) if method in ("PUT", "POST") else None,
                           {{"If-Match": "*", "Accept": "text/html"}})
        response = connection.getresponse()
        body = response.read()
        problem = {{**json.loads(body), "instance": ""}} if body else None
        headers = sorted(name.lower() for name, _ in response.getheaders())
        print(json.dumps([method == "HEAD", response.status, problem, headers]))
"""


def test_to_others_every_path_looks_alike(closed):
    """Whether it exists, whatever the method: one status, one sentence, the same headers."""
    answers = [json.loads(line) for line in run_as_user(closed, ASK_ALL).splitlines()]
    assert {status for _, status, _, _ in answers} == {403}
    assert len({json.dumps([problem, headers]) for head, _, problem, headers in answers if not head}) == 1
    assert len({json.dumps(headers) for head, _, _, headers in answers if head}) == 1
    problem = answers[0][2]
    assert problem["type"] == "urn:ublkd:problem:forbidden" and "secret" not in json.dumps(problem)


HEALTH = """
for method in ("GET", "HEAD"):
    answer = ask(UnixConnection(path), method, "/healthz")
    print(answer.status, answer.body.decode())
"""


def test_others_may_ask_whether_ublkd_runs(closed):
    assert run_as_user(closed, HEALTH) == '200 {"status":"ok"}\n\n200 \n'


LIST = """
answer = ask(UnixConnection(path), "GET", "/devices")
print(answer.status, [item["name"] for item in answer.json["items"]] if answer.status == 200 else answer.json["detail"])
for method, target in (("PUT", "/devices/secret"), ("DELETE", "/devices/secret"), ("POST", "/devices/none/recover")):
    check_problem(ask(UnixConnection(path), method, target, spec("secret") if method == "PUT" else None), 403, "forbidden")
"""


@pytest.mark.parametrize("groups", [[GROUP], [1, 2, GROUP], [*range(5000, 5900), GROUP]], ids=["one", "three", "901"])
def test_the_group_may_read_and_not_change(grouped, groups):
    """The kernel says which groups a client is in, however many these are."""
    assert run_as_user(grouped, LIST, groups=groups) == "200 ['secret']\n"


def test_the_first_group_of_a_client_counts(grouped):
    assert run_as_user(grouped, LIST, uid=GROUP) == "200 ['secret']\n"


@pytest.mark.parametrize("groups", [[], [1, 2], [*range(5000, 5900)]], ids=["none", "two", "900"])
def test_other_groups_may_not_read(grouped, groups):
    output = run_as_user(grouped, LIST, groups=groups)
    assert output.startswith("403 ") and "ublk" in output


def test_everyone_may_read_if_the_policy_says_so(everyone):
    assert run_as_user(everyone, LIST) == "200 ['secret']\n"
    policy = everyone.ask("GET", "/host").json["policy"]
    assert (policy["readers"], policy["readersGroup"]) == ("everyone", None)


def test_root_may_read_without_being_in_the_group(grouped):
    assert grouped.ask("GET", "/devices").json["items"][0]["name"] == "secret"
    policy = grouped.ask("GET", "/host").json["policy"]
    assert (policy["readers"], policy["readersGroup"]) == ("group", "ublk")
