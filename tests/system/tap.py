# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: functions named test_* are run in turn and told as TAP."""
import sys
import traceback
import unittest


class Skip(unittest.SkipTest):
    """Raised by a test that cannot run here; its text says why."""


def run(tests):
    """Run {name: function}, as given by vars() of a test file; ends the program."""
    chosen = [(n, f) for n, f in tests.items() if n.startswith("test_") and callable(f)]
    print(f"1..{len(chosen)}", flush=True)
    failed = False
    for number, (name, function) in enumerate(chosen, 1):
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}", flush=True)
        except Exception:  # one broken test must not hide the others
            failed = True
            print(f"not ok {number} - {name}", flush=True)
            for line in traceback.format_exc().splitlines():
                print(f"# {line}", flush=True)
    sys.exit(1 if failed else 0)


class Result(unittest.TestResult):
    """Tells each case of unittest as a line of TAP; a case with logs() tells them when it fails."""

    number = 0

    def tell(self, word, test, more="", lines=()):
        self.number += 1
        print(f"{word} {self.number} - {test.id().removeprefix('__main__.')}{more}", flush=True)
        for line in lines:
            print(f"# {line}", flush=True)

    broken = None  # the case of which a subtest has failed

    def addSuccess(self, test):
        self.tell("ok", test)

    def addSubTest(self, test, subtest, err):
        """A case fails once, with the first of its subtests that does; more of them are told below it."""
        super().addSubTest(test, subtest, err)
        if err is None:
            return
        lines = [str(subtest)] + "".join(traceback.format_exception(*err)).splitlines()
        if self.broken is test:
            print("\n".join(f"# {line}" for line in lines), flush=True)
            return
        self.broken = test
        self.tell("not ok", test, lines=lines + (test.logs().splitlines() if hasattr(test, "logs") else []))

    def addSkip(self, test, reason):
        self.tell("ok", test, f" # SKIP {reason}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        if self.broken is test:  # after a subtest of it: told once
            return
        lines = "".join(traceback.format_exception(*err)).splitlines()
        logs = test.logs().splitlines() if hasattr(test, "logs") else []
        self.tell("not ok", test, lines=lines + logs)

    addError = addFailure


def run_cases(names):
    """Run the unittest cases of the program itself, or those named; ends the program."""
    main, loader = sys.modules["__main__"], unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names, main) if names else loader.loadTestsFromModule(main)
    print(f"1..{suite.countTestCases()}", flush=True)
    result = Result()
    suite.run(result)
    sys.exit(0 if result.wasSuccessful() else 1)
