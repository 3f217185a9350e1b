#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Man pages and completions, made of the table of commands that `sgpctl --help --json` prints.

  pages.py SGPCTL TEMPLATE FOLDER NAME ...

Writes the files of these names into FOLDER: sgpctl.1 from its template, sgpctl-COMMAND.1, sgpctl.bash, _sgpctl for
zsh, sgpctl.fish. A command without a name among them, or a name without a command, is an error.
"""
import json
import os
import re
import subprocess
import sys


# ---- man pages ----

def roff(text):
    """A text as roff prints it; pages that it names are bold."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = re.sub(r"([\w.\\-]*\w)\((\d)\)", r"\\%\\fB\1\\fP(\2)", text)
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def paragraphs(text):
    """Lines as paragraphs: those that are indented stay as they are."""
    out, verbatim, fresh = [], False, True
    for line in text.splitlines():
        indented = line.startswith("  ")
        if indented != verbatim and line:
            out += [".PP", ".RS 4", ".nf"] if indented else [".fi", ".RE", ".PP"]
            verbatim, fresh = indented, False
        if not line:
            fresh = True
        elif fresh and not indented:
            out.append(".PP")
            fresh = False
        if line:
            out.append(roff(line[2:] if indented else line))
    return out + ([".fi", ".RE"] if verbatim else [])


def tagged(term, value, text):
    """An entry of a list, whose term is bold and its value italic."""
    return [".TP", f"\\fB{roff(term)}\\fP" + (f" \\fI{roff(value)}\\fP" if value else ""), roff(text) + "."]


def options(table):
    return [line for option in table for line in tagged(
        option["name"], option["value"],
        option["summary"] + ("; may be given several times" if option["repeats"] else ""))]


def statuses(table):
    return [line for number, text in enumerate(table["exit_statuses"]) for line in (".TP", f".B {number}", roff(text) + ".")]


def page_of(command):
    return "sgpctl-" + command["words"].replace(" ", "-")


def head(name, version):
    return f'.TH "{roff(name.upper())}" 1 "" "sgpd {roff(version)}" "User Commands"'


def command_page(table, command, version):
    lines = [head(page_of(command), version), ".SH NAME", roff(f"{page_of(command)} - {command['summary']}"), ".SH SYNOPSIS",
             ".nh", f"\\fB{roff('sgpctl ' + command['words'])}\\fP"
             + roff(command["usage"].removeprefix("sgpctl " + command["words"])), ".hy"]
    if command["help"] or command["choice"]:
        lines += [".SH DESCRIPTION"] + paragraphs(command["help"] or "")
    if command["choice"]:
        lines += [".PP", f"\\fI{roff(command['operands'].split()[0])}\\fP is one of"]
        lines += [line for choice in command["choice"] for line in tagged(choice["word"], None, choice["summary"])]
    lines += [".SH OPTIONS"] + options(command["options"])
    lines += [".PP", "Those of", ".BR sgpctl (1),", "too:"] + options(table["options"])
    lines += [".SH EXIT STATUS"] + statuses(table) + [".PP", roff(table["patience"])]
    return lines + [".SH SEE ALSO", ".BR sgpctl (1),", ".BR sgpd (8),", ".BR sgpd.conf (5)"]


def main_page(table, template, version):
    names = [f".BR {roff(page_of(command))} (1)," for command in table["commands"]]
    parts = {
        "HEAD": [head("sgpctl", version)],
        "OPTIONS": options(table["options"]),
        "COMMANDS": [line for command in table["commands"] for line in (
            ".TP", f"\\fB{roff(command['words'])}\\fP" + roff(f" {command['operands']}".rstrip()),
            roff(command["summary"]) + ";", f"see \\%\\fB{roff(page_of(command))}\\fP(1).")],
        "EXIT_STATUS": statuses(table) + [".PP", roff(table["patience"])],
        "SEE_ALSO": names + [".BR sgpd (8),", ".BR sgpd.conf (5)"],
    }
    return [line for read in template.splitlines() for line in parts.get(read.strip("@"), [read])]


# ---- what completions have in common ----

def second_words(table):
    """The first words that others may follow, and those: {"topology": ["check", ...]}."""
    found = {}
    for command in table["commands"]:
        first, _, second = command["words"].partition(" ")
        if second:
            found.setdefault(first, []).append(second)
    return found


def first_words(table):
    """The first words of commands, each with the summary of the first that it begins."""
    found = {}
    for command in table["commands"]:
        found.setdefault(command["words"].split()[0], command["summary"])
    return found


def kind_of(value, words):
    """What completes a value: "words", "file", "folder", "socket", "node", "program", or None."""
    if words:
        return "words"
    return {"FILE": "file", "DIRECTORY": "folder", "SOCKET": "file", "NAME": "node", "--": "program"}.get(value)


def operand_of(command):
    """The same of the first operand, and its words."""
    words = " ".join(choice["word"] for choice in command["choice"])
    return kind_of((command["operands"].split() or [""])[0], words), words


# ---- bash ----

