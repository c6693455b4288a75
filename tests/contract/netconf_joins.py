"""Joins of a made-up switch, written and read through the NETCONF client."""

import threading

JOINS = '<joins xmlns="urn:lumctl:joins">{}</joins>'
ALL = JOINS.format("")
NOTHING = '<joins xmlns="urn:lumctl:joins" nc:operation="remove"/>'


def joins(pairs):
    return JOINS.format("".join(f"<join><ingress>{i}</ingress><egress>{e}</egress></join>" for i, e in pairs.items()))


def held(client, source="running"):
    found = client.get_config(source, ALL).iterfind(".//{urn:lumctl:joins}join")
    return {int(join[0].text): int(join[1].text) for join in found}


def write(client, pairs, **options):
    with client.locked("candidate"):
        client.edit_config(joins(pairs))
        return client.commit(**options)


def until(condition):
    """sshd ends sessions in its own time."""
    return any(condition() or threading.Event().wait(0.01) for _ in range(500))
