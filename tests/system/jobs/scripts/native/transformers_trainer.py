import torch
from common import Texts, ends, options
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from lumctl.training.torch.transformers import run, train


def main(given):
    torch.manual_seed(1)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=Texts.WORDS, attention_dropout=0.1, **sizes))
    arguments = TrainingArguments(
        use_cpu=True,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        num_train_epochs=given.epochs,
        learning_rate=0.01,
        logging_steps=4,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        ddp_find_unused_parameters=given.fixed_buckets,
        dataloader_num_workers=given.workers,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Texts(given.samples))
    train(trainer)
    losses = [each["loss"] for each in trainer.state.log_history if "loss" in each]
    ends(given.out, arguments.process_index, trainer.model, losses)


if __name__ == "__main__":
    run(lambda _: main(options()))
