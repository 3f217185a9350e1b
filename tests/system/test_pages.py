# SPDX-License-Identifier: Apache-2.0
"""Every command and every option has its man page, and is offered by the shells: test_pages.py SGPCTL. What a shell
would offer it is asked itself; of one that is not here, only what its file says."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap

SGPCTL = sys.argv[1]
FOLDER = os.path.dirname(SGPCTL)
BASH = """source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_$1; printf '%s\\n' "${COMPREPLY[@]}" """
# _arguments works only where a line is edited: its stand-in says what it was given.
ZSH = """_arguments() { print -rl -- "$@" }; _describe() { print -rl -- ${(P)4} }; compadd() { print -rl -- "$@" }
_files() { :; }
words=("${@:2}"); CURRENT=$#words
source $1
"""


def table():
    return json.loads(subprocess.run([SGPCTL, "--help", "--json"], check=True, stdout=subprocess.PIPE).stdout)


TABLE = table()
COMMANDS = {command["words"]: command for command in TABLE["commands"]}


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def need(shell):
    if shutil.which(shell) is None:
        raise tap.Skip(f"not installed: {shell}")


def said(command, **options):
    done = subprocess.run(command, text=True, check=False, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "LC_ALL": "C.UTF-8"}, **options)
    assert done.returncode == 0 and done.stderr == "", (command[:3], done.returncode, done.stderr)
    return done.stdout.splitlines()


def names_of(command):
    return {option["name"] for option in command["options"]} | {option["name"] for option in TABLE["options"]}


def page_of(words):
    return "sgpctl-" + words.replace(" ", "-")


def test_the_table_tells_all_that_help_does():
    shown = subprocess.run([SGPCTL, "--help"], check=True, text=True, stdout=subprocess.PIPE).stdout
    for words, command in COMMANDS.items():
        assert f"  {words} " in shown and command["summary"] in shown, words
        one = subprocess.run([SGPCTL, *words.split(), "--help"], check=True, text=True, stdout=subprocess.PIPE).stdout
        for option in command["options"]:
            assert f"  {option['name']} {option['value'] or ''}".rstrip() in one, (words, option)
    assert len(COMMANDS) > 20 and sum(len(command["options"]) for command in COMMANDS.values()) > 40


def test_every_command_takes_the_options_of_its_table():
    """None is unknown to the command itself: a flag that is given a value says so, another one wants one."""
    for words, command in COMMANDS.items():
        for option in command["options"]:
            line = [SGPCTL, *words.split(), option["name"] + ("" if option["value"] else "=x")]
            done = subprocess.run(line, text=True, check=False, capture_output=True, timeout=60)
            expected = "needs a value" if option["value"] else "takes no value"
            assert done.returncode == 2 and f"{option['name']} {expected}" in done.stderr, (line, done.stderr)


def test_every_command_and_option_has_its_man_page():
    main = read("sgpctl.1")
    for words, command in COMMANDS.items():
        page = read(page_of(words) + ".1").replace("\\-", "-")
        assert page.startswith('.TH "' + page_of(words).upper()), words
        name = page.split(".SH NAME\n")[1].split("\n")[0].replace("\\(aq", "'").replace("\\(ga", "`")
        assert name == f"{page_of(words)} - {command['summary']}", (words, name)
        for option in names_of(command):
            assert f"\n\\fB{option}\\fP" in page, (words, option)
        for choice in command["choice"]:
            assert f"\n\\fB{choice['word']}\\fP" in page, (words, choice)
        assert f".BR {page_of(words)} (1)" in main.replace("\\-", "-"), words
    for number, text in enumerate(TABLE["exit_statuses"]):
        assert f".B {number}\n{text.split()[0]}" in main, text


def test_the_pages_are_set_without_a_word():
    need("man")
    need("groff")
    for words in ["", *COMMANDS]:
        page = os.path.join(FOLDER, "sgpctl.1" if words == "" else page_of(words) + ".1")
        said(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page])


def bash(*words, folder=FOLDER):
    return set(said(["bash", "--norc", "-c", BASH, "bash", os.path.join(folder, words[0] + ".bash"), *words]))


def test_bash_offers_them():
    need("bash")
    assert {words.split()[0] for words in COMMANDS} == bash("sgpctl", "")
    assert bash("sgpctl", "--json", "-n", "n0", "pre") == {"predict"}
    for words, command in COMMANDS.items():
        assert names_of(command) == bash("sgpctl", *words.split(), "-"), words
        for option in command["options"]:
            if option["words"]:
                assert set(option["words"].split()) == bash("sgpctl", *words.split(), option["name"], ""), option
        if command["choice"]:
            assert {choice["word"] for choice in command["choice"]} == bash("sgpctl", *words.split(), ""), words
    assert bash("sgpctl", "topology", "") == {"check", "show", "generate", "sign", "verify", "push", "rollback", "log", "diff"}
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "fleet.dot"), "w").close()
        for line in (("topology", "check"), ("simulate",), ("simulate", "x.dot", "--trace"), ("-s",)):
            assert bash("sgpctl", *line, f"{folder}/fl") == {f"{folder}/fleet.dot"}, line


def test_fish_offers_them():
    text = read("sgpctl.fish")
    for words, command in COMMANDS.items():
        for option in command["options"]:
            assert f"__sgpctl_is \"{words}\"' -l {option['name'][2:]} " in text + " ", (words, option)
    need("fish")

    def offered(line):
        loaded = f"source {FOLDER}/sgpctl.fish; complete -C '{line}'"
        with tempfile.TemporaryDirectory() as home:
            return {found.split("\t")[0] for found in said(["env", f"HOME={home}", "fish", "--no-config", "-c", loaded])}
    assert {words.split()[0] for words in COMMANDS} <= offered("sgpctl ")
    assert {"check", "show", "generate"} <= offered("sgpctl topology ")
    for words, command in COMMANDS.items():
        assert {name for name in names_of(command) if name[1] == "-"} <= offered(f"sgpctl {words} --"), words
        for choice in command["choice"]:
            assert choice["word"] in offered(f"sgpctl {words} "), choice
    assert {"round:", "finished"} <= offered("sgpctl -n n0 wait --for ")


def test_zsh_offers_them():
    text = read("_sgpctl")
    for words, command in COMMANDS.items():
        mine = text.split(f"    '{words}')\n")[1].split(") ;;")[0]
        for option in command["options"]:
            assert re.search(rf"'\*?{option['name']}\[", mine), (words, option)
    need("zsh")

    def offered(*line):
        return "\n".join(said(["zsh", "-f", "-c", ZSH, "zsh", os.path.join(FOLDER, "_sgpctl"), *line]))
    for words, command in COMMANDS.items():
        specs = offered("sgpctl", "-n", "n0", *words.split(), "")
        for option in command["options"]:
            assert re.search(rf"^\*?{option['name']}\[", specs, re.MULTILINE), (words, option)
        for choice in command["choice"]:
            assert choice["word"] in specs, choice
    assert "-n[the daemon" in offered("sgpctl", "")


def test_shells_offer_the_options_of_sgpd():
    daemon = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../daemon")
    with open(os.path.join(daemon, "main.c"), encoding="utf-8") as file:
        names = {"--" + name for name in re.findall(r'^ *\{"([\w-]+)", \w+_argument,', file.read(), re.MULTILINE)}
    assert {"--check", "--config"} < names
    folder = os.path.join(daemon, "completion")
    with open(os.path.join(folder, "sgpd.fish"), encoding="utf-8") as file:
        assert {"--" + name for name in re.findall(r" -l ([\w-]+)", file.read())} == names
    with open(os.path.join(folder, "_sgpd"), encoding="utf-8") as file:
        assert {name.rstrip("=[") for name in re.findall(r"(?<=[{,'])--[\w-]+|(?<=\))--[\w-]+", file.read())} == names
    need("bash")
    assert bash("sgpd", "-", folder=folder) == names | {"-c"}
    with tempfile.TemporaryDirectory() as where:
        open(os.path.join(where, "n0.conf"), "w").close()
        assert bash("sgpd", "--check", "-c", f"{where}/n", folder=folder) == {f"{where}/n0.conf"}


def source(path):
    """The text of a file of the tree."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..", path), encoding="utf-8") as file:
        return file.read()


