# The commands of the README. Everything is built inside the checkout; nothing needs root.

PYTHON ?= python3
# Where cargo puts what it builds.
TARGET := $(or $(CARGO_TARGET_DIR),target)
ANDEN := $(TARGET)/release/anden
STEP := .ci/step
# `anden --version` names the commit; a build by cargo alone does not.
COMMIT := ANDEN_COMMIT=$(shell git rev-parse --short HEAD 2>/dev/null)
BUILD := $(COMMIT) cargo build --quiet --release --locked
# Where `make install` puts things. cargo's folder is on the PATH already.
PREFIX ?= $(or $(CARGO_HOME),$(HOME)/.cargo)
INSTALLED := bin/anden share/bash-completion/completions/anden share/zsh/site-functions/_anden \
	share/fish/vendor_completions.d/anden.fish

.PHONY: help demo test install uninstall bench bench-quick fuzz-quick soak miri asan doc docs format wheel \
	check-tools lint lint-fuzz test-rust test-python test-py-package program release smoke

help:
	@echo 'make demo         load a real graph, analyse it, ask it questions; leaves ./demo.anden'
	@echo 'make test         everything: format, lints, floors, style, tests, demo, fuzzing, quick benchmarks'
	@echo 'make install      put anden on the PATH, with man pages and completions (PREFIX=DIR: below DIR);'
	@echo '                  make uninstall takes them away'
	@echo 'make wheel        the Python package, in $(TARGET)/wheels (ZIG=1: for systems with an old glibc)'
	@echo 'make doc          the documentation of the crates, in $(TARGET)/doc; docs: that of the Python package'
	@echo 'make bench        the benchmarks (hours); bench-quick: on small graphs (minutes)'
	@echo 'make fuzz-quick   100,000 damaged inputs for every parser'
	@echo 'make soak         all work on one database for SECONDS (300), without growth of resources'
	@echo 'make miri         small tests of unsafe code under Miri, with a nightly compiler'
	@echo 'make asan         the Rust tests under AddressSanitizer'
	@echo 'make format       format the Rust code'

demo: program
	@ANDEN=$(ANDEN) demo/run.sh demo.anden

# In the order in which they are likely to fail early.
.NOTPARALLEL:
test: check-tools lint test-python test-rust release smoke test-py-package
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

# The wheel shares the release build of the program.
test-py-package:
	@env $(COMMIT) PYTHON=$(PYTHON) $(STEP) 'Python package' python/run_tests

