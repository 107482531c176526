# Two commands for a start: make demo, make test. Needs git, make, perl, g++ and Python >= 3.11; the rest comes into .venv.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: pages machines peers benchmarks pictures batches dram package compile-times help setup tools demo quick test test-full torch lint structure cocotb backend-test fuzz docs zoo area area-model families ablation clean board calibrate prove coverage site docs-check notebooks toolchains

BIN := .venv/bin

# Matrix products of layers are small: a second BLAS thread costs more than it brings, 20 times on a busy machine.
export OPENBLAS_NUM_THREADS ?= 1
# Compiled modules are kept, whatever the environment says: a command that tests start takes three quarters of the time.
export PYTHONDONTWRITEBYTECODE :=
INSTALLED := .venv/.installed
# Folders of tests that build no simulator, and the tests of the gateware's units that find most in a second.
QUICK := structure isa compiler/onnx compiler/graph compiler/passes compiler/plan compiler/c \
    sim/values sim/timing rtl/stream rtl/bus runtime/oracle runtime/execution runtime/check runtime/quantise \
    hardware/calibration cli/tables \
    rtl/load/test_load.py::test_random_commands rtl/store/test_store.py::test_random_commands \
    rtl/post/test_post.py rtl/post/test_pooling.py rtl/port/test_dispatcher.py rtl/port/test_window_check.py \
    rtl/array/test_lane.py rtl/array/test_late_counts.py \
    rtl/array/test_mac.py::test_inner_products_are_two_macs_a_cycle_of_each_multiplier_of_a_lane
# The site needs Sphinx, and the notebooks a Jupyter kernel; nothing else does.
DOCS := .venv/.docs
# What the pictures of the documentation are of.
ROOFLINES := resnet18-224 mobilenetv2-224
EXPLORED := lenet5_accel mlperf-resnet8 --objective cycles --objective energy --objective area \
    --limit "mult18<=156" --limit "lut4<=80000" --limit "bram<=208" --jobs 1
# Training needs torch, and so do the tests of its exporters, which are skipped without it.
TORCH := .venv/.torch

# The first Python that is new enough; set PYTHON to choose another.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
    "$$p" -c '$(NEW_ENOUGH)' 2>/dev/null && { echo "$$p"; break; }; done)

comma := ,
define install
@printf 'Installing $(1) '
@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -e '.[$(2)]' 2>&1 \
    | tee .venv/install.log | while read -r _; do printf .; done \
    || { echo ' failed:' >&2; tail -n 20 .venv/install.log >&2; exit 1; }
@echo ' done'
@touch $@
endef

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: tools $(INSTALLED)  ## create .venv with everything in it (again only when pyproject.toml has changed)

demo: setup  ## LeNet-5 end to end: compile, run in RTL, compare with ONNX Runtime, report
	@$(BIN)/tilewright demo

quick: lint  ## lint, and the tests that answer within two minutes: the inner loop
	@$(BIN)/pytest -q -n 2 -m "not slow" $(addprefix tests/,$(QUICK))

test: lint  ## lint, types, and the tests that take seconds
	@$(BIN)/pytest -q -n 2 -m "not slow"

test-full: lint  ## the same, and the tests that build more simulators or synthesise: about an hour on two quiet cores; SLOW=1: these alone
	@echo "About an hour on two quiet cores (docs/decisions/verification.md); SLOW=1 leaves out what make test runs."
	@$(BIN)/pytest -q -n 2 $(if $(SLOW),-m slow)

package: setup  ## dist/: the wheel and the source archive
	@$(BIN)/python -c "from setuptools.build_meta import build_sdist, build_wheel; build_sdist('dist'); build_wheel('dist')"
	@ls dist

torch: $(TORCH)  ## install torch into .venv, for training and for the tests of its exporters; nothing else needs it

lint: setup  ## ruff, mypy, and the limits on the structure
	@$(BIN)/ruff check .
	@$(BIN)/mypy -p tilewright
	@$(BIN)/python -m tests.structure --check

structure: setup  ## figures of the structure: folders, names, functions, imports, start-up; CAUSES=--causes names each
	@$(BIN)/python -m tests.structure $(CAUSES)

cocotb: setup  ## only the cocotb testbenches
	@$(BIN)/pytest -q tests/cocotb

backend-test: setup  ## ONNX's official backend tests, and how many are excluded and why
	@$(BIN)/pytest -q tests/onnx_backend -m "not slow"

