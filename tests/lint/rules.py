# SPDX-License-Identifier: MIT
"""What the source must keep to, checked without compiling it: who may include whom (docs/architecture.md), and
the conventions that a compiler does not know. Each rule takes a path relative to the root of the tree and the
file's text, and yields (line, sentence)."""

import re
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

from dialect import DIALECT
from rooms import QUOTED

LINES_MAX = 600
COLUMNS_MAX = 140  # of tables that clang-format leaves alone; it breaks all other lines earlier
LICENCE = "/* SPDX-License-Identifier: MIT */\n"

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)

# Functions of facts: no I/O, no clock.
PURE = [
    "ublkd/partitions/partition_check.[ch]",
    "ublkd/partitions/partition_steps.[ch]",
    "ublkd/plan/plan.[ch]",
    "ublkd/plan/backoff.[ch]",
    "ublkd/plan/attempt.[ch]",
    "ublkd/plan/claims.[ch]",
    "ublkd/plan/progress.[ch]",
    "ublkd/plan/worker_growth.[ch]",
    "ublkd/plan/worker_messages.[ch]",
    "ublkd/reconcile/view/*",
]
PURE_SYSTEM = ["assert.h", "errno.h", "limits.h", "stdbool.h", "stddef.h", "stdint.h", "string.h"]
# Those of view/ also write sentences.
PURE_SENTENCES = ["ublkd/reconcile/view/*"]
SENTENCES_SYSTEM = ["stdio.h", "stdlib.h", "sys/sysmacros.h"]
IMPURE = [f"ublkd/base/{name}.h" for name in ("clock", "file_io", "log", "reading")]
FILE_CALLS = (
    r"\b(?:[fl]?stat(?:at|x|v?fs)?|open(?:at2?|dir)?|fopen|access|faccessat|readlink(?:at)?|scandir|read_whole\w*"
    r"|read_(?:text|line|number|device)_at|host_read_(?:room|sizes)|device_store_check)\s*\("
)

UAPI = ["ublkd/kernel/ublk_uapi.h", "linux/ublk_cmd.h"]
UAPI_USERS = ["ublkd/driver/ublk_ctl*", "targets/worker/*", "targets/worker/*/*", "ublkd/kernel/ublk_uapi.h"]

# Failures are logged where they end: by the mains, the reconciler (and its steps), the server's own life. A worker's
# log is written to that of ublkd.
LOGGERS = [
    "ublkd/base/log.[ch]",
    "ublkd/tasks/declared_devices.c",
    "ublkd/main.c",
    "ublkd/manager.c",
    "ublkd/tasks/config_reload.c",
    "ublkd/tasks/disk_marks.c",
    "ublkd/tasks/driver_keeper.c",
    "ublkd/tasks/manager_reports.c",
    "ublkd/tasks/optional_parts.c",
    "ublkd/tasks/access_groups.c",
    "ublkd/tasks/runtime_guard.c",
    "ublkd/tasks/tenant_policy.c",
    "ublkd/tasks/program_choice.c",
    "ublkd/tasks/worker_upgrade.c",
    "ublkd/reconcile/reconciler.c",
    "ublkd/reconcile/device_turn.c",
    "ublkd/reconcile/event_journal.c",
    "api/http/http_server.c",
    "api/http/audit.c",
    "ublkd/workers/worker_log.c",
    "targets/worker/main.c",
    "targets/worker/messages.c",
    "targets/worker/report.c",
    "targets/worker/steps.c",
]

PRODUCT = {"ublkd", "api", "targets", "ublkctl", "units", "volumes"}  # folders at the root


def fits(path, patterns):
    """Whether a path fits one of the patterns; a '*' does not match a '/'."""
    return any(
        path.count("/") == pattern.count("/") and fnmatchcase(path, pattern) for pattern in patterns
    )


def is_product(path):
    return path.split("/")[0] in PRODUCT


def folder_of(path):
    return path.rsplit("/", 1)[0]


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def without_comments(text):
    """The same length and lines, with comments and string literals blanked."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def without_licence(text):
    return text.removeprefix(LICENCE)


def includes(text):
    """(line, name, quoted) of each #include."""
    for match in INCLUDE.finditer(text):
        yield line_of(text, match.start()), match.group(1) or match.group(2), match.group(1) is not None


