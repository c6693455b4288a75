"""Forks workers that run the example as a job's command does, from one process that has PyTorch."""

import json
import os
import sys

import torch._dynamo  # the first optimiser imports it, and each worker would

import lumctl.training.example.__main__ as training
import lumctl.training.example.serve as serving
from lumctl.training.example import rails

PROGRAMS = {"train": training.main, "rails": rails.main, "serve": serving.main}


def run(environment, options):
    os.environ.update(environment)
    log = os.open(options["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    sys.argv = ["example", *options["argv"]]
    code = 1
    try:
        code = PROGRAMS[options["program"]]()
    except SystemExit as stopped:
        code = stopped.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main():
    torch.set_num_threads(1)
    say("ready")
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                run(**request)
        say(str(answer))


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
