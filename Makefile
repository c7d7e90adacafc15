# The commands of the README. Everything is built inside the checkout; nothing needs root.

PYTHON ?= python3
# Where cargo puts what it builds.
TARGET := $(or $(CARGO_TARGET_DIR),target)
ANDEN := $(TARGET)/release/anden
STEP := .ci/step

.PHONY: help demo test install bench bench-quick fuzz-quick doc format \
	check-tools lint lint-fuzz test-rust test-python release smoke

help:
	@echo 'make demo         load a real graph, analyse it, ask it questions; leaves ./demo.anden'
	@echo 'make test         everything: format, lints, floors, style, tests, demo, fuzzing, quick benchmarks'
	@echo 'make install      put anden on the PATH (PREFIX=DIR: into DIR/bin)'
	@echo 'make doc          the documentation of the crates, in $(TARGET)/doc'
	@echo 'make bench        the benchmarks (hours); bench-quick: on small graphs (minutes)'
	@echo 'make fuzz-quick   100,000 damaged inputs for every parser'
	@echo 'make format       format the Rust code'

demo: release
	@ANDEN=$(ANDEN) demo/run.sh demo.anden

# In the order in which they are likely to fail early.
.NOTPARALLEL:
test: check-tools lint test-python test-rust release smoke
	@$(STEP) 'fuzzing' $(MAKE) --no-print-directory fuzz-quick
	@$(STEP) 'quick benchmarks' $(MAKE) --no-print-directory bench-quick
	@echo 'everything passed'

check-tools:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Python 3.11 or newer is needed'; exit 1; }
	@cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@cargo clippy --version >/dev/null 2>&1 || rustup component add clippy

lint:
	@$(STEP) 'format' cargo fmt --all --check
	@$(STEP) 'floors' cargo xtask floors
	@$(STEP) 'style' cargo xtask tidy
	@$(STEP) 'clippy' cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
	@$(STEP) 'clippy of the rivals' cargo clippy --quiet --package anden-bench --features rivals --locked -- -D warnings
	@$(STEP) 'clippy of the fuzz targets' $(MAKE) --no-print-directory lint-fuzz
	@$(STEP) 'documentation' $(MAKE) --no-print-directory doc

test-rust:
	@$(STEP) 'build of the Rust tests' cargo test --quiet --workspace --locked --no-run
	@$(STEP) 'Rust tests' cargo test --workspace --locked --no-fail-fast

test-python:
	@$(STEP) 'Python tests' $(PYTHON) -m unittest discover --start-directory demo

release:
	@$(STEP) 'release build' cargo build --quiet --release --locked --package anden-cli --package anden-bench

# The demo as a person runs it, then its answers against facts that other code found.
smoke: release
	@ANDEN=$(ANDEN) $(STEP) 'demo' demo/run.sh $(TARGET)/smoke.anden
	@ANDEN=$(ANDEN) $(STEP) 'answers of the demo' $(PYTHON) demo/check_answers.py $(TARGET)/smoke.anden
	@ANDEN=$(ANDEN) $(STEP) 'commands of the README' $(PYTHON) demo/check_readme.py $(TARGET)/smoke.anden

install:
	cargo install --path crates/cli --locked $(if $(PREFIX),--root $(PREFIX))

# GAPBS=DIR compares with GAP's programs, built there; SG=FILE measures on that serialized graph. RIVALS=1 builds
# SQLite and redb and compares transactions with theirs; ROADS=FILE and SOCIAL=FILE are real graphs for these.
BENCH := cargo run --release --quiet --locked --package anden-bench $(if $(RIVALS),--features rivals) --
BENCHMARKS := load kernels snapshots updates live tiers transactions outofcore properties
BENCH_OPTIONS := --json $(if $(GAPBS),--gapbs $(GAPBS)) $(if $(SG),--sg $(SG)) \
	$(if $(ROADS),--roads $(ROADS)) $(if $(SOCIAL),--social $(SOCIAL))

bench:
	@mkdir -p $(TARGET)/bench
	@measured= missing=; for name in $(BENCHMARKS); do \
		if $(BENCH) $$name $(BENCH_OPTIONS) >$(TARGET)/bench/$$name.json; \
		then measured="$$measured $(TARGET)/bench/$$name.json"; else missing="$$missing $$name"; fi; \
	done; \
	$(BENCH) tables $$measured >docs/benchmarks.md && \
	if [ -n "$$missing" ]; then echo "not in docs/benchmarks.md:$$missing" >&2; exit 1; fi

bench-quick: release
	$(TARGET)/release/anden-bench quick

# libFuzzer is written in C++; everything else does without.
WITH_CXX = if command -v c++ >/dev/null; then $(1); else echo 'skipped: fuzzing needs a C++ compiler'; fi

fuzz-quick:
	@$(call WITH_CXX,fuzz/run.sh)

# The fuzz targets are a workspace of their own, so the checks of the other one do not build them.
lint-fuzz:
	@$(call WITH_CXX,cd fuzz && cargo fmt --check && cargo clippy --quiet --all-targets --locked -- -D warnings)

doc:
	RUSTDOCFLAGS='-D warnings' cargo doc --quiet --workspace --no-deps --lib --locked

format:
	cargo fmt --all
