# Everything runs from .venv, which is made on first use from the locked set: a fresh clone needs Python and make only.
PYTHON ?= python3
BIN := .venv/bin
BASE := .venv/base
READY := .venv/ready
# Tests start thousands of processes: where no bytecode is kept, each compiles the program again.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo demo-rails studies test test-training test-paramiko lint types pictures man bench bench-fleet bench-fabric bench-devices bench-jobs bench-rails bench-slices bench-spares bench-studies bench-swap bench-collectives bench-tui campaign sizes lock clean

help: ## List what can be made.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: $(BASE) ## Show the main job on the simulator: a GPU dies, and a spare takes its place.
	$(BIN)/lumctl demo

demo-rails: $(READY) build/training/ready ## Train eight ranks over light that changes in each step, in both modes, and compare their losses with those of torchrun (a minute).
	build/training/bin/python tests/bench/rails/demo.py $(ARGS)

# Training has an environment and a target of its own: PyTorch is as large as all else together.
TRAINING_TESTS := tests/unit/training tests/system/jobs
TRAINING_CODE := /training/(torch|example)/
PARALLEL := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test: lint types $(READY) ## Run the checks and all tests but those of training (ARGS="tests/unit/devices -x" runs some).
	$(BIN)/python -m pytest $(PARALLEL) -m "not timed" $(TRAINING_TESTS:%=--ignore=%) $(ARGS) || test $$? -eq 5
	$(BIN)/python -m pytest -m timed $(TRAINING_TESTS:%=--ignore=%) $(ARGS) || test $$? -eq 5

test-training: build/training/ready ## Run the type check and the tests of training, with PyTorch (ARGS="-k served" runs some).
	$(BIN)/mypy --python-executable build/training/bin/python
	build/training/bin/python -m pytest $(PARALLEL) $(TRAINING_TESTS) $(ARGS) || test $$? -eq 5

# The SSH tests; those of hangs are left to `make test`, for they hold short time limits against the clock.
SSH_TESTS := $(wildcard tests/system/test_fleet*.py tests/unit/fleet/test_s*.py) tests/unit/fleet/test_conversation.py \
  tests/unit/fleet/test_event_loop.py tests/unit/fleet/test_paramiko_internals.py tests/unit/fleet/test_host_keys.py \
  tests/unit/fleet/test_routes.py

test-paramiko: build/paramiko-oldest/ready build/paramiko-newest/ready ## Run the SSH tests on the oldest and the newest paramiko that pyproject.toml allows (a minute).
	@for each in oldest newest; do \
	  build/paramiko-$$each/bin/python -c 'import paramiko; print("paramiko", paramiko.__version__)' && \
	  build/paramiko-$$each/bin/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile -m "not timed" $(SSH_TESTS) $(ARGS) || exit; \
	done

lint: $(READY) ## Style and the direction of imports.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(READY) ## Types; those of the code that imports PyTorch are checked by test-training.
	$(BIN)/mypy --exclude '$(TRAINING_CODE)'

pictures: $(READY) ## Draw the pictures of the dashboard that the README shows anew.
	PYTHONPATH=tests/contract $(BIN)/python tests/tui/picture.py

man: $(READY) ## Write the manual pages anew from the commands.
	$(BIN)/python -m lumctl.cli.manual man

studies: $(READY) ## Run all studies at full size: writes lumctl-studies(7), and their results and figures into build/studies (ten minutes; MEASURED="recover.json bandwidth.json" are measurements for study recovery).
	mkdir -p build/studies
	set -e; for study in $$($(BIN)/lumctl study list -o name); do \
	  rm -rf build/studies/$$study; \
	  if [ $$study = recovery ]; then measured="$(MEASURED:%=--measured %)"; else measured=; fi; \
	  $(BIN)/lumctl study run $$study $$measured --out build/studies/$$study > build/studies/$$study.txt; \
	  $(BIN)/lumctl study figure $$study --from build/studies/$$study --svg build/studies/$$study.svg; \
	done
	$(BIN)/python -m lumctl.cli.manual.studies_page build/studies man/lumctl-studies.7

bench: $(READY) ## Measure what is promised about the start of a command.
	$(BIN)/python tests/bench/startup.py

bench-fleet: $(READY) ## Measure the reading of hosts beside its peers (needs sshd, pdsh and a quiet machine; minutes).
	$(BIN)/python tests/bench/fleet/run.py $(or $(ARGS),all)

