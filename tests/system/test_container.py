# SPDX-License-Identifier: Apache-2.0
"""Where hosts/container.py cannot work, it says so once, as a skip, and leaves nothing: test_container.py"""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "hosts"))
import container  # noqa: E402 its path is where tap is found
import sandbox  # noqa: E402
import tap  # noqa: E402


class Groups(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        own = container.own_groups
        self.addCleanup(lambda: setattr(container, "own_groups", own))

    def refused(self, places, says):
        container.own_groups = lambda: places
        with self.assertRaisesRegex(unittest.SkipTest, says):
            container.make_groups("host")
        self.assertEqual(os.listdir(self.place), [])

    def test_a_folder_that_is_no_control_group_is_no_place(self):
        self.refused([self.place], "no control group can be joined: .*cgroup.procs")

    def test_what_was_made_before_the_one_that_fails_is_removed(self):
        self.refused([self.place, self.place + "/none"], "no control groups can be made: .*none")

    def test_no_hierarchy_is_a_reason(self):
        self.refused([], "in no control group")


class Once(unittest.TestCase):
    def test_the_first_cause_is_what_every_test_says(self):
        for kind in (AssertionError, OSError, unittest.SkipTest):
            calls = []

            @sandbox.once
            def host():
                calls.append(len(calls))
                raise kind(f"cause {len(calls)}")
            for _ in range(3):
                with self.assertRaisesRegex(kind, "^cause 1$"):
                    host()


if __name__ == "__main__":
    tap.run_cases(sys.argv[1:])
