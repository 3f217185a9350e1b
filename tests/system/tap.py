"""What the system tests share: functions named test_* are run in turn and told as TAP."""
import sys
import traceback


class Skip(Exception):
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
