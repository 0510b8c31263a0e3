# SPDX-License-Identifier: MIT
from server_fixture import open_server, server  # noqa: F401 (pytest finds them by name)