def who_includes_whom(path, text):
    allowed = next((rule for pattern, rule in QUOTED if fits(path, [pattern])), None)
    if allowed is None:
        if is_product(path) and path.endswith((".c", ".h")):
            yield 1, "has no row in QUOTED (tests/lint/rooms.py), which says what it may include"
        return
    folder = path.rsplit("/", 1)[0]
    patterns = allowed[1:] if allowed[:1] == ["!"] else allowed + [f"{folder}/*"]
    for line, name, quoted in includes(text):
        if quoted and not fits(name, patterns):
            yield line, f'may not include "{name}"; it sees {", ".join(patterns)} (paths from the root)'


# GET /host is for clients that see all devices.
READ_BY_ADMINISTRATORS = ["api/resources/host_devices.c"]


def pure_files_do_no_io(path, text):
    if not fits(path, PURE):
        return
    system = PURE_SYSTEM + (SENTENCES_SYSTEM if fits(path, PURE_SENTENCES) else [])
    for line, name, quoted in includes(text):
        if name not in system and not (quoted and name not in IMPURE):
            yield line, f"is pure and may not include {name}"
    for match in re.finditer(FILE_CALLS, without_comments(text)):
        yield line_of(text, match.start()), "is pure and calls the file system; its caller hands it what it needs"


def who_sees_the_uapi(path, text):
    if not is_product(path) or fits(path, UAPI_USERS):
        return
    for line, name, _ in includes(text):
        if name in UAPI:
            yield line, f"may not see the ublk UAPI ({name}); only ublkd/driver/ublk_ctl* and targets/worker do"


def shows_no_message_of_others(path, text):
    """A tenant may not read every sentence of a status: device_status_message() knows who reads."""
    if not fits(path, ["api/*", "api/*/*"]) or fits(path, READ_BY_ADMINISTRATORS):
        return
    for match in re.finditer(r"\bstatus(?:\.|->)message\b", without_comments(text)):
        yield line_of(text, match.start()), "shows a message to whom it may; call device_status_message() with the reader"


def is_short(_path, text):
    lines = without_licence(text).count("\n")
    if lines > LINES_MAX:
        yield LINES_MAX, f"has {lines} lines; past {LINES_MAX}, find the second purpose and give it a file"


def is_narrow(path, text):
    if not is_product(path):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > COLUMNS_MAX:
            yield number, f"has {len(line)} columns; break it at {COLUMNS_MAX} at most"


def names_its_licence(_path, text):
    if not text.startswith(LICENCE):
        yield 1, f"does not open with {LICENCE.strip()}"


def says_its_purpose(_path, text):
    comment = re.match(r"/\*(.*?)\*/|//([^\n]*)", without_licence(text), re.DOTALL)
    if not comment or not (comment.group(1) or comment.group(2) or "").strip(" *\n\t"):
        yield 1, "does not open with a comment that says its purpose"


def who_logs(path, text):
    if not is_product(path) or fits(path, LOGGERS):
        return
    for match in re.finditer(r"\blog_(?:record|line|errno|error|warning|info|debug)\s*\(", without_comments(text)):
        yield line_of(text, match.start()), "logs; only the mains and the reconciler do, others return the error"


# Of names in C: a function sends, prints or reports, and a sentence may still name what the kernel says.
DIALECT_NAMES = re.compile(r"\bsay\s*\(|\b(?:\w+_)?says?_\w+|\b\w+_says?\b", re.IGNORECASE)
PLAIN_TEXTS = [".ci/*", ".githooks/*", "bench/[!r]*", "*.cmake", "*.in", "*.json", "*.md", "*.py", "*CMakeLists.txt", "check", "packaging/*", "quickstart", "scripts/*", "tests/*/run", "tests/vm/guest/*", "units/*"]
# They quote these words.
DIALECT_USERS = ["scripts/check-subject", *(f"tests/lint/{name}.py" for name in ("dialect", "rules", "rules_test", "subject_test"))]


def speaks_plainly(path, text):
    """Reads identifiers as well: a test is named by a sentence."""
    if path in DIALECT_USERS:
        return
    names = DIALECT_NAMES.finditer(without_comments(text)) if path.endswith((".c", ".h")) else ()
    for match in [*DIALECT.finditer(text.replace("_", " ")), *names]:
        yield line_of(text, match.start()), f'says "{match.group()}": name the actor (CONTRIBUTING.md, Language)'


