"""Training and serving that goes on after a failure: a few lines in a PyTorch script.

    import lumctl.training.torch as recovery

    with recovery.attach(model=model, optimizer=optimizer, seed=1) as job:
        for step in job.steps(1000):
            with step:
                loss = compute(model, batch(step.number, job.rank, job.world))
                loss.backward()
                job.average(model.parameters())
                optimizer.step()
                step.report(loss)

Under `lumctl job run` the process group is made by this library and made anew in place when a rank is lost; the step
that was interrupted is done again. Under torchrun, or alone, the same script goes on from its newest checkpoint.
Groups of a script's own (`new_group`) end with their generation: make them again when `job.generation` has grown.
"""

from lumctl.training.torch.job import TrainingJob, TrainingStep, attach

__all__ = ["TrainingJob", "TrainingStep", "attach"]
