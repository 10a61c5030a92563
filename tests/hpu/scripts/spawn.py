# SPDX-License-Identifier: Apache-2.0
"""Starts a program on several devices with Optimum's runner, as gaudi_spawn.py does.

spawn.py torchrun|mpirun WORLD_SIZE PROGRAM [ARGUMENT...]
"""
import shlex
import sys

from optimum.habana.distributed import DistributedRunner


def main() -> None:
    launcher, size, *program = sys.argv[1:]
    runner = DistributedRunner(command_list=[shlex.join(program)], world_size=int(size), use_mpi=launcher == "mpirun")
    sys.exit(runner.run())


if __name__ == "__main__":
    main()
