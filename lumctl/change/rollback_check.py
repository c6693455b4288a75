"""Check that a plan which claims to roll a run back restores what that run changed, and does nothing else."""

from lumctl.change.circuits import placed_by
from lumctl.change.plan import Do, Plan, Step, from_document, programmed
from lumctl.errors import UsageError
from lumctl.site import Site

_TAKES = frozenset({Do.CHECK, Do.JOB, Do.TRANSMIT, Do.PROGRAM, Do.VERIFY, Do.CONFIRM, Do.ASSIGN, Do.SET})


def takes_back(site: Site, plan: Plan) -> bool:
    """Whether a plan is a true rollback: of a run in its rack's store, each step the opposite of one of that run's.

    A plan is a file that anybody can write, and what it says of itself is no proof.

    Raises:
        StoreError: the store cannot be read.
    """
    if plan.undoes is None or plan.replacements:
        return False
    try:
        run = site.store(plan.rack).run(plan.undoes)
        done = from_document(run.plan)
    except UsageError:
        return False
    if (run.rack, run.target) != (plan.rack, plan.target):
        return False
    return all(_is_opposite(step, done) for step in plan.steps)


def _is_opposite(step: Step, done: Plan) -> bool:
    of_kind = [other for other in done.steps if other.do is step.do]
    match step.do:
        case Do.PROGRAM:
            written = {(c.device, c.puc, c.after, c.before) for c in programmed(of_kind)}
            return all((c.device, c.puc, c.before, c.after) in written for c in programmed([step]))
        case Do.ASSIGN:
            before = [placed_by(other.data["before"]) for other in of_kind]
            back = placed_by(step.data["assignment"])
            return all(any(each.get(job) == ranks for each in before) for job, ranks in back.items())
        case Do.TRANSMIT:
            switched = {(other.data["transponder"], not other.data["enabled"]) for other in of_kind}
            lit = {(str(end["lane"]), True) for circuit in done.add for end in circuit.ends}  # after a cut blink
            return (step.data["transponder"], step.data["enabled"]) in switched | lit
        case Do.SET:
            meant = {(other.data["component"], other.data["setting"]) for other in of_kind}
            return (step.data["component"], step.data["setting"]) in meant
    return step.do in _TAKES
