"""Training and serving that continue after a failure: a few lines in a PyTorch script.

    import lumctl.training.torch as recovery

    with recovery.attach(model=model, optimizer=optimizer, seed=1) as job:
        for step in job.steps(1000):
            with step:
                loss = compute(model, batch(step.number, job.rank, job.world))
                loss.backward()
                job.average(model.parameters())
                optimizer.step()
                step.report(loss)

Under `lumctl job run` this library forms the process group, and forms it again in place when a rank is lost. It
repeats the interrupted step. Under torchrun, or alone, the same script resumes from its newest checkpoint. A script's
own groups (`new_group`) end with their generation: make them again when `job.generation` has grown.
"""

from lumctl.training.torch.job import TrainingJob, TrainingStep, attach
from lumctl.training.torch.restart import RestartableJob, run

__all__ = ["RestartableJob", "TrainingJob", "TrainingStep", "attach", "run"]