bench-fabric: $(READY) ## Measure matchings, their bounds, damage, and the planning of a swap (minutes).
	$(BIN)/python tests/bench/fabric/matchings.py --bounds
	$(BIN)/python tests/bench/fabric/damage.py
	$(BIN)/python tests/bench/fabric/swap.py
	$(BIN)/python tests/bench/fabric/across.py

bench-devices: $(READY) build/bench-devices/ready ## Measure what drivers add to a device's own time, and NETCONF clients beside each other (a minute).
	$(BIN)/python tests/bench/devices/overhead.py
	$(BIN)/python tests/bench/devices/gateway.py
	build/bench-devices/bin/python tests/bench/devices/netconf_clients.py

bench-swap: $(READY) ## Measure a swap on the simulator, from the fault to verified circuits, with the journal on disk (a minute).
	$(BIN)/python tests/bench/swap/run.py $(ARGS)
	$(BIN)/python tests/bench/swap/bounds.py
	$(BIN)/python tests/bench/swap/gateway.py

bench-slices: $(READY) ## Measure whole plans of slices, and their placing beside other allocators and the published integer program (six minutes; ARGS="--seconds 0" leaves that out).
	$(BIN)/python tests/bench/slices/planned.py
	$(BIN)/python tests/bench/slices/run.py $(ARGS)

bench-spares: $(READY) ## Measure the sizing of a pool of 4,096 accelerators, and the sharing of 1,000 spares (minutes).
	$(BIN)/python tests/bench/spares/sizing.py $(ARGS)
	$(BIN)/python tests/bench/spares/sharing.py $(ARGS)

bench-studies: $(READY) build/bench-studies/ready ## Measure the engine of studies beside a bare pool, the start of a run, the memory of a worker, and the events of study sharing beside SimPy (minutes).
	build/bench-studies/bin/python tests/bench/studies/engine.py $(ARGS)

bench-collectives: $(READY) build/training/ready ## Measure schedules for a late rank: rounds beside their bound, the time to build and check them, their speed over lanes beside gloo and ring, a job that uses them by itself, and what recording costs (45 minutes).
	$(BIN)/python tests/bench/collectives/schedules.py
	build/training/bin/python tests/bench/collectives/recording.py
	build/training/bin/python tests/bench/collectives/late_rank.py $(ARGS)

bench-jobs: $(READY) build/bench-jobs/ready ## Measure recoveries of real training beside torchrun and torchft, the coordinator of 1,000 ranks, a served model, and the bandwidth between ranks (forty minutes).
	build/bench-jobs/bin/python tests/bench/jobs/recover.py $(ARGS)
	build/bench-jobs/bin/python tests/bench/jobs/scale.py --seconds 5 --failures 3
	build/bench-jobs/bin/python tests/bench/jobs/states.py --mb-per-s 25
	build/bench-jobs/bin/python tests/bench/jobs/inference.py
	build/bench-jobs/bin/python tests/bench/jobs/bandwidth.py
	build/bench-jobs/bin/python tests/bench/slices/redirect.py

bench-rails: $(READY) build/training/ready ## Measure what light that changes costs: an all-reduce over the shim, a change, a training step in both modes beside the model, and the memory of a coordinator (needs a quiet machine; minutes).
	build/training/bin/python tests/bench/rails/shim.py
	build/training/bin/python tests/bench/rails/run.py $(ARGS)

bench-tui: $(READY) build/bench-tui/ready ## Measure the dashboard with a thousand accelerators beside htop and glances, and its memory over an hour (needs tmux; ten minutes).
	build/bench-tui/bin/python tests/bench/tui/live.py $(ARGS)
	PYTHONPATH=tests/contract build/bench-tui/bin/python tests/bench/tui/memory.py

