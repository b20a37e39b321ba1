import subprocess
import sys

from uncertainty_depth.experiments.registry import EXPERIMENTS, Experiment


def test_every_name_leads_to_a_run(tmp_path, monkeypatch):
    for name, experiment in EXPERIMENTS.items():
        module = __import__(f"uncertainty_depth.experiments.{experiment.module}", fromlist=["run"])
        called = []
        monkeypatch.setattr(module, "run", lambda *arguments, called=called: called.append(arguments))
        experiment.run(tmp_path / name)
        experiment.run(str(tmp_path / name), quick=True)
        experiment.run(tmp_path / name, seeds=7)
        assert called == [(tmp_path / name, experiment.seeds, False), (tmp_path / name, experiment.quick_seeds, True), (tmp_path / name, 7, False)]


def test_descriptions_are_one_line_each():
    assert set(EXPERIMENTS) >= {"toy-cubic", "toy-sinusoid", "toy-classification", "anchor"}
    assert all(isinstance(experiment, Experiment) and "\n" not in experiment.description for experiment in EXPERIMENTS.values())


def test_names_are_known_without_torch():
    code = "import sys; import uncertainty_depth.experiments.registry; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
