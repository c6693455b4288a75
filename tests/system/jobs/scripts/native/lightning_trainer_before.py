import lightning
import torch
from common import Net, Numbers, ends, options
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader


class Classifier(lightning.LightningModule):
    def __init__(self, width):
        super().__init__()
        self.net, self.losses = Net(width), []

    def training_step(self, batch, _number):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, _number):
        self.losses = [nn.functional.cross_entropy(self.net(batch[0]), batch[1]).item()]

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def main(given):
    torch.manual_seed(1)
    model = Classifier(given.width)
    loader = DataLoader(Numbers(given.samples), 4, shuffle=True, num_workers=given.workers)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=4,
        strategy=DDPStrategy(find_unused_parameters=given.fixed_buckets),
        max_epochs=given.epochs,
        accumulate_grad_batches=2,
        gradient_clip_val=1.0,
        **quiet,
    )
    trainer.fit(model, loader, DataLoader(Numbers(32), 8))
    ends(given.out, trainer.global_rank, model, model.losses)


if __name__ == "__main__":
    main(options())