campaign: $(READY) build/training/ready ## Run whole what CI samples: every accelerator dies once, a quiet week, 10,000 mutilated answers, 1,000 routings, 1,000 slices, 500 sequences of what happens to slices, 2,000 fault sequences for each driver, swaps killed at every boundary and at 500 instants, engines frozen at 200 instants, every fault on every part of a circuit, every refusal and its hint, 200 swaps of two engines at once, 1,000 runs replayed, every byte of a journal changed, spares of 50 racks against a million draws, schedules for 2 to 1,024 ranks and 10,000 mutated ones, every way a running job may fail, faults of 200 jobs over phases, 10,000 changes of light by each of two jobs.
	LUMCTL_CAMPAIGN=1 $(BIN)/python -m pytest tests/system/swap tests/system/health/test_quiet_week.py \
	  tests/unit/fleet/test_mutilated.py tests/unit/fabric/test_exact.py tests/unit/slices/test_exact.py tests/contract/campaign \
	  -k "any_accelerator or quiet_week or mutilated or router_against or fast_search_against or test_campaign"
	LUMCTL_CAMPAIGN=1 $(BIN)/python -m pytest tests/system/survival tests/system/gateway tests/system/replays tests/system/hostile \
	  tests/system/slices tests/unit/spares/test_sizing.py \
	  tests/unit/collectives/test_stragglar.py tests/unit/collectives/test_verification.py \
	  tests/system/swap/test_guard.py tests/system/swap/test_finish.py tests/system/swap/test_dead_ends.py \
	  tests/system/swap/test_remedies.py tests/unit/store/test_verify.py
	LUMCTL_CAMPAIGN=1 build/training/bin/python -m pytest tests/system/jobs tests/unit/training/test_random_failures.py

sizes: ## Count lines, files, names and imports: what makes the program hard to know (ARGS=--list names them).
	@$(PYTHON) tests/sizes.py $(ARGS)

lock: ## Resolve the newest allowed versions anew and write them down.
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/pip install --quiet --disable-pip-version-check '.[dev]'
	build/lock/bin/pip freeze --exclude lumctl > .ci/requirements.txt
	build/lock/bin/pip install --quiet --disable-pip-version-check --constraint .ci/requirements.txt '.[all,dev]'
	build/lock/bin/pip freeze --exclude lumctl | grep -vxFf .ci/requirements.txt > .ci/requirements-training.txt
	rm -rf build/lock

clean: ## Remove everything that was made here.
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What a benchmark measures against has an environment of its own, beside the locked set.
build/bench-%/ready:
	$(PYTHON) -m venv build/bench-$*
	build/bench-$*/bin/pip install --quiet --requirement .ci/requirements.txt --requirement tests/bench/$*/requirements.txt
	build/bench-$*/bin/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# The locked set as .venv has it, with another paramiko before it.
PARAMIKO := $(shell sed -nE 's/^  "(paramiko>=[0-9.]+,<[0-9.]+)",$$/\1/p' pyproject.toml)
build/paramiko-oldest/ready: WANTED = $(subst >=,==,$(firstword $(subst $(COMMA), ,$(PARAMIKO))))
build/paramiko-newest/ready: WANTED = $(PARAMIKO)
COMMA := ,

# An environment on top of the locked set of .venv.
define ON_LOCKED_SET
rm -rf $(@D)
$(BIN)/python -m venv --without-pip $(@D)
$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
  > $$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/locked-set.pth
endef
ON_TOP := $(BIN)/pip --python

build/training/ready: $(READY) .ci/requirements-training.txt
	$(ON_LOCKED_SET)
	@echo 'Installing PyTorch for the tests of training into $(@D) (some 700 MB on disk) ...' >&2
	@$(ON_TOP) $(@D) install --quiet --disable-pip-version-check --ignore-installed --no-deps --requirement .ci/requirements-training.txt
	@touch $@

build/paramiko-%/ready: $(READY) pyproject.toml
	$(ON_LOCKED_SET)
	$(ON_TOP) $(@D) install --quiet --disable-pip-version-check --ignore-installed --no-deps '$(WANTED)'
	$(ON_TOP) $(@D) check
	@touch $@

# The base set runs lumctl, and is all that the demo needs; the whole set adds what tests and checks need.
$(BASE): .ci/requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'lumctl needs Python 3.11 or newer and "$(PYTHON)" is not: name one, as in: make PYTHON=python3.11' >&2; exit 2; }
	@test -x $(BIN)/pip || { rm -rf .venv; $(PYTHON) -m venv .venv; } || { \
	  rm -rf .venv; echo 'no virtual environment could be made; on Debian: apt install python3-venv' >&2; exit 2; }
	@echo 'Installing lumctl and the libraries that it runs on into .venv (some 130 MB on disk) ...' >&2
	@$(PIP) --constraint .ci/requirements.txt hatchling
	@$(PIP) --constraint .ci/requirements.txt --no-build-isolation --editable .
	@touch $@

$(READY): $(BASE)
	@echo 'Installing what the tests and checks need into .venv (some 700 MB on disk) ...' >&2
	@$(PIP) --requirement .ci/requirements.txt
	@touch $@
