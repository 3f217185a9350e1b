# SPDX-License-Identifier: Apache-2.0
"""What docs/ATTACH.md gives to copy, as somebody copies it: with real daemons, in the order of the page; and README's lines on
PyTorch. test_attach_page.py SGPD SGPCTL.

A section is a heading and what follows it to the next. Its Python blocks together are the second half of a script; the first half is
the first block of the page. The page says so itself. A script runs on two nodes, each in a process of its own. A shell block runs
in a directory where this script lies as train.py, or that of the first section if the section has none. Blocks that need a service or
a library which is not there are compiled, and their commands, options and names are looked up."""
import ast
import inspect
import importlib.util
import itertools
import multiprocessing.connection
import os
import re
import shlex
import signal
import subprocess
import sys
import traceback
import unittest
import warnings

os.environ["OMP_NUM_THREADS"] = "1"
import fleet  # noqa: E402
import tls  # noqa: E402
import trackers  # noqa: E402
from attached import AttachTest, nn, sgp, torch  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
PAGE, README = (os.path.join(ROOT, name) for name in ("docs/ATTACH.md", "README.md"))
PAIR = [[(0, 1), (1, 0)]]
ELSEWHERE = {"Trainers of other libraries"}  # tests/python/test_trainers.py runs these, with stand-ins
AT_ONCE = 4  # fleets of two
A_SERVICE = re.compile(r"\b(systemctl|adduser|/etc/sgpd)\b|-n n0\b")  # what a test cannot have


class Section:
    """The blocks below one heading, by language: (line before the block, text)."""

    def __init__(self, page, heading):
        self.page, self.heading, self.blocks = page, heading, {}

    def of(self, language):
        return self.blocks.get(language, [])


def sections_of(path):
    """The sections of a page, by heading."""
    found, section, language = {}, None, None
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            fence = re.fullmatch(r"```(\w*)\n", line)
            if language is None and line.startswith("#"):
                heading = line.lstrip("#").strip()
                section = found[heading] = Section(path, heading)
            elif language is None and fence:
                language, begin, text = fence[1], number, []
            elif fence:
                section.blocks.setdefault(language, []).append((begin, "".join(text)))
                language = None
            elif language is not None:
                text.append(line)
    return found


SECTIONS = sections_of(PAGE)
LINES = sections_of(README)["Your own PyTorch model"]
FIRST = next(section for section in SECTIONS.values() if section.of("python"))
SETUP, *SECOND_HALF = FIRST.of("python")


def script_of(section):
    """Its Python blocks behind the first half."""
    return [SETUP, *(SECOND_HALF if section is FIRST else section.of("python") or SECOND_HALF)]


def compiled(line, code, page=PAGE):
    """A block whose errors name its lines in the page."""
    return compile("\n" * line + code, page, "exec")


# ---- one script, on two nodes


def die_at(step):
    """This process is killed when it has taken so many steps."""
    mix, numbers = sgp.Node.mix, itertools.count(1)

    def mix_or_die(node, **options):
        if next(numbers) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return mix(node, **options)
    sgp.Node.mix = mix_or_die


def act(script, path, folder, tell, killed_at):
    """Run a script as a program of its own; tell what it ended with, or the error."""
    fleet.die_with_parent()
    os.chdir(folder)
    os.environ["SGP_SOCKET"] = path
    torch.set_num_threads(1)
    torch.seed()  # no two processes draw the same, as two programs do not
    warnings.simplefilter("error", sgp.TrainingWarning)
    trackers.install()
    if killed_at:
        die_at(killed_at)
    names = {"__name__": "__main__"}
    try:
        for line, code in script:
            exec(compiled(line, code), names)
        model, node = names["model"], names["node"]
        tell.send({"stopped": node.stopped, "round": node.round, "state": names.get("state"),
                   "accuracy": names["accuracy"](model) if isinstance(model, nn.Sequential) else None})
    except BaseException:
        tell.send(traceback.format_exc())


def scripts():
    """The sections whose scripts run here."""
    return [section for section in SECTIONS.values() if section.of("python") and section.heading not in ELSEWHERE]


