# make demo: the whole system on real ROS 2.  make test: the whole suite.  Both set up .venv by themselves.
PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
READY = $(VENV)/.ready
WORKERS ?= 2

.PHONY: demo test lint setup clean

setup: $(READY)

$(READY): setup.py $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --upgrade pip
	$(VENV)/bin/python -m pip install --quiet -c $(CONSTRAINTS) -e '.[ros,test]'
	touch $@

demo: $(READY)
	$(VENV)/bin/uncertainty-depth demo --output demo_output

test: $(READY)
	$(VENV)/bin/python -m pytest -n $(WORKERS) $(PYTEST)

lint: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

clean:
	rm -rf $(VENV) demo_output build install log *.egg-info
