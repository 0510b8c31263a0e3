# SPDX-License-Identifier: MIT
"""What the tests with the real driver stand on; nothing here is a test."""
