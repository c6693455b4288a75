import torch
import torch.distributed as dist
from common import Losses, Net, Numbers, ends, options
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader, DistributedSampler


def main(given):
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    mesh = init_device_mesh("cpu", (dist.get_world_size() // 2, 2), mesh_dim_names=("data", "tensor"))
    model = Net(given.width)
    for block in model.blocks:
        parallelize_module(block, mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(block, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
    sampler = DistributedSampler(
        data := Numbers(given.samples), mesh["data"].size(), mesh["data"].get_local_rank(), seed=3
    )
    loader = DataLoader(data, given.batch, sampler=sampler, num_workers=given.workers)
    losses = Losses()
    for epoch in range(given.epochs):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.blocks.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
    ends(given.out, dist.get_rank(), model, losses)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(options())
