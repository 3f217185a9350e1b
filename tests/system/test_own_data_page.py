# SPDX-License-Identifier: Apache-2.0
"""The lines of docs/OWN-DATA.md that go from two CSV files to a used model, run as they are: test_own_data_page.py SGPD SGPCTL."""
import contextlib
import csv
import os
import random
import re
import signal
import subprocess
import sys
import tempfile

import fleet
import tap

SGPD, SGPCTL = map(os.path.abspath, sys.argv[1:3])
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/OWN-DATA.md")
HEADING = "## From two files to a used model\n"
LINES_MOST = 46
TIMEOUT_SECONDS = 280
COLUMNS = ["id", "age", "sex", "weight", "diagnosis"]


def lines_of_the_page():
    with open(PAGE, encoding="utf-8") as file:
        section = file.read().split(HEADING)[1].split("\n## ")[0]
    [lines] = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return lines


def write_rows(path, rows, seed, with_label=True):
    """Rows as the page shows them; returns the diagnoses."""
    drawn, labels = random.Random(seed), []
    with open(path, "w", encoding="ascii") as file:
        file.write(",".join(COLUMNS if with_label else COLUMNS[:-1]) + "\n")
        for number in range(1, rows + 1):
            age, weight, sex = drawn.gauss(50, 12), drawn.gauss(70, 9), drawn.choice("fm")
            labels.append("yes" if age + weight + 8 * (sex == "f") > 124 else "no")
            row = [str(number), "%.1f" % age, sex, "" if number % 50 == 7 else "%.2f" % weight, labels[-1]]
            file.write(",".join(row if with_label else row[:-1]) + "\n")
    return labels


@contextlib.contextmanager
def folder():
    """Two files of rows, new rows without a label, and the programs in PATH."""
    with tempfile.TemporaryDirectory(prefix="sgpd-") as home:
        os.mkdir(home + "/bin")
        for program in (SGPD, SGPCTL):
            os.symlink(program, home + "/bin/" + os.path.basename(program))
        write_rows(home + "/a.csv", 300, 1)
        write_rows(home + "/b.csv", 200, 2)
        yield home, write_rows(home + "/new.csv", 150, 3, with_label=False)


def two_ports():
    """The first of two ports in a row that nobody listens on."""
    while True:
        first, second = fleet.free_ports(2)
        if second == first + 1:
            return first


def run(home, lines):
    """Run them in a shell that ends at the first failure; the daemons end with it in any case. Daemons keep what the shell writes to
    open, so that is a file, and the end of the shell is awaited, not the end of what is written."""
    with open(home + "/out", "w+", encoding="utf-8") as out, open(home + "/err", "w+", encoding="utf-8") as err:
        shell = subprocess.Popen(["/bin/bash", "-euo", "pipefail", "-c", lines], cwd=home, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                 start_new_session=True, env={**os.environ, "PATH": home + "/bin:" + os.environ["PATH"]})
        try:
            shell.wait(timeout=TIMEOUT_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
        out.seek(0)
        err.seek(0)
        return shell.returncode, out.read(), err.read()


def logs_of(home):
    for name in ("alice.log", "bob.log"):
        with contextlib.suppress(OSError), open(f"{home}/{name}", encoding="utf-8", errors="replace") as file:
            for line in file.readlines()[-20:]:
                print(f"# {name}: {line}", end="")


def test_the_lines_go_from_two_files_to_predictions():
    """As they stand but for the port, which other tests may have."""
    lines = lines_of_the_page()
    assert lines.count("127.0.0.1:7311+") == 1, lines
    with folder() as (home, truth):
        status, out, err = run(home, lines.replace("7311", str(two_ports())))
        if status != 0:
            logs_of(home)
        waits = [line for line in err.splitlines() if not line.startswith("sgpctl: waiting for finished: ")]
        assert (status, waits) == (0, []), (status, out[-2000:], err)
        for word in ("a.csv: 300 rows, 5 columns", "b.csv: 200 rows, 5 columns", "pooled", "alone", "dpsgd", "alice.conf: written",
                     "bob.conf: written", "the nodes agree on the scaling", "macro_auc"):
            assert word in out, (word, out)
        with open(home + "/predictions.csv", encoding="utf-8", newline="") as file:
            predictions = list(csv.DictReader(file))
        assert len(predictions) == len(truth) == 150, predictions[:2]
        column = next(iter(predictions[0]))
        correct = sum(row[column] == label for row, label in zip(predictions, truth))
        assert correct > 0.85 * len(truth), (correct, predictions[:3])
        for name in ("model.safetensors", "model.onnx"):
            assert os.path.getsize(f"{home}/{name}") > 500, name
        with open(home + "/alice/scale.json", "rb") as alice, open(home + "/bob/scale.json", "rb") as bob:
            assert alice.read() == bob.read()


def test_there_are_about_forty_lines():
    count = lines_of_the_page().count("\n")
    assert 30 <= count <= LINES_MOST, count


if __name__ == "__main__":
    tap.run(vars())
