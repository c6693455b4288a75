"""``lumctl completion``: the script that lets a shell ask ``lumctl __complete`` for values."""

from typing import Annotated

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest

app = noun_app(NOUNS["completion"].help)

SCRIPTS: dict[str, str] = {
    "bash": """\
# bash completion for lumctl. To load it in every shell, write this to
# ~/.local/share/bash-completion/completions/lumctl
_lumctl() {
    local IFS=$'\\n' line
    COMPREPLY=()
    for line in $(lumctl __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
        if [ "$line" = ":files" ]; then compopt -o default; return; fi
        COMPREPLY+=("${line%%$'\\t'*}")
    done
    [[ "${COMP_WORDS[COMP_CWORD]}" == *,* ]] && compopt -o nospace
    return 0
}
complete -F _lumctl lumctl
""",
    "zsh": """\
#compdef lumctl
# zsh completion for lumctl. To load it in every shell, write this to a file _lumctl in a folder of $fpath.
_lumctl() {
    local -a lines items
    local line
    lines=("${(@f)$(lumctl __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    [[ "$lines[1]" == ":files" ]] && { _files; return }
    for line in $lines; do
        items+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
    done
    _describe lumctl items
}
if [ "$funcstack[1]" = "_lumctl" ]; then _lumctl "$@"; else compdef _lumctl lumctl; fi
""",
    "fish": """\
# fish completion for lumctl. To load it in every shell, write this to ~/.config/fish/completions/lumctl.fish
function __lumctl_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines (lumctl __complete $words[2..-1] 2>/dev/null)
    if test "$lines[1]" = ":files"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $lines
    end
end
complete -c lumctl -f -k -a '(__lumctl_complete)'
""",
}


@verb(app)
def completion(
    cx: Invocation,
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell that will run the script.")],
) -> None:
    """Print the script that completes commands, options and ids in a shell. Its first lines say where to put it.

    For this shell only: ``source <(lumctl completion bash)``. Ids of components come from the inventory. Ids of
    runs and plans come from the racks' stores, except from PostgreSQL databases.
    """
    if shell not in SCRIPTS:
        near = nearest(shell, SCRIPTS)
        hint = f"did you mean {near}?" if near else f"one of: {', '.join(SCRIPTS)}"
        raise UsageError(f"there is no completion for shell {shell!r}", hint=hint)
    cx.out.text(SCRIPTS[shell].rstrip("\n"))