BASH = """# SPDX-License-Identifier: Apache-2.0
# Completion of sgpctl(1) for bash, made from its table of commands.

_sgpctl_nodes()
{
    local path
    for path in /run/sgpd/*/control.sock{,.owner}; do
        [[ $path == */control.sock.owner ]] && path=${path%/control.sock.owner}.owner
        path=${path%/control.sock}
        echo "${path##*/}"
    done
    for path in /etc/sgpd/*.conf; do
        path=${path##*/}
        echo "${path%.conf}"
    done
}

# What completes this: words, file, folder, node, program; with the words behind it.
_sgpctl_offer()
{
    case $1 in
    words) COMPREPLY+=($(compgen -W "$2" -- "$current"))
        [[ ${COMPREPLY[0]} == *: ]] && compopt -o nospace 2>/dev/null ;;
    file) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$current")) ;;
    folder) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -d -- "$current")) ;;
    node) COMPREPLY+=($(compgen -W "$(_sgpctl_nodes 2>/dev/null | grep -v '[*]')" -- "$current")) ;;
    program) COMPREPLY+=($(compgen -c -- "$current")) ;;
    esac
}

_sgpctl()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= words= i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -n|-s) ((i++)) ;;
        -*) ;;
        *) command=${COMP_WORDS[i]}
            case "$command ${COMP_WORDS[i+1]}" in
            @TWO@) ((i + 1 < COMP_CWORD)) && command+=" ${COMP_WORDS[i+1]}" ;;
            esac
            break ;;
        esac
    done
    case "$command|$previous" in
@VALUES@
    esac
    if [[ $current == -* ]]; then
        case $command in
@OPTIONS@
        esac
        words+=" @SHARED@"
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        return
    fi
    case $command in
    '') _sgpctl_offer words "@FIRST@" ;;
@OPERANDS@
    esac
}
complete -F _sgpctl sgpctl
"""


def shell_command(command):
    return "'" + command["words"] + "'"


def bash(table):
    values = [f"    *'|{option['name']}') _sgpctl_offer {kind_of(option['value'], option['words'])}; return ;;"
              for option in table["options"] if option["value"]]
    rows, operands = [], []
    for command in table["commands"]:
        for option in command["options"]:
            if option["value"]:
                kind = kind_of(option["value"], option["words"])
                offer = f"_sgpctl_offer {kind} '{option['words'] or ''}'; " if kind else ""
                values.append(f"    '{command['words']}|{option['name']}') {offer}return ;;")
        names = " ".join(option["name"] for option in command["options"])
        if names:
            rows.append(f"        {shell_command(command)}) words='{names}' ;;")
        kind, words = operand_of(command)
        if second := second_words(table).get(command["words"]):
            kind, words = "words", " ".join(second)
        if kind:
            operands.append(f"    {shell_command(command)}) _sgpctl_offer {kind} '{words}' ;;")
    two = [f"'{first} {second}'" for first, seconds in second_words(table).items() for second in seconds]
    return (BASH.replace("@TWO@", "|".join(two)).replace("@VALUES@", "\n".join(values))
            .replace("@OPTIONS@", "\n".join(rows)).replace("@OPERANDS@", "\n".join(operands))
            .replace("@SHARED@", " ".join(option["name"] for option in table["options"]))
            .replace("@FIRST@", " ".join(first_words(table)))).splitlines()


# ---- zsh ----

ZSH = """#compdef sgpctl
# SPDX-License-Identifier: Apache-2.0
# Completion of sgpctl(1) for zsh, made from its table of commands.

_sgpctl_nodes() {
    local -a nodes
    nodes=(/run/sgpd/*/control.sock(N:h:t) /run/sgpd/*/control.sock.owner(Ne:'REPLY=${REPLY:h:t}.owner':) /etc/sgpd/*.conf(N:t:r))
    compadd -a nodes
}

_sgpctl() {
    local command
    local -i i=2
    local -a shared commands rest
    shared=(
@SHARED@
    )
    commands=(
@FIRST@
    )
    while (( i < CURRENT )); do
        case $words[i] in
        -n|-s) (( i++ )) ;;
        -*) ;;
        *) break ;;
        esac
        (( i++ ))
    done
    if (( i >= CURRENT )); then
        _arguments $shared '*:command:{ _describe -t commands command commands }'
        return
    fi
    command=$words[i]
    if (( i + 1 < CURRENT )); then
        case "$command $words[i+1]" in
        @TWO@) (( i++ )); command+=" $words[i]" ;;
        esac
    fi
    words=("${(@)words[i,-1]}")
    (( CURRENT -= i - 1 ))
    case $command in
@COMMANDS@
    esac
    _arguments $shared $rest
}

_sgpctl "$@"
"""


def zsh_text(text):
    return re.sub(r"([\[\]:\\])", r"\\\1", text).replace("'", "'\\''")


def zsh_action(kind, words):
    return {"words": f"({words})", "file": "_files", "folder": "_files -/", "node": "_sgpctl_nodes",
            "program": "_normal"}.get(kind, " ")


def zsh_action_of(value, words):
    if words and ":" in words:  # they go on behind the colon
        return "{ compadd -S \"\" " + words.replace(":", "\\:") + " }"
    return zsh_action(kind_of(value, words), words)


