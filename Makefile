# make demo: the whole system on real ROS 2.  make test: the whole suite.  Each sets up .venv.
# make next-door: the tests of the papers' experiments and of the benchmarks.
# make setup: all that these tests need.
PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
WORKERS ?= 2
CODE = uncertainty_depth synthetic experiments benchmarks launch test docs
INSTALL = $(VENV)/bin/python -m pip install -c $(CONSTRAINTS)
PIP = $(INSTALL) --quiet

# What is installed, and the file that says so: the demo needs neither the tests nor their peers,
# nor the sampler of two experiments (0.4 GB).
RUN = $(VENV)/.run
TEST = $(VENV)/.test
LINT = $(VENV)/.lint
DOCS = $(VENV)-docs/.docs

.PHONY: demo test next-door lint types docs setup clean

setup: $(TEST)

# Without a GPU the torch for the CPU, which is 1.9 GB smaller; if its index cannot be reached, the
# other serves. This one says what it does: it downloads most.
CPU_TORCH = $(if $(shell command -v nvidia-smi),,--no-deps --retries 0 --timeout 20 \
    --index-url https://download.pytorch.org/whl/cpu torch)

$(RUN): setup.py $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(if $(CPU_TORCH),$(INSTALL) $(CPU_TORCH) || true)
	$(INSTALL) -e '.[network,ros]'
	touch $@

$(TEST): $(RUN)
	$(PIP) -e '.[network,ros,experiments,test]'
	touch $@

$(LINT): $(RUN)
	$(PIP) -e '.[pretrained,ros,lint]'
	touch $@

# The site reads the sources and imports nothing: neither torch nor ROS is needed.
$(DOCS): setup.py $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet -c $(CONSTRAINTS) -e '.[docs]'
	touch $@

demo: $(RUN)
	$(VENV)/bin/python -m synthetic --output demo_output

test: $(TEST)
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST)

next-door: $(TEST)
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal synthetic experiments benchmarks

lint: $(LINT)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ament_flake8 --config .flake8 $(CODE)
	$(VENV)/bin/ament_pep257 --convention google --add-ignore D105 D107 D415 -- uncertainty_depth launch
	$(VENV)/bin/python docs/tools/check_pages.py
	$(VENV)/bin/python -c 'from catkin_pkg.package import parse_package; parse_package(".")'

types: $(LINT)
	$(VENV)/bin/mypy uncertainty_depth synthetic experiments benchmarks

docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) $(VENV)-docs demo_output site build install log *.egg-info
