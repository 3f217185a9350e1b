# SPDX-License-Identifier: Apache-2.0
"""What is compared: a base, and variants of it, from an INI file.

    [compare]
    run = daemons                  ; or simulated
    goal = 0.88                    ; of the test accuracy; simulated: of the error. The table tells what it took
    [base]
    nodes = 4
    topology = one-peer-exponential
    train.epochs = 10              ; SECTION.KEY of sgpd.conf
    [ring]
    topology = all-reduce-ring
    [every 8]
    topology = all-reduce-ring
    train.local_steps = 8

A variant is the base with its own keys in their place. `topology` is a family of `sgpctl topology generate` with its
options, or a DOT file, whose addresses are replaced. `nodes = +1` are one more than the base has, as for a relay.
`simulate` are options of `sgpctl simulate`.
"""
import configparser
import hashlib
import json
import os
import re

RUNS = ("daemons", "simulated")
OWN_KEYS = ("nodes", "topology", "simulate")
NODES_MAX = 64  # on one machine
ROUNDS = 100  # of sgpctl simulate, unless told
NUMBER = r"[0-9]{1,9}(\.[0-9]{1,9})?(e-?[0-9]{1,2})?"


class Failure(Exception):
    """What went wrong, in one line for a person."""


class Invalid(Failure):
    """A plan, or a file that it names, is wrong."""


class Variant:
    """One way to train: its name, and what it says, the base's word included."""

    def __init__(self, name, says):
        self.name = name
        self.says = says

    @property
    def nodes(self):
        return int(self.says["nodes"])

    @property
    def topology(self):
        """The words of the family, or the file."""
        return self.says["topology"].split()

    @property
    def options(self):
        """Of `sgpctl simulate`."""
        return self.says.get("simulate", "").split()

    @property
    def rounds(self):
        """Of `sgpctl simulate`; the last word holds, as there."""
        told = re.findall(r"--rounds[ =]+(\S+)", self.says.get("simulate", ""))
        return int(told[-1]) if told else ROUNDS

    @property
    def keys(self):
        """{(section, key): value} of sgpd.conf."""
        return {tuple(key.split(".", 1)): value for key, value in self.says.items() if key not in OWN_KEYS}

    def digest(self, run):
        """What its result depends on: a result of another one is not its own."""
        says = dict(self.says)
        if os.path.isfile(self.topology[0]):
            with open(self.topology[0], "rb") as file:
                says["file"] = file.read().hex()
        return hashlib.sha256(json.dumps([run, says], sort_keys=True).encode()).hexdigest()[:16]