def numbers(path, pattern):
    """The first number of a pattern in a file of the tree."""
    return re.search(pattern, source(path), re.MULTILINE)[1]


def test_the_version_is_one():
    """A version before a release is less than the release, as Debian (~) and Python (.dev0) say it; packages add a date."""
    version = source("VERSION").strip()
    assert numbers("meson.build", r"^  (version: .*),$") == "version: files('VERSION')"
    assert re.fullmatch(r"\d+\.\d+\.\d+(~git)?", version), version
    assert version.endswith("~git") == (f"## {version.removesuffix('~git')}, not released\n" in source("NEWS.md"))
    assert numbers("debian/changelog", r"\Asgpd \(([^)]+)\)") == version
    for path, pattern in (("python/pyproject.toml", r'^version = "(.+)"'), ("python/sgp/__init__.py", r'^__version__ = "(.+)"')):
        assert numbers(path, pattern) == version.replace("~git", ".dev0"), path
    said = subprocess.run([SGPCTL, "--version"], check=True, text=True, stdout=subprocess.PIPE).stdout
    assert said.split()[1].partition("+")[0] == version, said


def test_symbols_are_in_versions_before_the_release():
    """Packages of a version before a release fulfil what those that link their library depend on."""
    versions = set(re.findall(r"@Base (\S+)$", source("debian/libsgp0.symbols"), re.MULTILINE))
    assert versions and all(version.endswith("~") for version in versions), versions