# A comment of a header right above a function.
FUNCTION_COMMENT = re.compile(r"^/\*((?:[^*]|\*(?!/))*)\*/\n(?!typedef)[a-z][^;{}()#]*\(", re.MULTILINE)
# It begins with a verb in the third person, or a later sentence does.
THIRD_PERSON = re.compile(r"[\s*]*(?!Always|As|Its|This)(Is|[A-Z][a-z]*[^\Ws]s) |.*?\b(Returns)\b", re.DOTALL)


def headers_are_imperative(path, text):
    """A comment that says what the function does begins with the imperative, as all others do."""
    if not is_product(path) or not path.endswith(".h"):
        return
    for match in FUNCTION_COMMENT.finditer(text):
        verb = THIRD_PERSON.match(match.group(1))
        if verb:
            yield line_of(text, match.start()), f'says "{verb.group(1) or verb.group(2)}" above a function; begin with the imperative'


def does_not_sleep(path, text):
    if not is_product(path):
        return
    for match in re.finditer(r"\b(?:u|nano|clock_nano)?sleep\s*\(", without_comments(text)):
        yield line_of(text, match.start()), "sleeps; a deadline is an event source"


def asks_no_name_service(path, text):
    """ublkd has one loop, and a name service may be a server that does not answer."""
    if not fits(path, ["ublkd/*", "ublkd/*/*", "ublkd/*/*/*", "api/*", "api/*/*"]):
        return
    functions = r"\b(?:get(?:gr|pw)(?:nam|[ug]id|ent)(?:_r)?|getgrouplist|initgroups|getaddrinfo|gethostby\w+)\s*\("
    for match in re.finditer(functions, without_comments(text)):
        yield line_of(text, match.start()), "asks a name service, which can hang; read what is needed before the loop"


# Files of the supervisor that name /proc, and do not read another process's there on the loop.
PROC_USERS = [
    "ublkd/base/fd_path.h",  # its own descriptors
    "ublkd/base/namespace.c",  # its own namespaces
    "ublkd/tasks/program_choice.c",  # before the loop: its own program
    "ublkd/manager.c",  # where disk_search looks, in a process of its own
    "ublkd/cgroups/group_place.c",  # its own group and namespace, which hang behind nothing
    "ublkd/cgroups/group_wait.c",  # in a process of its own, after the end of ublkd
    "ublkd/workers/worker_proc_end.c",  # the state of threads, behind which nothing hangs
    "ublkd/disk_users/disk_users.c",  # in that process
    "ublkd/disk_users/aside.c",  # its own thread, in that process
    "ublkd/host/foreign_scan.c",  # where it looks, in a process apart
    "ublkd/partitions/partition_scan.c",  # its own program, in a process apart
    "ublkd/driver/ublk_ctl.c",  # the program that the helper is executed from
    "ublkd/driver/ublk_ctl_check.c",  # in the helper
    "ublkd/offload/proc_spawn.c",  # the program that runs
    "ublkd/paths/path_watcher.c",  # in the path watcher
    "ublkd/nodes/delivery_process.c",  # in a process of its own
    "ublkd/nodes/mount_clone.c",  # in a process of its own
    "ublkd/nodes/recall_here.c",  # the same
    "ublkd/nodes/recall_process.c",  # the same
    "ublkd/filesystems/filesystem_program.c",  # the same
    "ublkd/filesystems/filesystem_walls.c",  # the same
    "ublkd/nodes/process_ids.c",  # the state of a process, without its memory map
    "ublkd/filesystems/filesystem_mounts.c",  # its own mounts, of which the kernel has the list
    "ublkd/peers/peer_cgroup.c",  # a name that the kernel has: no memory map, and no file system is asked
    "ublkd/peers/peer_home.c",  # where links of a process lead: no memory map, and no file system is asked
    "ublkd/peers/peer_path.c",  # in a process apart
    "ublkd/runtime/runtime_dir.c",  # addresses of sockets, by its own descriptor of their directory
    "api/http/listen.c",  # the same
    "api/http/own_time.c",  # counters of its own thread
    "api/metrics/metrics_process.c",  # its own: see there
]


def reads_no_proc(path, text):
    """What /proc tells of a process can hang behind it (its memory map's lock), and ublkd has one loop."""
    if not fits(path, ["ublkd/*", "ublkd/*/*", "ublkd/*/*/*", "api/*", "api/*/*"]) or fits(path, PROC_USERS):
        return
    for match in re.finditer(r'"/proc\b', re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.DOTALL)):
        yield line_of(text, match.start()), "names /proc; a process apart (apart.h) looks there"


