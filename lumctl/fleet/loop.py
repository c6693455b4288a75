"""The program that answers requests on a host: a POSIX shell loop, sent over one SSH channel and ending with it.

Nothing is installed. ``exec sh`` reads the program from its standard input. The program prints one line of greeting and
then answers requests until its input ends. Then it kills all processes that it started. It answers on the channel's
error stream. The lines of the protocol (version 2), in both directions:

* ``lumctl-loop 2 BOOT_ID UPTIME_S``: the greeting. Output of a login script before the greeting is skipped.
* ``N ID ID>TOKEN ...``: a request. ``N`` counts requests, ``ID`` is a probe's place in the table.
* ``= ID N STATUS LENGTH``, then ``LENGTH`` bytes and a newline: an answer.
* ``+ ID N STATUS LENGTH``, then ``LENGTH`` bytes and a newline: what was appended to the previous answer.
* ``~ ID N STATUS``: the previous answer, unchanged.
* ``! LANE 0 STATUS``: a request ended its lane's shell. It has no answer; the lane continues with its next request.

A probe requested as ``ID>TOKEN`` is answered directly: its tool prints straight to the channel's output, followed by a
newline, ``TOKEN ID N STATUS`` and a newline. The shell then neither keeps nor compares the output and does not fork to
run the tool; apart from the tool itself, this is most of what an answer costs a host. (If a signal ends the tool, some
shells add a word such as "Killed" to its output.) Direct answers are for probes whose output is new each time, and for
one lane at a time, so that the output of two tools does not mix. A tool that hangs while it prints does not hold up the
answers of other lanes. A probe in no lane, or one that is not the plain output of a tool, is answered on the error
stream as usual. The output stream is reserved for direct answers because sshd forwards it in larger pieces than the
error stream.

Each lane is a process of its own that waits on a FIFO, so a tool that hangs holds up only the probes of its lane. The
FIFOs are unlinked before the first request. A second copy of a tool is never started, because its lane is busy. The
right to print is a single byte in a FIFO: the process that has read the byte prints an answer and puts the byte back.

For ``grow``, the tool's error output is never filtered. The status is the tool's, or the filter's if the filter failed.

``LC_ALL=C`` makes the shell count bytes. ``files`` uses built-ins only. Every lane closes the other lanes' FIFOs, so
that it ends with the loop even if the loop is killed. All processes are in the process group of the channel's shell.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

COMMAND = "exec sh"
GREETING = b"lumctl-loop 2 "
_FIRST_LANE, _LANES_AT_MOST = 3, 5
"""Lanes use the file descriptors from 3 to 7; portable shells have 3 to 9. Descriptor 8 holds the right to print.
Descriptor 9 is used to open a lane, and in the lane leads to the channel's output."""

MOST_BYTES = 8 * 1024 * 1024
_MEMORY_KIB = 192 * 1024
"""Limit of a lane's address space, which must hold an output of :data:`MOST_BYTES`. Tools run without this limit."""

# Sessions without a login shell often lack sbin in their path, where ethtool and lldpctl are. `<>` opens a FIFO without
# waiting for its other end. `kill -9 0` ends the process group: the loop, its lanes and their tools. `( serve )` is a
# shell of its own, so an output beyond the memory limit ends it and not its lane. After the greeting the shells' own
# complaints go to /dev/null, because answers are on the error stream.
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
    """What the program needs to know about a probe."""

    @property
    def lane(self) -> str:
        """The lane in which the probe runs; empty if the loop itself answers it."""

    @property
    def command(self) -> str:
        """``files GLOB...``, ``run TOOL ARG...`` or ``grow PATTERN TOOL ARG...``."""


def program(probes: Sequence[PeriodicProbe]) -> bytes:
    """The program for a host with these probes. A probe's number is its index among them.

    Raises:
        ValueError: the probes have more lanes than a shell has file descriptors.
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
    # With a function, because a replacement text would have its backslashes expanded.
    text = _PLACE.sub(lambda place: parts[place[1]], _PROGRAM)
    return text.encode()


def lanes_of(probes: Iterable[PeriodicProbe]) -> tuple[str, ...]:
    """The lanes of some probes, in the order of their first probe."""
    return tuple(dict.fromkeys(probe.lane for probe in probes if probe.lane))


def _start(fd: int, closed: str) -> str:
    """The lines that start a lane. It opens its FIFO before the loop continues, because the loop then unlinks it."""
    return f'exec 9<"$d.{fd}"\n( exec {closed} 0<&9 9>&2 2>/dev/null; lane {fd - _FIRST_LANE} ) <&9 &'
