import torch
from accelerate.utils import DistributedDataParallelKwargs
from common import Net, Numbers, ends, options
from torch import nn
from torch.utils.data import DataLoader

from lumctl.training.torch.accelerate import Accelerator, run


def main(given):
    buckets = DistributedDataParallelKwargs(find_unused_parameters=given.fixed_buckets)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, kwargs_handlers=[buckets])
    torch.manual_seed(1)
    model = Net(given.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=400)
    loader = DataLoader(Numbers(given.samples), 4, shuffle=True, num_workers=given.workers)
    checked = DataLoader(Numbers(32), 8)
    model, optimizer, loader, checked, scheduler = accelerator.prepare(model, optimizer, loader, checked, scheduler)
    losses = []
    for _epoch in accelerator.epochs(given.epochs):
        model.train()
        for inputs, labels in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(inputs), labels)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        model.eval()
        for inputs, labels in checked:
            with torch.no_grad():
                loss = nn.functional.cross_entropy(model(inputs), labels)
            losses.append(accelerator.gather(loss).mean().item())
    ends(given.out, accelerator.process_index, model, losses[-1:])
    accelerator.end_training()


if __name__ == "__main__":
    run(lambda _: main(options()))
