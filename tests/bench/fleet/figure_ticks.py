"""Warm ticks of all contenders: the table, what holds of what is promised, and what bounds it."""

import os
from argparse import Namespace

import tool
from report import Verdict, finish, table
from roster import chosen
from ticks import Result, measure

_PROMISED_AT = 256
_CPU_MS, _CPU_UNCHANGED_MS = 0.2, 0.12
_HEAD = ("contender", "wall ms", "x", "worst", "client CPU", "x", "server CPU", "peak RSS", "PSS", "ticks")


def run(options: Namespace) -> int:
    results = measure(chosen(options.only), options.hosts, options.rounds, options.bytes)
    tool_s = tool.start_s(options.bytes)
    good = {result.entry.name: result for result in results if result.failed is None}
    print(f"\n{options.hosts} hosts, {options.bytes} bytes from each, all of them new in every tick and all checked.")
    print("CPU in ms per host and tick, memory in MB with all ssh clients; x: as many times lumctl's.\n")
    own = good.get("lumctl")
    print(table([_HEAD, *(_row(result, own, options.hosts) for result in good.values())]))
    for result in results:
        if result.failed:
            print(f"{result.entry.name}: {result.failed}")
    print()
    for result in (result for result in good.values() if result.unchanged):
        wall_ms, cpu_ms = result.unchanged_wall_s * 1e3, result.unchanged_cpu_s * 1e3 / options.hosts
        print(f"{result.entry.what}, nothing new: {wall_ms:.1f} ms, client CPU {cpu_ms:.3f} ms per host and tick")
    if own:
        print(f"\n{_bound(own, options.hosts, tool_s)}")
    verdicts = _verdicts(results, good, own, options.hosts) if own and options.hosts >= _PROMISED_AT else []
    if not verdicts:
        print(
            f"\nWhat is promised is promised at {_PROMISED_AT} hosts, for lumctl beside the others: nothing to judge."
        )
    measured = {
        "hosts": options.hosts,
        "bytes": options.bytes,
        "tool_s": tool_s,
        "contenders": [_plain(each) for each in results],
    }
    status = finish("ticks", measured, verdicts, options.json)
    return status or int(any(result.failed for result in results))


def _row(result: Result, own: Result | None, hosts: int) -> tuple[object, ...]:
    return (
        result.entry.what,
        f"{result.wall_s * 1e3:.1f}",
        f"{result.wall_s / own.wall_s:.2f}" if own else "-",
        f"{max(tick.wall_s for tick in result.ticks) * 1e3:.1f}",
        f"{result.cpu_s * 1e3 / hosts:.3f}",
        f"{result.cpu_s / own.cpu_s:.1f}" if own else "-",
        f"{result.server_cpu_s * 1e3 / hosts:.2f}",
        f"{result.peak_rss / 1e6:.0f}",
        f"{result.pss / 1e6:.0f}",
        len(result.ticks),
    )


def _bound(own: Result, hosts: int, tool_s: float) -> str:
    cores = len(os.sched_getaffinity(0))
    wall_ms, client_ms, server_ms = (s * 1e3 for s in (own.wall_s, own.cpu_s, own.server_cpu_s))
    share = server_ms / (client_ms + server_ms)
    busy = (client_ms + server_ms) / (wall_ms * cores)
    return (
        f"What bounds it: in lumctl's {wall_ms:.0f} ms the hosts (sshd, shell, cat) use {server_ms:.0f} ms of CPU and "
        f"the client {client_ms:.0f} ms;\n"
        f"{share:.0%} of the work is the server's, and {cores} cores are {busy:.0%} busy. "
        f"Were the hosts elsewhere, the client's own {client_ms:.0f} ms would bound it.\n"
        f"One cat costs {tool_s * 1e3:.2f} ms of CPU on this machine, alone and in a plain shell: {hosts} of them "
        f"{tool_s * hosts * 1e3:.0f} ms, which every tick of every contender has in it."
    )


def _verdicts(results: list[Result], good: dict[str, Result], own: Result, hosts: int) -> list[Verdict]:
    verdicts = []
    for result in results:
        entry, ratio = result.entry, result.wall_s / own.wall_s if result.entry.name in good else None
        if entry.at_least:
            promise = f"wall of {entry.what} / wall of lumctl"
            verdicts.append(Verdict(promise, ratio, entry.at_least, "x", at_least=True))
        elif entry.at_most:
            promise = f"wall of lumctl / wall of {entry.what}"
            verdicts.append(Verdict(promise, ratio and 1 / ratio, entry.at_most, "x"))
    cpu_ms, unchanged_ms = own.cpu_s * 1e3 / hosts, own.unchanged_cpu_s * 1e3 / hosts
    verdicts.append(Verdict("lumctl's client CPU per host and changed tick", cpu_ms, _CPU_MS, " ms"))
    verdicts.append(Verdict("lumctl's client CPU per host and unchanged tick", unchanged_ms, _CPU_UNCHANGED_MS, " ms"))
    return verdicts


def _plain(result: Result) -> dict[str, object]:
    if result.failed is not None:
        return {"name": result.entry.name, "failed": result.failed}
    return {
        "name": result.entry.name,
        "what": result.entry.what,
        "wall_s": result.wall_s,
        "client_cpu_s": result.cpu_s,
        "server_cpu_s": result.server_cpu_s,
        "peak_rss_bytes": result.peak_rss,
        "pss_bytes": result.pss,
        "start_s": result.start_s,
        "ticks": [[tick.wall_s, tick.cpu_s] for tick in result.ticks],
        "unchanged_ticks": [[tick.wall_s, tick.cpu_s] for tick in result.unchanged],
    }