fuzz: setup  ## 2000 random CNN graphs and 200 recurrences against ONNX Runtime, 2000 twins, 2000 chains of PULP's tools, 10 million requantisations in RTL, then 5000 damaged files, 10000 random instruction words and 300 hostile programs in RTL; GRAPHS=, RECURRENCES=, TWINS=, CHAINS=, SUMS=, MUTANTS=, WORDS=, STOPS=, SEED=
	@$(BIN)/python -m tests.fuzz.run --graphs $(or $(GRAPHS),2000) --seed $(or $(SEED),0)
	@$(BIN)/python -m tests.fuzz.recurrent_graphs --graphs $(or $(RECURRENCES),200) --seed $(or $(SEED),0)
	@$(BIN)/python -m tests.fuzz.twins --count $(or $(TWINS),2000) --seed $(or $(SEED),0)
	@$(BIN)/python -m tests.fuzz.pulp_chains --chains $(or $(CHAINS),2000) --seed $(or $(SEED),0)
	@$(BIN)/python -m tests.fuzz.requantisations --count $(or $(SUMS),10000000) --seed $(or $(SEED),0)
	@$(BIN)/python -m tests.fuzz.mutate --mutants $(or $(MUTANTS),5000) --seed $(or $(SEED),0)
	@$(BIN)/python -m tests.fuzz.tflite_mutants --mutants $(or $(MUTANTS),5000) --seed $(or $(SEED),0)
	@$(BIN)/python -m tests.fuzz.machine_code --words $(or $(WORDS),10000) --seed $(or $(SEED),0)
	@$(BIN)/python -m tests.cocotb.stop --hostile $(or $(STOPS),300) --stops $(or $(STOPS),300) --seed $(or $(SEED),0)

prove: setup  ## prove properties of the gateware for all inputs, and regenerate docs/proofs.md (minutes); PROOFS= selects some
	@$(BIN)/python -m tilewright.hardware.proofs.proofs_page $(or $(PROOFS),-o docs/proofs.md)

coverage: setup  ## functional points, lines and toggles of words and networks in RTL, written to docs/coverage.md (ten minutes); WORDS=, SEED=
	@$(BIN)/python -m tests.coverage.coverage_page --words $(or $(WORDS),1000) --seed $(or $(SEED),0) -o docs/coverage.md

compile-times: setup  ## seconds for compiling 20,000 Relu and NanoDet-m, or FILES=; each has a limit
	@$(BIN)/python -m tests.compile_times $(FILES)