class Plan:
    """A file, read and checked: `run`, `goal` (None: there is none), and `variants` in its order. `nodes` are the base's, unless None."""

    def __init__(self, path, nodes=None):
        self.path = path
        try:
            with open(path, encoding="utf-8") as file:
                self.text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise Invalid(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from error
        parser = configparser.ConfigParser(interpolation=None, default_section="", delimiters=("=",),
                                           inline_comment_prefixes=(";", "#"))
        parser.optionxform = str
        try:
            parser.read_string(self.text, path)
        except configparser.DuplicateSectionError as error:
            raise Invalid(f"{path}:{error.lineno}: [{error.section}] stands twice; give each variant a name of its own"
                          ) from error
        except configparser.DuplicateOptionError as error:
            raise Invalid(f"{path}:{error.lineno}: {error.option} stands twice in [{error.section}]; keep one"
                          ) from error
        except configparser.MissingSectionHeaderError as error:
            raise Invalid(f"{path}:{error.lineno}: a line before the first section; begin with [base]") from error
        except configparser.ParsingError as error:
            raise Invalid(f"{path}:{error.errors[0][0]}: this is no KEY = VALUE; write one") from error
        self.run, self.goal = self.read_whole(parser)
        base = dict(parser["base"]) if parser.has_section("base") else {}
        if nodes is not None:
            if not re.fullmatch("[0-9]{1,3}", nodes) or not 1 <= int(nodes) <= NODES_MAX:
                raise Invalid(f"--nodes {nodes} is no number of nodes from 1 to {NODES_MAX}")
            base["nodes"] = nodes
        self.check(base, "base")
        names = [name for name in parser.sections() if name not in ("compare", "base")]
        if not names:
            raise Invalid(f"{path}: there is no variant; add a section such as [ring] with topology = all-reduce-ring")
        self.variants = [Variant(name, {**base, **dict(parser[name])}) for name in names]
        for variant in self.variants:
            self.check(dict(parser[variant.name]), variant.name)
            self.check_whole(variant)
            if variant.says["nodes"].startswith("+"):
                self.add_to_base(variant, base)

    def add_to_base(self, variant, base):
        """`nodes = +1`."""
        if "nodes" not in base:
            self.fail(variant.name, "nodes", "[base] does not say how many there are without these")
        variant.says["nodes"] = str(int(base["nodes"]) + int(variant.says["nodes"]))
        self.check({"nodes": variant.says["nodes"]}, variant.name)

    def fail(self, section, key, text):
        raise Invalid(f"{self.path}:{self.line_of(section, key)}: [{section}] {key}: {text}")

    def line_of(self, section, key):
        """Where a key stands; the section's line if it does not."""
        here, found = None, 1
        for number, line in enumerate(self.text.splitlines(), 1):
            header = re.match(r"\s*\[(.*)\]", line)
            if header:
                here = header[1]
                found = number if here == section else found
            elif here == section and re.match(rf"\s*{re.escape(key)}\s*=", line):
                return number
        return found

    def read_whole(self, parser):
        """What is said of the comparison itself: how, and towards what."""
        section = dict(parser["compare"]) if parser.has_section("compare") else {}
        for key in section:
            if key not in ("run", "goal"):
                self.fail("compare", key, "unknown key; there are run and goal")
        run = section.get("run", "daemons")
        if run not in RUNS:
            self.fail("compare", "run", f"'{run}' is neither daemons nor simulated")
        if "goal" not in section:
            return run, None
        goal = section["goal"]
        if not re.fullmatch(NUMBER, goal) or not 0 < float(goal) <= (1 if run == "daemons" else float("inf")):
            self.fail("compare", "goal", f"'{goal}' is no " + (
                "test accuracy, such as 0.88" if run == "daemons" else "error above 0, such as 0.1"))
        return run, float(goal)

    def check(self, says, section):
        """Each key alone."""
        for key, value in says.items():
            if key not in OWN_KEYS and not re.fullmatch(r"[a-z]+\.[a-z_]+", key):
                self.fail(section, key, "unknown key; there are nodes, topology, simulate, and SECTION.KEY of "
                          "sgpd.conf, such as train.epochs")
            if key in ("node.name", "node.state_directory", "topology.file", "network.listen", "control.socket",
                       "train.when_done"):
                self.fail(section, key, "this is set for each node; leave it out")
            number = value.removeprefix("+") if section != "base" else value
            if key == "simulate" and re.search(r"--rounds[ =]+(?![1-9][0-9]{0,8}(\s|$))", value):
                self.fail(section, key, "--rounds takes a number from 1 on")
            if key == "nodes" and not (re.fullmatch("[0-9]{1,3}", number) and 1 <= int(number) <= NODES_MAX):
                self.fail(section, key, f"'{value}' is no number of nodes from 1 to {NODES_MAX}")

    def check_whole(self, variant):
        """What a variant must say, itself or by its base."""
        for key in ("nodes", "topology"):
            if not variant.says.get(key):
                self.fail(variant.name, key, "neither this variant nor [base] says it")
        for key in variant.says:
            if (key == "simulate") if self.run == "daemons" else (key not in OWN_KEYS):
                self.fail(variant.name, key, f"it has no effect with run = {self.run}; leave it out")
