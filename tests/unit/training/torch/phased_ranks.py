"""Ranks of a job with phases: what each scenario does in every rank, under a coordinator that a test plays."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from lumctl.training.phase_order import DECIDED
from lumctl.training.protocol import ADDRESS, BEAT_S, FOLDER, JOB, SOCKET, TOKEN, WORKER
from lumctl.training.torch import attach
from lumctl.training.torch.phase_groups import Transfer

SECRET = "secret of the run"  # noqa: S105 - the test's own


def work(folder: str, number: int, scenario: str, results) -> None:
    """Be a worker."""
    os.environ |= {
        JOB: "train",
        WORKER: f"w{number}",
        SOCKET: f"{folder}/{number}.sock",
        FOLDER: folder,
        TOKEN: SECRET,
        ADDRESS: "127.0.0.1",
        BEAT_S: "0.5",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    torch.set_num_threads(1)
    torch.manual_seed(7)
    SCENARIOS[scenario](results.send)


def pairs(rank: int):
    """The groups of this rank's pipeline and gradients; all ranks make all groups."""
    found = {}
    for name, made in (("pipeline", [[0, 1], [2, 3]]), ("gradients", [[0, 2], [1, 3]])):
        for ranks in made:
            group = dist.new_group(ranks)
            if rank in ranks:
                found[name] = (group, next(each for each in ranks if each != rank))
    return found["pipeline"], found["gradients"]


def steps(report, body, total=1, prepare=lambda job: pairs(job.rank)):
    """Do ``body(job, made)`` in each step; ``prepare`` makes groups, again in each generation."""
    made, generation = None, 0
    with attach(model=nn.Linear(1, 1), checkpoint=False) as job:
        for step in job.steps(total):
            with step:
                if job.generation != generation:
                    made, generation = prepare(job), job.generation
                if (said := body(job, made)) is not None:
                    report(said)


def two_phases(report):
    def body(job, made):
        (stages, peer), (replicas, _) = made
        sent, got = torch.full((4,), float(job.rank)), torch.empty(4)
        for each in dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, sent, peer, stages), dist.P2POp(dist.irecv, got, peer, stages)]
        ):
            each.wait()
        total = got.clone()
        work = dist.all_reduce(total, group=replicas, async_op=True)
        dist.all_reduce(sent, group=replicas)
        work.wait()
        return [got[0].item(), total[0].item()]

    steps(report, body, DECIDED + 3)


def exercise(group, peer, rank):  # noqa: PLR0915 - a list
    """One of each transfer of a group of two; their results."""
    me = dist.get_rank(group)

    def own(size=4):
        return torch.arange(float(size)) + 10 * rank

    def each(count=2, size=4):
        return [torch.zeros(size) for _ in range(count)]

    found = []

    def done(work, *tensors):
        if work is not None:
            work.wait()
        found.extend(tensor.tolist() for tensor in tensors)

    for asynchronous in (True, False):
        tensor = own()
        done(dist.all_reduce(tensor, group=group, async_op=asynchronous), tensor)
        tensor = own()
        done(dist.broadcast(tensor, group_src=1, group=group, async_op=asynchronous), tensor)
        tensor = own()
        done(dist.reduce(tensor, group_dst=0, group=group, async_op=asynchronous), *([tensor] if me == 0 else []))
        parts = each()
        done(dist.all_gather(parts, own(), group=group, async_op=asynchronous), *parts)
        whole = torch.zeros(8)
        done(dist.all_gather_into_tensor(whole, own(), group=group, async_op=asynchronous), whole)
        parts = each() if me == 0 else None
        done(dist.gather(own(), parts, group_dst=0, group=group, async_op=asynchronous), *(parts or []))
        part, parts = torch.zeros(4), [own(), own() + 1] if me == 0 else None
        done(dist.scatter(part, parts, group_src=0, group=group, async_op=asynchronous), part)
        part = torch.zeros(4)
        done(dist.reduce_scatter_tensor(part, own(8), group=group, async_op=asynchronous), part)
        part = torch.zeros(4)
        done(dist.reduce_scatter(part, [own(), own() + 1], group=group, async_op=asynchronous), part)
        whole = torch.zeros(8)
        done(dist.all_to_all_single(whole, own(8), group=group, async_op=asynchronous), whole)
        done(dist.barrier(group=group, async_op=asynchronous))
    got = torch.zeros(4)
    if me == 0:
        dist.send(own(), peer, group=group, tag=3)
        assert dist.recv(got, peer, group=group) == peer
    else:
        dist.recv(got, peer, group=group, tag=3)
        dist.send(own(), peer, group=group)
    done(None, got)
    got = torch.zeros(4)
    if me == 0:
        assert dist.recv(got, group=group) == peer
    else:
        request = dist.isend(own(), peer, group=group)
        request.wait()
        if isinstance(request, Transfer):  # gloo's own would wait for ever
            assert request.wait(timedelta(seconds=5))
            assert request.is_completed()
    done(None, got)
    objects = [None, None]
    dist.all_gather_object(objects, {"rank": rank}, group=group)
    with dist.distributed_c10d._coalescing_manager(group=group, async_ops=True) as together:
        one, two = own(), own(2)
        dist.all_reduce(one, group=group)
        dist.all_reduce(two, group=group)
    together.wait()
    done(None, one, two)
    import torch.distributed._functional_collectives as functional

    done(None, functional.all_reduce(own(), "sum", group).clone())
    done(None, functional.all_gather_tensor(own(), 0, group).clone())
    return [*found, objects]


