"""The program that answers for a host: a POSIX shell loop, sent over one SSH channel and gone with it.

Nothing is installed. ``exec sh`` reads the program from its standard input, prints one line of greeting, and then
answers requests until its input ends; then it kills all that it started. It speaks on the channel's error stream. The
lines, both ways (protocol 2):

* ``lumctl-loop 2 BOOT_ID UPTIME_S``: the greeting. What a login script prints before it is skipped.
* ``N ID ID>TOKEN ...``: a request. ``N`` counts requests, ``ID`` is a probe's place in the table.
* ``= ID N STATUS LENGTH``, then ``LENGTH`` bytes and a newline: an answer.
* ``+ ID N STATUS LENGTH``, then ``LENGTH`` bytes and a newline: what was added to the answer before.
* ``~ ID N STATUS``: the answer before, unchanged.
* ``! LANE 0 STATUS``: what ran in a lane took the lane's shell along; the lane continues with what waits behind it.

What was asked for as ``ID>TOKEN`` goes straight from the tool to the channel's output, followed by a newline, ``TOKEN
ID N STATUS`` and a newline: the shell neither keeps nor compares it, nor needs a copy of itself to run it, which is
most of what an answer costs a host beside the tool itself. (Some shells add a word, such as "Killed", to what a tool
said that a signal ended.) That is for what says something new each time, and for one lane at a time, so that two tools
do not mix. A tool that hangs on the way leaves the others' answers alone. What is in no lane, or is more than a tool's
output, is answered as ever. The output is kept free for this because sshd hands it on in larger pieces than the error
stream.

Each lane is a process of its own that waits on a FIFO, so a tool that hangs holds up the probes of its lane only. The
FIFOs lose their names before the first request. A second copy of a tool is never started, for its lane is busy. The
right to print is a single byte in a FIFO: who has read it prints an answer and puts it back.

Of what grows, complaints always pass the match, and the status is the tool's, or that of a match that failed.

``LC_ALL=C`` makes the shell count bytes. ``files`` uses built-ins only. Every lane closes the other lanes' FIFOs, so
that it ends with the loop even if that is killed. All of it is one process group, that of the channel's shell.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

COMMAND = "exec sh"
GREETING = b"lumctl-loop 2 "
_FIRST_LANE, _LANES_AT_MOST = 3, 5
"""A shell's portable file descriptors are 3 to 9; 8 holds the right to print, 9 opens a lane, and then is its way to
the channel's output."""

MOST_BYTES = 8 * 1024 * 1024
_MEMORY_KIB = 192 * 1024
"""What a shell may keep of one output, and the address space in which it does. The tools themselves are not bound."""