docs: setup  ## regenerate docs/isa.md, commands.md, operators.md, normal-form.md, errors.md, technologies.md and the pictures from the code
	@for page in isa=tilewright.cli.reference.isa_page commands=tests.support.emit_commands operators=tilewright.compiler.operators_page errors=tests.support.emit_errors \
	    normal-form=tilewright.compiler.normal_form_page technologies=tilewright.energy.technologies_page; do \
	    $(BIN)/python -m "$${page#*=}" > "docs/$${page%=*}.new" || exit 1; \
	    mv "docs/$${page%=*}.new" "docs/$${page%=*}.md"; done
	@$(BIN)/python -m tilewright.cli.reference.block_picture docs/pictures/*.toml

site: $(DOCS)  ## build the documentation as a site, in out/site
	@$(BIN)/python -m sphinx -W --keep-going -q -b html -d out/.site docs out/site
	@echo "out/site/index.html"

pictures: $(DOCS)  ## redraw docs/pictures/roofline.svg and front.svg: two predicted networks, an exploration of 300 designs (minutes)
	@mkdir -p out/pictures
	@for model in $(ROOFLINES); do $(BIN)/tilewright run "$$model" --engine cycles --json "out/pictures/$$model.json" -q; done
	@$(BIN)/python -m tilewright.bench.pictures.roofline_picture $(ROOFLINES:%=out/pictures/%.json) docs/pictures/roofline.svg
	@$(BIN)/tilewright explore $(EXPLORED) --trials 300 --seed 1 --no-verify -o out/pictures/explored
	@$(BIN)/python -m tilewright.bench.pictures.front_picture out/pictures/explored docs/pictures/front.svg

notebooks: $(DOCS)  ## run examples/notebooks again, in place
	@$(BIN)/python -m tests.support.notebooks

docs-check: setup  ## check every link, anchor, command, option and block of Python in the pages, without running a command
	@$(BIN)/pytest -q tests/docs -m "not slow"

zoo: setup  ## regenerate docs/zoo.md: what every network of docs/zoo.toml costs on nano, base and large, and how exact it is; FRESH=--fresh
	@$(BIN)/python -m tilewright.bench.zoo.zoo docs/zoo.toml docs/zoo.md $(FRESH)
	@$(BIN)/python -m tilewright.compiler.operators_page > docs/operators.new && mv docs/operators.new docs/operators.md

toolchains: setup  ## regenerate docs/toolchains.md: six networks as the quantisers of others write them (an hour and some gigabytes, once); TOOLS="--tool nncf"
	@$(BIN)/python -m tilewright.bench.toolchains docs/toolchains.md $(TOOLS)

machines: setup  ## regenerate docs/machines.md: empty environments of every Python of the PATH, with the newest wheels (minutes); MACHINES="--python FILE"
	@$(BIN)/python -m tests.machines.machines_page docs/machines.md $(MACHINES)

peers: setup  ## regenerate docs/peers.md: our cycles beside those that Vela estimates for an Ethos-U55 (needs the extra peers; minutes)
	@$(BIN)/python -m tilewright.bench.peers docs/peers.md

benchmarks: setup  ## regenerate docs/benchmarks.md and docs/energy.md (hours; what has been run is kept)
	@$(BIN)/tilewright bench --energy docs/energy.md

pages: docs area area-model families batches benchmarks coverage dram machines peers prove toolchains zoo  ## regenerate every generated page: most of a day; each names its command, commit and computer

area-model: setup  ## fit the area model again, and regenerate docs/area-model.md; synthesises machines that measured.json lacks (minutes each)
	@$(BIN)/python -m tilewright.hardware.area_model.measure_area
	@$(BIN)/python -m tilewright.hardware.area_model.make_area_model docs/area-model.md

area: setup  ## regenerate docs/area.md: synthesis, place and route of every machine (an hour, once)
	@$(BIN)/python -m tilewright.hardware.synthesis.area_page docs/area.md

families: setup  ## regenerate docs/families.md: nano and base on seven FPGA families, synthesised (hours, once)
	@$(BIN)/python -m tilewright.hardware.synthesis.area_page --families docs/families.md

ablation: setup  ## regenerate docs/ablation.md: what each instruction and unit earns (minutes; with TARGET=ecp5-85k also area, an hour, once)
	@$(BIN)/tilewright ablate lenet5 vgg16-32 resnet18-32 --machine nano --machine base $(if $(TARGET),--target $(TARGET)) -o docs/ablation.md

dram: setup  ## regenerate docs/dram.md: the cost of DRAM for each network, predicted and in RTL (half an hour, once)
	@$(BIN)/python -m tilewright.bench.memory.dram_page docs/dram.md

batches: setup  ## regenerate docs/batches.md: cycles per image of batches, predicted and in RTL (half an hour, once)
	@$(BIN)/python -m tilewright.bench.batch.batches_page docs/batches.md

board: setup  ## build the bitstream of LeNet-5 on a ULX3S-85F, in out/ulx3s (some minutes, once)
	@$(BIN)/tilewright board ulx3s build -o out/ulx3s

calibrate: setup  ## measure energy prices of our blocks at gate level: twenty minutes of processor time; finished steps are kept
	@$(BIN)/tilewright calibrate --tech osu018 -o out/calibration
	@$(BIN)/tilewright calibrate --tech sky130 -o out/calibration-sky130

clean:  ## remove the files that the tools wrote, except .venv
	@rm -rf out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

tools:
	@for tool in perl g++; do command -v "$$tool" >/dev/null || { \
	    echo "Verilator needs $$tool on the PATH, and it is not there: install it and run make again." >&2; exit 1; }; done
	@# A checkout or archive without symbolic links has text files in their place.
	@for floor in bench cli compiler energy hardware isa models rtl runtime sim tools; do [ -d "tilewright/$$floor" ] || \
	    ln -sfn "../$$floor" "tilewright/$$floor"; done

$(INSTALLED): pyproject.toml
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	    [ -n "$(PYTHON)" ] || { echo "Tilewright needs Python >= 3.11, and the PATH has" \
	        "$$(python3 --version 2>/dev/null || echo none): install one, or name one with make PYTHON=…" >&2; exit 1; }; \
	    echo "Creating .venv with $$($(PYTHON) --version) …"; \
	    $(PYTHON) -m venv --clear .venv; \
	fi
	@$(BIN)/python -c '$(NEW_ENOUGH)' || { echo "Tilewright needs Python >= 3.11, and .venv has" \
	    "$$($(BIN)/python --version): remove .venv and run make again." >&2; exit 1; }
	$(call install,Tilewright and its tools into .venv (1 GB$(comma) a minute or two),dev$(comma)synth$(comma)prove)

$(DOCS): $(INSTALLED)
	$(call install,Sphinx and Jupyter,dev$(comma)synth$(comma)prove$(comma)docs)

$(TORCH): $(INSTALLED)
	$(call install,torch and scikit-learn (up to 6 GB),dev$(comma)synth$(comma)prove$(comma)train)
