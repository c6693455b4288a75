import torch
import torch.distributed as dist
from common import CLASSES, Losses, Net, Numbers, ends, options
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.utils.data import DataLoader, RandomSampler


def main(given):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    layers = [*(net := Net(given.width)).blocks, net.head]
    model = nn.Sequential(*layers[rank * len(layers) // world : (rank + 1) * len(layers) // world])
    # Without these, each new schedule runs its model once to find the shapes, which changes the running mean.
    taken = torch.empty(given.batch, given.width, requires_grad=rank > 0)
    made = torch.empty(given.batch, CLASSES if rank == world - 1 else given.width, requires_grad=True)
    stage = PipelineStage(model, rank, world, torch.device("cpu"), input_args=taken, output_args=made)
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=nn.functional.cross_entropy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
    data = Numbers(given.samples)
    sampler = RandomSampler(data, generator=(order := torch.Generator()))
    loader = DataLoader(data, 4 * given.batch, sampler=sampler, num_workers=given.workers)
    losses = Losses()
    for epoch in range(given.epochs):
        order.manual_seed(epoch)
        for inputs, labels in loader:
            optimizer.zero_grad()
            told = []
            given_to_first = (inputs,) if rank == 0 else ()
            schedule.step(*given_to_first, target=labels if rank == world - 1 else None, losses=told)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(sum(loss.item() for loss in told))
    ends(given.out, dist.get_rank(), model, losses)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(options())