_PROGRAM = """\
LC_ALL=C; export LC_ALL; umask 077; unset ENV CDPATH out old more ids token @KEPT@
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export PATH
nl='
'
files() { for f; do IFS= read -r v <"$f" && out=$out$f:$v$nl; done 2>/dev/null; out=${out%"$nl"}; rc=0; }
run() {
if [ "$token" ]; then ulimit -Sv "$room"; "$@" >&9 2>&9 9>&- </dev/null; rc=$?; ulimit -Sv @MEMORY@
else out=$(ulimit -Sv "$room"; exec "$@" 2>&1 9>&- </dev/null); rc=$?; fi
}
grow() {
more=1 pattern=$1; shift
out=$(exec 9>&-; { { ulimit -Sv "$room"; "$@" 2>&3 3>&- </dev/null; printf '\\nlumctl-ended %s\\n' $?
} | grep -E "$pattern|^lumctl-ended [0-9]"; } 3>&1); rc=$?
case $out in
*"lumctl-ended "*)
rc=${out##*"lumctl-ended "} rc=${rc%%"$nl"*} out=${out%lumctl-ended*} out=${out%"$nl"} ;;
esac
case $rc in *[!0-9]* | '') rc=2 ;; esac
}
ask() {
out= rc=0 more=0
case $1 in
@TABLE@
*) rc=127 ;;
esac
size=${#out}
[ $size -le @MOST@ ] || { out="it printed more than @MOST@ bytes" size=${#out} rc=1 more=0; }
}
tell() {
if eval "[ \\"\\$rc$2 \\$size$2\\" = \\"\\$rc \\$size\\" ] && case \\$out in \\"\\$was$2\\") ;; *) false ;; esac"; then
IFS= read -r turn <&8; printf '~ %s %s %s\\n' "$2" "$1" "$rc"
else
mark='=' old=
[ $more = 0 ] || eval "old=\\$was$2"
eval "was$2=\\$out rc$2=\\$rc size$2=\\$size"
if [ "$old" ]; then
case $out in
"$old$nl"*) new=$(printf '%s' "$out" | tail -c +$((${#old} + 2))) && mark=+ out=$new size=${#new} ;;
esac
fi
IFS= read -r turn <&8; printf '%s %s %s %s %s\\n%s\\n' "$mark" "$2" "$1" "$rc" "$size" "$out"
fi
echo >&8
}
all_or_none() { trap 'kill -9 0' HUP INT PIPE TERM; }
serve() {
all_or_none
ulimit -Sc 0; ulimit -Sv @MEMORY@
while read -r n id; do
token=
case $id in *'>'*) token=${id#*'>'} id=${id%%'>'*} ;; esac
ask "$id"
if [ "$token" ] && [ ! "$out" ]; then
unset "was$id" "rc$id" "size$id"
printf '\\n%s %s %s %s\\n' "$token" "$id" "$n" "$rc" >&9 || exit 1
else tell "$n" "$id"
fi
done
}
lane() {
all_or_none
until ( serve ); do
lost=$?
IFS= read -r turn <&8; printf '! %s 0 %s\\n' "$1" "$lost"; echo >&8
done
}
main() {
all_or_none
exec 9>&1 1>&2
room=$(ulimit -Sv)
for d in /dev/shm "$XDG_RUNTIME_DIR" /tmp /var/tmp "$HOME"; do
d=$d/lumctl.$$
mkfifo -m 600 @NAMES@ 2>/dev/null && break
rm -f @NAMES@ 2>/dev/null
d=
done
[ "$d" ] || { echo "lumctl: no FIFO can be made here"; exit 1; }
exec @OPEN@ 2>&9
@START@
exec 9<&-
rm -f @NAMES@
echo >&8
IFS= read -r boot </proc/sys/kernel/random/boot_id
read -r up rest </proc/uptime
printf '\\nlumctl-loop 2 %s %s\\n' "${boot:--}" "${up:--}"
exec 2>/dev/null
while read -r n ids; do
for id in $ids; do
case ${id%%'>'*} in
@ROUTES@
*) id=${id%%'>'*}; ask "$id"; tell "$n" "$id" ;;
esac
done
done
kill -9 0
}
main; exit
"""


_PLACE = re.compile("@([A-Z]+)@")


class PeriodicProbe(Protocol):
    """What the program needs to know of a probe."""

    @property
    def lane(self) -> str:
        """The lane that it runs in; none for the loop itself."""

    @property
    def command(self) -> str:
        """``files GLOB...``, ``run TOOL ARG...`` or ``grow PATTERN TOOL ARG...``."""


def program(probes: Sequence[PeriodicProbe]) -> bytes:
    """The program for a host with these probes; a probe's number is its place among them.

    Raises:
        ValueError: they have more lanes than a shell has file descriptors.
    """
    lanes = lanes_of(probes)
    if len(lanes) > _LANES_AT_MOST:
        raise ValueError(f"{len(lanes)} lanes; the loop has room for {_LANES_AT_MOST}")
    fds = {lane: _FIRST_LANE + place for place, lane in enumerate(lanes)}
    table = [f"{number}) {probe.command} ;;" for number, probe in enumerate(probes)]
    routes = [
        f'{"|".join(str(n) for n, probe in enumerate(probes) if probe.lane == lane)}) echo "$n $id" >&{fd} ;;'
        for lane, fd in fds.items()
    ]
    closed = " ".join(f"{fd}>&-" for fd in fds.values())
    parts = {
        "TABLE": "\n".join(table),
        "ROUTES": "\n".join(routes),
        "NAMES": " ".join(f'"$d.{fd}"' for fd in (8, *fds.values())),
        "OPEN": " ".join(f'{fd}<>"$d.{fd}"' for fd in (8, *fds.values())),
        "START": "\n".join(_start(fd, closed) for fd in fds.values()),
        "KEPT": " ".join(f"was{number} rc{number} size{number}" for number in range(len(probes))),
        "MOST": str(MOST_BYTES),
        "MEMORY": str(_MEMORY_KIB),
    }
    text = _PLACE.sub(lambda place: parts[place[1]], _PROGRAM)
    return text.encode()


def lanes_of(probes: Iterable[PeriodicProbe]) -> tuple[str, ...]:
    """The lanes of some probes, in the order of their first probe."""
    return tuple(dict.fromkeys(probe.lane for probe in probes if probe.lane))


def _start(fd: int, closed: str) -> str:
    """A lane opens its FIFO before the loop continues, for then the FIFO loses its name."""
    return f'exec 9<"$d.{fd}"\n( exec {closed} 0<&9 9>&2 2>/dev/null; lane {fd - _FIRST_LANE} ) <&9 &'