def zsh_option(option):
    value = option["value"]
    spec = ("*" if option["repeats"] else "") + option["name"] + f"[{zsh_text(option['summary'])}]"
    return "'" + spec + (f":{zsh_text(value)}:{zsh_action_of(value, option['words'])}" if value else "") + "'"


def zsh(table):
    rows = []
    for command in table["commands"]:
        specs = [zsh_option(option) for option in command["options"]]
        kind, words = operand_of(command)
        if second := second_words(table).get(command["words"]):
            kind, words = "words", " ".join(second)
        if kind:
            every = "*::" if kind == "program" else "1:" if kind == "words" else "*:"
            specs.append(f"'{every}{zsh_text(command['operands'].split()[0] if command['operands'] else 'command')}:{zsh_action(kind, words)}'")
        rows += [f"    {shell_command(command)})", "        rest=("] + [f"            {spec}" for spec in specs] + ["        ) ;;"]
    two = [f"'{first} {second}'" for first, seconds in second_words(table).items() for second in seconds]
    return (ZSH.replace("@TWO@", "|".join(two)).replace("@COMMANDS@", "\n".join(rows))
            .replace("@SHARED@", "\n".join(f"        {zsh_option(option)}" for option in table["options"]))
            .replace("@FIRST@", "\n".join(f"        '{word}:{zsh_text(summary)}'" for word, summary in first_words(table).items()))
            ).splitlines()


# ---- fish ----

FISH = """# SPDX-License-Identifier: Apache-2.0
# Completion of sgpctl(1) for fish, made from its table of commands.

function __sgpctl_command
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case -n -s
                set -e words[1]
            case '-*'
            case '*'
                if contains -- "$words[1] $words[2]" @TWO@
                    echo "$words[1] $words[2]"
                else
                    echo $words[1]
                end
                return
        end
        set -e words[1]
    end
    echo
end

function __sgpctl_is
    set -l command (__sgpctl_command)
    test "$command" = "$argv[1]"
end

function __sgpctl_nodes
    for path in /run/sgpd/*/control.sock
        string replace -r '.*/([^/]+)/[^/]+$' '$1' $path
    end
    for path in /run/sgpd/*/control.sock.owner
        string replace -r '.*/([^/]+)/[^/]+$' '$1.owner' $path
    end
    for path in /etc/sgpd/*.conf
        string replace -r '.*/([^/]+)[.]conf$' '$1' $path
    end
end

complete -c sgpctl -f
"""


def fish_text(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_action(kind, words):
    return {"words": f" -x -a {fish_text(words or '')}", "file": " -r -F", "folder": " -x -a '(__fish_complete_directories)'",
            "node": " -x -a '(__sgpctl_nodes)'"}.get(kind, " -x")


def fish_option(option, condition):
    name = option["name"]
    flag = f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
    action = fish_action(kind_of(option["value"], option["words"]), option["words"]) if option["value"] else ""
    return f"complete -c sgpctl{condition}{flag}{action} -d {fish_text(option['summary'])}"


def fish(table):
    lines = [fish_option(option, "") for option in table["options"]]
    for word, summary in first_words(table).items():
        lines.append(f"complete -c sgpctl -n '__sgpctl_is \"\"' -a {word} -d {fish_text(summary)}")
    for first, seconds in second_words(table).items():
        lines += [f"complete -c sgpctl -n '__sgpctl_is {first}' -a {second}" for second in seconds]
    for command in table["commands"]:
        condition = f" -n '__sgpctl_is \"{command['words']}\"'"
        lines += [fish_option(option, condition) for option in command["options"]]
        kind, words = operand_of(command)
        if kind == "words":
            lines += [f"complete -c sgpctl{condition} -a {choice['word']} -d {fish_text(choice['summary'])}"
                      for choice in command["choice"]]
        elif kind == "program":
            lines.append(f"complete -c sgpctl{condition} -x -a '(__fish_complete_subcommand)'")
        elif kind:
            lines.append(f"complete -c sgpctl{condition} -F")
    two = [fish_text(f"{first} {second}") for first, seconds in second_words(table).items() for second in seconds]
    return FISH.replace("@TWO@", " ".join(two)).splitlines() + lines


# ---- all ----

def main(sgpctl, template, folder, *names):
    def ask(*arguments):
        return json.loads(subprocess.run([sgpctl, *arguments, "--json"], check=True, stdout=subprocess.PIPE).stdout)

    table, version = ask("--help"), re.match(r"[\d.]+", ask("--version")["version"])[0]
    with open(template, encoding="utf-8") as file:
        pages = {"sgpctl.1": main_page(table, file.read(), version), "sgpctl.bash": bash(table), "_sgpctl": zsh(table),
                 "sgpctl.fish": fish(table)}
    for command in table["commands"]:
        pages[page_of(command) + ".1"] = command_page(table, command, version)
    if odd := set(pages) ^ set(names):
        sys.exit(f"pages.py: ctl/meson.build and the table of commands do not agree on {', '.join(sorted(odd))}")
    for name, lines in pages.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