def test_the_page_on_upgrading_has_the_numbers_of_the_code():
    page = "docs/UPGRADING.md"
    for row, path, pattern in (
            ("ledger", "daemon/store/ledger.c", r"^#define VERSION (\d+)u"),
            ("checkpoint", "lib/train/checkpoint.c", r"^#define VERSION (\d+)u"),
            ("wire", "include/sgp/wire.h", r"^#define SGP_WIRE_VERSION (\d+)u"),
            ("frames to programs", "include/sgp/attach.h", r"^#define SGP_ATTACH_VERSION (\d+)u"),
            ("event journal", "include/sgp/journal.h", r'^#define SGP_JOURNAL_MARK "sgpd events (\d+)')):
        number = numbers(path, pattern)
        assert numbers(page, rf"^\| {row} [^|]*\| (\d+) \|") == number, row
        readers = re.search(rf"^\| {row} [^|]*\| \d+ \| ([^|]*) \|", source(page), re.MULTILINE).group(1)
        assert set(re.findall(r": (\d+)", readers)) == {number}, f"{row}: {readers}"
    assert numbers("python/sgp/protocol.py", r"VERSION = \w+, (\d+)") == \
        numbers("include/sgp/attach.h", r"^#define SGP_ATTACH_VERSION (\d+)u")


def test_what_packages_are_built_with_is_installed_on_a_bare_host():
    """scripts/setup names each package that debian/control builds with, and build-essential, which Debian presupposes."""
    lists = dict(re.findall(r'^(\w+)_packages="([^"]*)"', source("scripts/setup"), re.MULTILINE))
    named = set(" ".join(lists[name] for name in ("build", "demo", "package")).split())
    control = re.search(r"^Build-Depends:\n((?: .*\n)+)", source("debian/control"), re.MULTILINE).group(1)
    needed = {re.match(r"[^ ,]+", line.strip()).group() for line in control.splitlines()}
    brought = {"debhelper-compat": "debhelper", "dh-sequence-installsysusers": "debhelper", "dh-sequence-python3": "dh-python"}
    missing = {brought.get(name, name) for name in needed | {"build-essential"}} - named
    assert not missing, f"scripts/setup does not install {' '.join(sorted(missing))}"


tap.run(dict(vars()))
