# SPDX-License-Identifier: Apache-2.0
# Completion of sgpd(8) for bash.

_sgpd()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    case $previous in
    -c|--config|--tune|--output)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$current")) ;;
    *) COMPREPLY=($(compgen -W '-c --config --check --tune --output --privacy-spent --help --help-config --version' -- "$current")) ;;
    esac
}
complete -F _sgpd sgpd
