# Two commands: `make run` and `make test`. Both need only python3 (3.11 to 3.13) and make.
PYTHON ?= python3
VENV := .venv
UV := $(VENV)/bin/uv
# Tests that start no process and no server.
QUICK := $(addprefix tests/,test_rooms.py ingest/hits ingest/formats ingest/classification/test_agents.py \
	ingest/classification/test_rules.py ingest/classification/test_classifier.py \
	ingest/classification/test_device.py ingest/classification/test_recall.py agent/jobs/test_job.py \
	agent/coding_agent/test_output.py warehouse/query/test_time_range.py warehouse/control api/http/test_parameters.py sample_data)
export UV_LINK_MODE ?= hardlink
# Cached bytecode saves 0.13 s in each of the thousand processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE
# By default uv trusts only its own list of certificate authorities, not one that the machine needs for a mirror or proxy.
export UV_SYSTEM_CERTS ?= 1

.PHONY: install run check test clock format bench lock clean

# Create the environment with the program `.venv/bin/readership`, and start nothing. The bytecode of the program is cached here, because
# the account of a service may have no permission to write it, and would compile the modules at each start.
install: $(VENV)/.run
	$(VENV)/bin/python -m compileall -q api agent ingest warehouse

# Another port: make run ARGS="--port 8080"
run: $(VENV)/.run
	$(VENV)/bin/readership demo $(ARGS)

# Quick checks: style, types, import rules, and the tests that start no process.
check: $(VENV)/.test style
	$(VENV)/bin/pytest -n 2 --dist loadfile $(QUICK)

# Which tests run, by their markers: see CONTRIBUTING.md. `make test TESTS=` runs all of them.
TESTS = $(if $(CI),not night,not long and not night)
# Four processes for two cores: a test that waits for a server or a lock leaves its core to another.
test: $(VENV)/.test style
	$(VENV)/bin/pytest -n 4 --dist loadfile --no-loadscope-reorder -m "$(TESTS)"

# The same tests with the clock moved by DAYS days, in all their processes: make clock DAYS=45, or DAYS=0.4 to run at midnight.
# It needs a C compiler.
DAYS ?= 45
FILES ?= tests
clock: $(VENV)/.test
	cc -O2 -shared -fPIC -o $(VENV)/moved_clock.so tests/moved_clock.c -ldl
	READERSHIP_TEST_CLOCK_DAYS=$(DAYS) LD_PRELOAD=$(CURDIR)/$(VENV)/moved_clock.so \
		$(VENV)/bin/pytest -n 4 --dist loadfile --no-loadscope-reorder -m "$(TESTS)" $(FILES)

# The long checks that no change waits for, several hours together: make night STEPS="soak fuzzing"
.PHONY: night
night: $(VENV)/.ray $(VENV)/.night
	agents=$$(.ci/agent) && READERSHIP_TEST_AGENTS=$$agents $(VENV)/bin/python -m tests.night $(STEPS)

.PHONY: style
style: $(VENV)/.test
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

format: $(VENV)/.test
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

bench: $(VENV)/.test $(VENV)/.peers
	$(VENV)/bin/python -m benchmarks

# Lock the newest version of every dependency, with the hash of each file. Review the change before committing it.
lock: $(VENV)/.uv
	cd .locks && echo 'uv' | ../$(UV) pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header - -o uv.txt
	$(UV) pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header pyproject.toml -o .locks/run.txt
	$(UV) pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --extra test -c .locks/run.txt pyproject.toml -o .locks/test.txt
	$(UV) pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --extra ray -c .locks/test.txt pyproject.toml -o .locks/ray.txt
	cd .locks && echo 'pandas' | ../$(UV) pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header - -o notebook.txt
	cd .locks && printf 'atheris==3.0.0; python_version < "3.12"\natheris; python_version >= "3.12"\n' | ../$(UV) pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header - -o night.txt
	cd .locks && echo 'coverage' | ../$(UV) pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header - -o coverage.txt
	cd .locks && echo 'chdb' | ../$(UV) pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header - -o peers.txt

$(VENV)/.uv: .locks/uv.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else f"Readership needs Python 3.11 to 3.13, and $(PYTHON) is {v[0]}.{v[1]}: name another with make PYTHON=python3.12")'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv module: install it (Debian, Ubuntu: apt-get install python3-venv)"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .locks/uv.txt
	@touch $@

$(VENV)/.run: $(VENV)/.uv .locks/run.txt pyproject.toml
	$(UV) pip install --quiet --python $(VENV)/bin/python --compile-bytecode --require-hashes -r .locks/run.txt
	$(UV) pip install --quiet --python $(VENV)/bin/python --no-deps -e .
	@touch $@

# pandas is only for the notebook recipes of docs/analysis.md. It has its own folder, because pyarrow imports pandas wherever it
# is installed, which adds 0.2 s to each of the thousand processes that the tests start.
$(VENV)/.test: $(VENV)/.run .locks/test.txt .locks/notebook.txt
	$(UV) pip install --quiet --python $(VENV)/bin/python --compile-bytecode --require-hashes -r .locks/test.txt
	$(UV) pip install --quiet --python $(VENV)/bin/python --target $(VENV)/notebook --require-hashes -r .locks/notebook.txt
	@touch $@

# Ray, for the tests of `--on ray`, which are skipped without it. It takes 220 MB.
$(VENV)/.ray: $(VENV)/.test .locks/ray.txt
	$(UV) pip install --quiet --python $(VENV)/bin/python --require-hashes -r .locks/ray.txt
	@touch $@

# The fuzzer of `tests/fuzzing`, in a folder of its own: it takes 60 MB, and only `make night` needs it.
$(VENV)/.night: $(VENV)/.test .locks/night.txt .locks/coverage.txt
	$(UV) pip install --quiet --python $(VENV)/bin/python --require-hashes -r .locks/coverage.txt
	$(UV) pip install --quiet --python $(VENV)/bin/python --target $(VENV)/night --require-hashes -r .locks/night.txt
	@touch $@

# The program that `benchmarks/peers/clickhouse.py` compares with. It has its own environment: it takes 900 MB and needs pandas.
$(VENV)/.peers: $(VENV)/.uv .locks/peers.txt
	$(UV) venv --quiet --clear --python $(VENV)/bin/python $(VENV)/peers
	$(UV) pip install --quiet --python $(VENV)/peers/bin/python --require-hashes -r .locks/peers.txt
	@touch $@

clean:
	rm -rf $(VENV)
