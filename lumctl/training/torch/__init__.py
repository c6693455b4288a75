"""Training and serving that continue after a failure: a few lines in a PyTorch script.

    import lumctl.training.torch as recovery

    def main(job):
        model, optimizer, loader = make_all()
        job.track(model=model, optimizer=optimizer)
        for epoch in job.epochs(3):
            for inputs, targets in job.batches(loader):
                ...

    recovery.run(main)

Under `lumctl job run` this library forms the process group. When a rank is lost, it forms another and calls the
function again, which continues at the interrupted step. A script that makes its objects only once attaches them
instead, and does each step in a block:

    with recovery.attach(model=model, optimizer=optimizer, seed=1) as job:
        for step in job.steps(1000):
            with step:
                loss = compute(model, batch(step.number, job.rank, job.world))
                loss.backward()
                job.average(model.parameters())
                optimizer.step()
                step.report(loss)

Under torchrun, or alone, the same scripts resume from their newest checkpoint.
"""

from lumctl.training.torch.job import TrainingJob, TrainingStep, attach
from lumctl.training.torch.restart import RestartableJob, run

__all__ = ["RestartableJob", "TrainingJob", "TrainingStep", "attach", "run"]