def all_transfers(report):
    def prepare(job):
        bare = [dist.new_group(ranks, backend="gloo") for ranks in ([0, 2], [1, 3])][job.rank % 2]
        return pairs(job.rank), bare

    def body(job, made):
        (_, (replicas, peer)), bare = made
        expected, found = exercise(bare, peer, job.rank), exercise(replicas, peer, job.rank)
        return [type(replicas).__name__, found == expected or [found, expected], job._life._group.times.take()]

    steps(report, body, prepare=prepare)


def trained(model, unwrapped=None):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(3):
        optimizer.zero_grad()
        data = torch.arange(12.0).reshape(4, 3) * (1 + number + dist.get_rank()) / 10
        model(data).pow(2).mean().backward()
        optimizer.step()
    return [parameter.detach() for parameter in (unwrapped or model).parameters()]


def parallel(report):
    """DistributedDataParallel and FSDP2 over phases and over bare gloo."""

    def network():
        torch.manual_seed(7)
        return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))

    def sharded(group):
        model = network()
        mesh = DeviceMesh.from_group(group, "cpu")
        for layer in (model[0], model[2], model):
            fully_shard(layer, mesh=mesh)
        return [each.full_tensor().tolist() for each in trained(model)]

    def prepare(job):
        bare = [dist.new_group(ranks, backend="gloo") for ranks in ([0, 2], [1, 3])][job.rank % 2]
        return pairs(job.rank)[1][0], bare

    def body(_job, made):
        both = [
            [
                [each.tolist() for each in trained(DistributedDataParallel(network(), process_group=group))],
                sharded(group),
            ]
            for group in made
        ]
        return both[0] == both[1] or both

    steps(report, body, prepare=prepare)


def no_phase(report):
    steps(report, lambda _job, _made: None, prepare=lambda _job: dist.new_group([0, 3]))


def reduced(report):
    """One all-reduce for each step, after the test has been told."""

    def body(job, made):
        report(f"generation {job.generation}")
        tensor = torch.ones(2)
        dist.all_reduce(tensor, group=made[1][0])
        return tensor.tolist()

    steps(report, body, 2)


def stopped_in_second_step(report):
    """Rank 2 leaves rank 0 alone in a collective of a group that was formed in the first step."""

    def body(job, made):
        if job.generation == 1 and made[-1:] == [1] and job.rank == 2:
            report("stops")
            os.kill(os.getpid(), 19)
        tensor = torch.ones(2)
        made.append(1)
        report("reduces")
        dist.all_reduce(tensor, group=made[1][0])
        return tensor.tolist()

    steps(report, body, 2, prepare=lambda job: [*pairs(job.rank)])


def stopped_before_forming(report):
    """Rank 2 has light, and does not come to form the group with rank 0."""

    def body(job, made):
        if job.generation == 1 and job.rank == 2:
            report("stops")
            os.kill(os.getpid(), 19)
        report("forms")
        tensor = torch.ones(2)
        dist.all_reduce(tensor, group=made[1][0])
        return tensor.tolist()

    steps(report, body)


def wrapped(report):
    """A wrapped model whose gradients find their phase dark, in a thread of the autograd engine or none."""

    def prepare(job):
        group = pairs(job.rank)[1][0]
        dist.all_reduce(torch.ones(1), group=pairs(job.rank)[0][0])
        return DistributedDataParallel(nn.Linear(3, 1), process_group=group, init_sync=False)

    def body(_job, made):
        made(torch.ones(2, 3)).sum().backward()
        return "reduced"

    steps(report, body, prepare=prepare)


SCENARIOS = {
    each.__name__: each
    for each in (
        two_phases,
        all_transfers,
        parallel,
        no_phase,
        reduced,
        stopped_in_second_step,
        stopped_before_forming,
        wrapped,
    )
}