def metrics_touch_no_file(path, text):
    """Everybody may read /metrics, and the loop prints them: a file system that does not answer would stop ublkd."""
    if not path.startswith("api/metrics/") or fits(path, PROC_USERS):
        return
    for match in re.finditer(FILE_CALLS, without_comments(text)):
        yield line_of(text, match.start()), "calls the file system; a process apart (state_look.h) does that"


# Texts for people, by the names of the variables and members that hold them. The name of a holder is what ps(1) shows of it.
PEOPLES_TEXT = r"\b(?:(?:message|sentence|detail|cause|advice|meaning)(?:_\w+)?|(?:\w+_)?holder(?:->|\.)name)\b"
# Reasons are values in ublkd; to a client, which has JSON, they are words.
REASON_TEXT = r"\breasons?\b"
LOOKS_INTO_TEXT = re.compile(
    r"\b(?:strn?cmp|strn?casecmp|str(?:case)?str|strchrnul|strr?chr|strpbrk|strc?spn|memcmp|memmem|sscanf|fnmatch|regexec)\s*\("
)
# What cuts or compares such a text without deciding by what it says.
TEXT_USERS = ["ublkd/base/sentence.c", "ublkd/model/reason.c"]


def arguments_of(text, start):
    """The text between the parenthesis that ends at `start` and the one that closes it."""
    depth, end = 1, start
    while end < len(text) and depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[start : end - 1]


def decides_by_no_text(path, text):
    """What a sentence says is for people: a decision reads an enum, a number, a field."""
    if not is_product(path) or fits(path, TEXT_USERS):
        return
    client = path.startswith("ublkctl/")
    words = re.compile(PEOPLES_TEXT if client else f"{PEOPLES_TEXT}|{REASON_TEXT}")
    code = without_comments(text)
    for match in LOOKS_INTO_TEXT.finditer(code):
        if words.search(arguments_of(code, match.end())):
            yield line_of(text, match.start()), (
                "decides by a text that is meant for people; use an enum or a field (reasons: ublkd/model/reason.h),"
                " or sentence_equal() to see whether two are the same"
            )


# The parts of struct managed_device and struct reconciler, and who may touch each; in ublkd/reconcile/. device_PART.c always may.
PRIVATE_PARTS = {
    "action": [],
    "claim": [],
    "claims": ["backing/device_claim.c"],
    "devices": ["parts/reconciler_devices.c"],
    "errors": [],
    "faults": [],
    "group": [],
    "first": ["device_publish.c", "device_turn.c", "reconciler.c"],
    "keys": [],
    "image": [],
    "index": ["parts/device_keys.c"],
    "handled": ["device_turn.c", "reconciler.c"],
    "lost": ["backing/device_claim_lost.c"],
    "node": [],
    "openers": [],
    "partitions": [],
    "path": [],
    "preflight": [],
    "cdi": [],
    "private": [],
    "program": [],
    "progress": [],
    "queue": ["device_turn.c", "parts/reconciler_queue.c", "reconciler.c"],
    "release": [],
    "shared": [],
    "space": [],
    "words": [],
    "turn": ["device_turn.c", "worker/device_worker.c", "parts/reconciler_queue.c", "reconciler.c"],
}
# Parts that all may read, and who may change each.
SHOWN_PARTS = {
    "attempt": ["ublkd/plan/attempt.c"],  # no file of the room: they call it
    "backing": ["backing/device_backing.c", "backing/kept_store.c", "backing/store_refusal.c"],
    "cpus": ["disk/device_cpus.c"],
    "note": ["parts/device_note.c"],
    "process": ["worker/device_worker.c"],
    "step": ["parts/device_step.c", "device_add.c", "device_steps.c", "device_turn.c", "reconciler.c"],
    "timeout": ["disk/device_timeout.c"],
    "view": ["device_add.c", "device_turn.c", "view/turn_view.c"],
}


