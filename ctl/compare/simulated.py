# SPDX-License-Identifier: Apache-2.0
"""One variant in virtual time: what `sgpctl simulate` tells of each round."""
import json
import subprocess
import tempfile

from daemons import last_word, topology_of
from plan import Failure

class Simulation:
    """A variant, and the file that it runs on."""

    def __init__(self, variant, tools):
        self.variant, self.tools = variant, tools
        self.file = tempfile.NamedTemporaryFile("w", suffix=".dot", encoding="utf-8")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def words(self, *more):
        return [self.tools.sgpctl, "--json", "simulate", self.file.name, *self.variant.options, *more]

    def prepare(self):
        """Write the file."""
        self.file.write(topology_of(self.variant, self.tools.sgpctl))
        self.file.flush()

    def check(self):
        """One round of it, so that nothing begins that is refused later. Of two `--rounds` the last one holds."""
        done = subprocess.run(self.words("--rounds", "1"), text=True, capture_output=True, check=False)
        if done.returncode != 0:
            try:
                said = json.loads(done.stdout.splitlines()[-1])["error"]["message"]
            except (ValueError, KeyError, TypeError, IndexError):
                said = last_word(done)
            raise Failure(f"sgpctl simulate: {said}")

    def train(self, tell):
        """Run it to its end; `tell(part)` now and then. Returns the result: a row a round."""
        rounds, rows, summary = self.variant.rounds, [], None
        with subprocess.Popen(self.words(), text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            try:
                for line in process.stdout:
                    row = json.loads(line)
                    if "summary" in row:
                        summary = row["summary"]
                        continue
                    if "error" in row and "round" not in row:
                        raise Failure(f"sgpctl simulate: {row['error']['message']}")
                    rows.append([row[key] for key in ("round", "time_seconds", "bytes", "error", "disagreement")])
                    tell(min(1.0, row["round"] / rounds))
            except BaseException:
                process.kill()
                raise
        if summary is None:
            raise Failure(f"sgpctl simulate ended with status {process.returncode} without a summary")
        return {"seconds": summary["time_seconds"], "weight": summary["total_weight"], "error": summary["error"],
                "bytes_sent": summary["bytes"] / self.variant.nodes, "rounds": rows}