@unittest.skipIf(torch is None, "not installed: python3-torch")
class Scripts(AttachTest):
    def begin(self, f, script, killed_at=0):
        """Run a script on all nodes of a fleet, whose daemons listen: a process and an ear for each."""
        context, programs = multiprocessing.get_context("fork"), []
        f.wait("the daemons", lambda: all(node.status() and os.path.exists(self.path(f, node.index)) for node in f.nodes))
        for i in range(f.n):
            ear, mouth = context.Pipe(duplex=False)
            program = context.Process(target=act, args=(script, self.path(f, i), f.directory, mouth, killed_at))
            program.start()
            self.addCleanup(program.join)
            self.addCleanup(program.kill)
            mouth.close()
            programs.append((program, ear))
        return programs

    def end(self, programs):
        """What each ended with; None if it was killed. The first error is raised, while others may still wait."""
        told = {}
        while len(told) < len(programs):
            heard = multiprocessing.connection.wait([ear for _, ear in programs if ear not in told], fleet.PATIENCE)
            self.assertTrue(heard, "the script does not end")
            for ear in heard:
                try:
                    told[ear] = ear.recv()
                except EOFError:
                    told[ear] = None
                self.assertNotIsInstance(told[ear], str, told[ear])
        for program, _ in programs:
            program.join(fleet.PATIENCE)
        return [told[ear] for _, ear in programs]

    def test_every_section(self):
        """All nodes come to a clean end with one model: if neighbours differ, a warning is an error. Several fleets at a time, since
        each waits most of the time; to run one section, name headings in SGP_SECTIONS, with commas between."""
        chosen = [section for section in scripts() if section.heading in os.environ.get("SGP_SECTIONS", section.heading).split(",")]
        for several in (chosen[k:k + AT_ONCE] for k in range(0, len(chosen), AT_ONCE)):
            begun = [(section, self.begin(self.daemons(2, PAIR), script_of(section))) for section in several]
            for section, programs in begun:
                with self.subTest(section.heading):
                    for end in self.end(programs):
                        self.assertTrue(end["stopped"])
                        self.assertGreater(end["round"], 0)
                        self.assertGreater(end["accuracy"] or 1, 0.6, end)

    def test_a_power_cut(self):
        """All are killed in step 50, and the daemons with them: the same script goes on from round 40, in the epoch of that."""
        section = SECTIONS["Save and resume"]
        f = self.daemons(2, PAIR)
        self.assertEqual(self.end(self.begin(f, script_of(section), killed_at=50)), [None, None])
        for node in f.nodes:
            node.end(signal.SIGKILL)
        f.start()
        for end in self.end(self.begin(f, script_of(section))):
            self.assertEqual(end["state"], {"epoch": 40 // 16})


# ---- shell blocks


def check_command(self, words):
    """sgpctl has this command, and the command has these options."""
    while words and words[0] in ("-n", "-s"):
        del words[:2]
    if "--" in words:
        words = words[:words.index("--")]
    name = list(itertools.takewhile(re.compile(r"[a-z][a-z-]*$").match, words))[:2]
    while True:
        said = subprocess.run([tls.SGPCTL, *name, "--help"], text=True, capture_output=True, check=False, timeout=fleet.PATIENCE)
        if said.returncode == 0 or len(name) < 2:
            break
        name.pop()
    self.assertEqual(said.returncode, 0, f"sgpctl {' '.join(words)}: {said.stderr}")
    for option in (word.split("=")[0] for word in words if word.startswith("--")):
        self.assertRegex(said.stdout, rf"(?m)^ *{option}\b|[ \[]{option}\b", words)


def able_blocks(section):
    """The shell blocks of a section that can run here."""
    return [block for _, block in section.of("sh") if not A_SERVICE.search(block)]


@unittest.skipIf(torch is None, "not installed: python3-torch")
class Shell(AttachTest):
    def begin(self, section):
        """Run the shell blocks of a section, in a directory of their own: that, and the shell."""
        folder = self.fleet(1).directory
        os.mkdir(folder + "/bin")
        with open(folder + "/bin/python3", "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        os.chmod(folder + "/bin/python3", 0o755)
        with open(folder + "/train.py", "w", encoding="utf-8") as file:
            file.write("\n".join(code for _, code in script_of(section)))
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "TMPDIR": folder,
                       "PATH": f"{folder}/bin:{os.path.dirname(tls.SGPCTL)}:{os.environ['PATH']}"}
        shell = subprocess.Popen(["sh", "-e", "-c", "\n".join(able_blocks(section))], cwd=folder, env=environment, text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 preexec_fn=fleet.die_with_parent, start_new_session=True)
        self.addCleanup(self.end, shell)
        return folder, shell

    def end(self, shell):
        """A shell that is still running ends with its launch."""
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGTERM)
        shell.wait(fleet.PATIENCE)

    def test_every_block(self):
        """All sections at once. Another run: two runs, and a reset after each."""
        begun = [(section, *self.begin(section)) for section in [LINES, *SECTIONS.values()] if able_blocks(section)]
        self.assertEqual(len(begun), 4)
        for section, folder, shell in begun:
            with self.subTest(section.heading):
                said = shell.communicate(timeout=2 * fleet.PATIENCE)[0]
                self.assertEqual(shell.returncode, 0, said)
                self.assertNotIn("Warning", said)
                if section is FIRST:
                    self.assertIn("model.pt", os.listdir(folder))
                if section.heading == "Another run":
                    for name in ("n0", "n1"):
                        self.assertLessEqual({"run-1", "run-2"}, set(os.listdir(f"{folder}/nodes/{name}")))

    def test_the_configuration_of_a_machine(self):
        (_, text), = SECTIONS["On several machines"].of("ini")
        f = self.fleet(1)
        with open(f.directory + "/fleet.dot", "w", encoding="ascii") as file:
            file.write('digraph { n0 [address="192.0.2.10:7311"]; n1 [address="192.0.2.11:7311"]; n0 -> n1; n1 -> n0 }\n')
        text = text.replace("/etc/sgpd/", f.directory + "/").replace("[node]\n", f"[node]\nstate_directory = {f.directory}/n0\n")
        with open(f.nodes[0].configuration, "w", encoding="ascii") as file:
            file.write(text)
        status, said = f.check()
        self.assertEqual((status, "warning" in said), (0, False), said)

    def test_commands_and_their_options(self):
        """Those of blocks that cannot run, too, and those that the text names."""
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        lines = [line for section in SECTIONS.values() for _, block in section.of("sh") for line in re.split(r"\n|;", block)]
        lines += re.findall(r"`(sgpctl [^`]*)`", page)
        commands = [words[words.index("sgpctl") + 1:] for words in (shlex.split(line, comments=True) for line in lines) if "sgpctl" in words]
        self.assertGreater(len(commands), 12)
        for words in commands:
            with self.subTest(" ".join(words)):
                check_command(self, words)


# ---- names


OWNERS = {"sgp": sgp, "node": sgp.Node, "mixed": sgp.Mixed, "Mixed": sgp.Mixed, "Finished": sgp.Finished, "noise": sgp.FleetNoise,
          "ema": sgp.Ema}


NO_NAMES = {"sgp.pc", "node.c", "sgp.mix", "sgp.wait"}  # files, and marks of the profiler


def has(owner, name):
    """Whether a module or a class has it: as a name, a file of the package, or an attribute that its help describes."""
    if owner is sgp:
        return hasattr(sgp, name) or importlib.util.find_spec("sgp." + name) is not None
    return hasattr(owner, name) or re.search(rf"\b{name}\b", inspect.getdoc(owner)) is not None


def unknown(tree):
    """What a piece of code asks of the package that is not there: names, and keywords of calls."""
    for place in ast.walk(tree):
        if isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute):
            owner = OWNERS.get(getattr(place.func.value, "id", None))
            function = getattr(owner, place.func.attr, None)
            if owner is not None and callable(function):
                taken = inspect.signature(function).parameters
                if not any(parameter.kind == parameter.VAR_KEYWORD for parameter in taken.values()):
                    yield from (f"{ast.unparse(place.func)}({word.arg}=)" for word in place.keywords if word.arg and word.arg not in taken)
        if isinstance(place, ast.Attribute) and isinstance(place.value, ast.Name):
            if place.value.id in OWNERS and not has(OWNERS[place.value.id], place.attr):
                yield ast.unparse(place)