def leaves_parts_to_their_files(path, text):
    room = "ublkd/reconcile/"
    if not path.startswith(room) or not path.endswith(".c"):
        return
    name, code = path.removeprefix(room), without_comments(text)
    for match in re.finditer(r"->(\w+)\.(?=\w)|=\s*&[\w>-]*->(\w+);", code):
        part = match.group(1) or match.group(2)
        own = name.endswith(f"/device_{part}.c")
        if part in PRIVATE_PARTS and not own and name not in PRIVATE_PARTS[part]:
            owners = ", ".join(PRIVATE_PARTS[part]) or f"device_{part}.c"
            yield line_of(text, match.start()), f"touches the part `{part}`, which is private to {owners}"
    for match in re.finditer(r"->(\w+)\.[\w.]+\s*(?:=(?!=)|[-+|&]=|\+\+|--)", code):
        part = match.group(1)
        if part in SHOWN_PARTS and name not in SHOWN_PARTS[part]:
            yield line_of(text, match.start()), f"changes the part `{part}` of a device; {SHOWN_PARTS[part][0]} does that"


def parts_are_included_by_their_headers(path, text):
    """The struct of X_part.h is complete for those who include X.h or managed_device.h."""
    name = path.rsplit("/", 1)[-1]
    if name == "managed_device.h" or name.endswith("_part.h"):
        return
    for line, included, _ in includes(text):
        header = included.rsplit("/", 1)[-1]
        if header.endswith("_part.h") and name != header.replace("_part.h", ".h"):
            yield line, f'includes "{included}"; include {header.replace("_part.h", ".h")}'


# extern_is_in_headers() looks at the C files of these folders.
EXTERN_IN_HEADERS = PRODUCT | {"tests"}
# A declaration at the margin: of a function, or, with `extern`, of anything.
BARE_DECLARATION = re.compile(
    r"^(?:extern\b|(?!typedef\b|static\b|_Static_assert\b)[a-z][\w \n*]*?[ *]\w+\([^;{}]*\)[^;{}=]*;)", re.MULTILINE
)


def extern_is_in_headers(path, text):
    """A C file that declares what another one defines depends on it, and no #include shows that. Tests also declare functions
    for --wrap of the linker, and those that they put in the place of others."""
    if not path.endswith(".c") or path.split("/")[0] not in EXTERN_IN_HEADERS:
        return
    code = without_comments(text)
    for match in BARE_DECLARATION.finditer(code):
        if is_product(path) or match.group() == "extern":
            yield line_of(text, match.start()), "declares what another file defines; include the header that declares it"


RULES = [
    extern_is_in_headers,
    leaves_parts_to_their_files,
    parts_are_included_by_their_headers,
    decides_by_no_text,
    reads_no_proc,
    metrics_touch_no_file,
    asks_no_name_service,
    who_includes_whom,
    pure_files_do_no_io,
    who_sees_the_uapi,
    shows_no_message_of_others,
    is_short,
    is_narrow,
    names_its_licence,
    says_its_purpose,
    who_logs,
    does_not_sleep,
    speaks_plainly,
    headers_are_imperative,
]


UNIT_TESTS = "tests/unit/"


def tracked_files(root, patterns):
    """Paths of all such files that git knows, relative to the root; without git all that are there."""
    git = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "ls-files", *patterns],
        cwd=root, capture_output=True, text=True, check=False,
    )
    if git.returncode == 0:
        names = git.stdout.splitlines()
    else:
        names = [str(p.relative_to(root)) for pattern in patterns for p in Path(root).rglob(pattern)]
    return sorted(name for name in names if (Path(root) / name).is_file() and not name.startswith("build"))


def tracked_c_files(root):
    return tracked_files(root, ["*.c", "*.h"])


def check_text(path, text, rules=None):
    """The faults of one file, as "path:line: sentence"."""
    return [f"{path}:{line}: {sentence}" for rule in rules or RULES for line, sentence in rule(path, text)]


def check_tree(root, rules=None):
    faults = []
    for path in tracked_c_files(root):
        faults += check_text(path, (Path(root) / path).read_text(encoding="utf-8"), rules)
    return faults


def unit_tests_elsewhere(paths):
    """The tests in C below tests/unit that are not in the folder of what they test, which has the same path."""
    rooms = {folder_of(path) for path in paths}
    tests = [path for path in paths if path.startswith(UNIT_TESTS) and path.endswith("_test.c")]
    return [path for path in tests if folder_of(path[len(UNIT_TESTS) :]) not in rooms]


def check_words(root):
    faults = []
    for path in tracked_files(root, PLAIN_TEXTS):
        faults += check_text(path, (Path(root) / path).read_text(encoding="utf-8"), [speaks_plainly])
    return faults
