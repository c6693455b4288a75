import torch
import torch.distributed as dist
from common import Net, Numbers, ends, options
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

import lumctl.training.torch as recovery


def main(given, job):
    torch.manual_seed(1)
    model = DistributedDataParallel(Net(given.width), find_unused_parameters=given.fixed_buckets)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
    sampler = StatefulDistributedSampler(data := Numbers(given.samples), seed=3)
    loader = StatefulDataLoader(data, 8, sampler=sampler, num_workers=given.workers)
    job.track(model=model, optimizer=optimizer, scheduler=scheduler, loader=loader)
    losses = []
    for epoch in job.epochs(given.epochs):
        sampler.set_epoch(epoch)
        for inputs, labels in job.batches(loader):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
    ends(given.out, dist.get_rank(), model, losses)


if __name__ == "__main__":
    given = options()
    recovery.run(lambda job: main(given, job))