def tree_of(text):
    """A piece of code between backticks, if it is Python: a statement may lack its block."""
    for code in (text, text + " pass", "if True: pass\n" + text):
        try:
            return ast.parse(code)
        except SyntaxError:
            pass
    return None


def pages():
    """Every Markdown page, and the package's docstrings, with a name."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith((".", "build")) and name != "shared"]
        for name in names:
            if name.endswith(".md"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield os.path.relpath(os.path.join(folder, name), ROOT), file.read()
    for name in os.listdir(os.path.join(ROOT, "python/sgp")):
        if name.endswith(".py"):
            with open(os.path.join(ROOT, "python/sgp", name), encoding="utf-8") as file:
                tree = ast.parse(file.read())
            for place in ast.walk(tree):
                if isinstance(place, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                    yield f"python/sgp/{name}", ast.get_docstring(place) or ""


class Names(unittest.TestCase):
    def test_python_blocks(self):
        """All of them, whether they run here or not."""
        for section in [*SECTIONS.values(), LINES]:
            for line, code in section.of("python"):
                with self.subTest(f"{section.page}:{line}"):
                    compiled(line, code, section.page)
                    self.assertEqual(list(unknown(ast.parse(code))), [])

    def test_what_the_text_names(self):
        """`sgp.attach(..., fresh=True)`, say, on any page and in the package's help."""
        count = 0
        for page, text in pages():
            for code in re.findall(r"`+((?:with |if )?(?:%s)\.[^`]+)`" % "|".join(OWNERS), text):
                tree = tree_of(code.strip())
                if tree is not None and code not in NO_NAMES:
                    count += 1
                    self.assertEqual(list(unknown(tree)), [], f"{page}: {code}")
        self.assertGreater(count, 100)

    def test_help_is_enough(self):
        """Everything that the package exports is described, and what it has."""
        for name in sgp.__all__:
            thing = getattr(sgp, name)
            self.assertTrue(inspect.getdoc(thing), name)
            if inspect.isclass(thing):
                for member, value in vars(thing).items():
                    if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                        self.assertTrue(inspect.getdoc(value), f"{name}.{member}")
                for field in getattr(thing, "__dataclass_fields__", {}):
                    self.assertRegex(inspect.getdoc(thing), rf"\b{field}\b", name)

    def test_sections_that_others_run(self):
        self.assertLessEqual(ELSEWHERE, set(SECTIONS))


if __name__ == "__main__":
    tls.main()
