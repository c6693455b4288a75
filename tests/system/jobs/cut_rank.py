"""Rank 1 of two: gives a large tensor in one operation, of which the test cuts it off.

python cut_rank.py GENERATION STORE_PORT OPERATION ELEMENTS
"""

import sys

import collectives
import torch

from lumctl.training.torch.group import JoinOrder, ProcessGroup

generation, port, operation, elements = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
group = ProcessGroup(torch.device("cpu"), "127.0.0.1", "token")
group.make(JoinOrder(generation, 1, 2, ("127.0.0.1", port)), wanted=lambda: True)
collectives.OPERATIONS[operation](torch.ones(elements), 1)
group.close()