# One wheel serves CPython 3.11 and newer. Zig links against the glibc of 2014.
WHEEL := $(TARGET)/wheels
wheel:
	@test -x $(TARGET)/wheel-tools/bin/pip || $(PYTHON) -m venv $(TARGET)/wheel-tools
	@$(TARGET)/wheel-tools/bin/pip install --quiet --disable-pip-version-check 'maturin>=1.16,<2' $(if $(ZIG),ziglang)
	@rm -rf $(WHEEL)
	@PATH=$(abspath $(TARGET)/wheel-tools/bin):$$PATH env $(COMMIT) maturin build --release --locked --out $(WHEEL) \
		$(if $(ZIG),--zig --compatibility manylinux2014)
	@$(PYTHON) python/check_wheel.py $(WHEEL)/*.whl

program:
	@$(STEP) 'build of anden' env $(BUILD) --package anden-cli

release:
	@$(STEP) 'release build' env $(BUILD) --package anden-cli --package anden-bench

# The demo as a person runs it, its answers against facts that other code found, and the commands of the pages.
smoke: release
	@ANDEN=$(ANDEN) $(STEP) 'demo' demo/run.sh $(TARGET)/smoke.anden
	@ANDEN=$(ANDEN) $(STEP) 'answers of the demo' $(PYTHON) demo/check_answers.py $(TARGET)/smoke.anden
	@ANDEN=$(ANDEN) $(STEP) 'commands of the pages' $(PYTHON) demo/check_pages.py $(TARGET)/smoke.anden

# Without debug information, the program has a seventh of the size.
install: program
	@install -D -s -m 755 $(ANDEN) $(PREFIX)/bin/anden
	@mkdir -p $(PREFIX)/share/man/man1 && $(ANDEN) man $(PREFIX)/share/man/man1
	@for shell in bash zsh fish; do $(ANDEN) completions $$shell >$(TARGET)/anden.$$shell || exit 1; done
	@install -D -m 644 $(TARGET)/anden.bash $(PREFIX)/share/bash-completion/completions/anden
	@install -D -m 644 $(TARGET)/anden.zsh $(PREFIX)/share/zsh/site-functions/_anden
	@install -D -m 644 $(TARGET)/anden.fish $(PREFIX)/share/fish/vendor_completions.d/anden.fish
	@echo 'installed $(PREFIX)/bin/anden, man pages and completions'

uninstall:
	@cd $(PREFIX) && rm -f $(INSTALLED) share/man/man1/anden.1 share/man/man1/anden-*.1

# GAPBS=DIR compares with GAP's programs, built there; SG=FILE measures on that serialized graph. RIVALS=1 builds
# SQLite and redb and compares transactions with theirs; ROADS=FILE and SOCIAL=FILE are real graphs for these. DATA=DIR
# adds the graphs in a directory to the family, and PEERS=EXECUTABLE the libraries of that Python.
BENCH := cargo run --release --quiet --locked --package anden-bench $(if $(RIVALS),--features rivals) --
BENCHMARKS := load kernels snapshots updates live tiers transactions outofcore properties family
BENCH_OPTIONS := --json $(if $(GAPBS),--gapbs $(GAPBS)) $(if $(SG),--sg $(SG)) \
	$(if $(ROADS),--roads $(ROADS)) $(if $(SOCIAL),--social $(SOCIAL))
FAMILY_OPTIONS := --json $(if $(GAPBS),--gapbs $(GAPBS)) $(if $(DATA),--data $(DATA)) $(if $(PEERS),--python $(PEERS))

# The two sections of docs/benchmarks.md that are written by hand, the first and the last, are carried over.
bench:
	@mkdir -p $(TARGET)/bench
	@measured= missing=; for name in $(BENCHMARKS); do \
		case $$name in family) options='$(FAMILY_OPTIONS)';; *) options='$(BENCH_OPTIONS)';; esac; \
		if $(BENCH) $$name $$options >$(TARGET)/bench/$$name.json; \
		then measured="$$measured $(TARGET)/bench/$$name.json"; else missing="$$missing $$name"; fi; \
	done; \
	$(BENCH) tables $$measured >$(TARGET)/bench/tables.md && \
	sed -n '/^## Claims/,/^## [a-z]/{/^## [a-z]/!p;}' docs/benchmarks.md >$(TARGET)/bench/claims.md && \
	sed -n '/^## Aims that are not reached/,$$p' docs/benchmarks.md >$(TARGET)/bench/aims.md && \
	{ sed '/^## /,$$d' $(TARGET)/bench/tables.md; cat $(TARGET)/bench/claims.md; \
	sed -n '/^## /,$$p' $(TARGET)/bench/tables.md; echo; cat $(TARGET)/bench/aims.md; } >docs/benchmarks.md && \
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

# `make test` runs it for a minute.
SECONDS ?= 300
soak:
	@ANDEN_SOAK_SECONDS=$(SECONDS) $(STEP) 'soak of $(SECONDS) s' \
		cargo test --quiet --workspace --locked --test soak -- --nocapture

# Miri interprets the program, some hundred times as slowly, and finds undefined behaviour and races of threads. It
# knows no files in memory, so it gets the unsafe code that needs none: the nodes of the memtable, and tables. The
# rules of borrowing are left out for nodes: all of them lie in one allocation, for which Miri would keep every borrow.
MIRI_FLAGS := -Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks
MIRI := $(STEP) 'tests under Miri' cargo +nightly miri test --locked --target-dir $(TARGET)/miri
miri:
	@cargo +nightly miri --version >/dev/null || rustup toolchain install nightly --component miri,rust-src
	@MIRIFLAGS='$(MIRI_FLAGS) -Zmiri-tree-borrows' \
		$(MIRI) --package anden-base --lib -- --skip storage:: memory::tests table::
	@MIRIFLAGS='$(MIRI_FLAGS) -Zmiri-disable-stacked-borrows' \
		$(MIRI) --package anden-memtable --test all -- small_ readers_see versions_outlive the_last_change

# AddressSanitizer stops a program that accesses memory out of bounds, or after its release. Tests that limit or measure
# memory are ignored, and say so. `RUSTC_BOOTSTRAP` lets the stable compiler take the option. A SIGBUS is expected in a test
# of files that are truncated under a map, so its default action stays.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
ASAN := RUSTC_BOOTSTRAP=1 RUSTFLAGS='-Zsanitizer=address --cfg anden_asan' ASAN_OPTIONS=handle_sigbus=0:detect_leaks=0
asan:
	@env $(ASAN) $(STEP) 'Rust tests under AddressSanitizer' \
		cargo test --workspace --tests --locked --no-fail-fast --target $(HOST) --target-dir $(TARGET)/asan

doc:
	RUSTDOCFLAGS='-D warnings' cargo doc --quiet --workspace --no-deps --lib --locked

# The tests make the environment that has the package and pdoc.
docs:
	@PYTHON=$(PYTHON) python/run_tests --collect-only >/dev/null
	@$(TARGET)/python/bin/python python/docs/build.py $(TARGET)/python-docs
	@echo '$(TARGET)/python-docs/index.html'

format:
	cargo fmt --all
